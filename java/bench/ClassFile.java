package bench;

import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.util.HashMap;
import java.util.Map;

/**
 * Writes class files, as few of their features as the experiments need. Version 49 (Java 5): every JVM of 8 to 25 loads it, and
 * checks it by inference, so that methods with branches need no stack maps (JVMS 4.10.2).
 */
final class ClassFile {
    private static final int VERSION = 49;
    private static final int PUBLIC = 1;
    private static final int STATIC = 8;
    private static final int STACK_MAX = 8;
    private static final int LOCALS_MAX = 8;

    private final String name;
    private final Bytes constants = new Bytes();
    private final Map<String, Integer> indexes = new HashMap<>();
    private int constantCount = 1;
    private final Bytes fields = new Bytes();
    private int fieldCount;
    private final Bytes methods = new Bytes();
    private int methodCount;

    ClassFile(String name) {
        this.name = name.replace('.', '/');
    }

    /** A class loader for each, so that what it defined can be unloaded. */
    static final class Loader extends ClassLoader {
        Loader() {
            super(ClassFile.class.getClassLoader());
        }

        Class<?> define(String name, byte[] file) {
            return defineClass(name, file, 0, file.length);
        }
    }

    static final class Bytes extends ByteArrayOutputStream {
        private final DataOutputStream out = new DataOutputStream(this);

        Bytes u1(int... values) {
            for (int value : values) {
                write(value);
            }
            return this;
        }

        Bytes u2(int value) {
            return u1(value >> 8, value);
        }

        Bytes u4(int value) {
            return u2(value >> 16).u2(value);
        }

        Bytes text(String text) {
            try {
                out.writeUTF(text);
            } catch (IOException e) {
                throw new IllegalStateException(e);
            }
            return this;
        }

        Bytes all(Bytes other) {
            write(other.buf, 0, other.count);
            return this;
        }
    }

    private int constant(String key, Runnable write) {
        Integer known = indexes.get(key);
        if (known != null) {
            return known;
        }
        write.run();
        indexes.put(key, constantCount);
        return constantCount++;
    }

    int utf8(String text) {
        return constant("u" + text, () -> constants.u1(1).text(text));
    }

    int type(String type) {
        int at = utf8(type);
        return constant("c" + type, () -> constants.u1(7).u2(at));
    }

    int integer(int value) {
        return constant("i" + value, () -> constants.u1(3).u4(value));
    }

    private int member(int tag, String owner, String member, String descriptor) {
        int ownerAt = type(owner);
        int memberAt = utf8(member);
        int descriptorAt = utf8(descriptor);
        int both = constant("n" + member + ":" + descriptor, () -> constants.u1(12).u2(memberAt).u2(descriptorAt));
        return constant("m" + tag + owner + "." + member + descriptor, () -> constants.u1(tag).u2(ownerAt).u2(both));
    }

    int ownField(String field, String descriptor) {
        return member(9, name, field, descriptor);
    }

    int ownMethod(String method, String descriptor) {
        return member(10, name, method, descriptor);
    }

    int method(String owner, String method, String descriptor) {
        return member(10, owner, method, descriptor);
    }

    void field(String field, String descriptor) {
        fields.u2(PUBLIC).u2(utf8(field)).u2(utf8(descriptor)).u2(0);
        fieldCount++;
    }

    void method(String method, String descriptor, boolean isStatic, Bytes code) {
        methods.u2(isStatic ? PUBLIC | STATIC : PUBLIC).u2(utf8(method)).u2(utf8(descriptor)).u2(1);
        methods.u2(utf8("Code")).u4(12 + code.size()).u2(STACK_MAX).u2(LOCALS_MAX).u4(code.size());
        methods.all(code).u2(0).u2(0);
        methodCount++;
    }

    /** A constructor without arguments. */
    void constructor() {
        int object = method("java/lang/Object", "<init>", "()V");
        method("<init>", "()V", false, new Bytes().u1(0x2a, 0xb7).u2(object).u1(0xb1));
    }

    byte[] toBytes() {
        int self = type(name);
        int parent = type("java/lang/Object");
        Bytes file = new Bytes().u4(0xCAFEBABE).u4(VERSION).u2(constantCount).all(constants);
        file.u2(PUBLIC | 0x20).u2(self).u2(parent).u2(0).u2(fieldCount).all(fields).u2(methodCount).all(methods);
        return file.u2(0).toByteArray();
    }
}
