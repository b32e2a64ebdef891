package bench;

import java.nio.ByteBuffer;

/**
 * The direct buffers of "A Study of Java's Non-Java Memory" (OOPSLA 2010): many are allocated and filled, then dropped, and
 * {@code System.gc()} frees them.
 *
 * <pre>
 * buffers=10000    how many
 * bytes=32768      of each
 * threads=1        that allocate them, each in an arena of malloc of its own
 * </pre>
 *
 * Stages: before, allocated, freed.
 */
public final class DirectBuffers {
    private static final int COLLECTIONS = 5;

    private DirectBuffers() {
    }

    public static void main(String[] arguments) throws Exception {
        Stages given = new Stages(arguments, "buffers", "bytes", "threads");
        int bytes = given.number("bytes", 32 << 10);
        ByteBuffer[] buffers = new ByteBuffer[given.number("buffers", 10_000)];
        Stages.at("before", "");
        fill(buffers, bytes, given.number("threads", 1));
        Stages.at("allocated", "buffers=" + buffers.length + " capacity_bytes=" + capacity(buffers));
        java.util.Arrays.fill(buffers, null);
        // What frees the memory is the reference handler, some time after the collection that found the buffer dead.
        for (int i = 0; i < COLLECTIONS; i++) {
            System.gc();
            Thread.sleep(200);
        }
        Stages.at("freed", "");
    }

    private static void fill(ByteBuffer[] buffers, int bytes, int threads) throws InterruptedException {
        Thread[] workers = new Thread[threads];
        for (int worker = 0; worker < threads; worker++) {
            int first = worker;
            workers[worker] = new Thread(() -> {
                for (int i = first; i < buffers.length; i += threads) {
                    ByteBuffer buffer = ByteBuffer.allocateDirect(bytes);
                    while (buffer.hasRemaining()) {
                        buffer.put((byte) i);
                    }
                    buffers[i] = buffer;
                }
            }, "buffers-" + worker);
            workers[worker].start();
        }
        for (Thread worker : workers) {
            worker.join();
        }
    }

    private static long capacity(ByteBuffer[] buffers) {
        long sum = 0;
        for (ByteBuffer buffer : buffers) {
            sum += buffer.capacity();
        }
        return sum;
    }
}
