package marusa;

import java.io.File;
import java.io.RandomAccessFile;
import java.nio.MappedByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import javax.tools.JavaCompiler;
import javax.tools.ToolProvider;

/**
 * Compiles sources again and again, as a build server does: much garbage, and much for the JIT to do. Counts its rounds in a file,
 * whose name is the first argument; the second is the directory for classes, the rest are options of javac and sources.
 */
public final class CompileAgain {
    public static void main(String[] arguments) throws Exception {
        String[] options = new String[arguments.length];
        options[0] = "-d";
        System.arraycopy(arguments, 1, options, 1, arguments.length - 1);
        if (!new File(arguments[1]).isDirectory()) {
            throw new IllegalArgumentException(arguments[1]);
        }
        JavaCompiler compiler = ToolProvider.getSystemJavaCompiler();
        try (RandomAccessFile file = new RandomAccessFile(arguments[0], "rw")) {
            MappedByteBuffer rounds = file.getChannel().map(FileChannel.MapMode.READ_WRITE, 0, 8);
            rounds.order(ByteOrder.nativeOrder());
            for (long round = 1;; round++) {
                if (compiler.run(null, null, null, options) != 0) {
                    throw new IllegalStateException("javac failed");
                }
                rounds.putLong(0, round);
                if (round == 1) {
                    System.out.println("READY");
                }
            }
        }
    }
}
