package marusa;

import java.io.IOException;
import java.util.function.IntUnaryOperator;

/** Keeps the compilers busy with long methods, each of a class of its own; with an argument only after a line of standard input. */
public final class Compiling {
    private static final int CALLS = 30_000;

    public static void main(String[] arguments) throws IOException {
        System.out.println("READY");
        if (arguments.length > 0) {
            System.in.read();
        }
        int sum = 0;
        for (int at = 0;; at++) {
            IntUnaryOperator method = new Generated().defineLong("marusa.Long" + at, at);
            for (int call = 0; call < CALLS; call++) {
                sum += method.applyAsInt(call);
            }
            if (sum == 42 && at < 0) {
                System.out.println(sum);
            }
        }
    }
}
