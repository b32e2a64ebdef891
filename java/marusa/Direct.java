package marusa;

import java.nio.ByteBuffer;

/**
 * A JVM with many direct buffers of one size, all touched, and nearly nothing else: how much of malloc's memory is known to
 * be theirs.
 *
 * <pre>
 * count=10000      buffers
 * size=32k         bytes of each
 * </pre>
 */
public final class Direct {
    public static void main(String[] arguments) throws Exception {
        Options options = new Options(arguments, "count", "size");
        ByteBuffer[] buffers = new ByteBuffer[options.number("count")];
        int size = options.number("size");
        for (int i = 0; i < buffers.length; i++) {
            ByteBuffer buffer = ByteBuffer.allocateDirect(size);
            for (int at = 0; at < size; at += 4096) {
                buffer.put(at, (byte) 1);
            }
            buffers[i] = buffer;
        }
        Options.ready("");
        options.waitForEnd();
        System.out.println(buffers.length);
    }
}
