package marusa;

import java.nio.file.Paths;
import java.util.ArrayDeque;

/**
 * Gives a collector all its kinds of work and then none: garbage that dies young, a window of objects that grow old, and one
 * call of System.gc(). For tests of what logs say of collections, against the JVM's own counters.
 *
 * <p>Arguments: {@code mb=} how much is allocated, {@code live=} how many MB stay reachable at once. Prints {@code READY pid}.
 */
public final class Churn {
    private static volatile Object sink;

    private Churn() {}

    private static int number(String[] arguments, String name, int otherwise) {
        for (String argument : arguments) {
            if (argument.startsWith(name + "=")) {
                return Integer.parseInt(argument.substring(name.length() + 1));
            }
        }
        return otherwise;
    }

    private static void churn(int megabytes, int live) {
        ArrayDeque<byte[]> window = new ArrayDeque<>();
        for (int at = 0; at < megabytes; at++) {
            for (int part = 0; part < 16; part++) {
                byte[] bytes = new byte[64 * 1024 - 16];
                sink = bytes;
                if (part == 0) {
                    for (int piece = 0; piece < 16; piece++) {
                        window.add(new byte[64 * 1024 - 16]);
                    }
                }
                while (window.size() > 16 * live) {
                    window.poll();
                }
            }
        }
    }

    public static void main(String[] arguments) throws Exception {
        int megabytes = number(arguments, "mb", 200);
        int live = number(arguments, "live", 20);
        churn(megabytes, live);
        System.gc();
        churn(megabytes / 4, live);
        System.out.println("READY " + Paths.get("/proc/self").toRealPath().getFileName());
        System.out.flush();
        Thread.sleep(Long.MAX_VALUE);
    }
}
