package marusa;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.zip.Deflater;

/**
 * What {@code make demo} looks at: a small bookshop on the web, with the memory that such servers have: a
 * catalogue and caches in the heap, covers in direct buffers, pages packed by zlib, a pool of workers, and
 * visitors who keep coming. With -Xmx256m it is about 300 MB resident, so a good part is not Java heap.
 *
 * <p>Options: {@code port=8080} (else any), {@code visitors=2}, {@code forever=1} (else it ends with standard
 * input). It speaks HTTP by itself, since a JDK may come without jdk.httpserver. Prints {@code READY pid url}.
 */
public final class Demo {
    private static final int BOOKS = 50_000;
    private static final int COVERS = 1_000;
    private static final int CACHED_PAGES = 2_000;
    private static final int WORKERS = 16;
    private static final String[] WORDS = ("sea river mountain night letter garden war winter house road island clock "
            + "song stranger city tiger glass summer bread shadow").split(" ");

    private final List<Book> books = new ArrayList<>();
    private final Map<String, List<Book>> byWord = new HashMap<>();
    private final List<ByteBuffer> covers = new ArrayList<>();
    private final Map<String, byte[]> pages = Collections.synchronizedMap(new RecentPages());
    private final ExecutorService workers = Executors.newFixedThreadPool(WORKERS, named("worker"));
    private final ThreadLocal<Deflater> deflaters = ThreadLocal.withInitial(() -> new Deflater(6));
    private final ThreadLocal<ByteBuffer> answers = ThreadLocal.withInitial(() -> ByteBuffer.allocateDirect(1 << 20));

    private static final class Book {
        final int number;
        final String title;
        final byte[] text;

        Book(int number, String title, byte[] text) {
            this.number = number;
            this.title = title;
            this.text = text;
        }
    }

    private static final class RecentPages extends LinkedHashMap<String, byte[]> {
        RecentPages() {
            super(16, 0.75f, true);
        }

        @Override
        protected boolean removeEldestEntry(Map.Entry<String, byte[]> eldest) {
            return size() > CACHED_PAGES;
        }
    }

