package marusa;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;

/**
 * The experiment with direct buffers of "A Study of Java's Non-Java Memory" (OOPSLA 2010): many buffers are allocated,
 * filled and dropped, and the collector frees them. malloc then holds memory that nobody uses and that stays resident.
 *
 * <pre>
 * buffers=10000    how many
 * bytes=32k        each
 * threads=1        that allocate them, each in its own arena of malloc
 * </pre>
 *
 * Prints {@code READY pid} when all buffers were freed. Each line on standard input repeats the experiment, and is
 * answered with {@code FREED}; the program ends when the input closes.
 */
public final class FreedBuffers {
    private FreedBuffers() {
    }

    public static void main(String[] arguments) throws Exception {
        Options options = new Options(arguments, "buffers", "bytes", "threads");
        int buffers = options.number("buffers") == 0 ? 10_000 : options.number("buffers");
        int bytes = options.number("bytes") == 0 ? 32 << 10 : options.number("bytes");
        int threads = Math.max(1, options.number("threads"));
        run(buffers, bytes, threads);
        Options.ready("");
        while (nextLine()) {
            run(buffers, bytes, threads);
            System.out.println("FREED");
        }
        System.exit(0);
    }

    private static boolean nextLine() throws Exception {
        int letter;
        do {
            letter = System.in.read();
        } while (letter >= 0 && letter != '\n');
        return letter >= 0;
    }

    private static void run(int buffers, int bytes, int threads) throws Exception {
        List<Thread> workers = new ArrayList<>();
        for (int i = 0; i < threads; i++) {
            Thread worker = new Thread(() -> fill(buffers / threads, bytes), "buffers-" + i);
            worker.start();
            workers.add(worker);
        }
        for (Thread worker : workers) {
            worker.join();
        }
        // The buffers are freed by the reference handler, some time after the collection.
        for (int i = 0; i < 5; i++) {
            System.gc();
            Thread.sleep(200);
        }
    }

    private static void fill(int buffers, int bytes) {
        List<ByteBuffer> held = new ArrayList<>();
        for (int i = 0; i < buffers; i++) {
            ByteBuffer buffer = ByteBuffer.allocateDirect(bytes);
            for (int at = 0; at < bytes; at += 4096) {
                buffer.put(at, (byte) i);
            }
            held.add(buffer);
        }
    }
}
