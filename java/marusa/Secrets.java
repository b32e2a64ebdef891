package marusa;

import java.io.File;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.IOException;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.nio.MappedByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.zip.Deflater;

/**
 * Puts texts wherever a process keeps secrets: its heap, malloc's blocks in use and freed, buffers of
 * threads, what it read of files, names of files. Prints READY and waits for the end of its input.
 *
 * <p>Arguments: a file to read, a file to map; what follows is not used. The texts are in the environment: SECRETS, with commas.
 */
public final class Secrets {
    private static final int[] SIZES = {16, 24, 40, 64, 100, 200, 333, 500, 900, 2000, 5000, 70_000, 300_000};
    private static final int THREADS = 4;

    private static final List<Object> KEPT = new ArrayList<>();
    private static final ThreadLocal<byte[]> OWN = new ThreadLocal<>();

    private Secrets() {}

    public static void main(String[] arguments) throws Exception {
        byte[] text = System.getenv("SECRETS").getBytes(StandardCharsets.UTF_8);
        String[] secrets = System.getenv("SECRETS").split(",");
        for (String secret : secrets) {
            inHeap(secret);
            inMalloc(secret.getBytes(StandardCharsets.UTF_8));
            inMalloc(secret.getBytes(StandardCharsets.UTF_16LE));
            inDeflater(secret.getBytes(StandardCharsets.UTF_8));
            System.setProperty("marusa." + secret.length(), secret);
            // The name is copied by malloc, and freed.
            KEPT.add(new File("/nowhere/" + secret + "/" + secret + ".txt").exists());
        }
        inFiles(new File(arguments[0]), new File(arguments[1]));
        inThreads(text, new File(arguments[0]));
        System.out.println("READY");
        while (System.in.read() >= 0) {
            // Until whoever started this ends it.
        }
    }

    private static void inHeap(String secret) {
        StringBuilder twice = new StringBuilder(secret).append(secret);
        KEPT.add(twice);
        KEPT.add(twice.toString());
        KEPT.add(secret.toCharArray());
    }

    /** Blocks of many sizes, every other one freed, and direct buffers. */
    private static void inMalloc(byte[] secret) throws Exception {
        Class<?> kind = Class.forName("sun.misc.Unsafe");
        Field field = kind.getDeclaredField("theUnsafe");
        field.setAccessible(true);
        Object unsafe = field.get(null);
        Method allocate = kind.getMethod("allocateMemory", long.class);
        Method put = kind.getMethod("putByte", long.class, byte.class);
        Method free = kind.getMethod("freeMemory", long.class);
        for (int size : SIZES) {
            for (int round = 0; round < 6; round++) {
                long at = (Long) allocate.invoke(unsafe, (long) size);
                for (int index = 0; index < Math.min(size, 6000); index++) {
                    put.invoke(unsafe, at + index, secret[index % secret.length]);
                }
                if (round % 2 == 1) {
                    free.invoke(unsafe, at);
                }
            }
            ByteBuffer direct = ByteBuffer.allocateDirect(size);
            for (int index = 0; index < size; index++) {
                direct.put(index, secret[index % secret.length]);
            }
            KEPT.add(direct);
        }
    }

    private static void inDeflater(byte[] secret) {
        Deflater deflater = new Deflater();
        deflater.setDictionary(secret);
        deflater.setInput(secret);
        deflater.finish();
        deflater.deflate(new byte[1024]);
        KEPT.add(deflater);
    }

    private static void inFiles(File read, File mapped) throws IOException {
        // More than 8 KiB go through a block of malloc, which is freed (io_util.c, readBytes).
        byte[] bytes = new byte[32 << 10];
        try (FileInputStream in = new FileInputStream(read)) {
            KEPT.add(in.read(bytes));
        }
        KEPT.add(bytes);
        try (FileInputStream in = new FileInputStream(mapped)) {
            MappedByteBuffer map = in.getChannel().map(FileChannel.MapMode.READ_ONLY, 0, mapped.length());
            map.load();
            KEPT.add(map);
        }
    }

    /** A channel copies what a thread reads and writes through a direct buffer that stays with the thread. */
    private static void inThreads(byte[] text, File file) throws InterruptedException {
        List<Thread> threads = new ArrayList<>();
        for (int number = 0; number < THREADS; number++) {
            Thread thread =
                    new Thread(
                            () -> {
                                OWN.set(text.clone());
                                try (FileOutputStream out = new FileOutputStream("/dev/null");
                                        FileInputStream in = new FileInputStream(file)) {
                                    out.getChannel().write(ByteBuffer.wrap(text));
                                    in.getChannel().read(ByteBuffer.allocate(4096));
                                    synchronized (KEPT) {
                                        KEPT.add(text.clone());
                                        KEPT.notifyAll();
                                        while (true) {
                                            KEPT.wait();
                                        }
                                    }
                                } catch (IOException | InterruptedException end) {
                                    throw new IllegalStateException(end);
                                }
                            },
                            "keeper-" + number);
            thread.setDaemon(true);
            thread.start();
            threads.add(thread);
        }
        for (Thread thread : threads) {
            while (thread.getState() != Thread.State.WAITING) {
                Thread.sleep(10);
            }
        }
    }
}
