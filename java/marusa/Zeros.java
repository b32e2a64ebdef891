package marusa;

/**
 * A JVM whose heap is full of arrays that nothing was ever written to: zeros, which the JVM itself wrote.
 *
 * <pre>
 * mib=100          arrays of a MiB each
 * </pre>
 *
 * Prints {@code READY pid}.
 */
public final class Zeros {
    private Zeros() {
    }

    public static void main(String[] arguments) throws Exception {
        Options options = new Options(arguments, "mib");
        byte[][] arrays = new byte[options.number("mib")][];
        for (int i = 0; i < arrays.length; i++) {
            arrays[i] = new byte[(1 << 20) - 64];
        }
        Options.ready("");
        options.waitForEnd();
        System.out.println(arrays.length);
    }
}
