package marusa;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;

/**
 * The experiment with direct buffers of "A Study of Java's Non-Java Memory" (OOPSLA 2010): many buffers are allocated,
 * filled and dropped, and the collector frees them. malloc then holds memory that is unused and stays resident.
 *
 * <pre>
 * buffers=10000    how many
 * bytes=32k        each
 * threads=1        that allocate them, each in its own arena of malloc
 * kept=0           of each thread's last ones, until the next round: malloc gives what is free at an arena's end back by
 *                  itself, and a buffer that lies there keeps all that is below it with malloc
 * </pre>
 *
 * Prints {@code READY pid} when all buffers were freed. Each line on standard input repeats the experiment, and is
 * answered with {@code FREED}; the program ends when the input closes.
 */
public final class FreedBuffers {
    private static final List<ByteBuffer> KEPT = Collections.synchronizedList(new ArrayList<>());

    private FreedBuffers() {
    }

    public static void main(String[] arguments) throws Exception {
        Options options = new Options(arguments, "buffers", "bytes", "threads", "kept");
        int buffers = options.number("buffers") == 0 ? 10_000 : options.number("buffers");
        int bytes = options.number("bytes") == 0 ? 32 << 10 : options.number("bytes");
        int threads = Math.max(1, options.number("threads"));
        int kept = options.number("kept");
        run(buffers, bytes, threads, kept);
        Options.ready("");
        while (nextLine()) {
            run(buffers, bytes, threads, kept);
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

    private static void run(int buffers, int bytes, int threads, int kept) throws Exception {
        KEPT.clear();
        List<Thread> workers = new ArrayList<>();
        for (int i = 0; i < threads; i++) {
            Thread worker = new Thread(() -> fill(buffers / threads, bytes, kept), "buffers-" + i);
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

    private static void fill(int buffers, int bytes, int kept) {
        List<ByteBuffer> held = new ArrayList<>();
        for (int i = 0; i < buffers; i++) {
            ByteBuffer buffer = ByteBuffer.allocateDirect(bytes);
            for (int at = 0; at < bytes; at += 4096) {
                buffer.put(at, (byte) i);
            }
            held.add(buffer);
        }
        KEPT.addAll(held.subList(buffers - Math.min(kept, buffers), buffers));
    }
}
