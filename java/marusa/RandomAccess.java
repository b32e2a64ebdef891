package marusa;

import java.io.FileInputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.SplittableRandom;

/**
 * Random access to a large array: the program of the Niagara example, whose time goes into address translation on small pages.
 * Each access is to another page of {@code heap}, as far as chance has it.
 *
 * <pre>
 * heap=1g          bytes of the array
 * accesses=20m     of each kind, in each round
 * rounds=3
 * clock=cpu        time of the thread on a CPU, in place of the clock on the wall: neighbours on the machine count less
 * </pre>
 *
 * Prints a line {@code dependent NS independent NS} a round: nanoseconds of an access, where each one waits for the one
 * before, and where none does. The first round warms up and is not printed.
 */
public final class RandomAccess {
    private static final int PIECE = 1 << 24; // longs; one array of long cannot be larger than 16 GiB, nor G1's regions
    private static final byte[] LINE = new byte[128]; // what is allocated while it is measured is little
    private static boolean byCpu;
    private static volatile long result; // what the work computes, so that no compiler drops it

    public static void main(String[] arguments) throws Exception {
        Options options = new Options(arguments, "heap", "accesses", "rounds", "clock");
        byCpu = options.text("clock", "").equals("cpu");
        long longs = Long.highestOneBit(options.bytes("heap") / 8);
        if (longs < 1 << 16) {
            System.err.println("heap= must be at least 512k");
            System.exit(2);
        }
        long[][] pieces = fill(longs);
        Options.ready("");
        for (int round = 0; round <= options.number("rounds"); round++) {
            double dependent = time(true, pieces, longs, options.bytes("accesses"));
            double independent = time(false, pieces, longs, options.bytes("accesses"));
            if (round > 0) {
                System.out.printf("dependent %.3f independent %.3f%n", dependent, independent);
            }
        }
    }

    /** Random numbers, so that each value leads to a random place. */
    private static long[][] fill(long longs) {
        SplittableRandom random = new SplittableRandom(1);
        long[][] pieces = new long[(int) Math.max(1, longs / PIECE)][(int) Math.min(longs, PIECE)];
        for (long[] piece : pieces) {
            for (int i = 0; i < piece.length; i++) {
                piece[i] = random.nextLong();
            }
        }
        return pieces;
    }

    private static double time(boolean dependent, long[][] pieces, long longs, long accesses) throws IOException {
        long started = now();
        result = dependent ? chase(pieces, longs - 1, accesses) : sum(pieces, longs - 1, accesses);
        return (now() - started) / (double) accesses;
    }

    /** Nanoseconds. The kernel's figure for the thread is brought up to date once a tick (Documentation/scheduler/sched-stats.rst). */
    private static long now() throws IOException {
        if (!byCpu) {
            return System.nanoTime();
        }
        try (FileInputStream file = new FileInputStream("/proc/thread-self/schedstat")) {
            int length = file.read(LINE);
            String line = new String(LINE, 0, length, StandardCharsets.US_ASCII);
            return Long.parseLong(line.substring(0, line.indexOf(' ')));
        }
    }

    /** The counter keeps the chase from ending in a short circle. */
    private static long chase(long[][] pieces, long mask, long accesses) {
        long at = 1;
        for (long i = 0; i < accesses; i++) {
            long index = (at + i * 0x9e3779b97f4a7c15L >>> 20) & mask;
            at = pieces[(int) (index / PIECE)][(int) (index % PIECE)];
        }
        return at;
    }

    private static long sum(long[][] pieces, long mask, long accesses) {
        long sum = 0;
        long state = 1;
        for (long i = 0; i < accesses; i++) {
            state = state * 6364136223846793005L + 1442695040888963407L;
            long index = (state >>> 20) & mask;
            sum += pieces[(int) (index / PIECE)][(int) (index % PIECE)];
        }
        return sum;
    }
}
