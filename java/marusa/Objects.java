package marusa;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;

/**
 * A heap with objects of many classes and sizes, dead ones between them, that is left as it is: what a class histogram is
 * checked with.
 *
 * <pre>
 * bytes=60m        what is held, about
 * copies=1000      Strings of 100 letters that say the same, each with an array of its own
 * </pre>
 *
 * <p>Prints {@code READY pid} and waits for the end of its input.
 */
public final class Objects {
    private static final class Node {
        final Node next;
        int number;
        long wide;

        Node(Node next) {
            this.next = next;
        }
    }

    private static final class Three {
        Object one;
        Object two;
        Object three;
    }

    private static final int LARGE = 1_500_000;
    private static final List<Object> HELD = new ArrayList<>();

    private Objects() {}

    public static void main(String[] arguments) throws Exception {
        Options options = new Options(arguments, "bytes", "copies");
        fill(Math.max(options.bytes("bytes"), 1 << 20));
        String text = new String(new char[100]).replace('\0', 'x');
        for (int copy = 0; copy < options.number("copies"); copy++) {
            HELD.add(new String(text.toCharArray()));
        }
        System.gc();
        Options.ready(" " + HELD.size());
        options.waitForEnd();
    }

    private static void fill(long most) {
        Random random = new Random(1);
        Map<String, Object> map = new HashMap<>();
        Node last = null;
        long bytes = 0;
        for (int round = 1; bytes < most; round++) {
            last = new Node(last);
            map.put("key-" + round, round % 3 == 0 ? new Three() : (Object) (round + 1000));
            bytes += 180;
            if (round % 10 == 0) {
                bytes += held(random, random.nextInt(2000));
            }
            if (round % 50 == 0) {
                HELD.add(new long[random.nextInt(300)]);
                bytes += 1200;
            }
            if (round % 10000 == 0) {
                bytes += held(random, LARGE);
            }
            String.valueOf(random.nextLong());
        }
        HELD.add(last);
        HELD.add(map);
    }

    /** Its content looks like anything. */
    private static int held(Random random, int length) {
        byte[] content = new byte[length];
        random.nextBytes(content);
        HELD.add(content);
        return length;
    }
}
