package bench;

import java.io.ByteArrayOutputStream;
import java.io.File;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.zip.Deflater;
import java.util.zip.DeflaterOutputStream;

/**
 * One step of a build: a JVM that starts, compiles, and ends, as a build server runs them by the thousand. Each unit of work
 * writes a source file, reads it back, makes a tree of it that stays for a while, and writes what it was "compiled" to. The work
 * depends on nothing but its options, so how long it takes is a figure.
 *
 * <pre>
 * units=60         files that are compiled
 * threads=2        that compile
 * retain=200       MiB of trees that are kept, about; the oldest go first
 * </pre>
 *
 * The files lie in a directory of its own below the current one, and are removed again.
 *
 * Prints {@code DONE sum=... units=...}; the sum is the same in each run with the same options.
 */
public final class BuildServer {
    private static final int LINES = 1500;
    /** The size of one tree, by jol on a 64-bit JVM with compressed pointers: 14 words a line, each a node and a string. */
    private static final long TREE_BYTES = LINES * 14L * 96;

    private final int units;
    private final long retainBytes;
    private final File directory;
    private final AtomicInteger next = new AtomicInteger();
    private final AtomicLong sum = new AtomicLong();
    private final ArrayDeque<Node> trees = new ArrayDeque<>();

    private BuildServer(int units, long retainBytes) throws IOException {
        this.units = units;
        this.retainBytes = retainBytes;
        this.directory = Files.createTempDirectory(new File("").getAbsoluteFile().toPath(), "build-").toFile();
    }

    public static void main(String[] args) throws Exception {
        long retainBytes = (long) (LiveSet.option(args, "retain", 200) * (1 << 20));
        new BuildServer((int) LiveSet.option(args, "units", 60), retainBytes).build((int) LiveSet.option(args, "threads", 2));
    }

    private void build(int count) throws Exception {
        List<Thread> threads = new ArrayList<>();
        for (int i = 0; i < Math.max(1, count); i++) {
            Thread thread = new Thread(this::compileAll, "build-" + i);
            thread.start();
            threads.add(thread);
        }
        for (Thread thread : threads) {
            thread.join();
        }
        Files.delete(directory.toPath());
        System.out.println("DONE sum=" + sum.get() + " units=" + units);
    }

    private void compileAll() {
        try {
            for (int unit = next.getAndIncrement(); unit < units; unit = next.getAndIncrement()) {
                sum.addAndGet(compile(unit));
            }
        } catch (IOException e) {
            throw new IllegalStateException(e);
        }
    }

    private long compile(int unit) throws IOException {
        File source = new File(directory, "Unit" + unit + ".src");
        File target = new File(directory, "Unit" + unit + ".out");
        Files.write(source.toPath(), text(unit).getBytes(StandardCharsets.UTF_8));
        Node tree = parse(new String(Files.readAllBytes(source.toPath()), StandardCharsets.UTF_8));
        keep(tree);
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        try (DeflaterOutputStream packed = new DeflaterOutputStream(bytes, new Deflater(Deflater.BEST_SPEED))) {
            emit(tree, packed, new HashMap<>());
        }
        Files.write(target.toPath(), bytes.toByteArray());
        long written = target.length();
        Files.delete(source.toPath());
        Files.delete(target.toPath());
        return written * 31 + tree.hash();
    }

    private synchronized void keep(Node tree) {
        trees.add(tree);
        while (trees.size() * TREE_BYTES > Math.max(TREE_BYTES, retainBytes)) {
            trees.remove();
        }
    }

    private static String text(int unit) {
        Random random = new Random(unit);
        StringBuilder text = new StringBuilder();
        for (int line = 0; line < LINES; line++) {
            for (int word = 0; word < 14; word++) {
                text.append("name").append(random.nextInt(50_000)).append(' ');
            }
            text.append('\n');
        }
        return text.toString();
    }

    private static Node parse(String text) {
        Node file = new Node("file");
        int begin = 0;
        for (int end = text.indexOf('\n'); end >= 0; end = text.indexOf('\n', begin)) {
            Node line = new Node("line");
            for (int space = text.indexOf(' ', begin); space >= 0 && space < end; space = text.indexOf(' ', begin)) {
                line.below.add(new Node(text.substring(begin, space)));
                begin = space + 1;
            }
            file.below.add(line);
            begin = end + 1;
        }
        return file;
    }

    private static void emit(Node node, DeflaterOutputStream out, Map<String, Integer> names) throws IOException {
        int number = names.computeIfAbsent(node.name, name -> names.size());
        out.write(number);
        out.write(number >> 8);
        for (Node child : node.below) {
            emit(child, out, names);
        }
    }

    private static final class Node {
        final String name;
        final List<Node> below = new ArrayList<>(0);

        Node(String name) {
            this.name = name;
        }

        long hash() {
            long hash = name.hashCode();
            for (Node child : below) {
                hash = hash * 31 + child.hash();
            }
            return hash;
        }
    }
}
