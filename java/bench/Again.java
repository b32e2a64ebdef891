package bench;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.Arrays;

/**
 * Runs another program's main again and again in one JVM for a number of seconds: a batch program that lasts as long as it is
 * watched.
 *
 * <pre>
 * java bench.Again SECONDS CLASS METHOD ARGUMENT...
 * </pre>
 *
 * Prints a line a run: its number, and the seconds since the first began. METHOD is a static one that takes the arguments and
 * does not end the JVM. If what it returns has errors (`hasErrors`), or it
 * throws, so does this.
 */
public final class Again {
    private Again() {}

    public static void main(String[] args) throws Exception {
        double seconds = Double.parseDouble(args[0]);
        Method method = Class.forName(args[1]).getMethod(args[2], String[].class);
        String[] rest = Arrays.copyOfRange(args, 3, args.length);
        long start = System.nanoTime();
        long runs = 0;
        System.out.println("READY");
        while (System.nanoTime() - start < seconds * 1e9) {
            Object outcome;
            try {
                outcome = method.invoke(null, (Object) rest);
            } catch (InvocationTargetException thrown) {
                System.out.println("FAILED " + thrown.getCause());
                throw thrown;
            }
            if (outcome != null && hasErrors(outcome)) {
                System.out.println("FAILED the program reports errors");
                System.exit(1);
            }
            runs++;
            System.out.println("RUN " + runs + " " + (System.nanoTime() - start) / 1e9);
        }
        System.out.println("DONE runs=" + runs + " seconds=" + (System.nanoTime() - start) / 1e9);
    }

    private static boolean hasErrors(Object outcome) throws Exception {
        try {
            return Boolean.TRUE.equals(outcome.getClass().getMethod("hasErrors").invoke(outcome));
        } catch (NoSuchMethodException noneToAsk) {
            return false;
        }
    }
}
