//! `map --by holder` on a library whose blocks have one right holder each, on every JDK, with every collector, live and from a
//! core.

use crate::common::native::cpp_library;
use crate::common::*;
use crate::record::Directory;
use serde_json::Value;

const OBJECTS: u64 = 100;
const BLOCKS: u64 = 16;
const BYTES: u64 = 8 << 10;
/// The bytes of each of the kinds.
const EACH: u64 = OBJECTS * BLOCKS * BYTES;

/// What memalign leaves before an aligned block belongs to it; the kernel may join a neighbour of up to an arena's first pages.
const REGION_SLACK_BYTES: u64 = 1 << 20;

const READS_MAX: usize = 20;

/// JDK, and what its JVM is started with.
const JVMS: [(&str, &[&str]); 11] = [
    ("8", &["-XX:+UseParallelGC"]),
    ("11", &["-XX:+UseG1GC"]),
    ("17", &["-XX:+UseZGC"]),
    ("17", &["-XX:+UseSerialGC", "-XX:NativeMemoryTracking=summary"]),
    ("21", &["-XX:+UseShenandoahGC"]),
    ("21", &["-XX:+UseZGC", "-XX:+ZGenerational"]),
    ("21", &["-XX:+UseG1GC", "-XX:-UseCompressedOops", "-XX:-UseCompressedClassPointers"]),
    ("25", &["-XX:+UseG1GC", "-XX:+UseCompactObjectHeaders"]),
    ("25", &["-XX:+UseZGC"]),
    ("27", &["-XX:+UseParallelGC"]),
    ("28", &["-XX:+UseG1GC"]),
];

/// These move their heap all the time. ZGC moves it in each cycle, so some accounts are right there and some are not.
fn is_churning(jdk: &str, options: &[&str]) -> bool {
    matches!(jdk, "11" | "21") && (is_long() || !options.contains(&"-XX:+UseZGC"))
}

fn start(jdk: &str, options: &[&str]) -> Option<Jvm> {
    start_with(jdk, options, if is_churning(jdk, options) { "churn=1" } else { "hostile=1000" })
}

fn start_with(jdk: &str, options: &[&str], more: &str) -> Option<Jvm> {
    let library = format!("lib={}", cpp_library("held")?.display());
    let options: Vec<&str> = ["-Xmx128m"].into_iter().chain(options.iter().copied()).collect();
    let (objects, blocks, size) =
        (format!("objects={OBJECTS}"), format!("blocks={BLOCKS}"), format!("size={BYTES}"));
    Some(Jvm::start(&java(jdk)?, &options, &["marusa.Holding", &library, &objects, &blocks, &size, more]))
}

/// Checks the four kinds of blocks; what is wrong.
fn wrong(map: &Value) -> Vec<String> {
    let rows = map["holders"].as_array().expect("holders");
    let mut wrong = Vec::new();
    for (field, is_mapping) in [("mapping", true), ("aligned", false), ("behindHeader", false)] {
        let holder = format!("marusa.Holding$Regions.{field}");
        let row = rows.iter().find(|row| row["holder"] == holder.as_str() && row["is_mapping"] == is_mapping);
        let bytes = row.and_then(|row| row["bytes"].as_u64()).unwrap_or(0);
        if bytes.abs_diff(EACH) > REGION_SLACK_BYTES || row.is_none_or(|row| row["how"] != "field") {
            wrong.push(format!("{holder}: {bytes} of {EACH}: {row:?}"));
        }
    }
    // Words that are left over on stacks and in old blocks lead to some blocks, too; mostly to the ones that nothing else holds.
    for (holder, how, of_type, percent_min) in [
        ("marusa.Holding$Handle.nativeHandle", "field", "held::OfField", 98),
        ("marusa.Holding.shared", "static", "held::OfStatic", 95),
        ("held::OfLibrary", "vtable", "held::OfLibrary", 95),
        ("reached by nothing", "unreached", "held::OfNobody", 70),
    ] {
        let row = rows.iter().find(|row| row["holder"] == holder && row["how"] == how);
        let bytes = row.and_then(|row| row["bytes"].as_u64()).unwrap_or(0);
        // A block has up to 15 bytes more than was asked for, and the lists of blocks count.
        let is_near = (EACH * percent_min / 100..EACH * 105 / 100).contains(&bytes);
        let is_typed = row.is_some_and(|row| row["type"] == of_type);
        let is_library =
            row.is_some_and(|row| row["library"].as_str().is_some_and(|it| it.ends_with("libheld.so")));
        if !is_near || !is_typed || !is_library {
            wrong.push(format!("{holder}: {} of {EACH}: {row:?}", bytes));
        }
    }
    wrong
}

