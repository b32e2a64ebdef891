package bench;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Gives a garbage collector what costs it time, and hardly does anything else: a live set of a given size that slowly changes,
 * and short-lived objects as fast as they can be made.
 *
 * <pre>
 * java bench.LiveSet live=64 threads=2 warm=3 seconds=10
 * </pre>
 *
 * Prints READY when the live set stands and is warm; works for that long on request by a line; prints what it did; ends
 * with its input. Who looks at its pages does so while it waits.
 */
public final class LiveSet {
    /** 64 bytes with compressed pointers, 80 without. */
    private static final int NODE_BYTES = 64;
    private static final int KEPT_NODES = 1023;
    private static final int SHORT_NODES = 127;
    /** One in this many operations replaces a tree of the live set. */
    private static final int CHANGE_EVERY = 64;

    static final class Node {
        Node left;
        Node right;
        Node other;
        long key;
        long a;
        long b;
        long c;
        long d;
    }

    private final Node[] trees;
    private final AtomicLong operations = new AtomicLong();
    private static volatile long sink;

    LiveSet(long liveBytes) {
        trees = new Node[(int) Math.max(1, liveBytes / NODE_BYTES / KEPT_NODES)];
        for (int i = 0; i < trees.length; i++) {
            trees[i] = tree(KEPT_NODES, i);
        }
    }

    /** Another tree in place of one. */
    void replace(int at) {
        trees[at % trees.length] = tree(KEPT_NODES, at);
    }

    private static Node tree(int nodes, long key) {
        if (nodes == 0) {
            return null;
        }
        Node node = new Node();
        node.key = key;
        int below = (nodes - 1) / 2;
        node.left = tree(below, key * 31 + 1);
        node.right = tree(nodes - 1 - below, key * 31 + 2);
        node.other = node.left;
        return node;
    }

    private static long sum(Node node) {
        return node == null ? 0 : node.key + sum(node.left) + sum(node.right);
    }

    /** Each thread changes its own part of the live set and reads in all of it. */
    private void work(int thread, int threads, long endNanos) {
        long random = 88172645463325252L + thread;
        long done = 0;
        long seen = 0;
        int mine = Math.max(1, trees.length / threads);
        while (System.nanoTime() < endNanos) {
            random ^= random << 13;
            random ^= random >>> 7;
            random ^= random << 17;
            int at = (int) ((random >>> 33) % trees.length);
            seen += sum(tree(SHORT_NODES, random));
            for (Node node = trees[at]; node != null; node = (random >>> (node.key & 31) & 1) == 0 ? node.left : node.right) {
                seen += node.key;
            }
            if (++done % CHANGE_EVERY == 0) {
                trees[Math.min(thread * mine + at % mine, trees.length - 1)] = tree(KEPT_NODES, random);
            }
        }
        operations.addAndGet(done);
        sink += seen;
    }

    private void run(int threads, double seconds) throws InterruptedException {
        long end = System.nanoTime() + (long) (seconds * 1e9);
        Thread[] workers = new Thread[threads];
        for (int i = 0; i < threads; i++) {
            int thread = i;
            workers[i] = new Thread(() -> work(thread, threads, end), "worker-" + i);
            workers[i].start();
        }
        for (Thread worker : workers) {
            worker.join();
        }
    }

    /** User and system time of this process so far, in clock ticks: proc_pid_stat(5), fields 14 and 15. */
    private static long[] ticks() throws IOException {
        String stat = new String(Files.readAllBytes(Paths.get("/proc/self/stat")), "ISO-8859-1");
        String[] fields = stat.substring(stat.lastIndexOf(')') + 2).split(" ");
        return new long[] {Long.parseLong(fields[11]), Long.parseLong(fields[12])};
    }

    static double option(String[] args, String name, double otherwise) {
        for (String arg : args) {
            if (arg.startsWith(name + "=")) {
                return Double.parseDouble(arg.substring(name.length() + 1));
            }
        }
        return otherwise;
    }

    public static void main(String[] args) throws Exception {
        int threads = (int) option(args, "threads", 2);
        LiveSet set = new LiveSet((long) (option(args, "live", 64) * (1 << 20)));
        set.run(threads, option(args, "warm", 3));
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
        System.out.println("READY");
        if (input.readLine() == null) {
            return;
        }
        set.operations.set(0);
        long[] before = ticks();
        long startMillis = ManagementFactory.getRuntimeMXBean().getUptime();
        set.run(threads, option(args, "seconds", 10));
        long endMillis = ManagementFactory.getRuntimeMXBean().getUptime();
        long[] after = ticks();
        System.out.println("DONE operations=" + set.operations.get() + " start_ms=" + startMillis + " end_ms=" + endMillis
                + " user_ticks=" + (after[0] - before[0]) + " system_ticks=" + (after[1] - before[1]));
        while (input.readLine() != null) {
            // Until it is closed: the pages are looked at once more.
        }
        if (sink == 42) {
            System.out.println();
        }
    }
}
