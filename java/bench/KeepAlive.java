package bench;

import java.util.Arrays;

/**
 * Keeps data alive, which changes slowly, and then is another program: a server with a large live set, without a change to it.
 *
 * <pre>
 * java bench.KeepAlive 2048 org.example.Main arguments
 * </pre>
 */
public final class KeepAlive {
    /** One tree of 64 KiB in each: 640 KiB a second. */
    private static final long CHANGE_MILLIS = 100;

    public static void main(String[] args) throws Exception {
        LiveSet set = new LiveSet(Long.parseLong(args[0]) << 20);
        Thread changing = new Thread(() -> change(set), "keep-alive");
        changing.setDaemon(true);
        changing.start();
        String[] rest = Arrays.copyOfRange(args, 2, args.length);
        Class.forName(args[1]).getMethod("main", String[].class).invoke(null, (Object) rest);
    }

    private static void change(LiveSet set) {
        try {
            for (int at = 0; ; at++) {
                set.replace(at);
                Thread.sleep(CHANGE_MILLIS);
            }
        } catch (InterruptedException ended) {
            Thread.currentThread().interrupt();
        }
    }
}
