//! `map --by loader` against what the JVM itself says of each class loader, on every JDK.

use crate::common::*;
use crate::record::Directory;
use marusa::act::attach;
use marusa::os::process::Process;
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

const PLAIN: u64 = 40;
const HIDDEN: u64 = 30;
const PROGRAM: [&str; 6] = ["marusa.Loaders", "plain=40", "url=7", "named=5", "hidden=30", "classes=3"];
const APP: [&str; 2] =
    ["jdk.internal.loader.ClassLoaders$AppClassLoader", "sun.misc.Launcher$AppClassLoader"];

/// JDK, and what its JVM is started with.
const JVMS: [(&str, &[&str]); 8] = [
    ("8", &[]),
    ("11", &["-XX:+UseParallelGC"]),
    ("17", &["-XX:NativeMemoryTracking=summary"]),
    ("17", &["-XX:+UseZGC", "-Xshare:off"]),
    ("21", &["-XX:-UseCompressedClassPointers"]),
    ("25", &["-XX:+UseCompactObjectHeaders"]),
    ("27", &["-XX:+UseZGC"]),
    ("28", &[]),
];

fn by_loader(arguments: &[&str]) -> Value {
    let output = marusa(&[&["map", "--by", "loader", "--json"], arguments].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn rows(map: &Value) -> &Vec<Value> {
    map["loaders"].as_array().expect("loaders")
}

fn row<'a>(map: &'a Value, class: &str, name: Option<&str>) -> &'a Value {
    let found = rows(map).iter().find(|row| row["class"] == class && row["name"].as_str() == name);
    found.unwrap_or_else(|| panic!("no row {class} {name:?} in {:#?}", rows(map)))
}

/// "used" of `jcmd VM.metaspace show-loaders`, by class of the loader.
fn said(pid: i32) -> BTreeMap<String, u64> {
    let attached = attach::open(&Process::open(pid).expect("a JVM")).expect("it may be asked");
    let said = attached.command("VM.metaspace show-loaders scale=1").expect("an answer");
    let (mut used, mut class) = (BTreeMap::new(), None);
    for line in said.lines().take_while(|line| !line.starts_with("Total Usage")) {
        if let Some((_, loader)) = line.split_once(": CLD ") {
            let named = loader.split_once("instance of ");
            let end = |name: &str| name.split(',').next().unwrap_or(name).to_string();
            class = Some(named.map_or("<bootstrap>".to_string(), |(_, name)| end(name)));
        }
        // Without a class space there is one line, which has no name.
        let is_sum =
            line.trim_start().starts_with("Both:") || line.trim_start().starts_with(char::is_numeric);
        let bytes = line.split(", ").find_map(|part| part.trim().strip_suffix(" used"));
        let bytes = bytes.and_then(|part| part.split_whitespace().next()?.parse::<u64>().ok());
        if let (true, Some(class), Some(bytes)) = (is_sum, &class, bytes) {
            *used.entry(class.clone()).or_default() += bytes;
        }
    }
    used
}

/// What is wrong with the metaspace of each class of loaders.
fn wrong(map: &Value, said: &BTreeMap<String, u64>) -> Vec<String> {
    let mut ours: BTreeMap<String, u64> = BTreeMap::new();
    for row in rows(map) {
        *ours.entry(row["class"].as_str().expect("a class").to_string()).or_default() +=
            number(&row["metaspace_bytes"]);
    }
    ours.retain(|_, bytes| *bytes > 0);
    let off = |class: &String| {
        let (ours, said) = (ours.get(class).copied().unwrap_or(0), said.get(class).copied().unwrap_or(0));
        (ours.abs_diff(said) * 100 > said).then(|| format!("{class}: {ours}, and the VM says {said}"))
    };
    ours.keys().chain(said.keys()).filter_map(off).collect()
}

/// While methods are compiled, the blocks of the code heap may change during a reading; then a gap says so.
fn at_rest(pid: &str) -> Value {
    let started = Instant::now();
    loop {
        let map = by_loader(&[pid]);
        let gaps = map["gaps"].as_array().expect("gaps");
        let has_changed = gaps.iter().any(|gap| gap["what"] == "blocks of the code heap");
        if !has_changed || started.elapsed() > Duration::from_secs(30) {
            return map;
        }
    }
}

