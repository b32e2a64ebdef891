package marusa;

import java.io.File;
import java.io.RandomAccessFile;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.nio.MappedByteBuffer;
import java.nio.channels.FileChannel;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.function.IntUnaryOperator;
import java.util.zip.Inflater;

/**
 * A JVM that leaks in one way at a steady rate, so that a recording of it has one right answer.
 *
 * <pre>
 * kind=loader      class loaders with one class each; 8 KiB is the size of one (an estimate)
 * kind=heap        byte arrays that stay referenced
 * kind=session     objects of a class that stay referenced, each with an array
 * kind=direct      direct buffers that stay referenced
 * kind=unsafe      blocks of sun.misc.Unsafe that are never freed
 * kind=inflater    Inflaters that are used and never ended; 40 KiB is the size of one (an estimate)
 * kind=threads     threads that never end, each 256 KiB deep in its stack
 * kind=mapped      pages of files that stay mapped
 * kind=freed       blocks that are shrunk where they lie: what is freed fits no later request
 * kind=nio         threads of a pool that write ever larger buffers of the heap: the JDK keeps a direct one for each thread
 * kind=code        methods that get compiled, each in a class of its own; 16 KiB is the size of one (an estimate)
 * rate=200k/s      how much of it
 * until=100m       where it stops; else it never does
 * churn=2m/s       garbage on top, which makes the collector run
 * dir=             where mapped files are made, else the temp directory
 * </pre>
 */
public final class Leak {
    private static final int PAGE = 4096;
    private static final int HELD = 64;
    private static final int GARBAGE = 16 << 10;
    private static final int SHRUNK = 64;
    private static final int SESSION = 1 << 10;
    private static final int POOL = 64;
    private static final int HOT = 20_000;
    private static final List<Object> KEPT = new ArrayList<>();
    private static final CountDownLatch NEVER = new CountDownLatch(1);

    /** What is never let go. */
    private static final class Session {
        final byte[] state = new byte[SESSION];
    }

    /** One piece of what leaks. */
    private interface Step {
        void leak(int index) throws Exception;
    }

    private Leak() {
    }

    public static void main(String[] arguments) throws Exception {
        Options options = new Options(arguments, "kind", "rate", "until", "churn", "dir");
        String kind = options.text("kind", "");
        long until = options.bytes("until") == 0 ? Long.MAX_VALUE : options.bytes("until");
        Step step = step(kind, options.text("dir", System.getProperty("java.io.tmpdir")));
        start("leak", options.bytes("rate"), size(kind), until, step);
        byte[][] held = new byte[HELD][];
        start("churn", options.bytes("churn"), GARBAGE, Long.MAX_VALUE, i -> held[i % HELD] = new byte[GARBAGE]);
        Options.ready("");
        options.waitForEnd();
        System.exit(0);
    }

    private static int size(String kind) {
        switch (kind) {
            case "loader": return 8 << 10;
            case "inflater": return 40 << 10;
            case "threads": return 256 << 10;
            case "mapped": return 256 << 10;
            case "direct": return 64 << 10;
            case "session": return SESSION;
            case "nio": return 256 << 10;
            default: return 16 << 10;
        }
    }

    private static Step step(String kind, String dir) throws Exception {
        int size = size(kind);
        switch (kind) {
            case "loader": return i -> KEPT.add(new Generated().define("marusa.Leaked" + i, i));
            case "heap": return i -> KEPT.add(new byte[size]);
            case "session": return i -> KEPT.add(new Session());
            case "direct": return i -> KEPT.add(touched(ByteBuffer.allocateDirect(size)));
            case "unsafe": return unsafe();
            case "inflater": return i -> KEPT.add(inflater());
            case "threads": return i -> thread(i, size);
            case "mapped": return i -> KEPT.add(mapped(dir, size));
            case "freed": return shrunk();
            case "nio": return nio(dir, size);
            case "code": return i -> KEPT.add(hot(i));
            default: throw new IllegalArgumentException("kind=" + kind);
        }
    }

    private static void start(String name, long rate, int size, long until, Step step) {
        if (rate == 0) {
            return;
        }
        Thread thread = new Thread(() -> run(rate, size, until, step), name);
        thread.setDaemon(true);
        thread.start();
    }

    private static void run(long rate, int size, long until, Step step) {
        long start = System.nanoTime();
        long done = 0;
        try {
            for (int index = 0; done < until;) {
                double seconds = (System.nanoTime() - start) / 1e9;
                for (; done < Math.min(until, seconds * rate); done += size) {
                    step.leak(index++);
                }
                Thread.sleep(20);
            }
        } catch (Exception e) {
            throw new IllegalStateException(e);
        }
    }

