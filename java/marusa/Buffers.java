package marusa;

import java.lang.management.BufferPoolMXBean;
import java.lang.management.ManagementFactory;
import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.nio.MappedByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;

/**
 * A JVM with known buffers outside its heap, each kind in classes of its own. Prints what the JDK counts of them, and READY.
 *
 * <pre>
 * file=PATH     a file to map and to write to
 * arenas=1      arenas of java.lang.foreign, from JDK 22 on
 * lost=1        buffers without a cleaner, of which every second one is lost before the last collection; java.nio must be open
 * </pre>
 */
public final class Buffers {
    static final int CACHES = 100;
    static final int CACHE_BYTES = 64 << 10;
    static final int LISTED = 50;
    static final int LISTED_BYTES = 10_000;
    static final int MAPPED_BYTES = 48 << 10;
    static final int WRITTEN_BYTES = 256 << 10;
    static final int THREADS = 4;
    static final int FREED = 200;

    static final int WITHOUT_CLEANER = 40;
    static final int WITHOUT_CLEANER_BYTES = 12_000;

    private static final ByteBuffer SHARED = ByteBuffer.allocateDirect(1 << 20);
    private static final List<ByteBuffer> LIST = new ArrayList<>();
    private static final List<Object> KEPT = new ArrayList<>();

    /** A buffer, and parts of it that have no memory of their own. */
    static final class Cache {
        private final ByteBuffer buffer = ByteBuffer.allocateDirect(CACHE_BYTES);
        private final ByteBuffer slice;
        private final ByteBuffer readOnly = buffer.asReadOnlyBuffer();

        Cache() {
            buffer.position(100);
            slice = buffer.slice();
            buffer.putLong(200, 1);
        }
    }

    static final class Registry {
        private final Map<String, ByteBuffer> byName = new HashMap<>();
    }

    static final class Index {
        private final MappedByteBuffer pages;

        Index(MappedByteBuffer pages) {
            this.pages = pages;
        }
    }

    static final class Native {
        private final Object arena;

        Native(Object arena) {
            this.arena = arena;
        }
    }

    static final class Raw {
        private final ByteBuffer memory;

        Raw(ByteBuffer memory) {
            this.memory = memory;
        }
    }

    public static void main(String[] arguments) throws Exception {
        Options options = new Options(arguments, "file", "arenas", "lost");
        for (int i = 0; i < FREED; i++) {
            KEPT.add(ByteBuffer.allocateDirect(3_000));
        }
        KEPT.clear();
        long before = pool("direct").getCount();
        while (pool("direct").getCount() > before - FREED + 1) {
            System.gc();
            Thread.sleep(10);
        }
        for (int i = 0; i < CACHES; i++) {
            KEPT.add(new Cache());
        }
        Registry registry = new Registry();
        for (int i = 0; i < LISTED; i++) {
            LIST.add(ByteBuffer.allocateDirect(LISTED_BYTES));
            registry.byName.put("name " + i, ByteBuffer.allocateDirect(LISTED_BYTES / 2));
        }
        KEPT.add(registry);
        Path file = Paths.get(options.text("file", "buffers.map"));
        try (FileChannel channel = FileChannel.open(file, StandardOpenOption.CREATE, StandardOpenOption.READ,
                StandardOpenOption.WRITE)) {
            for (int i = 0; i < 3; i++) {
                KEPT.add(new Index(channel.map(FileChannel.MapMode.READ_WRITE, i * 5_000L, MAPPED_BYTES)));
            }
        }
        CountDownLatch written = new CountDownLatch(THREADS);
        for (int i = 0; i < THREADS; i++) {
            Thread thread = new Thread(() -> write(file, written), "io-pool-" + i);
            thread.setDaemon(true);
            thread.start();
        }
        written.await();
        if (options.number("arenas") > 0) {
            arenas();
        }
        if (options.number("lost") > 0) {
            lost();
        }
        Options.ready(" " + counted("direct") + " " + counted("mapped"));
        options.waitForEnd();
        System.out.println(SHARED.capacity() + KEPT.size() + LIST.size());
    }

    /** Each next to an array that stays, so that few regions have much garbage. */
    private static void lost() throws Exception {
        Field field = Class.forName("sun.misc.Unsafe").getDeclaredField("theUnsafe");
        field.setAccessible(true);
        Method allocate = field.getType().getMethod("allocateMemory", long.class);
        Constructor<?> constructor =
                Class.forName("java.nio.DirectByteBuffer").getDeclaredConstructor(long.class, int.class);
        constructor.setAccessible(true);
        for (int i = 0; i < WITHOUT_CLEANER; i++) {
            KEPT.add(new byte[8_000]);
            Object address = allocate.invoke(field.get(null), (long) WITHOUT_CLEANER_BYTES);
            Object buffer = constructor.newInstance(address, WITHOUT_CLEANER_BYTES);
            if (i % 2 == 0) {
                KEPT.add(new Raw((ByteBuffer) buffer));
            }
        }
        System.gc();
    }

    private static void write(Path file, CountDownLatch written) {
        try (FileChannel channel = FileChannel.open(file, StandardOpenOption.WRITE)) {
            channel.write(ByteBuffer.allocate(WRITTEN_BYTES));
            written.countDown();
            Thread.sleep(Long.MAX_VALUE);
        } catch (java.io.IOException | InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    /** One arena of each kind, with three pieces; and one that is closed. */
    private static void arenas() throws Exception {
        Class<?> type = Class.forName("java.lang.foreign.Arena");
        Method allocate = Class.forName("java.lang.foreign.SegmentAllocator").getMethod("allocate", long.class, long.class);
        for (String kind : new String[] {"ofConfined", "ofShared", "ofAuto", "ofConfined"}) {
            Object arena = type.getMethod(kind).invoke(null);
            for (int i = 0; i < 3; i++) {
                allocate.invoke(arena, 20_000L, 8L);
            }
            if (KEPT.get(KEPT.size() - 1) instanceof Native && kind.equals("ofConfined")) {
                type.getMethod("close").invoke(arena);
            }
            KEPT.add(new Native(arena));
        }
    }

    private static String counted(String name) {
        BufferPoolMXBean pool = pool(name);
        return name + " " + pool.getCount() + " " + pool.getTotalCapacity() + " " + pool.getMemoryUsed();
    }

    private static BufferPoolMXBean pool(String name) {
        for (BufferPoolMXBean pool : ManagementFactory.getPlatformMXBeans(BufferPoolMXBean.class)) {
            if (pool.getName().equals(name)) {
                return pool;
            }
        }
        throw new IllegalStateException(name);
    }
}
