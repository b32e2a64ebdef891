//! `map --by buffer` on known buffers in known classes, against the JDK's own counters, on JDKs and collectors that differ.

use crate::common::*;
use crate::record::Folder;
use serde_json::Value;

/// Of `marusa.Buffers`.
const CACHES: u64 = 100;
const CACHE_BYTES: u64 = 64 << 10;
const LISTED: u64 = 50;
const LISTED_BYTES: u64 = 10_000;
const MAPPED_BYTES: u64 = 48 << 10;
const WRITTEN_BYTES: u64 = 256 << 10;
const THREADS: u64 = 4;
const ARENA_BYTES: u64 = 60_000;

const JVMS: [(&str, &[&str]); 5] = [
    ("8", &["-XX:+UseParallelGC"]),
    ("11", &["-XX:+UseG1GC"]),
    ("17", &["-XX:+UseShenandoahGC"]),
    ("21", &["-XX:+UseZGC", "-XX:+ZGenerational"]),
    ("25", &["-XX:+UseG1GC"]),
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

fn start(jdk: &str, options: &[&str]) -> Option<Program> {
    let options: Vec<&str> = ["-Xmx128m"].into_iter().chain(options.iter().copied()).collect();
    let file = format!("{}/buffers-{}-{jdk}", env!("CARGO_TARGET_TMPDIR"), std::process::id());
    let (named, arenas) = (format!("file={file}"), format!("arenas={}", u8::from(jdk == "25")));
    let jvm = Jvm::start(&java(jdk)?, &options, &["marusa.Buffers", &named, &arenas]);
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
    if jdk == "25" {
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

#[test]
fn each_buffer_has_its_holder_and_the_sums_are_those_of_the_jdk() {
    let mut all = Vec::new();
    for (jdk, options) in JVMS.iter().chain(MORE.iter().filter(|_| is_long())) {
        let Some(program) = start(jdk, options) else { continue };
        let map = buffers(&[&program.jvm.pid.to_string()]);
        let wrong = wrong(jdk, &map);
        if !wrong.is_empty() {
            all.push(format!("{jdk} {options:?}: {}: {:#}", wrong.join("; "), map["buffers"]));
        }
    }
    assert!(all.is_empty(), "{}", all.join("\n"));
}

#[test]
fn a_table_a_file_and_an_account_without_buffers() {
    let folder = Folder::new("buffers");
    let Some(program) = start("17", &["-XX:+UseG1GC"]) else { return };
    let pid = program.jvm.pid.to_string();
    let table = text(&marusa(&["map", &pid, "--by", "buffer", "--width", "100"]).stdout);
    assert!(table.lines().all(|line| line.chars().count() <= 100), "{table}");
    assert!(table.contains("the JDK counts 9.0 MiB in 205 buffers"), "{table}");
    assert!(
        map_json(program.jvm.pid).get("buffers").is_none(),
        "they are read only where they are asked for"
    );
    let (with, without) = (folder.file("with.frozen"), folder.file("without.frozen"));
    assert!(marusa(&["freeze", &pid, "--holders", "-o", &with]).status.success());
    assert!(marusa(&["freeze", &pid, "-o", &without]).status.success());
    let wrong = wrong("17", &buffers(&["--from", &with]));
    assert!(wrong.is_empty(), "{wrong:#?}");
    let map = buffers(&["--from", &without]);
    let gaps = map["gaps"].as_array().expect("gaps");
    assert!(gaps.iter().any(|gap| gap["what"] == "buffers outside the heap"), "{gaps:#?}");
    assert!(map.get("buffers").is_none(), "nothing is said where nothing was kept");
}
