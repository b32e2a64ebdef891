package marusa;

import java.lang.invoke.MethodHandles;
import java.lang.reflect.Array;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.net.URL;
import java.net.URLClassLoader;
import java.util.ArrayList;
import java.util.List;

/**
 * Class loaders of several kinds, with classes in them, so that what each holds of the metaspace has one right answer.
 *
 * <pre>
 * plain=40       loaders of marusa.Generated, without a name
 * url=7          URLClassLoaders without a parent that load classes of this program
 * named=5        URLClassLoaders "plugin-1", "plugin-2" and so on (JDK 9 and later; without a name before)
 * hidden=30      hidden classes (before JDK 15: anonymous ones), each with a metaspace of its own, hosted by this class
 * classes=3      classes in each plain loader
 * </pre>
 */
public final class Loaders {
    private static final String[] LOADED = {"marusa.Options", "marusa.Work", "marusa.Storm", "marusa.Direct"};
    private static final List<Object> KEPT = new ArrayList<>();

    private Loaders() {
    }

    public static void main(String[] arguments) throws Exception {
        Options options = new Options(arguments, "plain", "url", "named", "hidden", "classes");
        for (int i = 0; i < options.number("plain"); i++) {
            Generated loader = new Generated();
            for (int k = 0; k < options.number("classes"); k++) {
                KEPT.add(loader.define("marusa.Plain" + k, i * 31 + k));
            }
        }
        URL[] here = {Loaders.class.getProtectionDomain().getCodeSource().getLocation()};
        for (int i = 0; i < options.number("url"); i++) {
            load(new URLClassLoader(here, null), 2);
        }
        for (int i = 1; i <= options.number("named"); i++) {
            load(named("plugin-" + i, here), LOADED.length);
        }
        for (int i = 0; i < options.number("hidden"); i++) {
            KEPT.add(hidden(Generated.classFile("marusa.Hidden", i)));
        }
        // Brings the VM's counters of the metaspace up to date.
        System.gc();
        Options.ready("");
        options.waitForEnd();
        System.exit(0);
    }

    private static void load(URLClassLoader loader, int count) throws Exception {
        for (int i = 0; i < count; i++) {
            KEPT.add(Class.forName(LOADED[i], true, loader));
        }
    }

    private static URLClassLoader named(String name, URL[] urls) throws Exception {
        try {
            return URLClassLoader.class.getConstructor(String.class, URL[].class, ClassLoader.class)
                    .newInstance(name, urls, null);
        } catch (NoSuchMethodException e) {
            return new URLClassLoader(urls, null);
        }
    }

    private static Object hidden(byte[] file) throws Exception {
        for (Method method : MethodHandles.Lookup.class.getMethods()) {
            if (method.getName().equals("defineHiddenClass")) {
                Object none = Array.newInstance(method.getParameterTypes()[2].getComponentType(), 0);
                return method.invoke(MethodHandles.lookup(), file, true, none);
            }
        }
        Field field = Class.forName("sun.misc.Unsafe").getDeclaredField("theUnsafe");
        field.setAccessible(true);
        Method define = field.getType().getMethod("defineAnonymousClass", Class.class, byte[].class, Object[].class);
        return define.invoke(field.get(null), Loaders.class, file, null);
    }
}
