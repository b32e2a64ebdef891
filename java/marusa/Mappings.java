package marusa;

import java.io.File;
import java.io.RandomAccessFile;
import java.nio.MappedByteBuffer;
import java.nio.channels.FileChannel;
import java.util.ArrayList;
import java.util.List;

/**
 * A JVM with many mappings: how long a reading takes grows with their number, and the benchmark asks how fast.
 *
 * <pre>
 * count=20000      mappings of one page each; the same page of one file, so that the kernel joins none
 * dir=             where the file is made, else the temp directory
 * </pre>
 */
public final class Mappings {
    private static final List<MappedByteBuffer> MAPPED = new ArrayList<>();

    public static void main(String[] arguments) throws Exception {
        Options options = new Options(arguments, "count", "dir");
        File directory = new File(options.text("dir", System.getProperty("java.io.tmpdir")));
        File file = File.createTempFile("load-", ".mapped", directory);
        file.deleteOnExit();
        try (RandomAccessFile random = new RandomAccessFile(file, "rw")) {
            random.setLength(4096);
            for (int i = 0; i < options.number("count"); i++) {
                MappedByteBuffer page = random.getChannel().map(FileChannel.MapMode.READ_ONLY, 0, 4096);
                page.get(0);
                MAPPED.add(page);
            }
        }
        Options.ready("");
        while (System.in.read() >= 0) {
            // Standard input closes when the benchmark is done.
        }
    }
}