    public static void main(String[] arguments) throws Exception {
        Options options = new Options(arguments, "port", "visitors", "forever");
        Demo shop = new Demo();
        shop.stock();
        ServerSocketChannel door = ServerSocketChannel.open();
        door.bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), options.number("port")), 256);
        int port = door.socket().getLocalPort();
        named("door").newThread(() -> shop.serve(door)).start();
        int visitors = Integer.parseInt(options.text("visitors", "2"));
        for (int i = 0; i < visitors; i++) {
            int seed = i;
            named("visitor").newThread(() -> visit(port, seed)).start();
        }
        Thread.sleep(3000); // long enough for the visitors to fill the caches
        Options.ready(" http://127.0.0.1:" + port + "/");
        options.waitForEnd();
        System.exit(0);
    }

    private static ThreadFactory named(String name) {
        AtomicInteger count = new AtomicInteger();
        return work -> {
            Thread thread = new Thread(work, name + '-' + count.getAndIncrement());
            thread.setDaemon(true);
            return thread;
        };
    }

    private void stock() {
        Random random = new Random(1);
        for (int number = 0; number < BOOKS; number++) {
            String first = WORDS[random.nextInt(WORDS.length)];
            String second = WORDS[random.nextInt(WORDS.length)];
            byte[] text = new byte[1000 + random.nextInt(3000)];
            for (int at = 0; at < text.length; at++) {
                text[at] = (byte) ('a' + (at * 7 + number) % 26);
            }
            Book book = new Book(number, "The " + first + " and the " + second + ", volume " + number, text);
            books.add(book);
            byWord.computeIfAbsent(first, word -> new ArrayList<>()).add(book);
            byWord.computeIfAbsent(second, word -> new ArrayList<>()).add(book);
        }
        for (int i = 0; i < COVERS; i++) {
            ByteBuffer cover = ByteBuffer.allocateDirect(16_000 + random.nextInt(64_000));
            while (cover.hasRemaining()) {
                cover.put((byte) random.nextInt());
            }
            cover.flip();
            covers.add(cover);
        }
    }

    private void serve(ServerSocketChannel door) {
        while (true) {
            try {
                SocketChannel visitor = door.accept();
                workers.execute(() -> answer(visitor));
            } catch (IOException e) {
                throw new IllegalStateException("the door is closed", e);
            }
        }
    }

    private void answer(SocketChannel visitor) {
        try (SocketChannel open = visitor) {
            BufferedReader request = new BufferedReader(new InputStreamReader(open.socket().getInputStream(),
                    StandardCharsets.ISO_8859_1));
            String line = request.readLine(); // GET /path HTTP/1.1
            while (line != null && !request.readLine().isEmpty()) {
                // The headers change nothing here.
            }
            ByteBuffer answer = page(line == null ? "/" : line.split(" ")[1]);
            while (answer.hasRemaining()) {
                open.write(answer);
            }
        } catch (IOException | RuntimeException e) {
            System.err.println("a visitor left: " + e);
        }
    }

    private ByteBuffer page(String path) {
        ByteBuffer answer = answers.get();
        answer.clear();
        if (path.startsWith("/cover/")) {
            ByteBuffer cover = covers.get(number(path) % COVERS).duplicate();
            return finish(answer, "image/x-cover", "", cover);
        }
        byte[] page = pages.get(path);
        if (page == null) {
            page = pack(render(path));
            pages.put(path, page);
        }
        return finish(answer, "text/html", "Content-Encoding: deflate\r\n", ByteBuffer.wrap(page));
    }

    private static ByteBuffer finish(ByteBuffer answer, String type, String more, ByteBuffer body) {
        String head = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: " + type + "\r\n" + more
                + "Content-Length: " + body.remaining() + "\r\n\r\n";
        answer.put(head.getBytes(StandardCharsets.ISO_8859_1)).put(body).flip();
        return answer;
    }

    private String render(String path) {
        StringBuilder page = new StringBuilder("<!doctype html><title>Bookshop</title><h1>Bookshop</h1>");
        if (path.startsWith("/book/")) {
            Book book = books.get(number(path) % BOOKS);
            page.append("<h2>").append(book.title).append("</h2><p>");
            page.append(new String(book.text, StandardCharsets.ISO_8859_1));
        } else {
            String word = path.startsWith("/word/") ? path.substring(6) : WORDS[0];
            for (Book book : byWord.getOrDefault(word, Collections.emptyList())) {
                if (page.length() < 40_000) {
                    page.append("<li><a href=/book/").append(book.number).append('>').append(book.title).append("</a>");
                }
            }
            for (String other : WORDS) {
                page.append(" <a href=/word/").append(other).append('>').append(other).append("</a>");
            }
        }
        return page.toString();
    }

    private static int number(String path) {
        return Integer.parseInt(path.substring(path.lastIndexOf('/') + 1));
    }

    private byte[] pack(String page) {
        Deflater deflater = deflaters.get();
        deflater.reset();
        deflater.setInput(page.getBytes(StandardCharsets.UTF_8));
        deflater.finish();
        byte[] packed = new byte[page.length() + 100];
        return Arrays.copyOf(packed, deflater.deflate(packed));
    }

    /** Some 40 pages a second each: enough to keep every area alive, little enough for a laptop. */
    private static void visit(int port, int seed) {
        Random random = new Random(seed);
        byte[] unread = new byte[64 << 10];
        while (true) {
            String[] paths = {"/book/" + random.nextInt(BOOKS), "/cover/" + random.nextInt(BOOKS),
                "/word/" + WORDS[random.nextInt(WORDS.length)]};
            try (Socket socket = new Socket(InetAddress.getLoopbackAddress(), port)) {
                String request = "GET " + paths[random.nextInt(paths.length)] + " HTTP/1.1\r\nHost: shop\r\n\r\n";
                socket.getOutputStream().write(request.getBytes(StandardCharsets.ISO_8859_1));
                InputStream in = socket.getInputStream();
                while (in.read(unread) >= 0) {
                    // Only the server's memory is of interest.
                }
                Thread.sleep(25);
            } catch (IOException | InterruptedException e) {
                System.err.println("a visitor was turned away: " + e);
            }
        }
    }
}
