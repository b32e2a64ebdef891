package marusa;

import java.io.File;
import java.io.IOException;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** The {@code key=value} arguments of these programs, and the little else that they share. */
final class Options {
    private final Map<String, String> values = new HashMap<>();

    /** A misspelled key would make a test pass over nothing, so it ends the program. */
    Options(String[] arguments, String... keys) {
        List<String> known = Arrays.asList(keys);
        for (String argument : arguments) {
            int at = argument.indexOf('=');
            if (at < 0 || !known.contains(argument.substring(0, at))) {
                System.err.println("not an option: " + argument + "; known, as key=value: " + known);
                System.exit(2);
            }
            values.put(argument.substring(0, at), argument.substring(at + 1));
        }
    }

    String text(String key, String otherwise) {
        return values.getOrDefault(key, otherwise);
    }

    boolean yes(String key) {
        return number(key) != 0;
    }

    int number(String key) {
        return Math.toIntExact(bytes(key));
    }

    /** {@code 64k}, {@code 200m}, {@code 1g}, or a rate like {@code 10m/s}; 0 if not given. */
    long bytes(String key) {
        String value = text(key, "0").replace("/s", "").toLowerCase();
        int unit = "kmg".indexOf(value.charAt(value.length() - 1));
        if (unit < 0) {
            return Long.parseLong(value);
        }
        return Long.parseLong(value.substring(0, value.length() - 1)) << 10 * (unit + 1);
    }

    /** The pid in the program's own pid namespace; Java 8 has no call for it. */
    static String pid() throws IOException {
        return new File("/proc/self").getCanonicalFile().getName();
    }

    static void ready(String more) throws IOException {
        System.out.println("READY " + pid() + more);
        System.out.flush();
    }

    /** Returns when standard input closes; never with {@code forever=1}. */
    void waitForEnd() throws IOException, InterruptedException {
        if (yes("forever")) {
            Thread.sleep(Long.MAX_VALUE);
        }
        byte[] unread = new byte[64];
        while (System.in.read(unread) >= 0) {
            // Only the end counts.
        }
    }
}
