package marusa;

import java.io.File;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.ByteBuffer;
import java.nio.MappedByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.function.IntUnaryOperator;
import java.util.zip.DataFormatException;
import java.util.zip.Deflater;
import java.util.zip.Inflater;

/**
 * A JVM whose memory is known in advance: each option fills one area by about the amount asked for, so that a
 * test can start any JDK with any collector and compare what Marusa says with what was put there.
 *
 * <pre>
 * heap=200m        live data: maps, strings, arrays small and humongous
 * threads=20       "load-0" to "load-19", some of them a thousand frames deep
 * direct=64m       direct buffers of 4 KiB to 4 MiB, touched
 * mapped=32m       a file in dir= (else the temp directory), mapped and touched
 * classes=2000     ten to a class loader
 * jit=1            400 hot methods, or as many as the number says
 * deflate=1        a Deflater and an Inflater: malloc through the JDK's own native library
 * garbage=10m/s    allocation that soon dies
 * quiet=1          everything is set up, then nothing moves: no allocation, all threads parked
 * forever=1        ignore standard input; otherwise the program ends when it closes
 * </pre>
 *
 * Prints {@code READY pid} when all of it is there; in a pid namespace that is the pid inside.
 */
public final class Load {
    private static final int CLASSES_PER_LOADER = 10;
    private static final int PAGE = 4096;

    private static volatile Object result; // what the work computes, so that no compiler drops it

    private final Options options;
    private final boolean quiet;
    private final List<Object> live = new ArrayList<>();
    private final List<IntUnaryOperator> methods = new ArrayList<>();

    private Load(Options options) {
        this.options = options;
        this.quiet = options.yes("quiet");
    }

    public static void main(String[] arguments) throws Exception {
        Options options = new Options(arguments, "heap", "threads", "direct", "mapped", "dir", "classes", "jit",
                "deflate", "garbage", "quiet", "forever");
        Load load = new Load(options);
        load.setUp();
        load.settle();
        Options.ready("");
        options.waitForEnd();
        System.exit(0);
    }

    private void setUp() throws Exception {
        fillHeap(options.bytes("heap"));
        fillDirect(options.bytes("direct"));
        if (options.bytes("mapped") > 0) {
            mapFile(options.bytes("mapped"));
        }
        int hot = options.number("jit") == 1 ? 400 : options.number("jit");
        defineClasses(Math.max(options.number("classes"), hot));
        heat(hot);
        for (int i = 0; i < options.number("threads"); i++) {
            int depth = i % 4 == 3 ? 1000 : 10 * i;
            start("load-" + i, () -> descend(depth));
        }
        if (options.yes("deflate")) {
            start("deflate", this::deflate);
        }
        if (options.bytes("garbage") > 0 && !quiet) {
            start("garbage", () -> allocate(options.bytes("garbage")));
        }
    }

    private static void start(String name, Runnable work) {
        Thread thread = new Thread(work, name);
        thread.setDaemon(true);
        thread.start();
    }

    /** Rounds of 256 KiB or so; every 64th a humongous array, for G1's and ZGC's large regions. */
    private void fillHeap(long bytes) {
        Random random = new Random(1);
        for (long filled = 0, round = 0; filled < bytes; round++) {
            if (round % 64 == 63 && bytes - filled > 8 << 20) {
                live.add(new byte[4 << 20]);
                filled += 4 << 20;
            }
            Map<String, int[]> map = new HashMap<>();
            for (int i = 0; i < 1000; i++) {
                map.put("key " + round + ' ' + i, new int[random.nextInt(50)]); // about 220 bytes each
            }
            live.add(map);
            live.add(new long[4096]);
            filled += 1000 * 220 + 4096 * 8;
        }
    }

    private void fillDirect(long bytes) {
        int[] sizes = {4 << 10, 64 << 10, 16 << 10, 1 << 20, 256 << 10, 4 << 20, 100_000};
        long left = bytes;
        for (int i = 0; left > 0; i++) {
            ByteBuffer buffer = ByteBuffer.allocateDirect((int) Math.min(sizes[i % sizes.length], left));
            touch(buffer);
            live.add(buffer);
            left -= buffer.capacity();
        }
    }

