import io.netty.buffer.AdaptiveByteBufAllocator;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.PoolArenaMetric;
import io.netty.buffer.PoolChunkListMetric;
import io.netty.buffer.PoolChunkMetric;
import io.netty.buffer.PooledByteBufAllocator;
import io.netty.util.concurrent.FastThreadLocalThread;
import io.netty.util.internal.PlatformDependent;
import java.lang.reflect.Array;
import java.lang.reflect.Field;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CountDownLatch;

/**
 * Netty's pooled and adaptive direct buffers: taken and freed by several threads, of which each keeps some in its cache. Writes
 * what Netty itself says of them into the file that is named, "name number" each, and prints READY.
 */
final class Pools {
    static final int THREADS = 4;
    static final int BUFFERS = 200;
    static final int ARENAS = 3;
    static final int HUGE_BYTES = 20 << 20;

    private static final PooledByteBufAllocator POOLED =
            new PooledByteBufAllocator(true, 0, ARENAS, 8192, 8, 64, 32, true);
    private static final AdaptiveByteBufAllocator ADAPTIVE = new AdaptiveByteBufAllocator(true);
    private static final List<ByteBuf> POOLED_LIVE = new ArrayList<>();
    private static final List<ByteBuf> ADAPTIVE_LIVE = new ArrayList<>();

    private Pools() {}

    public static void main(String[] arguments) throws Exception {
        CountDownLatch done = new CountDownLatch(THREADS);
        List<Worker> workers = new ArrayList<>();
        for (int i = 0; i < THREADS; i++) {
            Worker worker = new Worker(i, done);
            worker.start();
            workers.add(worker);
        }
        done.await();
        // Freed by another thread than the one that took them.
        free(ADAPTIVE_LIVE, 5);
        POOLED_LIVE.add(POOLED.directBuffer(HUGE_BYTES));
        ADAPTIVE_LIVE.add(ADAPTIVE.directBuffer(HUGE_BYTES));
        long caches = 0;
        long cached = 0;
        for (Worker worker : workers) {
            caches += worker.cached > 0 ? 1 : 0;
            cached += worker.cached;
        }
        String said = "pooled " + POOLED.metric().usedDirectMemory() + pooled() + " caches " + caches + " cached " + cached
                + " adaptive " + ADAPTIVE.usedDirectMemory() + " adaptive_free " + (ADAPTIVE.usedDirectMemory() - adaptiveInUse())
                + " platform " + PlatformDependent.usedDirectMemory() + " no_cleaner "
                + (PlatformDependent.useDirectBufferNoCleaner() ? 1 : 0);
        Files.write(Paths.get(arguments[0]), said.getBytes(StandardCharsets.UTF_8));
        System.out.println("READY");
        System.in.read();
        System.out.println(POOLED_LIVE.size() + ADAPTIVE_LIVE.size() + workers.size());
    }

    /** One of `step`. Netty makes new buffers of the objects at once, so none may stay in the list. */
    private static void free(List<ByteBuf> buffers, int step) {
        List<ByteBuf> kept = new ArrayList<>();
        for (int i = 0; i < buffers.size(); i++) {
            if (i % step == 0) {
                buffers.get(i).release();
            } else {
                kept.add(buffers.get(i));
            }
        }
        buffers.clear();
        buffers.addAll(kept);
    }

    /** A part of what a buffer of the adaptive allocator takes of its chunk is behind its end. */
    private static long adaptiveInUse() {
        long bytes = 0;
        for (ByteBuf buffer : ADAPTIVE_LIVE) {
            bytes += buffer.maxFastWritableBytes();
        }
        return bytes;
    }

    private static String pooled() {
        StringBuilder said = new StringBuilder();
        long free = 0;
        long chunks = 0;
        long threadCaches = 0;
        int arena = 0;
        for (PoolArenaMetric metric : POOLED.metric().directArenas()) {
            long freeHere = 0;
            for (PoolChunkListMetric list : metric.chunkLists()) {
                for (PoolChunkMetric chunk : list) {
                    freeHere += chunk.freeBytes();
                    chunks++;
                }
            }
            free += freeHere;
            threadCaches += metric.numThreadCaches();
            said.append(" arena").append(arena).append(' ').append(metric.numActiveBytes());
            said.append(" arena").append(arena).append("_free ").append(freeHere);
            arena++;
        }
        return said + " free " + free + " chunks " + chunks + " thread_caches " + threadCaches;
    }

    static final class Worker extends FastThreadLocalThread {
        private final int number;
        private final CountDownLatch done;
        private long cached;

        Worker(int number, CountDownLatch done) {
            super("netty-io-" + number);
            this.number = number;
            this.done = done;
            setDaemon(true);
        }

        @Override
        public void run() {
            Random random = new Random(number);
            List<ByteBuf> pooled = new ArrayList<>();
            List<ByteBuf> adaptive = new ArrayList<>();
            for (int i = 0; i < BUFFERS; i++) {
                pooled.add(POOLED.directBuffer(size(random)));
                adaptive.add(ADAPTIVE.directBuffer(size(random)));
            }
            free(pooled, 2);
            free(adaptive, 2);
            synchronized (POOLED) {
                POOLED_LIVE.addAll(pooled);
                ADAPTIVE_LIVE.addAll(adaptive);
            }
            try {
                cached = cachedBytes();
                done.countDown();
                Thread.sleep(Long.MAX_VALUE);
            } catch (ReflectiveOperationException | InterruptedException e) {
                throw new IllegalStateException(e);
            }
        }

        private static int size(Random random) {
            return 1 << 4 + random.nextInt(14) | random.nextInt(1 << 9);
        }

        /** Netty counts what threads keep as in use; only its own fields have how much it is. */
        private static long cachedBytes() throws ReflectiveOperationException {
            Field local = PooledByteBufAllocator.class.getDeclaredField("threadCache");
            local.setAccessible(true);
            Object cache = ((io.netty.util.concurrent.FastThreadLocal<?>) local.get(POOLED)).get();
            long bytes = 0;
            for (String kind : new String[] {"smallSubPageDirectCaches", "normalDirectCaches"}) {
                Object regions = field(cache, kind);
                for (int i = 0; i < Array.getLength(regions); i++) {
                    Object region = Array.get(regions, i);
                    if (region != null) {
                        bytes += bytesOf((Collection<?>) field(region, "queue"));
                    }
                }
            }
            return bytes;
        }

        /** Such a queue cannot be iterated: each entry is taken out and added again. */
        @SuppressWarnings("unchecked")
        private static long bytesOf(Collection<?> entries) throws ReflectiveOperationException {
            java.util.Queue<Object> queue = (java.util.Queue<Object>) entries;
            long bytes = 0;
            for (int left = queue.size(); left > 0; left--) {
                Object entry = queue.poll();
                bytes += ((Number) field(entry, "normCapacity")).longValue();
                queue.offer(entry);
            }
            return bytes;
        }

        private static Object field(Object object, String name) throws ReflectiveOperationException {
            for (Class<?> type = object.getClass(); type != null; type = type.getSuperclass()) {
                for (Field field : type.getDeclaredFields()) {
                    if (field.getName().equals(name)) {
                        field.setAccessible(true);
                        return field.get(object);
                    }
                }
            }
            throw new NoSuchFieldException(name);
        }
    }
}
