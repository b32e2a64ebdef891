//! `marusa heap` against what each JVM itself counts with `GC.class_histogram -all`, on JVMs at rest and at work.

use crate::common::*;
use marusa::act::attach::{self, Attached};
use marusa::os::process::Process;
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// The largest classes that must agree, and how well.
const CLASSES: usize = 30;
const APART_MAX: f64 = 0.01;
/// A few objects come with each question.
const INSTANCES_APART_MAX: u64 = 4;
/// Up to JDK 18, buffers that are given back are filled with `int[]`. Where `jcmd` counts what can be reached, it leaves them
/// out, though
/// they were allocated since the marking began: this share of the heap at most.
const FILLER: &str = "[I";
const FILLERS_MAX: f64 = 0.03;
/// What the answer to a question takes, of any class.
const ASKED_BYTES: u64 = 64 << 10;
const MARKING_MAX: Duration = Duration::from_secs(2);

/// In the normal run: each JDK, and each collector whose regions lie otherwise.
const CHOSEN: [(&str, &str); 9] = [
    ("8", "cms"),
    ("11", "shenandoah"),
    ("17", "g1"),
    ("21", "z"),
    ("25", "z-generational"),
    ("25", "parallel"),
    ("26", "z-generational"),
    ("27", "g1"),
    ("28", "parallel"),
];

/// Instances and bytes, by class.
type Counts = BTreeMap<String, (u64, u64)>;

/// "   1:   155857   39865256  [B (java.base@17)".
fn theirs(said: &str) -> Counts {
    let mut counts = Counts::new();
    for line in said.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [number, instances, bytes, class, ..] = words[..] else { continue };
        let (Ok(instances), Ok(bytes), true) =
            (instances.parse::<u64>(), bytes.parse::<u64>(), number.ends_with(':'))
        else {
            continue;
        };
        let sum = counts.entry(class.to_string()).or_default();
        *sum = (sum.0 + instances, sum.1 + bytes);
    }
    counts
}

