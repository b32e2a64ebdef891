package bench;

import java.lang.reflect.Method;

/**
 * A program that keeps the JIT compilers busy: each round loads a class that is new, with methods that are called
 * until they are compiled, and drops it. What a compiler works in is malloc's memory, taken and freed with each method.
 *
 * <pre>
 * rounds=20        classes
 * methods=6        of each class
 * statements=280   of each method, in a loop
 * calls=12000      of each method
 * </pre>
 *
 * Stages: warm (after one class), done.
 */
public final class CompileHeavy {
    private CompileHeavy() {
    }

    public static void main(String[] arguments) throws Exception {
        Stages given = new Stages(arguments, "rounds", "methods", "statements", "calls");
        Work work = new Work(given.number("methods", 6), given.number("statements", 280), given.number("calls", 12_000));
        int sum = work.round(0);
        Stages.at("warm", "");
        int rounds = given.number("rounds", 20);
        long started = System.nanoTime();
        for (int round = 1; round <= rounds; round++) {
            sum += work.round(round);
        }
        long milliseconds = (System.nanoTime() - started) / 1_000_000;
        Stages.at("done", "work_ms=" + milliseconds + " sum=" + Math.abs((long) sum));
    }

    /** Classes of straight code with branches in a loop; no two of them are alike. */
    static final class Work {
        private final int methods;
        private final int statements;
        private final int calls;

        Work(int methods, int statements, int calls) {
            this.methods = methods;
            this.statements = statements;
            this.calls = calls;
        }

        int round(int number) throws ReflectiveOperationException {
            String name = "bench.generated.Work" + number;
            ClassFile file = new ClassFile(name);
            for (int method = 0; method < methods; method++) {
                file.method("m" + method, "(I[I)I", true, body(file, number * 31 + method));
            }
            file.method("all", "(I[I)I", true, all(file));
            Class<?> made = new ClassFile.Loader().define(name, file.toBytes());
            Method all = made.getMethod("all", int.class, int[].class);
            return (Integer) all.invoke(null, calls, new int[64]);
        }

        /** {@code int sum = 0; while (--n >= 0) { sum += m0(n, a); sum += m1(n, a); ... } return sum;} */
        private ClassFile.Bytes all(ClassFile file) {
            ClassFile.Bytes code = new ClassFile.Bytes().u1(0x03, 0x3d); // iconst_0, istore_2
            int start = code.size();
            code.u1(0x84, 0, 0xff, 0x1a); // iinc 0 -1, iload_0
            int exit = code.size();
            code.u1(0x9b).u2(0); // iflt, patched below
            for (int method = 0; method < methods; method++) {
                // iload_2, iload_0, aload_1, invokestatic, iadd, istore_2
                code.u1(0x1c, 0x1a, 0x2b, 0xb8).u2(file.ownMethod("m" + method, "(I[I)I")).u1(0x60, 0x3d);
            }
            int back = code.size();
            code.u1(0xa7).u2(start - back); // goto
            return patched(code, exit, code.size()).u1(0x1c, 0xac); // iload_2, ireturn
        }

        /** {@code statements} times: x = (x op c) + a[x & 63]; if ((x & mask) == 0) a[x & 63] = x; */
        private ClassFile.Bytes body(ClassFile file, int seed) {
            ClassFile.Bytes code = new ClassFile.Bytes();
            for (int statement = 0; statement < statements; statement++) {
                int operator = new int[] {0x60, 0x68, 0x82, 0x64}[(seed + statement) & 3]; // iadd, imul, ixor, isub
                int number = file.integer((seed * 0x9e3779b1 + statement * 7919) | 1);
                code.u1(0x1a, 0x13).u2(number).u1(operator); // iload_0, ldc_w, op
                code.u1(0x2b, 0x1a, 0x10, 63, 0x7e, 0x2e, 0x60, 0x3b); // aload_1, iload_0, 63, iand, iaload, iadd, istore_0
                int test = code.u1(0x1a, 0x10, 7 + (seed + statement) % 8, 0x7e).size(); // iload_0, mask, iand
                code.u1(0x9a).u2(0); // ifne, patched below
                code.u1(0x2b, 0x1a, 0x10, 63, 0x7e, 0x1a, 0x4f); // aload_1, iload_0, 63, iand, iload_0, iastore
                patched(code, test, code.size());
            }
            return code.u1(0x1a, 0xac); // iload_0, ireturn
        }

        /** Lets the branch at {@code from} lead to {@code to}. */
        private static ClassFile.Bytes patched(ClassFile.Bytes code, int from, int to) {
            byte[] all = code.toByteArray();
            all[from + 1] = (byte) ((to - from) >> 8);
            all[from + 2] = (byte) (to - from);
            code.reset();
            code.write(all, 0, all.length);
            return code;
        }
    }
}
