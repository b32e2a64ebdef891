package marusa;

import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;

/**
 * A JVM with native memory that Java code took in three ways: direct buffers, Unsafe, and an arena of java.lang.foreign. All of
 * it is touched. What an account gives to direct buffers must not depend on Native Memory Tracking. Everything newer than
 * Java 8, and Unsafe, which compilers warn of, is called by reflection.
 *
 * <pre>
 * buffers=1000     direct buffers
 * blocks=3000      blocks of Unsafe
 * segments=0       segments of Arena.global() (JDK 22 and later)
 * size=32k         bytes of each
 * </pre>
 */
public final class OffHeap {
    private final Class<?> type;
    private final Object unsafe;
    private final Method allocate;
    private final Method set;

    private OffHeap() throws ReflectiveOperationException {
        type = Class.forName("sun.misc.Unsafe");
        Field field = type.getDeclaredField("theUnsafe");
        field.setAccessible(true);
        unsafe = field.get(null);
        allocate = type.getMethod("allocateMemory", long.class);
        set = type.getMethod("setMemory", long.class, long.class, byte.class);
    }

    public static void main(String[] arguments) throws Exception {
        Options options = new Options(arguments, "buffers", "blocks", "segments", "size");
        int size = options.number("size");
        ByteBuffer[] buffers = new ByteBuffer[options.number("buffers")];
        for (int i = 0; i < buffers.length; i++) {
            buffers[i] = ByteBuffer.allocateDirect(size);
            touch(buffers[i]);
        }
        OffHeap heap = new OffHeap();
        for (int i = options.number("blocks"); i > 0; i--) {
            Object at = heap.allocate.invoke(heap.unsafe, (long) size);
            heap.set.invoke(heap.unsafe, at, (long) size, (byte) 1);
        }
        if (options.number("segments") > 0) {
            segments(options.number("segments"), size);
        }
        Options.ready("");
        options.waitForEnd();
        System.out.println(buffers.length);
    }

    private static void segments(int count, long size) throws ReflectiveOperationException {
        Class<?> arenas = Class.forName("java.lang.foreign.Arena");
        Object arena = arenas.getMethod("global").invoke(null);
        Method allocate = arenas.getMethod("allocate", long.class, long.class);
        Method view = Class.forName("java.lang.foreign.MemorySegment").getMethod("asByteBuffer");
        for (int i = 0; i < count; i++) {
            touch((ByteBuffer) view.invoke(allocate.invoke(arena, size, 1L)));
        }
    }

    private static void touch(ByteBuffer buffer) {
        for (int at = 0; at < buffer.capacity(); at += 4096) {
            buffer.put(at, (byte) 1);
        }
    }
}
