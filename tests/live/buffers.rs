//! `map --by buffer` on known buffers in known classes, against the JDK's own counters, on JDKs and collectors that differ.

use crate::common::*;
use crate::record::Directory;
use marusa::act::attach;
use marusa::os::process::Process;
use serde_json::Value;

/// The figures of `marusa.Buffers`.
const CACHES: u64 = 100;
const CACHE_BYTES: u64 = 64 << 10;
const LISTED: u64 = 50;
const LISTED_BYTES: u64 = 10_000;
const MAPPED_BYTES: u64 = 48 << 10;
const WRITTEN_BYTES: u64 = 256 << 10;
const THREADS: u64 = 4;
const ARENA_BYTES: u64 = 60_000;
const KEPT_OF_LOST: u64 = 20;
const WITHOUT_CLEANER_BYTES: u64 = 12_000;

/// With it the program makes buffers without a cleaner and loses some of them.
const OPEN: &str = "--add-opens=java.base/java.nio=ALL-UNNAMED";

/// No region is worth moving, so that dead objects stay where they were.
const KEEP_DEAD: &str = "-XX:ShenandoahGarbageThreshold=100";

const JVMS: [(&str, &[&str]); 7] = [
    ("8", &["-XX:+UseParallelGC"]),
    ("11", &["-XX:+UseG1GC"]),
    ("17", &["-XX:+UseShenandoahGC", "-XX:+UnlockExperimentalVMOptions", KEEP_DEAD, OPEN]),
    ("21", &["-XX:+UseZGC", "-XX:+ZGenerational"]),
    ("25", &["-XX:+UseG1GC"]),
    ("26", &["-XX:+UseZGC"]),
    ("28", &["-XX:+UseSerialGC"]),
];
const MORE: [(&str, &[&str]); 6] = [
    ("8", &["-XX:+UseConcMarkSweepGC"]),
    ("8", &["-XX:+UseSerialGC", "-XX:-UseCompressedOops"]),
    ("17", &["-XX:+UseSerialGC"]),
    ("21", &["-XX:+UseG1GC", "-XX:-UseCompressedOops", "-XX:-UseCompressedClassPointers"]),
    ("25", &["-XX:+UseZGC"]),
    ("25", &["-XX:+UseSerialGC", "-XX:+UseCompactObjectHeaders", "-XX:NativeMemoryTracking=summary"]),
];

/// A JVM, and the file that it maps: where also JDK 8 in its own root sees it.
struct Program {
    jvm: Jvm,
    file: String,
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.file);
    }
}

fn has_arenas(jdk: &str) -> bool {
    matches!(jdk, "25" | "26" | "28")
}

fn start(jdk: &str, options: &[&str]) -> Option<Program> {
    let options: Vec<&str> = ["-Xmx128m"].into_iter().chain(options.iter().copied()).collect();
    let file = format!("{}/buffers-{}-{jdk}", env!("CARGO_TARGET_TMPDIR"), std::process::id());
    let (named, arenas) = (format!("file={file}"), format!("arenas={}", u8::from(has_arenas(jdk))));
    let has_lost = options.contains(&OPEN);
    let lost = format!("lost={}", u8::from(has_lost));
    let jvm = Jvm::start(&java(jdk)?, &options, &["marusa.Buffers", &named, &arenas, &lost]);
    Some(Program { jvm, file })
}