/// What holds on every JDK.
fn check(map: &Value, what: &str) {
    let plain = row(map, "marusa.Generated", None);
    assert_eq!(
        (&plain["loaders"], &plain["classes"]),
        (&PLAIN.into(), &(3 * PLAIN).into()),
        "{what}: {plain}"
    );
    assert_eq!(plain["hidden_classes"], 0, "{what}");
    let app = APP.iter().find_map(|class| rows(map).iter().find(|row| row["class"] == *class));
    let app = app.expect("the application's loader");
    assert_eq!((&app["loaders"], &app["hidden_classes"]), (&1.into(), &HIDDEN.into()), "{what}: {app}");
    assert!(
        number(&app["malloc_bytes"]) > 0
            && number(&app["class_space_bytes"]) < number(&app["metaspace_bytes"])
    );
    let bootstrap = row(map, "<bootstrap>", None);
    assert!(
        number(&bootstrap["classes"]) > 300 && bootstrap["code_bytes"].as_u64() > Some(0),
        "{what}: {bootstrap}, {}",
        map["gaps"]
    );
    for row in rows(map) {
        assert!(
            number(&row["metaspace_bytes"]) <= number(&row["metaspace_committed_bytes"]),
            "{what}: {row}"
        );
    }
    let totals = &map["loader_totals"];
    let sum = number(&totals["metaspace_resident_bytes"]) + number(&totals["not_attributed_bytes"]);
    assert_eq!(sum, number(&area(map, "class_metadata")["resident_bytes"]), "{what}: the table closes");
    let of_rows: u64 = rows(map).iter().map(|row| number(&row["metaspace_bytes"])).sum();
    assert_eq!(of_rows, number(&totals["metaspace_bytes"]), "{what}");
}

#[test]
fn each_loader_has_the_metaspace_that_the_vm_says() {
    for (jdk, options) in JVMS {
        let what = format!("JDK {jdk} {options:?}");
        let Some(java) = java(jdk) else { continue };
        let options: Vec<&str> = ["-Xmx128m"].into_iter().chain(options.iter().copied()).collect();
        let jvm = Jvm::start(&java, &options, &PROGRAM);
        let pid = jvm.pid.to_string();
        // Before the map: the first attaching loads classes.
        let said = if jdk == "8" { BTreeMap::new() } else { said(jvm.pid) };
        let map = at_rest(&pid);
        check(&map, &what);
        match jdk {
            // Its counter, as of the last collection, has the headers of chunks too.
            "8" => {
                let (ours, counted) = (
                    number(&map["loader_totals"]["metaspace_bytes"]),
                    number(&map["jvm"]["classes"]["metaspace_used_bytes"]),
                );
                assert!(
                    ours.abs_diff(counted) * 100 <= counted,
                    "{what}: {ours}, and the VM counts {counted}"
                );
            }
            _ => {
                assert!(said.len() >= 4, "{what}: {said:?}");
                assert_eq!(wrong(&map, &said), Vec::<String>::new(), "{what}");
                let plugins = row(&map, "java.net.URLClassLoader", Some("plugin-#"));
                assert_eq!((&plugins["loaders"], &plugins["classes"]), (&5.into(), &20.into()), "{what}");
            }
        }
        assert_eq!(row(&map, "java.net.URLClassLoader", None)["loaders"], if jdk == "8" { 12 } else { 7 });
    }
}

#[test]
fn a_table_a_frozen_file_and_a_comparison_have_the_same_loaders() {
    let Some(java) = java("17") else { return };
    let jvm = Jvm::start(&java, &["-Xmx64m"], &PROGRAM);
    let (directory, pid) = (Directory::new("loaders"), jvm.pid.to_string());
    let table = text(&marusa(&["map", &pid, "--by", "loader", "--width", "100"]).stdout);
    let line =
        table.lines().find(|line| line.starts_with("java.net.URLClassLoader 'plugin-#'")).expect(&table);
    assert!(line.split_whitespace().nth(2) == Some("5"), "{line}");
    assert!(map_json(jvm.pid).get("loaders").is_none(), "plain map has none");
    let (frozen, json) = (directory.file("jvm.frozen"), directory.file("few.json"));
    assert!(marusa(&["freeze", &pid, "-o", &frozen]).status.success());
    let (live, kept) = (by_loader(&[&pid]), by_loader(&["--from", &frozen]));
    assert_eq!(live["loaders"], kept["loaders"]);
    assert_eq!(live["loader_totals"], kept["loader_totals"]);
    let few = Jvm::start(&java, &["-Xmx64m"], &["marusa.Loaders", "plain=3", "classes=3"]);
    std::fs::write(&json, by_loader(&[&few.pid.to_string()]).to_string()).expect("written");
    for now in [&pid, &frozen] {
        let output = marusa(&["diff", &json, now, "--by", "loader", "--json"]);
        let diff: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let rows = diff["loaders"].as_array().expect("loaders");
        let plain = rows.iter().find(|row| row["loader"] == "marusa.Generated").expect("a row");
        assert_eq!((&plain["loaders_grown"], &plain["loaders_now"]), (&37.into(), &40.into()), "{plain}");
    }
}