    private void mapFile(long bytes) throws IOException {
        File directory = new File(options.text("dir", System.getProperty("java.io.tmpdir")));
        Files.createDirectories(directory.toPath());
        File file = new File(directory, "load-" + Options.pid() + ".mapped");
        file.deleteOnExit();
        try (RandomAccessFile opened = new RandomAccessFile(file, "rw")) {
            MappedByteBuffer buffer = opened.getChannel().map(FileChannel.MapMode.READ_WRITE, 0, bytes);
            touch(buffer);
            live.add(buffer);
        }
    }

    private static void touch(ByteBuffer buffer) {
        for (int at = 0; at < buffer.capacity(); at += PAGE) {
            buffer.put(at, (byte) 1);
        }
    }

    private void defineClasses(int count) {
        Generated loader = null;
        for (int i = 0; i < count; i++) {
            if (i % CLASSES_PER_LOADER == 0) {
                loader = new Generated();
            }
            methods.add(loader.define("generated.Class" + i, i));
        }
    }

    /** Calls each often enough for the last tier of the compiler. */
    private void heat(int count) {
        int sum = 0;
        for (int call = 0; call < 12_000; call++) {
            for (int i = 0; i < count; i++) {
                sum += methods.get(i).applyAsInt(call);
            }
        }
        result = sum;
    }

    private void descend(int depth) {
        if (depth > 0) {
            descend(depth - 1);
            return;
        }
        while (!quiet) {
            Object any = live.isEmpty() ? "" : live.get((int) (System.nanoTime() % live.size()));
            result = any.hashCode();
            pause(20);
        }
        parkForever();
    }

    private void deflate() {
        Deflater deflater = new Deflater(Deflater.BEST_COMPRESSION);
        Inflater inflater = new Inflater();
        live.add(deflater);
        live.add(inflater);
        byte[] plain = new byte[256 << 10];
        byte[] packed = new byte[plain.length + 1024];
        Random random = new Random(2);
        for (int at = 0; at < plain.length; at++) {
            plain[at] = (byte) random.nextInt(8);
        }
        int rounds = 0;
        while (!quiet || rounds++ < 5) {
            deflater.reset();
            deflater.setInput(plain);
            deflater.finish();
            int length = deflater.deflate(packed);
            inflater.reset();
            inflater.setInput(packed, 0, length);
            try {
                result = inflater.inflate(plain);
            } catch (DataFormatException e) {
                throw new IllegalStateException(e);
            }
            pause(200);
        }
        parkForever();
    }

    /** Some of it lives for a second or so, so that the survivor spaces have something to do. */
    private static void allocate(long bytesPerSecond) {
        byte[][] young = new byte[512][];
        Random random = new Random(3);
        long started = System.nanoTime();
        long allocated = 0;
        while (true) {
            long due = (System.nanoTime() - started) / 1000 * bytesPerSecond / 1_000_000;
            while (allocated < due) {
                byte[] piece = new byte[random.nextInt(8192)];
                young[random.nextInt(young.length)] = piece;
                allocated += piece.length + 16;
            }
            pause(10);
        }
    }

    private static void pause(long milliseconds) {
        try {
            Thread.sleep(milliseconds);
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    private static void parkForever() {
        pause(Long.MAX_VALUE);
    }

    /** Waits, up to 20 s, until the compiler and the other threads of a quiet JVM have nothing left to do. */
    private void settle() throws IOException {
        System.gc();
        pause(500);
        long before = -1;
        for (int i = 0; quiet && i < 40 && cpuTicks() - before > 1; i++) {
            before = cpuTicks();
            pause(500);
        }
    }

    private static long cpuTicks() throws IOException {
        String stat = new String(Files.readAllBytes(Paths.get("/proc/self/stat")));
        String[] fields = stat.substring(stat.lastIndexOf(')') + 2).split(" ");
        return Long.parseLong(fields[11]) + Long.parseLong(fields[12]);
    }
}
