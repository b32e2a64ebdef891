//! The books balance on every JDK and collector.

use crate::common::*;
use serde_json::Value;

/// At most this many per thousand of all resident bytes may have no owner, and our sum may differ by at most this many
/// from the kernel's on a quiet target.
const PER_MILLE_MAX: u64 = 5;

const LOAD: &[&str] =
    &["heap=120m", "threads=20", "direct=48m", "mapped=16m", "classes=1000", "jit=1", "deflate=1", "quiet=1"];

#[test]
fn every_byte_has_an_owner_on_every_jdk_and_collector() {
    let (mut broken, mut names) = (Vec::new(), Vec::new());
    println!("{:<30} {:>8} {:>12} {:>10}", "JVM", "MiB", "unattributed", "to kernel");
    for row in chosen_rows() {
        let Some(jvm) = Jvm::under_load(&row, &["-Xmx320m"], LOAD) else { continue };
        let map = map_when_quiet(jvm.pid);
        let totals = &map["totals"];
        let resident = number(&totals["resident_bytes"]);
        let unattributed = number(&totals["unattributed_bytes"]);
        let kernel = number(&totals["kernel_resident_bytes"]);
        let difference = kernel.abs_diff(resident + number(&totals["aliased_bytes"]));
        println!(
            "{:<30} {:>8} {:>10.3} % {:>8.3} %",
            row.name(),
            resident >> 20,
            unattributed as f64 * 100.0 / resident as f64,
            difference as f64 * 100.0 / kernel as f64
        );
        let mut check = |holds: bool, what: String| {
            if !holds {
                broken.push(format!("{}: {what}", row.name()));
            }
        };
        check(resident > 150 << 20, format!("{resident} bytes is not a real load"));
        check(unattributed * 1000 <= resident * PER_MILLE_MAX, format!("{unattributed} bytes unattributed"));
        check(
            difference * 1000 <= kernel * PER_MILLE_MAX,
            format!("{difference} bytes off the kernel's figure"),
        );
        check_jvm(&map, &row, &mut check);
        let threads = map["threads"].as_array().map(Vec::as_slice).unwrap_or_default();
        names.push(threads.iter().any(|thread| thread["name"] == "Reference Handler"));
    }
    // The kernel cuts this name; a collector that moves objects just then, and JDK 11's ZGC always, leave it so.
    let whole = names.iter().filter(|is_whole| **is_whole).count();
    assert!(whole * 3 >= names.len() * 2, "{whole} of {} JVMs have whole names of threads", names.len());
    assert!(broken.is_empty(), "{broken:#?}");
}

/// What is known of the load must be found where it belongs.
fn check_jvm(map: &Value, row: &Row, check: &mut impl FnMut(bool, String)) {
    let jvm = &map["jvm"];
    check(jvm["vm"] == "hotspot", format!("vm {}", jvm["vm"]));
    check(jvm["major"].as_u64() == row.jdk.parse().ok(), format!("major {}", jvm["major"]));
    check(jvm["nmt"] == "off", format!("nmt {}", jvm["nmt"]));
    let gc = row.gc.split('-').next().unwrap_or_default().to_string();
    check(jvm["gc"].as_str().is_some_and(|name| name.starts_with(&gc)), format!("gc {}", jvm["gc"]));
    let used = jvm["heap"]["used_bytes"].as_u64().unwrap_or(0);
    // CMS keeps its free chunks in lists and counts them only while it sweeps.
    check(
        row.gc == "cms" || (used > 100 << 20 && used < 320 << 20),
        format!("{used} bytes used in the heap"),
    );
    let heap = area(map, "java_heap")["resident_bytes"].as_u64().unwrap_or(0);
    check(heap > 100 << 20 && heap <= 330 << 20, format!("{heap} bytes of heap resident"));
    let threads = map["threads"].as_array().map_or(0, |threads| {
        threads
            .iter()
            .filter(|thread| thread["name"].as_str().is_some_and(|name| name.starts_with("load-")))
            .count()
    });
    // JDK 8 does not name its native threads: the names are those of the Java heap.
    check(threads >= 20, format!("{threads} threads named load-"));
    check(
        jvm["java_threads"].as_u64().is_some_and(|count| count >= 20),
        format!("{} Java threads", jvm["java_threads"]),
    );
    let classes = jvm["classes"]["classes"].as_u64().unwrap_or(0);
    check((1400..30_000).contains(&classes), format!("{classes} classes"));
    let in_arenas: usize = map["malloc"]["arenas"]
        .as_array()
        .map_or(0, |arenas| arenas.iter().map(|arena| arena["threads"].as_array().map_or(0, Vec::len)).sum());
    check(in_arenas >= 20, format!("{in_arenas} threads are known to allocate from an arena"));
    let malloc = |key: &str| map["malloc"][key].as_u64().unwrap_or(0);
    check(malloc("in_use_bytes") > 48 << 20, format!("{} bytes of malloc in use", malloc("in_use_bytes")));
    check(malloc("overhead_bytes") > 10 << 10, format!("{} bytes of overhead", malloc("overhead_bytes")));
    for (name, least) in
        [("class_metadata", 5 << 19), ("jit_code", 1 << 20), ("stack", 500 << 10), ("code", 5 << 20)]
    {
        let bytes = area(map, name)["resident_bytes"].as_u64().unwrap_or(0);
        check(bytes >= least, format!("{bytes} bytes of {name}"));
    }
}

/// The compiler threads go on for a while after the program is quiet; a target that moves is looked at again.
fn map_when_quiet(pid: i32) -> Value {
    let mut map = map_json(pid);
    for _ in 0..20 {
        let totals = &map["totals"];
        let ours = number(&totals["resident_bytes"]) + number(&totals["aliased_bytes"]);
        if number(&totals["changed_while_reading_bytes"]) == 0
            && ours == number(&totals["kernel_resident_bytes"])
        {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(500));
        map = map_json(pid);
    }
    map
}
