package bench;

import java.io.IOException;
import java.util.HashMap;
import java.util.Map;

/**
 * How an experiment and its program take turns: the program prints {@code STAGE name key=value ...} and waits for a line, while its
 * memory is looked at from outside. A program whose standard input closes ends: it has no observer any more.
 */
final class Stages {
    private final Map<String, Long> given = new HashMap<>();

    /** Arguments are {@code key=number}; one that is not known would make an experiment measure something else. */
    Stages(String[] arguments, String... keys) {
        for (String argument : arguments) {
            int at = argument.indexOf('=');
            String key = at < 0 ? argument : argument.substring(0, at);
            if (at < 0 || !java.util.Arrays.asList(keys).contains(key)) {
                System.err.println("not an option: " + argument);
                System.exit(2);
            }
            given.put(key, Long.parseLong(argument.substring(at + 1)));
        }
    }

    int number(String key, int otherwise) {
        return Math.toIntExact(given.getOrDefault(key, (long) otherwise));
    }

    /** Says where the program is, and goes on on request. */
    static void at(String name, String figures) throws IOException {
        say(name, figures);
        int letter;
        do {
            letter = System.in.read();
            if (letter < 0) {
                Runtime.getRuntime().halt(0);
            }
        } while (letter != '\n');
    }

    /** Says where the program is, and goes on. */
    static void say(String name, String figures) {
        System.out.println("STAGE " + name + (figures.isEmpty() ? "" : " " + figures));
        System.out.flush();
    }
}
