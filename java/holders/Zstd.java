import com.github.luben.zstd.ZstdCompressCtx;
import com.github.luben.zstd.ZstdDecompressCtx;
import com.github.luben.zstd.ZstdOutputStream;
import java.io.ByteArrayOutputStream;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;

/** zstd-jni: streams and contexts that are open, each with its tables and windows. */
final class Zstd {
    private Zstd() {}

    public static void main(String[] arguments) throws Exception {
        byte[] data = new byte[4 << 20];
        new Random(1).nextBytes(data);
        List<Object> open = new ArrayList<>();
        for (int i = 0; i < 20; i++) {
            ZstdOutputStream stream = new ZstdOutputStream(new ByteArrayOutputStream(), 9);
            stream.write(data);
            ZstdCompressCtx context = new ZstdCompressCtx().setLevel(3);
            byte[] packed = context.compress(data);
            ZstdDecompressCtx back = new ZstdDecompressCtx();
            back.decompress(packed, data.length);
            open.add(stream);
            open.add(context);
            open.add(back);
        }
        System.out.println("READY");
        System.in.read();
        System.out.println(open.size());
    }
}
