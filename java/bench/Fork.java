package bench;

import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * Starts processes from a heap that is in use, on request: the experiment of 2008, which started /bin/false many times.
 *
 * Argument: how many bytes of the heap are filled with live arrays. It prints "READY", then answers each line of standard input
 * with one line: "fork CHILDREN THREADS", "sweep", "sweep-while CHILDREN". It ends with its input.
 */
final class Fork {
    private static final int ARRAY_BYTES = 256 << 10;
    private static final int PAGE_BYTES = 4096;

    private final byte[][] live;
    private final String[] child;
    private byte value;

    private Fork(long bytes) {
        live = new byte[(int) (bytes / ARRAY_BYTES)][];
        for (int at = 0; at < live.length; at++) {
            live[at] = new byte[ARRAY_BYTES];
        }
        // A small root, as containers have, may have no more than busybox.
        child = new File("/bin/false").canExecute()
            ? new String[] {"/bin/false"} : new String[] {"/bin/busybox", "false"};
    }

    public static void main(String[] arguments) throws Exception {
        Fork fork = new Fork(Long.parseLong(arguments[0]));
        System.out.println("READY " + String.join(" ", fork.child));
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in, "US-ASCII"));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            String[] words = line.split(" ");
            try {
                System.out.println(fork.answer(words));
            } catch (Throwable error) {
                // A launch mechanism that this JDK does not have is an Error.
                System.out.println("FAILED " + words(error));
            }
        }
    }

    private static String words(Throwable error) {
        Throwable cause = error;
        while (cause.getCause() != null) {
            cause = cause.getCause();
        }
        return String.valueOf(cause).replace('\n', ' ');
    }

    private String answer(String[] words) throws IOException, InterruptedException {
        switch (words[0]) {
            case "fork":
                return fork(Integer.parseInt(words[1]), Integer.parseInt(words[2]));
            case "sweep":
                return "swept " + sweep() + " pages " + pages();
            case "sweep-while":
                return sweepWhile(Integer.parseInt(words[1]));
            default:
                throw new IllegalArgumentException("no such command: " + words[0]);
        }
    }

    /** Writes into each page; nanoseconds. */
    private long sweep() {
        value++;
        long started = System.nanoTime();
        for (byte[] array : live) {
            for (int at = 0; at < ARRAY_BYTES; at += PAGE_BYTES) {
                array[at] = value;
            }
        }
        return System.nanoTime() - started;
    }

    private long pages() {
        return (long) live.length * (ARRAY_BYTES / PAGE_BYTES);
    }

    /** One child, started and waited for. The first number is until it was started, the second until it had ended. */
    private void one(long[] times) throws IOException, InterruptedException {
        long started = System.nanoTime();
        Process process = new ProcessBuilder(child).start();
        times[0] = System.nanoTime() - started;
        int status = process.waitFor();
        times[1] = System.nanoTime() - started;
        process.getInputStream().close();
        process.getErrorStream().close();
        process.getOutputStream().close();
        if (status != 1) {
            throw new IllegalStateException("the child ended with " + status + ", not with 1");
        }
    }

    private String fork(int children, int threads) throws IOException, InterruptedException {
        List<long[]> times = new ArrayList<>();
        for (int at = 0; at < children; at++) {
            times.add(new long[2]);
        }
        AtomicInteger next = new AtomicInteger();
        Throwable[] failure = new Throwable[1];
        CountDownLatch done = new CountDownLatch(threads);
        Runnable work = () -> {
            try {
                for (int at = next.getAndIncrement(); at < children; at = next.getAndIncrement()) {
                    one(times.get(at));
                }
            } catch (Throwable error) {
                synchronized (failure) {
                    failure[0] = error;
                }
            } finally {
                done.countDown();
            }
        };
        long started = System.nanoTime();
        for (int at = 1; at < threads; at++) {
            new Thread(work, "forker " + at).start();
        }
        work.run();
        done.await();
        long took = System.nanoTime() - started;
        synchronized (failure) {
            if (failure[0] != null) {
                throw new IOException(failure[0]);
            }
        }
        return "forked " + took + " started " + numbers(times, 0) + " ended " + numbers(times, 1);
    }

    private static String numbers(List<long[]> times, int column) {
        StringBuilder text = new StringBuilder();
        for (long[] time : times) {
            text.append(text.length() == 0 ? "" : ",").append(time[column]);
        }
        return text.toString();
    }

    /** Another thread writes into the heap all the time, while children are started: what it meets is write protected. */
    private String sweepWhile(int children) throws IOException, InterruptedException {
        AtomicBoolean end = new AtomicBoolean();
        CountDownLatch first = new CountDownLatch(1);
        long[] sweeps = new long[2];
        Thread writer = new Thread(() -> {
            while (!end.get()) {
                sweeps[1] += sweep();
                sweeps[0]++;
                first.countDown();
            }
        }, "writer");
        writer.start();
        first.await();
        long[] times = new long[2];
        long[] starts = new long[children];
        try {
            for (int at = 0; at < children; at++) {
                one(times);
                starts[at] = times[0];
            }
        } finally {
            end.set(true);
            writer.join();
        }
        Arrays.sort(starts);
        return "sweeps " + sweeps[0] + " took " + sweeps[1] + " started " + starts[children / 2];
    }
}
