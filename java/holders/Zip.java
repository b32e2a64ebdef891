import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.zip.Deflater;
import java.util.zip.Inflater;

/** java.util.zip: 300 Deflaters and as many Inflaters that are never ended. */
final class Zip {
    private Zip() {}

    public static void main(String[] arguments) throws Exception {
        byte[] data = new byte[100_000];
        new Random(1).nextBytes(data);
        List<Object> open = new ArrayList<>();
        for (int i = 0; i < 300; i++) {
            Deflater deflater = new Deflater();
            byte[] packed = new byte[200_000];
            deflater.setInput(data);
            deflater.finish();
            int length = deflater.deflate(packed);
            Inflater inflater = new Inflater();
            inflater.setInput(packed, 0, length);
            inflater.inflate(new byte[50_000]);
            open.add(deflater);
            open.add(inflater);
        }
        System.out.println("READY");
        System.in.read();
        System.out.println(open.size());
    }
}
