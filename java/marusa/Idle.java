package marusa;

import java.nio.file.Paths;

/**
 * A JVM that has started, has collected once so that the collector's tables were written to, and does nothing more. Starts in
 * a third of the time of a quiet {@link Load}, which waits until the compilers are idle: for tests that only ask where the
 * JVM's own reservations lie.
 *
 * <p>Prints {@code READY pid}.
 */
public final class Idle {
    private Idle() {}

    public static void main(String[] arguments) throws Exception {
        System.gc();
        System.out.println("READY " + Paths.get("/proc/self").toRealPath().getFileName());
        System.out.flush();
        Thread.sleep(Long.MAX_VALUE);
    }
}
