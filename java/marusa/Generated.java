package marusa;

import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.util.function.IntUnaryOperator;

/**
 * Makes classes out of nothing, in a class loader each time. To see metaspace and the code cache a JVM needs
 * thousands of classes and hot methods, and no library shall be wanted for that.
 */
final class Generated extends ClassLoader {
    private static final int STEPS = 60;
    /** Four bytes each: with them a method is just below 8,000 bytes, from which on HotSpot compiles none. */
    private static final int OBJECTS = 1980;

    Generated() {
        super(Generated.class.getClassLoader());
    }

    IntUnaryOperator define(String name, int seed) {
        return define(name, seed, false);
    }

    /** Its method makes thousands of objects, each at a place of its own: what it is compiled to takes much room. */
    IntUnaryOperator defineLong(String name, int seed) {
        return define(name, seed, true);
    }

    private IntUnaryOperator define(String name, int seed, boolean isLong) {
        try {
            byte[] file = classFile(name, seed, isLong);
            return (IntUnaryOperator) defineClass(name, file, 0, file.length).getDeclaredConstructor().newInstance();
        } catch (ReflectiveOperationException | IOException e) {
            throw new IllegalStateException(e);
        }
    }

    static byte[] classFile(String name, int seed) throws IOException {
        return classFile(name, seed, false);
    }

    private static byte[] classFile(String name, int seed, boolean isLong) throws IOException {
        Bytes file = new Bytes();
        file.u4(0xCAFEBABE).u4(52).u2(15); // class files of Java 8; the constants are 1 to 14
        file.utf8(name.replace('.', '/')).reference(7, 1); // 1, 2: this class
        file.utf8("java/lang/Object").reference(7, 3); // 3, 4
        file.utf8("java/util/function/IntUnaryOperator").reference(7, 5); // 5, 6
        file.utf8("<init>").utf8("()V").u1(12).u2(7).u2(8); // 7, 8, 9: name and type
        file.u1(10).u2(4).u2(9); // 10: Object.<init>
        file.utf8("applyAsInt").utf8("(I)I"); // 11, 12
        file.utf8("Code"); // 13
        file.utf8("seed " + seed); // 14: makes every constant pool its own
        file.u2(0x21).u2(2).u2(4).u2(1).u2(6).u2(0).u2(2); // public, this, super, one interface, no field, two methods
        file.method(7, 8, new Bytes().u1(0x2a).u1(0xb7).u2(10).u1(0xb1)); // aload_0, invokespecial, return
        file.method(11, 12, isLong ? objects() : arithmetic(seed));
        return file.u2(0).toByteArray();
    }

    private static Bytes objects() throws IOException {
        Bytes code = new Bytes();
        for (int object = 0; object < OBJECTS; object++) {
            code.u1(0xbb).u2(4).u1(0x57); // new java/lang/Object, pop
        }
        return code.u1(0x1b).u1(0xac); // iload_1, ireturn
    }

    /** One straight line, so that no stack map is needed; it differs by seed, so that no two compile to the same. */
    private static Bytes arithmetic(int seed) throws IOException {
        Bytes code = new Bytes().u1(0x1b); // iload_1
        for (int step = 0; step < STEPS; step++) {
            int operator = new int[] {0x60, 0x68, 0x82}[(seed + step) % 3]; // iadd, imul, ixor
            code.u1(0x11).u2((seed * 31 + step * 7919) & 0x7fff | 1).u1(operator); // sipush
        }
        return code.u1(0xac); // ireturn
    }

    private static final class Bytes extends ByteArrayOutputStream {
        private final DataOutputStream out = new DataOutputStream(this);

        Bytes u1(int value) throws IOException {
            out.writeByte(value);
            return this;
        }

        Bytes u2(int value) throws IOException {
            out.writeShort(value);
            return this;
        }

        Bytes u4(int value) throws IOException {
            out.writeInt(value);
            return this;
        }

        Bytes utf8(String text) throws IOException {
            out.writeByte(1);
            out.writeUTF(text);
            return this;
        }

        Bytes reference(int tag, int index) throws IOException {
            return u1(tag).u2(index);
        }

        /** A public method with nothing but its code: at most 2 deep, 2 locals. */
        Bytes method(int name, int descriptor, Bytes code) throws IOException {
            u2(1).u2(name).u2(descriptor).u2(1);
            u2(13).u4(12 + code.size()).u2(2).u2(2).u4(code.size());
            code.writeTo(out);
            return u2(0).u2(0);
        }
    }
}
