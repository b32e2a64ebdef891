import java.nio.file.Files;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.rocksdb.BlockBasedTableConfig;
import org.rocksdb.LRUCache;
import org.rocksdb.Options;
import org.rocksdb.ReadOptions;
import org.rocksdb.RocksDB;

/** RocksDB with a filled block cache, a memtable, and options that are never closed. */
final class Rocks {
    private Rocks() {}

    public static void main(String[] arguments) throws Exception {
        RocksDB.loadLibrary();
        LRUCache cache = new LRUCache(128 << 20);
        BlockBasedTableConfig table = new BlockBasedTableConfig().setBlockCache(cache).setBlockSize(16 << 10);
        Options options = new Options().setCreateIfMissing(true).setTableFormatConfig(table)
            .setWriteBufferSize(64 << 20);
        RocksDB database = RocksDB.open(options, Files.createTempDirectory("rocks").toString());
        byte[] value = new byte[1000];
        Random random = new Random(1);
        for (int key = 0; key < 300_000; key++) {
            random.nextBytes(value);
            database.put(("key" + key).getBytes(), value);
        }
        database.compactRange();
        for (int i = 0; i < 600_000; i++) {
            database.get(("key" + random.nextInt(300_000)).getBytes());
        }
        for (int key = 0; key < 20_000; key++) {
            database.put(("new" + key).getBytes(), value);
        }
        List<ReadOptions> left = new ArrayList<>();
        for (int i = 0; i < 20_000; i++) {
            left.add(new ReadOptions());
        }
        for (String property : new String[] {"block-cache-usage", "cur-size-all-mem-tables",
            "estimate-table-readers-mem"}) {
            System.out.println("SAYS " + property + " " + database.getProperty("rocksdb." + property));
        }
        System.out.println("READY");
        System.in.read();
        System.out.println(left.size() + " " + cache + database + options);
    }
}
