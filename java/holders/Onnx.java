import ai.onnxruntime.OrtEnvironment;
import ai.onnxruntime.OrtSession;
import java.io.ByteArrayOutputStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

/** onnxruntime: sessions of a model that adds a tensor of 16 MiB; the model is written here (onnx.proto3). */
final class Onnx {
    private static final int FLOATS = 4 << 20;

    private Onnx() {}

    public static void main(String[] arguments) throws Exception {
        OrtEnvironment environment = OrtEnvironment.getEnvironment();
        List<OrtSession> open = new ArrayList<>();
        byte[] model = model();
        for (int i = 0; i < 3; i++) {
            open.add(environment.createSession(model, new OrtSession.SessionOptions()));
        }
        model = null;
        System.out.println("READY");
        System.in.read();
        System.out.println(open.size());
    }

    private static byte[] model() throws Exception {
        byte[] weights = message(number(1, FLOATS), number(2, 1), bytes(8, text("w")), bytes(9, new byte[FLOATS * 4]));
        byte[] node = message(bytes(1, text("x")), bytes(1, text("w")), bytes(2, text("y")), bytes(4, text("Add")));
        byte[] graph = message(bytes(1, node), bytes(2, text("g")), bytes(5, weights), bytes(11, value("x")),
            bytes(12, value("y")));
        return message(number(1, 8), bytes(7, graph), bytes(8, message(number(2, 13))));
    }

    private static byte[] value(String name) throws Exception {
        byte[] shape = message(bytes(1, message(number(1, FLOATS))));
        byte[] type = message(bytes(1, message(number(1, 1), bytes(2, shape))));
        return message(bytes(1, text(name)), bytes(2, type));
    }

    private static byte[] text(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    private static byte[] message(byte[]... fields) throws Exception {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        for (byte[] field : fields) {
            out.write(field);
        }
        return out.toByteArray();
    }

    private static byte[] number(int field, long value) throws Exception {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        varint(out, field << 3);
        varint(out, value);
        return out.toByteArray();
    }

    private static byte[] bytes(int field, byte[] value) throws Exception {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        varint(out, field << 3 | 2);
        varint(out, value.length);
        out.write(value);
        return out.toByteArray();
    }

    private static void varint(ByteArrayOutputStream out, long value) {
        long rest = value;
        while (rest > 127) {
            out.write((int) (rest & 127 | 128));
            rest >>>= 7;
        }
        out.write((int) rest);
    }
}
