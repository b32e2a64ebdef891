package marusa;

import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.util.Arrays;

/**
 * Does the same work each time that it is started, and ends: what runs of it differ in is the machine, its noise, and its options.
 *
 * <pre>
 * data=1k        bytes of the heap that are worked on
 * rounds=0       passes over them, each with a megabyte that is allocated and dropped
 * spin=0         percent: after each pass, this share of a pass is repeated, and of its allocation too
 * fail=1         end with exit status 3 when done
 * fork=1         leave a process behind that sleeps
 * wait=0         milliseconds to sleep when done
 * </pre>
 *
 * It prints {@code took N ms} after each pass; at the end {@code rate: N}, passes a second, and {@code cpu: N}, milliseconds of CPU time
 * that the fastest quarter of the passes took at most.
 */
public final class Work {
    private static volatile Object dropped;

    public static void main(String[] arguments) throws Exception {
        Options options = new Options(arguments, "data", "rounds", "spin", "fail", "fork", "wait");
        long bytes = Math.max(1 << 10, options.bytes("data"));
        long rounds = options.number("rounds");
        long spin = options.number("spin");
        long[] data = new long[(int) (bytes / 8)];
        ThreadMXBean threads = ManagementFactory.getThreadMXBean();
        long[] cpu = new long[(int) Math.max(1, rounds)];
        long started = System.nanoTime();
        long sum = 0;
        for (long round = 0; round < rounds; round++) {
            long begun = System.nanoTime();
            long cpuBegun = threads.getCurrentThreadCpuTime();
            sum += pass(data, round, data.length);
            dropped = new byte[1 << 20];
            sum += pass(data, round, (int) (data.length * spin / 100));
            dropped = new byte[(int) ((1 << 20) * spin / 100)];
            cpu[(int) round] = threads.getCurrentThreadCpuTime() - cpuBegun;
            System.out.printf("took %.3f ms%n", (System.nanoTime() - begun) / 1e6);
        }
        double seconds = (System.nanoTime() - started) / 1e9;
        Arrays.sort(cpu);
        System.out.printf("rate: %.3f (%d)%n", rounds / seconds, sum & 1);
        System.out.printf("cpu: %.3f%n", cpu[cpu.length / 4] / 1e6);
        if (options.yes("fork")) {
            new ProcessBuilder("setsid", "sleep", "600").start();
        }
        Thread.sleep(options.number("wait"));
        System.exit(options.yes("fail") ? 3 : 0);
    }

    /** Mixes each number with one far from it. */
    private static long pass(long[] data, long round, int count) {
        long at = round;
        long sum = 0;
        for (int i = 0; i < count; i++) {
            at = at * 6364136223846793005L + 1442695040888963407L;
            int other = (int) ((at >>> 33) % data.length);
            data[i] += data[other] ^ at;
            sum += data[i];
        }
        return sum;
    }

    private Work() {}
}
