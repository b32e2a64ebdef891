package marusa;

import java.util.ArrayList;
import java.util.List;

/**
 * Native memory of which each block has one right holder (tests/native/held.cpp).
 *
 * <pre>
 * lib=PATH         the library
 * objects=100      instances of Handle with an object each; the static field has one
 * blocks=16        blocks of each object; the library's and the leaked one have as many as all instances together
 * size=8k          bytes of a block
 * </pre>
 */
public final class Holding {
    private static final List<Handle> KEPT = new ArrayList<>();
    private static long shared;

    /** As libraries make them: the address of a native object. */
    private static class Handle {
        final long nativeHandle;

        Handle(long nativeHandle) {
            this.nativeHandle = nativeHandle;
        }
    }

    private Holding() {
    }

    private static native long make(int kind, long count, long bytes);

    public static void main(String[] arguments) throws Exception {
        Options options = new Options(arguments, "lib", "objects", "blocks", "size");
        System.load(options.text("lib", ""));
        long objects = options.bytes("objects");
        long blocks = options.bytes("blocks");
        long size = options.bytes("size");
        for (long i = 0; i < objects; i++) {
            KEPT.add(new Handle(make(0, blocks, size)));
        }
        shared = make(1, objects * blocks, size);
        make(2, objects * blocks, size);
        make(3, objects * blocks, size);
        Options.ready("");
        options.waitForEnd();
        if (shared == 0) {
            throw new IllegalStateException();
        }
        System.exit(0);
    }
}
