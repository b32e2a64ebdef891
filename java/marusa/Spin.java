package marusa;

/**
 * Works in registers only: the program that page sizes cannot help.
 *
 * <pre>
 * rounds=100       0 is without end
 * steps=100m       of each round
 * </pre>
 *
 * Prints a line {@code spin NS} a round: nanoseconds of a step. The first round warms up and is not printed. Ends with its
 * standard input, too.
 */
public final class Spin {
    private static volatile long result; // what the work computes, so that no compiler drops it

    public static void main(String[] arguments) throws Exception {
        Options options = new Options(arguments, "rounds", "steps");
        long steps = options.bytes("steps");
        long rounds = options.number("rounds");
        Options.ready("");
        for (long round = 0; rounds == 0 || round <= rounds; round++) {
            long started = System.nanoTime();
            result = spin(steps);
            double nanoseconds = (System.nanoTime() - started) / (double) steps;
            if (round > 0) {
                System.out.printf("spin %.4f%n", nanoseconds);
            }
        }
    }

    /** xorshift64: each step waits for the one before. */
    private static long spin(long steps) {
        long state = 88172645463325252L;
        for (long i = 0; i < steps; i++) {
            state ^= state << 13;
            state ^= state >>> 7;
            state ^= state << 17;
        }
        return state;
    }
}
