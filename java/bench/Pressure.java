package bench;

import java.nio.ByteBuffer;
import java.util.Random;

/**
 * One of two servers that share less memory than both would like to have. Each has a heap that it reads and writes all the time,
 * and now and then a burst of work that needs memory of malloc's for a short time: direct buffers, and the JIT compilers'.
 *
 * <pre>
 * live_mb=96       heap that is in use
 * burst_mb=96      direct buffers of one burst
 * rounds=10        bursts
 * calm_ms=3000     from one burst to the next
 * offset_ms=0      before the first
 * methods=2        that are compiled in each burst
 * threads=4        that take the buffers of a burst, each in an arena of malloc of its own
 * </pre>
 *
 * Stages: ready, done. What is measured is the work between bursts: objects that were visited.
 */
public final class Pressure {
    private static final int BUFFER_BYTES = 32 << 10;
    private static final int OBJECT_BYTES = 1 << 10;

    private Pressure() {
    }

    public static void main(String[] arguments) throws Exception {
        Stages given =
                new Stages(arguments, "live_mb", "burst_mb", "rounds", "calm_ms", "offset_ms", "methods", "threads");
        byte[][] live = new byte[given.number("live_mb", 96) << 10][];
        for (int i = 0; i < live.length; i++) {
            live[i] = new byte[OBJECT_BYTES - 16];
        }
        System.gc();
        CompileHeavy.Work compile = new CompileHeavy.Work(given.number("methods", 2), 120, 12_000);
        Stages.at("ready", "");
        long started = System.nanoTime();
        Thread.sleep(given.number("offset_ms", 0));
        long visits = 0;
        long burstNanoseconds = 0;
        for (int round = 0; round < given.number("rounds", 10); round++) {
            long from = System.nanoTime();
            burst(given.number("burst_mb", 96), given.number("threads", 4));
            compile.round(round);
            burstNanoseconds += System.nanoTime() - from;
            visits += visit(live, given.number("calm_ms", 3000));
        }
        long milliseconds = (System.nanoTime() - started) / 1_000_000;
        Stages.at("done", "work_ms=" + milliseconds + " visits=" + visits + " burst_ms=" + burstNanoseconds / 1_000_000);
    }

    private static void burst(int megabytes, int threads) throws InterruptedException {
        Thread[] workers = new Thread[threads];
        for (int i = 0; i < threads; i++) {
            workers[i] = new Thread(() -> fill(new ByteBuffer[(megabytes << 20) / BUFFER_BYTES / threads]));
            workers[i].start();
        }
        for (Thread worker : workers) {
            worker.join();
        }
        // The reference handler frees what the collector found dead.
        System.gc();
        Thread.sleep(100);
    }

    private static void fill(ByteBuffer[] buffers) {
        for (int i = 0; i < buffers.length; i++) {
            buffers[i] = ByteBuffer.allocateDirect(BUFFER_BYTES);
            for (int at = 0; at < BUFFER_BYTES; at += 512) {
                buffers[i].put(at, (byte) i);
            }
        }
    }

    /** The number of objects visited in the given milliseconds, one after the other in no order. */
    private static long visit(byte[][] live, int milliseconds) {
        Random random = new Random(7);
        long end = System.nanoTime() + milliseconds * 1_000_000L;
        long visits = 0;
        while (System.nanoTime() < end) {
            for (int i = 0; i < 256; i++) {
                byte[] one = live[random.nextInt(live.length)];
                one[i]++;
            }
            visits += 256;
        }
        return visits;
    }
}
