package marusa;

import java.nio.ByteBuffer;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;

/**
 * A JVM whose memory grows, or that only seems to: what a recording is to tell apart.
 *
 * <pre>
 * direct=4m/s      direct buffers of 64 KiB, touched and never let go: a leak next to the heap
 * heap=4m/s        byte arrays, never let go
 * churn=40m/s      byte arrays of which the last few megabytes are held: a saw, no leak
 * threads=50       threads that start after five seconds, one each 20 ms, and stay: a step
 * until=200m       what leaks stops here; else it never does
 * </pre>
 */
public final class Grow {
    private static final int BUFFER = 64 << 10;
    private static final int ARRAY = 16 << 10;
    private static final int HELD = 512;
    private static final int STEP_MS = 20;
    private static final int STEP_AFTER_MS = 5000;

    public static void main(String[] arguments) throws Exception {
        Options options = new Options(arguments, "direct", "heap", "churn", "threads", "until");
        long direct = options.bytes("direct");
        long heap = options.bytes("heap");
        long churn = options.bytes("churn");
        long until = options.bytes("until") == 0 ? Long.MAX_VALUE : options.bytes("until");
        int threads = options.number("threads");
        Thread grower = new Thread(() -> grow(direct, heap, churn, until), "grow");
        grower.setDaemon(true);
        grower.start();
        Thread starter = new Thread(() -> startThreads(threads), "starter");
        starter.setDaemon(true);
        starter.start();
        Options.ready("");
        options.waitForEnd();
    }

    private static void grow(long direct, long heap, long churn, long until) {
        if (direct + heap + churn == 0) {
            // Hundreds of these at once would else keep a host busy.
            waitFor(new CountDownLatch(1));
        }
        List<Object> kept = new ArrayList<>();
        ArrayDeque<byte[]> held = new ArrayDeque<>();
        long directDone = 0;
        long heapDone = 0;
        long churnDone = 0;
        long start = System.nanoTime();
        while (true) {
            double seconds = (System.nanoTime() - start) / 1e9;
            for (; directDone < Math.min(until, seconds * direct); directDone += BUFFER) {
                ByteBuffer buffer = ByteBuffer.allocateDirect(BUFFER);
                for (int at = 0; at < BUFFER; at += 4096) {
                    buffer.put(at, (byte) 1);
                }
                kept.add(buffer);
            }
            for (; heapDone < Math.min(until, seconds * heap); heapDone += ARRAY) {
                kept.add(new byte[ARRAY]);
            }
            for (; churnDone < seconds * churn; churnDone += ARRAY) {
                held.add(new byte[ARRAY]);
                if (held.size() > HELD) {
                    held.remove();
                }
            }
            sleep(5);
        }
    }

    private static void startThreads(int threads) {
        sleep(STEP_AFTER_MS);
        CountDownLatch never = new CountDownLatch(1);
        for (int i = 0; i < threads; i++) {
            Thread thread = new Thread(() -> waitFor(never), "step-" + i);
            thread.setDaemon(true);
            thread.start();
            sleep(STEP_MS);
        }
    }

    private static void waitFor(CountDownLatch latch) {
        try {
            latch.await();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    private static void sleep(long milliseconds) {
        try {
            Thread.sleep(milliseconds);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}
