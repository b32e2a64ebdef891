package marusa;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.Arrays;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicLongArray;
import java.util.concurrent.locks.LockSupport;

/**
 * Works on its memory without end, checks what it finds there, and says how long it was kept waiting: the program whose pages are
 * changed under it.
 *
 * <pre>
 * data=800m      bytes that are worked on; each number holds what it must be, and a counter
 * threads=1      that work
 * churn=10m/s    bytes that are allocated and dropped
 * idle=200       threads that wait
 * </pre>
 *
 * It takes lines on its standard input and answers each with one line: {@code start} begins to record; {@code stop} tells, as
 * {@code key=value}, microseconds: the longest time that 64 accesses took and that below which 99.9 % lie, the same for a thread
 * that sleeps 1 ms and does nothing (as jHiccup does), accesses a second in all, and those of the median and the worst 10 ms;
 * {@code check} looks at every number.
 */
public final class Steady {
    private static final int PIECE = 1 << 20;
    private static final int BATCH = 64;
    private static final long COUNTER = (1 << 20) - 1;

    private static long[][] pieces;
    private static long longs;
    private static final AtomicLong wrong = new AtomicLong();
    private static final AtomicLong accesses = new AtomicLong();
    private static volatile Waits work = new Waits();
    private static volatile Waits sleep = new Waits();
    private static volatile Rates rates = new Rates();
    private static volatile Object dropped;

    public static void main(String[] arguments) throws Exception {
        Options options = new Options(arguments, "data", "threads", "churn", "idle");
        longs = options.bytes("data") / 8;
        pieces = new long[(int) (longs / PIECE)][PIECE];
        longs = (long) pieces.length * PIECE;
        for (long i = 0; i < longs; i++) {
            pieces[(int) (i / PIECE)][(int) (i % PIECE)] = expected(i);
        }
        for (int i = 0; i < Math.max(1, options.number("threads")); i++) {
            int seed = i;
            start(() -> work(seed));
        }
        for (int i = 0; i < options.number("idle"); i++) {
            start(() -> {
                while (true) {
                    LockSupport.park();
                }
            });
        }
        start(Steady::sleep);
        start(Steady::watch);
        long churn = options.bytes("churn");
        if (churn > 0) {
            start(() -> churn(churn));
        }
        Options.ready("");
        serve();
    }

    private static void start(Runnable task) {
        Thread thread = new Thread(task);
        thread.setDaemon(true);
        thread.start();
    }

    private static void serve() throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            if (line.equals("start")) {
                work = new Waits();
                sleep = new Waits();
                rates = new Rates();
                System.out.println("STARTED");
            } else if (line.equals("stop")) {
                System.out.println("FIGURES work_worst_us=" + work.worst() / 1000 + " work_p999_us=" + work.below999() / 1000
                        + " sleep_worst_us=" + sleep.worst() / 1000 + " sleep_p999_us=" + sleep.below999() / 1000 + " "
                        + rates.report() + " wrong=" + wrong.get());
            } else if (line.equals("check")) {
                System.out.println("CHECKED wrong=" + (check() + wrong.get()));
            }
            System.out.flush();
        }
    }

    private static long expected(long i) {
        return (i + 1) * 0x9e3779b97f4a7c15L & ~COUNTER;
    }

    private static void work(int seed) {
        long state = seed * 7919L + 1;
        while (true) {
            long started = System.nanoTime();
            for (int i = 0; i < BATCH; i++) {
                state = state * 6364136223846793005L + 1442695040888963407L;
                long index = (state >>> 20) % longs;
                long[] piece = pieces[(int) (index / PIECE)];
                int at = (int) (index % PIECE);
                long found = piece[at];
                if ((found & ~COUNTER) != expected(index)) {
                    wrong.incrementAndGet();
                }
                piece[at] = found & ~COUNTER | found + 1 & COUNTER;
            }
            work.add(System.nanoTime() - started);
            accesses.addAndGet(BATCH);
        }
    }

    private static long check() {
        long bad = 0;
        for (long i = 0; i < longs; i++) {
            if ((pieces[(int) (i / PIECE)][(int) (i % PIECE)] & ~COUNTER) != expected(i)) {
                bad++;
            }
        }
        return bad;
    }

    private static void sleep() {
        while (true) {
            long started = System.nanoTime();
            LockSupport.parkNanos(1_000_000);
            sleep.add(Math.max(0, System.nanoTime() - started - 1_000_000));
        }
    }

    private static void watch() {
        long last = System.nanoTime();
        long before = accesses.get();
        while (true) {
            LockSupport.parkNanos(10_000_000);
            long now = System.nanoTime();
            long done = accesses.get();
            rates.add(done - before, now - last);
            last = now;
            before = done;
        }
    }

    private static void churn(long bytesPerSecond) {
        while (true) {
            for (long made = 0; made < bytesPerSecond / 100; made += 4096) {
                dropped = new byte[4080];
            }
            LockSupport.parkNanos(10_000_000);
        }
    }

    /** Times, in classes of a sixteenth of a power of two. */
    private static final class Waits {
        private final AtomicLongArray counts = new AtomicLongArray(64 * 16);
        private final AtomicLong worst = new AtomicLong();

        void add(long nanos) {
            counts.incrementAndGet(Math.min(counts.length() - 1, (int) (Math.log(Math.max(1, nanos)) / Math.log(2) * 16)));
            if (nanos > worst.get()) {
                worst.set(nanos);
            }
        }

        long worst() {
            return worst.get();
        }

        long below999() {
            long all = 0;
            for (int i = 0; i < counts.length(); i++) {
                all += counts.get(i);
            }
            long below = 0;
            for (int i = 0; i < counts.length(); i++) {
                below += counts.get(i);
                if (below * 1000 >= all * 999) {
                    return (long) Math.pow(2, (i + 1) / 16.0);
                }
            }
            return 0;
        }
    }

    /** Accesses a second, of each 10 ms. */
    private static final class Rates {
        private double[] rates = new double[1024];
        private int count;
        private long accesses;
        private long nanos;

        synchronized void add(long done, long took) {
            if (count == rates.length) {
                rates = Arrays.copyOf(rates, count * 2);
            }
            rates[count++] = done * 1e9 / Math.max(1, took);
            accesses += done;
            nanos += took;
        }

        synchronized String report() {
            double[] sorted = Arrays.copyOf(rates, count);
            Arrays.sort(sorted);
            double median = count == 0 ? 0 : sorted[count / 2];
            double worst = count == 0 ? 0 : sorted[0];
            return "ops_per_s=" + Math.round(accesses * 1e9 / Math.max(1, nanos)) + " median_10ms=" + Math.round(median)
                    + " worst_10ms=" + Math.round(worst) + " seconds=" + nanos / 1e9;
        }
    }
}
