package bench;

import java.lang.reflect.Method;

/**
 * The reflection of "A Study of Java's Non-Java Memory" (OOPSLA 2010): the getters and setters of many fields are called
 * through {@code java.lang.reflect.Method}, each a number of times.
 *
 * <pre>
 * fields=6000      in all
 * classes=60       that they are in
 * calls=100        of each getter and each setter
 * </pre>
 *
 * Stages: loaded (the classes and their Method objects are there), called.
 */
public final class Reflection {
    private Reflection() {
    }

    public static void main(String[] arguments) throws Exception {
        Stages given = new Stages(arguments, "fields", "classes", "calls");
        int fields = given.number("fields", 6000);
        int classes = Math.min(given.number("classes", 60), fields);
        int calls = given.number("calls", 100);
        Object[] objects = new Object[fields];
        Method[] getters = new Method[fields];
        Method[] setters = new Method[fields];
        for (int i = 0; i < classes; i++) {
            load(i, classes, objects, getters, setters);
        }
        Stages.at("loaded", "methods=" + 2 * fields);
        long started = System.nanoTime();
        // One round over all methods after the other, as a framework that copies beans does.
        long sum = 0;
        for (int call = 0; call < calls; call++) {
            for (int field = 0; field < fields; field++) {
                setters[field].invoke(objects[field], call);
                sum += (Integer) getters[field].invoke(objects[field]);
            }
        }
        if (sum != (long) fields * calls * (calls - 1) / 2) {
            throw new IllegalStateException("the accessors do not work: " + sum);
        }
        long milliseconds = (System.nanoTime() - started) / 1_000_000;
        Stages.at("called", "calls=" + calls + " call_ms=" + milliseconds);
    }

    /** The fields of class {@code number} are those whose index leaves this rest when divided by the number of classes. */
    private static void load(int number, int classes, Object[] objects, Method[] getters, Method[] setters)
            throws ReflectiveOperationException {
        String name = "bench.generated.Bean" + number;
        ClassFile file = new ClassFile(name);
        file.constructor();
        for (int field = number; field < objects.length; field += classes) {
            String label = "f" + field;
            file.field(label, "I");
            int reference = file.ownField(label, "I");
            // aload_0, getfield, ireturn; aload_0, iload_1, putfield, return
            file.method("get" + label, "()I", false, new ClassFile.Bytes().u1(0x2a, 0xb4).u2(reference).u1(0xac));
            file.method("set" + label, "(I)V", false, new ClassFile.Bytes().u1(0x2a, 0x1b, 0xb5).u2(reference).u1(0xb1));
        }
        Class<?> bean = new ClassFile.Loader().define(name, file.toBytes());
        Object object = bean.getDeclaredConstructor().newInstance();
        for (int field = number; field < objects.length; field += classes) {
            objects[field] = object;
            getters[field] = bean.getMethod("getf" + field);
            setters[field] = bean.getMethod("setf" + field, int.class);
        }
    }
}
