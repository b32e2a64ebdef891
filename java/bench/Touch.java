package bench;

import java.io.IOException;

/** Does nothing: how long a JVM takes to get here is what is measured. It ends with its input. */
final class Touch {
    private Touch() {
    }

    public static void main(String[] arguments) throws IOException {
        System.out.println("READY");
        while (System.in.read() >= 0) {
            // Any line will do.
        }
    }
}
