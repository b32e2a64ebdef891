package marusa;

import java.io.RandomAccessFile;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.util.Random;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Threads that read at random places of a large array, so that the TLB misses, and threads that live for a moment only,
 * thousands of them.
 *
 * <pre>
 * heap=64m         size of the array
 * workers=1        threads that read it
 * rate=0           threads that are born each second, each of which touches some fresh memory and ends
 * quiet=1          readers rest most of the time
 * rounds=FILE      where the number of rounds that the readers have done is counted, 8 bytes in the order of the machine
 * </pre>
 */
public final class Storm {
    private static final AtomicLong SINK = new AtomicLong();
    private static final AtomicLong ROUNDS = new AtomicLong();
    private static ByteBuffer rounds;

    private Storm() {}

    public static void main(String[] arguments) throws Exception {
        Options options = new Options(arguments, "heap", "workers", "rate", "quiet", "rounds");
        long[] words = new long[(int) Math.min(Integer.MAX_VALUE - 8, options.bytes("heap") / 8)];
        for (int at = 0; at < words.length; at += 512) {
            words[at] = at;
        }
        boolean quiet = options.yes("quiet");
        if (!options.text("rounds", "").isEmpty()) {
            try (RandomAccessFile file = new RandomAccessFile(options.text("rounds", ""), "rw")) {
                rounds = file.getChannel().map(FileChannel.MapMode.READ_WRITE, 0, 8).order(ByteOrder.nativeOrder());
            }
        }
        for (int index = 0; index < options.number("workers"); index++) {
            Thread worker = new Thread(() -> read(words, quiet), "reader-" + index);
            worker.setDaemon(true);
            worker.start();
        }
        if (options.number("rate") > 0) {
            Thread storm = new Thread(() -> storm(options.number("rate")), "storm");
            storm.setDaemon(true);
            storm.start();
        }
        Options.ready("");
        options.waitForEnd();
    }

    private static void read(long[] words, boolean quiet) {
        Random random = new Random(42);
        while (true) {
            long sum = 0;
            for (int round = 0; round < 100_000; round++) {
                sum += words[random.nextInt(words.length)];
            }
            SINK.addAndGet(sum);
            if (rounds != null) {
                rounds.putLong(0, ROUNDS.incrementAndGet());
            }
            if (quiet) {
                pause(50);
            }
        }
    }

    /** In steps of a fiftieth of a second. */
    private static void storm(long rate) {
        long each = Math.max(1, rate / 50);
        while (true) {
            for (long count = 0; count < each; count++) {
                new Thread(Storm::live, "short-lived").start();
            }
            pause(20);
        }
    }

    /** Some stack, some direct memory: page faults of its own. */
    private static void live() {
        ByteBuffer memory = ByteBuffer.allocateDirect(16 << 10);
        for (int at = 0; at < memory.capacity(); at += 4096) {
            memory.put(at, (byte) 1);
        }
        SINK.addAndGet(memory.get(0));
    }

    private static void pause(long milliseconds) {
        try {
            Thread.sleep(milliseconds);
        } catch (InterruptedException ended) {
            Thread.currentThread().interrupt();
        }
    }
}
