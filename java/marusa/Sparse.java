package marusa;

import java.io.File;
import java.io.RandomAccessFile;
import java.nio.MappedByteBuffer;
import java.nio.channels.FileChannel;
import java.util.ArrayList;
import java.util.List;

/**
 * A JVM that touches one byte in each 2 MiB of a large file: a page of data and a page table for each, so that the tables take
 * as much memory as the data.
 *
 * <pre>
 * bytes=16g        of the file, which has no other content and lies in dir= (a tmpfs reads no neighbours)
 * </pre>
 *
 * Prints {@code READY pid}.
 */
public final class Sparse {
    private static final long PART = 1 << 30;
    private static final int STEP = 2 << 20;

    private Sparse() {}

    public static void main(String[] arguments) throws Exception {
        Options options = new Options(arguments, "bytes", "dir");
        File file = File.createTempFile("sparse-", "", new File(options.text("dir", "/dev/shm")));
        List<MappedByteBuffer> parts = new ArrayList<>();
        try (RandomAccessFile access = new RandomAccessFile(file, "rw"); FileChannel channel = access.getChannel()) {
            // What is mapped needs no name any more, and goes with the process.
            if (!file.delete()) {
                throw new IllegalStateException(file + " stays");
            }
            long bytes = options.bytes("bytes");
            access.setLength(bytes);
            for (long at = 0; at < bytes; at += PART) {
                parts.add(channel.map(FileChannel.MapMode.READ_WRITE, at, Math.min(PART, bytes - at)));
            }
        }
        for (MappedByteBuffer part : parts) {
            for (int at = 0; at < part.capacity(); at += STEP) {
                part.put(at, (byte) 1);
            }
        }
        Options.ready("");
        Thread.sleep(Long.MAX_VALUE);
    }
}