fn holders(arguments: &[&str]) -> Value {
    let output = marusa(&[&["map", "--by", "holder", "--json"], arguments].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// Where the heap moves all the time, an object may be missed wherever it is looked for; then it is found in another account.
fn right_in_time(pid: i32, is_churning: bool) -> Value {
    let read = || holders(&[&pid.to_string()]);
    let mut map = read();
    for _ in 0..if is_churning { READS_MAX } else { 0 } {
        if wrong(&map).is_empty() {
            break;
        }
        map = read();
    }
    map
}

#[test]
fn each_block_has_its_holder_on_every_jdk() {
    let mut all = Vec::new();
    for (jdk, options) in JVMS {
        let Some(jvm) = start(jdk, options) else { continue };
        let map = right_in_time(jvm.pid, is_churning(jdk, options));
        all.extend(wrong(&map).into_iter().map(|what| format!("{jdk} {options:?}: {what}")));
        let taken = &map["taken"];
        let names = map["holders"].as_array().expect("rows").iter().map(|row| row["holder"].to_string());
        let is_hostile =
            |name: &String| name.len() > 300 || name.contains("\\u001b") || name.contains("evil");
        all.extend(names.filter(is_hostile).map(|name| format!("{jdk} {options:?}: {name}")));
        println!(
            "{jdk} {options:?}: {} holders, {} ms",
            map["holders"].as_array().expect("rows").len(),
            taken["took_ms"]
        );
    }
    assert!(all.is_empty(), "{}", all.join("\n"));
}

#[test]
fn a_table_shows_the_largest_first_and_plain_map_has_none() {
    let Some(jvm) = start("17", &["-XX:+UseG1GC"]) else { return };
    let pid = jvm.pid.to_string();
    let table = text(&marusa(&["map", &pid, "--by", "holder", "--width", "100"]).stdout);
    let line =
        table.lines().find(|line| line.starts_with("marusa.Holding$Handle.nativeHandle")).expect(&table);
    assert!(line.contains("field") && line.contains("held::OfField"), "{line}");
    assert!(map_json(jvm.pid).get("holders").is_none());
    let libraries: Value =
        serde_json::from_slice(&marusa(&["map", &pid, "--by", "library", "--json"]).stdout).expect("JSON");
    let libraries = libraries["libraries"].as_array().expect("libraries");
    let ours =
        libraries.iter().find(|it| it["path"].as_str().is_some_and(|path| path.ends_with("libheld.so")));
    let bytes = ours.and_then(|it| it["malloc_bytes"].as_u64()).unwrap_or(0);
    assert!((EACH * 36 / 10..EACH * 45 / 10).contains(&bytes), "{bytes} of the four kinds: {ours:?}");
}

#[test]
fn a_frozen_file_has_the_same_holders_where_it_was_asked_for_them() {
    let Some(jvm) = start("17", &["-XX:+UseG1GC"]) else { return };
    let (directory, pid) = (Directory::new("holders"), jvm.pid.to_string());
    let (with, without) = (directory.file("with.frozen"), directory.file("without.frozen"));
    assert!(marusa(&["freeze", &pid, "--holders", "-o", &with]).status.success());
    assert!(marusa(&["freeze", &pid, "-o", &without]).status.success());
    let map = holders(&["--from", &with]);
    assert!(wrong(&map).is_empty(), "{:#?}", wrong(&map));
    let map = holders(&["--from", &without]);
    assert!(map.get("holders").is_none(), "nothing is said where nothing was kept");
    let gaps = map["gaps"].as_array().expect("gaps");
    assert!(gaps.iter().any(|gap| gap["what"] == "holders of malloc's blocks"), "{gaps:#?}");
}