    private static ByteBuffer touched(ByteBuffer buffer) {
        for (int at = 0; at < buffer.capacity(); at += PAGE) {
            buffer.put(at, (byte) 1);
        }
        return buffer;
    }

    /** sun.misc.Unsafe by reflection: a compiler that builds for Java 8 does not show it. */
    private static final class Raw {
        private final Object unsafe;
        private final Method allocate;
        private final Method reallocate;
        private final Method set;

        Raw() throws ReflectiveOperationException {
            Class<?> type = Class.forName("sun.misc.Unsafe");
            Field field = type.getDeclaredField("theUnsafe");
            field.setAccessible(true);
            unsafe = field.get(null);
            allocate = type.getMethod("allocateMemory", long.class);
            reallocate = type.getMethod("reallocateMemory", long.class, long.class);
            set = type.getMethod("setMemory", long.class, long.class, byte.class);
        }

        long block(long size) throws ReflectiveOperationException {
            long block = (Long) allocate.invoke(unsafe, size);
            set.invoke(unsafe, block, size, (byte) 1);
            return block;
        }

        void shrink(long block, long size) throws ReflectiveOperationException {
            reallocate.invoke(unsafe, block, size);
        }
    }

    private static Step unsafe() throws ReflectiveOperationException {
        Raw raw = new Raw();
        return i -> raw.block(size("unsafe"));
    }

    /** The block before the last one is shrunk: behind it lies the last one, so what is freed does not join the top. */
    private static Step shrunk() throws ReflectiveOperationException {
        Raw raw = new Raw();
        long[] last = {0};
        return i -> {
            long block = raw.block(size("freed"));
            if (last[0] != 0) {
                raw.shrink(last[0], SHRUNK);
            }
            last[0] = block;
        };
    }

    private static Inflater inflater() throws Exception {
        // A stored block of 40,000 bytes makes zlib allocate and fill its window.
        byte[] plain = new byte[40_000];
        Arrays.fill(plain, (byte) 'x');
        byte[] stored = new byte[plain.length + 5];
        stored[0] = 1;
        stored[1] = (byte) plain.length;
        stored[2] = (byte) (plain.length >> 8);
        stored[3] = (byte) ~plain.length;
        stored[4] = (byte) (~plain.length >> 8);
        System.arraycopy(plain, 0, stored, 5, plain.length);
        Inflater inflater = new Inflater(true);
        inflater.setInput(stored, 0, stored.length - 100);
        for (int at = 0; at < plain.length - 200;) {
            int read = inflater.inflate(plain, at, 8000 > plain.length - at ? plain.length - at : 8000);
            if (read == 0) {
                break;
            }
            at += read;
        }
        return inflater;
    }

    private static void thread(int index, int deep) {
        Thread thread = new Thread(null, () -> dive(deep / 64), "leaked-" + index, 1 << 20);
        thread.setDaemon(true);
        thread.start();
    }

    private static long dive(int depth) {
        if (depth > 0) {
            return dive(depth - 1) + 1;
        }
        try {
            NEVER.await();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
        return 0;
    }

    private static MappedByteBuffer mapped(String dir, int size) throws Exception {
        File file = File.createTempFile("leak-", ".mapped", new File(dir));
        file.deleteOnExit();
        try (RandomAccessFile random = new RandomAccessFile(file, "rw")) {
            random.setLength(size);
            MappedByteBuffer buffer = random.getChannel().map(FileChannel.MapMode.READ_WRITE, 0, size);
            touched(buffer);
            return buffer;
        }
    }

    /** Each step one thread of the pool, all of which run from the start, writes `size` more than before. */
    private static Step nio(String dir, int size) throws Exception {
        File file = File.createTempFile("leak-", ".nio", new File(dir));
        file.deleteOnExit();
        FileChannel channel = new RandomAccessFile(file, "rw").getChannel();
        ExecutorService[] pool = new ExecutorService[POOL];
        for (int i = 0; i < POOL; i++) {
            String name = "nio-pool-" + i;
            pool[i] = Executors.newSingleThreadExecutor(work -> daemon(work, name));
            pool[i].submit(() -> { }).get();
        }
        return i -> pool[i % POOL].submit(() -> channel.write(ByteBuffer.allocate((i / POOL + 1) * size), 0)).get();
    }

    private static Thread daemon(Runnable work, String name) {
        Thread thread = new Thread(work, name);
        thread.setDaemon(true);
        return thread;
    }

    private static Object hot(int index) {
        IntUnaryOperator method = new Generated().define("marusa.Hot" + index, index);
        int sum = 0;
        for (int i = 0; i < HOT; i++) {
            sum = method.applyAsInt(sum);
        }
        return sum == 0 ? method : (Object) method;
    }
}