fn heap_json(pid: i32, more: &[&str]) -> Value {
    let pid = pid.to_string();
    let output = marusa(&[&["heap", &pid, "--json"], more].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// Each byte that is in use is in one sum, and the sums of the classes are those of the heap.
fn check_sums(heap: &Value) {
    let totals = &heap["totals"];
    let names = ["object", "dead", "unused_buffer", "tail", "free", "unknown", "absent", "unread"];
    let sum = |of: &Value| names.iter().map(|name| number(&of[format!("{name}_bytes")])).sum::<u64>();
    for of in heap["spaces"].as_array().expect("spaces").iter().chain([totals]) {
        assert_eq!(sum(of), number(&of["used_bytes"]), "{of:#}");
    }
    let classes = heap["classes"].as_array().expect("classes");
    let bytes: u64 = classes.iter().map(|class| number(&class["bytes"])).sum();
    for class in classes {
        let [low, bytes, high] = ["bytes_low", "bytes", "bytes_high"].map(|name| number(&class[name]));
        let on_pages = class["by_page_size"].as_object().expect("pages").values();
        let on_pages: u64 = on_pages.map(number).sum();
        assert!(low <= bytes && bytes <= high && on_pages <= bytes, "{class:#}");
    }
    let objects = number(&totals["object_bytes"]);
    assert!((objects..=objects + number(&totals["unused_buffer_bytes"])).contains(&bytes), "{totals:#}");
}

fn ours(heap: &Value) -> Counts {
    let classes = heap["classes"].as_array().expect("classes").iter();
    let count = |class: &Value| (number(&class["instances"]), number(&class["bytes"]));
    classes.map(|class| (class["class"].as_str().expect("a name").to_string(), count(class))).collect()
}

/// Classes of the largest ones that differ.
fn apart(theirs: &Counts, ours: &Counts) -> Vec<String> {
    let mut largest: Vec<(&String, &(u64, u64))> = theirs.iter().collect();
    largest.sort_by_key(|(_, (_, bytes))| std::cmp::Reverse(*bytes));
    let all: u64 = theirs.values().map(|(_, bytes)| bytes).sum();
    let differs = |(class, (instances, bytes)): &(&String, &(u64, u64))| {
        let (our_instances, our_bytes) = ours.get(*class).copied().unwrap_or_default();
        let far = |one: u64, other: u64| one.abs_diff(other) as f64 > one as f64 * APART_MAX;
        let is_filler =
            *class == FILLER && our_bytes >= *bytes && (our_bytes - bytes) as f64 <= all as f64 * FILLERS_MAX;
        let is_apart = !is_filler && (far(*bytes, our_bytes) || far(*instances, our_instances));
        (is_apart && instances.abs_diff(our_instances) > INSTANCES_APART_MAX)
            .then(|| format!("{class}: {instances} of {bytes} B, we {our_instances} of {our_bytes} B"))
    };
    largest.iter().take(CLASSES).filter_map(differs).collect()
}

fn start(row: &Row) -> Option<(Jvm, Attached)> {
    let options: Vec<&str> = row.options.iter().map(String::as_str).chain(["-Xmx300m"]).collect();
    let jvm = Jvm::start(&java(&row.jdk)?, &options, &["marusa.Objects", "bytes=30m", "copies=1000"]);
    let attached = attach::open(&Process::open(jvm.pid).expect("a JVM")).expect("it may be asked");
    // The thread that answers has a buffer of its own.
    attached.command("VM.version").expect("an answer");
    Some((jvm, attached))
}

/// ZGC may be marking for a while, and until then it is not known what is dead.
fn at_rest(row: &Row, pid: i32) -> Value {
    let started = Instant::now();
    loop {
        let heap = heap_json(pid, &[]);
        let is_known = heap["classes"][0]["dead_bytes"].is_u64();
        if is_known || !row.gc.starts_with('z') || started.elapsed() > MARKING_MAX {
            return heap;
        }
    }
}

/// Without marks of Shenandoah (JDK 25 and on) dead objects count, which `jcmd` leaves out.
fn counts_the_dead(row: &Row) -> bool {
    matches!(row.jdk.as_str(), "25" | "28") && row.gc.starts_with("shenandoah")
}

#[test]
fn the_largest_classes_are_those_that_the_jvm_counts() {
    let mut wrong = Vec::new();
    let is_chosen = |row: &Row| is_long() || CHOSEN.contains(&(row.jdk.as_str(), row.gc.as_str()));
    for row in rows().into_iter().filter(|row| is_chosen(row) && !counts_the_dead(row)) {
        let Some((jvm, attached)) = start(&row) else { continue };
        let heap = at_rest(&row, jvm.pid);
        let said = attached.command("GC.class_histogram -all").expect("an answer");
        check_sums(&heap);
        if row.gc.starts_with('z') && heap["classes"][0]["dead_bytes"].is_null() {
            // Then the dead count too, and a gap says so.
            let gaps = heap["gaps"].as_array().expect("gaps");
            if !gaps.iter().any(|gap| gap["what"] == "classes.dead_bytes") {
                wrong.push(format!("{}: no gap: {gaps:?}", row.name()));
            }
            let fewer = |(class, (instances, _)): (&String, &(u64, u64))| {
                let ours = ours(&heap).get(class).map_or(0, |(instances, _)| *instances);
                (ours + INSTANCES_APART_MAX < *instances)
                    .then(|| format!("{}: {class} {ours} of {instances}", row.name()))
            };
            wrong.extend(theirs(&said).iter().filter_map(fewer));
            continue;
        }
        let differ = apart(&theirs(&said), &ours(&heap));
        println!("{}: {} ms, {} apart", row.name(), heap["taken"]["took_ms"], differ.len());
        wrong.extend(differ.into_iter().map(|what| format!("{}: {what}", row.name())));
        let exact = heap["totals"]["exact_ratio"].as_f64().unwrap_or(0.0);
        if exact < 0.999 {
            wrong.push(format!("{}: {exact} exact: {:#}", row.name(), heap["totals"]));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Each marking exchanges the two bitmaps that G1 has up to JDK 19: after an odd number of markings the second one is that of the
/// last, after an even number the first. After full collections of JDK 8 and 11, neither is.
#[test]
fn what_g1_found_alive_is_counted_after_each_marking_and_each_full_collection() {
    let mut wrong = Vec::new();
    for (jdk, concurrent) in ["8", "11", "17"].iter().flat_map(|jdk| [(jdk, '+'), (jdk, '-')]) {
        let mut row = row(jdk, "g1");
        row.options.push(format!("-XX:{concurrent}ExplicitGCInvokesConcurrent"));
        let Some((jvm, attached)) = start(&row) else { continue };
        for collection in 1..=3 {
            let ours = ours(&heap_json(jvm.pid, &[]));
            let said = theirs(&attached.command("GC.class_histogram -all").expect("an answer"));
            for class in ["marusa.Objects$Node", "java.util.HashMap$Node", "java.lang.String"] {
                let [ours, theirs] =
                    [&ours, &said].map(|counts| counts.get(class).map_or(0, |count| count.0));
                if theirs == 0 || theirs.abs_diff(ours) as f64 > theirs as f64 * APART_MAX {
                    let when = format!("{} {concurrent}, collection {collection}", row.name());
                    wrong.push(format!("{when}: {class} {theirs}, we {ours}"));
                }
            }
            attached.command("GC.run").expect("a collection");
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn strings_that_say_the_same_are_counted_and_shown_only_where_they_are_asked_for() {
    let Some((jvm, _)) = start(&row("17", "g1")) else { return };
    let content = |heap: &Value| heap["duplicates"]["top"][0].clone();
    let most = content(&heap_json(jvm.pid, &["--duplicates"]));
    // The one that the others were made from.
    assert_eq!((number(&most["arrays"]), number(&most["array_bytes"])), (1001, 120), "{most:#}");
    assert_eq!(number(&most["wasted_bytes"]), 1000 * 120);
    assert!(most["value"].is_null());
    let shown = content(&heap_json(jvm.pid, &["--duplicates", "--values"]));
    assert!(shown["value"].as_str().is_some_and(|value| value.starts_with("xxxxxxxx")), "{shown:#}");
    let table = text(&marusa(&["heap", &jvm.pid.to_string(), "--top", "5"]).stdout);
    assert!(table.contains("\nand ") && table.lines().all(|line| line.chars().count() <= 100), "{table}");
    let classes = heap_json(jvm.pid, &["--top", "5"])["classes"].as_array().map(Vec::len);
    assert_eq!(classes, Some(5));
}

#[test]
fn a_frozen_file_has_no_objects_and_says_so() {
    let Some((jvm, _)) = start(&row("25", "serial")) else { return };
    let directory = crate::record::Directory::new("heap");
    let file = directory.file("it.frozen");
    assert!(marusa(&["freeze", &jvm.pid.to_string(), "-o", &file]).status.success());
    let output = marusa(&["heap", "--from", &file]);
    assert_eq!(output.status.code(), Some(3));
    assert!(text(&output.stderr).contains("a frozen file keeps none of the heap's content"));
}

/// Pages of ZGC that come and go at each moment may leave nothing to count; then a gap says so.
fn known(pid: i32) -> Option<Value> {
    let heap = heap_json(pid, &[]);
    let is_known = heap["totals"]["used_bytes"].is_u64();
    let has_gaps = heap["gaps"].as_array().is_some_and(|gaps| !gaps.is_empty());
    assert!(is_known || has_gaps, "{heap:#}");
    is_known.then_some(heap)
}

/// Without a collection between, what each class has only grows: from before the heap is read to after it.
fn apart_from_bounds(heap: &Value, before: &Counts, after: &Counts) -> Vec<String> {
    let mut largest: Vec<(&String, &(u64, u64))> = after.iter().collect();
    largest.sort_by_key(|(_, (_, bytes))| std::cmp::Reverse(*bytes));
    let classes = heap["classes"].as_array().expect("classes");
    let is_apart = |(class, (_, after)): &(&String, &(u64, u64))| {
        let before = before.get(*class).map_or(0, |(_, bytes)| *bytes);
        let row = classes.iter().find(|row| row["class"].as_str() == Some(class))?;
        let (low, high) = (number(&row["bytes_low"]), number(&row["bytes_high"]));
        let is_inside =
            low + ASKED_BYTES >= before && low <= after + ASKED_BYTES && high + ASKED_BYTES >= before;
        (!is_inside).then(|| format!("{class}: {before} to {after} B, we {low} to {high} B"))
    };
    largest.iter().filter(|(class, _)| !class.contains("Filler")).take(CLASSES).filter_map(is_apart).collect()
}

#[test]
fn a_class_of_a_busy_jvm_is_within_its_bounds_and_lies_on_the_pages_of_the_heap() {
    let Some(java) = java("21") else { return };
    let options = ["-XX:+UseParallelGC", "-Xms400m", "-Xmx400m", "-Xmn300m", "-XX:+UseTransparentHugePages"];
    let jvm = Jvm::start(&java, &options, &["marusa.Grow", "churn=20m/s", "heap=2m/s", "until=20m"]);
    let attached = attach::open(&Process::open(jvm.pid).expect("a JVM")).expect("it may be asked");
    let counts = || theirs(&attached.command("GC.class_histogram -all").expect("an answer"));
    let bytes_of = |counts: &Counts| counts.get("[B").map_or(0, |(_, bytes)| *bytes);
    let mut wrong = vec!["each time the heap was collected".to_string()];
    for _ in 0..5 {
        let (before, heap, after) = (counts(), heap_json(jvm.pid, &["--by", "page-size"]), counts());
        check_sums(&heap);
        if bytes_of(&after) >= bytes_of(&before) {
            wrong = apart_from_bounds(&heap, &before, &after);
            break;
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let pid = jvm.pid.to_string();
    let map: Value = serde_json::from_slice(&marusa(&["map", &pid, "--json"]).stdout).expect("JSON");
    let areas = map["areas"].as_array().expect("areas");
    let area = areas.iter().find(|area| area["area"] == "java_heap").expect("a heap");
    let heap = heap_json(jvm.pid, &[]);
    let arrays = heap["classes"].as_array().and_then(|rows| rows.iter().find(|row| row["class"] == "[B"));
    let sizes =
        |of: &Value| of["by_page_size"].as_object().map(|sizes| sizes.keys().cloned().collect::<Vec<_>>());
    let of_arrays = sizes(arrays.expect("byte arrays")).expect("sizes");
    let of_area = sizes(area).expect("sizes");
    assert!(
        !of_arrays.is_empty() && of_arrays.iter().all(|size| of_area.contains(size)),
        "{of_arrays:?} {of_area:?}"
    );
    let table = text(&marusa(&["heap", &pid, "--by", "page-size"]).stdout);
    assert!(table.lines().all(|line| line.chars().count() <= 100) && !table.contains("SHARE"), "{table}");
}

/// Collections all the time: the sums hold, and what changed is reported.
#[test]
fn the_heap_of_a_jvm_at_work_is_counted_as_far_as_it_stands_still() {
    for (jdk, gc) in [("17", "g1"), ("21", "z-generational"), ("25", "parallel")] {
        let row = row(jdk, gc);
        let Some(java) = java(jdk) else { continue };
        let options: Vec<&str> = row.options.iter().map(String::as_str).chain(["-Xmx64m"]).collect();
        let jvm = Jvm::start(&java, &options, &["marusa.Grow", "churn=400m/s", "heap=1m/s", "until=20m"]);
        for _ in 0..3 {
            let Some(heap) = known(jvm.pid) else { continue };
            let totals = &heap["totals"];
            check_sums(&heap);
            assert!(number(&totals["used_bytes"]) > 0 && number(&totals["looks"]) <= 4, "{totals:#}");
            let exact = totals["exact_ratio"].as_f64().expect("a ratio");
            let has_gaps = heap["gaps"].as_array().is_some_and(|gaps| !gaps.is_empty());
            assert!(exact > 0.9999 || has_gaps, "{exact}: {heap:#}");
            println!("{}: {:.3} exact, {} samples", row.name(), exact, totals["looks"]);
        }
    }
}