fn buffers(arguments: &[&str]) -> Value {
    let output = marusa(&[&["map", "--by", "buffer", "--json"], arguments].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// Kind, part of the holder, bytes and count; "" for any session.
fn expected(jdk: &str) -> Vec<(&'static str, &'static str, &'static str, u64, u64)> {
    let mut rows = vec![
        ("direct", "marusa.Buffers$Cache.buffer", "", CACHES * CACHE_BYTES, CACHES),
        ("direct", "marusa.Buffers.SHARED", "", 1 << 20, 1),
        ("direct", "marusa.Buffers.LIST", "", LISTED * LISTED_BYTES, LISTED),
        ("direct", "marusa.Buffers$Registry.byName", "", LISTED * LISTED_BYTES / 2, LISTED),
        ("mapped", "marusa.Buffers$Index.pages", "", 3 * MAPPED_BYTES, 3),
        (
            "nio_cache",
            "sun.nio.ch.Util$BufferCache of thread io-pool-#",
            "",
            THREADS * WRITTEN_BYTES,
            THREADS,
        ),
    ];
    if has_arenas(jdk) {
        rows.extend(
            ["confined", "shared", "auto"]
                .map(|kind| ("ffm", "marusa.Buffers$Native.arena", kind, ARENA_BYTES, 3)),
        );
    }
    rows
}

fn wrong(jdk: &str, map: &Value) -> Vec<String> {
    let rows = map["buffers"].as_array().expect("buffers");
    let mut wrong = Vec::new();
    for (kind, holder, session, bytes, count) in expected(jdk) {
        let is_it = |row: &&Value| {
            row["kind"] == kind
                && row["holder"] == holder
                && (session.is_empty() || row["session"] == session)
        };
        let row = rows.iter().find(is_it);
        if row.is_none_or(|row| row["bytes"] != bytes || row["count"] != count) {
            wrong.push(format!("{kind} {holder} {session}: not {bytes} in {count}: {row:?}"));
        }
    }
    let pools = &map["buffer_totals"]["pools"];
    for (found, jdk) in [("direct_found", "direct"), ("mapped_found", "mapped")] {
        if pools[found] != pools[jdk] || pools[jdk]["count"].as_u64().is_none_or(|count| count == 0) {
            wrong.push(format!("{found} {} of {}", pools[found], pools[jdk]));
        }
    }
    wrong
}

/// The rows of buffers that are alive; the collector may be marking at any moment.
fn wrong_live(options: &[&str], pid: i32, mut map: Value) -> Vec<String> {
    let has_marks = options.contains(&"-XX:+UseShenandoahGC");
    // Marks of ZGC are complete where its last collection was a whole one.
    let may_have_marks = has_marks || options.contains(&"-XX:+UseZGC");
    let is_known = |map: &Value| map["buffers"][0]["live_bytes"].is_u64();
    for _ in 0..if has_marks { 20 } else { 0 } {
        if is_known(&map) {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(200));
        map = buffers(&[&pid.to_string()]);
    }
    let gaps = map["gaps"].as_array().expect("gaps");
    let has_gap = gaps.iter().any(|gap| gap["what"] == "buffers.live_bytes" && gap["hint"].is_string());
    if is_known(&map) == has_gap || is_known(&map) != has_marks && !may_have_marks {
        return vec![format!("live_bytes: {has_marks}, {gaps:#?}")];
    }
    let rows = map["buffers"].as_array().expect("buffers");
    let held = rows
        .iter()
        .filter(|row| is_known(&map) && row["holder"].as_str().is_some_and(|it| it.starts_with("marusa.")));
    let mut wrong: Vec<String> =
        held.filter(|row| row["live_bytes"] != row["bytes"]).map(|row| format!("dead: {row}")).collect();
    if options.contains(&OPEN) {
        let bytes = KEPT_OF_LOST * WITHOUT_CLEANER_BYTES;
        for (holder, live) in [("marusa.Buffers$Raw.memory", bytes), ("no object", 0)] {
            let row = rows.iter().find(|row| row["kind"] == "unsafe" && row["holder"] == holder);
            if row.is_none_or(|row| row["bytes"] != bytes || row["live_bytes"] != live) {
                wrong.push(format!("{holder}: not {bytes} of which {live} live: {row:?}"));
            }
        }
    }
    wrong
}

/// Between two collections of ZGC, objects that are garbage may still lead to an address where a buffer lies now.
fn collect(pid: i32) {
    let process = Process::open(pid).expect("a JVM");
    attach::open(&process).expect("asked").command("GC.run").expect("a collection");
}

#[test]
fn each_buffer_has_its_holder_and_the_sums_are_those_of_the_jdk() {
    let mut all = Vec::new();
    for (jdk, options) in JVMS.iter().chain(MORE.iter().filter(|_| is_long())) {
        let Some(program) = start(jdk, options) else { continue };
        if options.contains(&"-XX:+UseZGC") {
            collect(program.jvm.pid);
        }
        let map = buffers(&[&program.jvm.pid.to_string()]);
        let mut wrong = wrong(jdk, &map);
        wrong.extend(wrong_live(options, program.jvm.pid, map.clone()));
        if !wrong.is_empty() {
            all.push(format!("{jdk} {options:?}: {}: {:#}", wrong.join("; "), map["buffers"]));
        }
    }
    assert!(all.is_empty(), "{}", all.join("\n"));
}

/// The array of the buffers comes right after the object of a class, in which its elements are no static fields.
#[test]
fn an_array_behind_a_mirror_leads_to_all_its_buffers() {
    let Some(java) = java("17") else { return };
    let jvm = Jvm::start(&java, &["-XX:+UseSerialGC"], &["marusa.Direct", "count=500", "size=4k"]);
    let map = buffers(&[&jvm.pid.to_string()]);
    let rows = map["buffers"].as_array().expect("buffers");
    let row = rows.iter().find(|row| row["holder"] == "java.nio.ByteBuffer[]").expect("the array");
    assert_eq!(row["count"], 500, "{rows:#?}");
}

#[test]
fn a_table_a_file_and_an_account_without_buffers() {
    let directory = Directory::new("buffers");
    let Some(program) = start("17", &["-XX:+UseG1GC"]) else { return };
    let pid = program.jvm.pid.to_string();
    let table = text(&marusa(&["map", &pid, "--by", "buffer", "--width", "100"]).stdout);
    assert!(table.lines().all(|line| line.chars().count() <= 100), "{table}");
    assert!(table.contains("the JDK counts 9.0 MiB in 205 buffers"), "{table}");
    assert!(
        map_json(program.jvm.pid).get("buffers").is_none(),
        "they are read only where they are asked for"
    );
    let (with, without) = (directory.file("with.frozen"), directory.file("without.frozen"));
    assert!(marusa(&["freeze", &pid, "--holders", "-o", &with]).status.success());
    assert!(marusa(&["freeze", &pid, "-o", &without]).status.success());
    let wrong = wrong("17", &buffers(&["--from", &with]));
    assert!(wrong.is_empty(), "{wrong:#?}");
    let map = buffers(&["--from", &without]);
    let gaps = map["gaps"].as_array().expect("gaps");
    assert!(gaps.iter().any(|gap| gap["what"] == "buffers outside the heap"), "{gaps:#?}");
    assert!(map.get("buffers").is_none(), "nothing is said where nothing was kept");
}
