package marusa;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.locks.LockSupport;

/**
 * Native memory of which each block has one right holder (tests/native/held.cpp).
 *
 * <pre>
 * lib=PATH         the library
 * objects=100      instances of Handle with an object each; the static field has one
 * blocks=16        blocks of each object; the library's and the leaked one have as many as all instances together
 * size=8k          bytes of a block
 * leak=1m/s        blocks that are never freed, from a thread of their own
 * churn=1          objects are made and dropped all the time, so that the heap moves
 * hostile=1000     blocks that lead to themselves, to each other and to forged types
 * </pre>
 */
public final class Holding {
    private static final List<Handle> KEPT = new ArrayList<>();
    private static final int LEAKED = 16 << 10;
    private static long shared;

    /** As libraries make them: the address of a native object. */
    private static class Handle {
        final long nativeHandle;

        Handle(long nativeHandle) {
            this.nativeHandle = nativeHandle;
        }
    }

    /** A mapping, a block that is aligned, and one behind a header: of such blocks, one each. */
    private static final class Regions {
        final long mapping;
        final long aligned;
        final long behindHeader;

        Regions(long count, long bytes) {
            mapping = make(4, count, bytes);
            aligned = make(5, count, bytes);
            behindHeader = make(6, count, bytes);
        }
    }

    private static volatile Object dropped;

    private Holding() {
    }

    private static native long make(int kind, long count, long bytes);

    public static void main(String[] arguments) throws Exception {
        Options options = new Options(arguments, "lib", "objects", "blocks", "size", "churn", "hostile", "leak");
        System.load(options.text("lib", ""));
        long objects = options.bytes("objects");
        long blocks = options.bytes("blocks");
        long size = options.bytes("size");
        for (long i = 0; i < objects; i++) {
            KEPT.add(new Handle(make(0, blocks, size)));
        }
        shared = make(1, objects * blocks, size);
        make(2, objects * blocks, size);
        make(8, objects * blocks, size);
        Regions regions = new Regions(objects * blocks, size);
        make(7, options.text("hostile", "").isEmpty() ? 0 : options.bytes("hostile"), size);
        long rate = options.bytes("leak");
        if (rate > 0) {
            Thread leak = new Thread(() -> leak(rate), "native-leak");
            leak.setDaemon(true);
            leak.start();
        }
        if (options.yes("churn")) {
            Thread churn = new Thread(Holding::churn, "churn");
            churn.setDaemon(true);
            churn.start();
            // What is kept has grown old, as in a JVM that has run for some time.
            System.gc();
            System.gc();
        }
        Options.ready("");
        options.waitForEnd();
        if (shared == 0 || regions.mapping == 0) {
            throw new IllegalStateException();
        }
        System.exit(0);
    }

    private static void leak(long rate) {
        long start = System.nanoTime();
        for (long done = 0;; done += LEAKED) {
            long due = start + (long) (1e9 * done / rate);
            LockSupport.parkNanos(Math.max(0, due - System.nanoTime()));
            make(8, 1, LEAKED);
        }
    }

    /** Some survive, so that they are copied and the rest moves up. */
    private static void churn() {
        List<Object> some = new ArrayList<>();
        while (true) {
            dropped = new long[100];
            some.add(new Handle(1));
            if (some.size() == 100_000) {
                some.clear();
            }
        }
    }
}
