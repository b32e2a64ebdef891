package marusa;

import java.io.RandomAccessFile;

/**
 * Reads a file from start to end again and again, so that in a cgroup with little memory its thread must free pages before
 * each it gets. Prints READY when it begins; ends with its standard input.
 */
public final class ReadAgain {
    public static void main(String[] arguments) throws Exception {
        String path = arguments[0];
        Thread reader = new Thread(() -> read(path), "reader of much");
        reader.setDaemon(true);
        reader.start();
        System.out.println("READY");
        while (System.in.read() >= 0) {
            continue;
        }
    }

    private static void read(String path) {
        byte[] bytes = new byte[1 << 16];
        try (RandomAccessFile file = new RandomAccessFile(path, "r")) {
            for (;;) {
                if (file.read(bytes) < 0) {
                    file.seek(0);
                }
            }
        } catch (Exception e) {
            throw new IllegalStateException(e);
        }
    }
}
