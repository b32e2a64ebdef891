package marusa;

import java.io.FileInputStream;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.function.IntUnaryOperator;

/**
 * A JVM that has something wrong with its memory, on purpose: each option makes one of the faults that {@code marusa doctor} finds.
 *
 * <pre>
 * fill=100m        data that lives, in arrays of piece=
 * zeros=1          fill and later with zeros
 * piece=1m         of all that is in pieces
 * later=100m       the same, after a line on standard input, which is answered with DONE
 * code=200         methods that compile to much, called once each, after that line
 * again=300m       a thread that fills the heap, drops all of it and collects, again and again
 * garbage=300m     arrays that live all together, die, and are collected
 * loaders=10000    class loaders of one class each, that live
 * stacks=200       threads that have used all of their stack once
 * threads=200      threads that wait, and have used next to nothing
 * files=500        open files
 * busy=2           threads that compute without end
 * direct=60m       direct buffers
 * touch=1          a thread that reads all that lives, again and again
 * </pre>
 *
 * Prints {@code READY pid} when all of it is there, and ends with its standard input.
 */
public final class Faults {
    private static final List<Object> LIVE = new ArrayList<>();
    private static int piece = 1 << 20;
    private static boolean isZeros;
    private static volatile int result; // what the work computes, so that no compiler drops it

    private Faults() {
    }

    public static void main(String[] arguments) throws Exception {
        Options options = new Options(arguments, "fill", "later", "garbage", "loaders", "stacks", "threads", "files",
                "busy", "direct", "touch", "zeros", "piece", "code", "again");
        piece = options.bytes("piece") > 0 ? options.number("piece") : piece;
        isZeros = options.yes("zeros");
        fill(LIVE, options.bytes("fill"));
        garbage(options.bytes("garbage"));
        for (int i = 0; i < options.number("loaders"); i++) {
            LIVE.add(new Generated().define("generated.Class" + i, i));
        }
        for (int i = 0; i < options.number("stacks"); i++) {
            start("deep-" + i, () -> descend(0));
        }
        for (int i = 0; i < options.number("threads"); i++) {
            start("idle-" + i, () -> { });
        }
        for (int i = 0; i < options.number("files"); i++) {
            LIVE.add(new FileInputStream("/dev/null"));
        }
        for (long left = options.bytes("direct"); left > 0; left -= piece) {
            ByteBuffer buffer = ByteBuffer.allocateDirect((int) Math.min(left, piece));
            for (int at = 0; at < buffer.capacity(); at += 4096) {
                buffer.put(at, (byte) 1);
            }
            LIVE.add(buffer);
        }
        for (int i = 0; i < options.number("busy"); i++) {
            Thread worker = new Thread(Faults::compute, "busy-" + i);
            worker.setDaemon(true);
            worker.start();
        }
        if (options.yes("touch")) {
            Thread reader = new Thread(Faults::touch, "touch");
            reader.setDaemon(true);
            reader.start();
        }
        if (options.bytes("again") > 0) {
            Thread filler = new Thread(() -> again(options.bytes("again")), "again");
            filler.setDaemon(true);
            filler.start();
        }
        Options.ready("");
        for (int letter = System.in.read(); letter >= 0; letter = System.in.read()) {
            if (letter == '\n') {
                fill(LIVE, options.bytes("later"));
                for (int i = 0; i < options.number("code"); i++) {
                    IntUnaryOperator method = new Generated().defineLong("generated.Long" + i, i);
                    for (int call = 0; call < 4; call++) {
                        result = method.applyAsInt(call);
                    }
                    LIVE.add(method);
                }
                System.out.println("DONE");
            }
        }
        System.exit(0);
    }

    private static void fill(List<Object> into, long bytes) {
        for (long left = bytes; left > 0; left -= piece) {
            byte[] data = new byte[piece - 64];
            if (!isZeros) {
                Arrays.fill(data, (byte) 7);
            }
            into.add(data);
        }
    }

    private static void garbage(long bytes) throws InterruptedException {
        if (bytes > 0) {
            List<Object> garbage = new ArrayList<>();
            fill(garbage, bytes);
            result = garbage.hashCode();
            garbage.clear();
            System.gc();
            Thread.sleep(200);
        }
    }

    /** Runs once, and then waits for ever; returns when its work is done. */
    private static void start(String name, Runnable work) throws InterruptedException {
        Object done = new Object();
        boolean[] isDone = {false};
        Thread thread = new Thread(() -> {
            work.run();
            synchronized (done) {
                isDone[0] = true;
                done.notifyAll();
            }
            while (true) {
                try {
                    Thread.sleep(Long.MAX_VALUE);
                } catch (InterruptedException e) {
                    return;
                }
            }
        }, name);
        thread.setDaemon(true);
        thread.start();
        synchronized (done) {
            while (!isDone[0]) {
                done.wait();
            }
        }
    }

    private static int descend(int depth) {
        try {
            return descend(depth + 1) + 1;
        } catch (StackOverflowError e) {
            return depth;
        }
    }

    private static void touch() {
        while (true) {
            int sum = 0;
            for (Object data : LIVE) {
                for (int at = 0; at < piece - 64; at += 4096) {
                    sum += ((byte[]) data)[at];
                }
            }
            result = sum;
        }
    }

    private static void again(long bytes) {
        while (true) {
            List<Object> garbage = new ArrayList<>();
            fill(garbage, bytes);
            result = garbage.hashCode();
            garbage.clear();
            System.gc();
        }
    }

    private static void compute() {
        int sum = 0;
        while (true) {
            for (int i = 0; i < 1_000_000; i++) {
                sum = sum * 31 + i;
            }
            result = sum;
        }
    }
}
