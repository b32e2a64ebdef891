package marusa;

import java.io.File;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.concurrent.locks.LockSupport;
import org.rocksdb.BlockBasedTableConfig;
import org.rocksdb.BloomFilter;
import org.rocksdb.FlushOptions;
import org.rocksdb.LRUCache;
import org.rocksdb.RocksDB;
import org.rocksdb.RocksDBException;
import org.rocksdb.RocksIterator;

/**
 * A JVM whose memory is mostly a native library's: RocksDB, with a block cache, write buffers and open iterators,
 * all from malloc and none of it known to the JVM. With -Xmx64m and the defaults it is over 240 MB resident.
 *
 * <pre>
 * dir=DIR       where the database lies; needed
 * cache=100m       the block cache, filled by reading
 * buffers=64m      the write buffers, filled by writing and not flushed
 * readers=4        threads that read on, each in a malloc arena of its own
 * open=50          iterators that are opened in a second, and never closed
 * quiet=1          no reading after the start
 * forever=1        ignore standard input; otherwise the program ends when it closes
 * </pre>
 *
 * Prints {@code READY pid bytes}: the bytes that RocksDB itself says its cache, buffers and readers hold.
 */
public final class Native {
    private static final int VALUE_BYTES = 1000;
    private static final int ITERATORS = 50;
    private static final String[] OWN_FIGURES = {"rocksdb.block-cache-usage", "rocksdb.cur-size-all-mem-tables",
        "rocksdb.estimate-table-readers-mem"};

    private Native() {}

    public static void main(String[] arguments) throws Exception {
        Options options = new Options(arguments, "dir", "cache", "buffers", "readers", "open", "quiet", "forever");
        File jar = new File(RocksDB.class.getProtectionDomain().getCodeSource().getLocation().toURI());
        RocksDB.loadLibrary(Collections.singletonList(jar.getParent()));

        long cacheBytes = options.text("cache", "").isEmpty() ? 100 << 20 : options.bytes("cache");
        long bufferBytes = options.text("buffers", "").isEmpty() ? 64 << 20 : options.bytes("buffers");
        RocksDB database = open(options.text("dir", ""), cacheBytes, bufferBytes);
        int keys = (int) (cacheBytes * 3 / 2 / VALUE_BYTES);
        write(database, 0, keys);
        try (FlushOptions flush = new FlushOptions().setWaitForFlush(true)) {
            database.flush(flush);
        }
        read(database, new Random(1), keys, keys * 3);
        write(database, keys, (int) (bufferBytes * 4 / 5 / VALUE_BYTES));
        List<RocksIterator> open = iterators(database);

        int readers = Integer.parseInt(options.text("readers", "4"));
        for (int i = 0; i < readers && !options.yes("quiet"); i++) {
            int seed = i;
            Thread thread = new Thread(() -> readOn(database, seed, keys), "reader-" + i);
            thread.setDaemon(true);
            thread.start();
        }
        int rate = options.number("open");
        if (rate > 0) {
            Thread thread = new Thread(() -> openOn(database, rate), "forgetful");
            thread.setDaemon(true);
            thread.start();
        }
        long own = 0;
        for (String figure : OWN_FIGURES) {
            own += database.getLongProperty(figure);
        }
        Options.ready(" " + own);
        options.waitForEnd();
        open.forEach(RocksIterator::close);
        System.exit(0);
    }

    private static RocksDB open(String directory, long cacheBytes, long bufferBytes) throws RocksDBException {
        if (directory.isEmpty()) {
            throw new IllegalArgumentException("dir= is needed");
        }
        new File(directory).mkdirs();
        BlockBasedTableConfig table = new BlockBasedTableConfig()
                .setBlockCache(new LRUCache(cacheBytes))
                .setFilterPolicy(new BloomFilter(10))
                .setCacheIndexAndFilterBlocks(true);
        return RocksDB.open(new org.rocksdb.Options()
                .setCreateIfMissing(true)
                .setWriteBufferSize(bufferBytes)
                .setMaxWriteBufferNumber(3)
                .setTableFormatConfig(table), directory);
    }

    /** Values that zlib and its like cannot shrink, so that the bytes in the cache are as many as were written. */
    private static void write(RocksDB database, int from, int count) throws RocksDBException {
        Random random = new Random(from);
        byte[] value = new byte[VALUE_BYTES];
        for (int i = from; i < from + count; i++) {
            random.nextBytes(value);
            database.put(key(i), value);
        }
    }

    private static void read(RocksDB database, Random random, int keys, int times) throws RocksDBException {
        for (int i = 0; i < times; i++) {
            database.get(key(random.nextInt(keys)));
        }
    }

    /** An iterator pins blocks and is easily forgotten: the common leak of those who use RocksDB. */
    private static List<RocksIterator> iterators(RocksDB database) {
        List<RocksIterator> open = new ArrayList<>();
        for (int i = 0; i < ITERATORS; i++) {
            RocksIterator iterator = database.newIterator();
            iterator.seek(key(i * 1000));
            open.add(iterator);
        }
        return open;
    }

    private static void openOn(RocksDB database, int rate) {
        long start = System.nanoTime();
        List<RocksIterator> kept = new ArrayList<>();
        for (long opened = 0;; opened++) {
            LockSupport.parkNanos(Math.max(0, start + opened * 1_000_000_000L / rate - System.nanoTime()));
            RocksIterator iterator = database.newIterator();
            iterator.seek(key((int) (opened % ITERATORS) * 1000));
            kept.add(iterator);
        }
    }

    private static void readOn(RocksDB database, int seed, int keys) {
        Random random = new Random(seed);
        try {
            while (true) {
                read(database, random, keys, 50);
                Thread.sleep(50);
            }
        } catch (RocksDBException | InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    private static byte[] key(int number) {
        return String.format("key %09d", number).getBytes(StandardCharsets.US_ASCII);
    }
}
