//! The pages that `need` predicts against real JVMs: each starts with a pool of exactly that size and takes all of it, heap,
//! code cache and tables on 2M; with one page less, what `shortfall` names lies on 4K (or the VM does not start).

mod pool;

use crate::common::*;
use marusa::jvm::Gc;
use marusa::map::Area;
use marusa::pages::need::{Shortfall, need, shortfall};
use marusa::pages::{Mode, Need, PAGE_2M, Subject, Vm, Without};
use pool::{Pool, free};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const MIB: u64 = 1 << 20;
const HEAPS_MIB: [u64; 2] = [512, 2048];
const CPUS: u32 = 2;
const READY_MAX: Duration = Duration::from_secs(60);
/// Next to the pool: the JVM's own memory, and what others need.
const SPARE_BYTES: u64 = 1 << 30;

/// A JVM that may also fail to start.
struct Started {
    child: Child,
    log: PathBuf,
    ready: bool,
}

impl Started {
    fn new(java: &Path, options: &[String]) -> Started {
        let log = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("pages-need-{}", std::process::id()));
        let output = File::create(&log).expect("a log file");
        let mut command = Command::new(java);
        command.args(options).arg("-cp").arg(root().join("java/build-out")).arg("marusa.Idle");
        command.stdin(Stdio::piped()).stderr(output.try_clone().expect("a file")).stdout(output);
        let mut jvm = Started { child: command.spawn().expect("java starts"), log, ready: false };
        let started = Instant::now();
        while started.elapsed() < READY_MAX {
            if jvm.output().contains("READY") {
                jvm.ready = true;
                break;
            }
            if jvm.child.try_wait().expect("a child").is_some() {
                break;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        jvm
    }

    fn output(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    fn account(&self) -> Value {
        let output = marusa(&["map", &self.child.id().to_string(), "--by", "page-size", "--json"]);
        assert!(output.status.success(), "{}", text(&output.stderr));
        serde_json::from_slice(&output.stdout).expect("JSON")
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_file(&self.log);
    }
}

/// A JDK with a collector and a heap, and the options that give it.
struct Cell {
    name: String,
    java: PathBuf,
    subject: Subject,
    options: Vec<String>,
}

impl Cell {
    fn of(row: &Row, java: &Path, heap_mib: u64, more: &[&str]) -> Cell {
        let gc = match row.gc.as_str() {
            "serial" => Gc::Serial,
            "parallel" => Gc::Parallel,
            "g1" => Gc::G1,
            "cms" => Gc::Cms,
            "z" => Gc::Z,
            "z-generational" => Gc::ZGenerational,
            "shenandoah" => Gc::Shenandoah,
            _ => Gc::ShenandoahGenerational,
        };
        let mut options = row.options.clone();
        options.extend([
            format!("-Xms{heap_mib}m"),
            format!("-Xmx{heap_mib}m"),
            format!("-XX:ActiveProcessorCount={CPUS}"),
        ]);
        options.push("-XX:+UseLargePages".to_string());
        options.extend(more.iter().map(|option| option.to_string()));
        let flags = more.iter().filter_map(|option| option.strip_prefix("-XX:")?.split_once('='));
        let subject = Subject {
            vm: Vm::HotSpot,
            feature: row.jdk.parse().expect("a release"),
            version: version(java),
            java_home: None,
            gc,
            heap_initial_bytes: heap_mib * MIB,
            heap_max_bytes: heap_mib * MIB,
            cpus: CPUS,
            flags: flags
                .map(|(name, value)| (name.to_string(), value.to_string()))
                .collect::<BTreeMap<_, _>>(),
        };
        Cell {
            name: format!("{} {heap_mib}m {}", row.name(), more.join(" ")),
            java: java.to_path_buf(),
            subject,
            options,
        }
    }

    fn needs(&self) -> Vec<Need> {
        need(&self.subject, Mode::HugeTlb2M).unwrap_or_else(|gap| panic!("{}: {gap:?}", self.name))
    }
}

/// JAVA_VERSION of the file `release` that every JDK has.
fn version(java: &Path) -> Option<String> {
    let release = std::fs::read_to_string(java.parent()?.parent()?.join("release")).ok()?;
    let line = release.lines().find_map(|line| line.strip_prefix("JAVA_VERSION="))?;
    Some(line.trim_matches('"').to_string())
}

/// Least and most 2M pages, of the needs that are not in `without`.
fn pages(needs: &[Need], without: &[Shortfall]) -> (u64, u64) {
    let large = || {
        let is_left_out =
            |need: &Need| without.iter().any(|short| std::ptr::eq(short.need, need) && short.certain);
        needs.iter().filter(move |need| need.page_bytes == PAGE_2M && !is_left_out(need))
    };
    (large().map(|need| need.pages_at_least).sum(), large().map(|need| need.pages).sum())
}

/// Resident bytes on 4K and on larger pages of an area, or of one part of it; `None` where there is no such part.
fn small_and_large(account: &Value, area_name: &str, part: Option<&str>) -> Option<(u64, u64)> {
    let parts = area(account, area_name)["parts"].as_array()?.iter();
    let mut found = None;
    for sizes in parts
        .filter(|p| part.is_none_or(|name| p["part"] == name))
        .filter_map(|p| p["by_page_size"].as_object())
    {
        let (small, large) = found.get_or_insert((0, 0));
        for (size, bytes) in sizes {
            *(if size == "4096" { &mut *small } else { &mut *large }) += number(bytes);
        }
    }
    found
}

/// Heap, code cache and each table that the account knows by name lie where they should: on 2M, or on 4K if they fell short.
fn check_places(name: &str, account: &Value, needs: &[Need], short: &[Shortfall]) {
    let fell = |need: &Need| short.iter().any(|short| std::ptr::eq(short.need, need) && short.certain);
    for need in needs.iter().filter(|need| need.page_bytes == PAGE_2M) {
        let whole_area = matches!(need.area, Area::JavaHeap | Area::JitCode);
        let twins = needs.iter().filter(|other| other.area == need.area && other.part == need.part).count();
        // What lies on 4K in part, by its size or by its address, and two of one name of which one fell, say nothing; and the
        // account has all segment maps in one.
        if need.area == Area::JitWork
            || need.bytes % PAGE_2M != 0
            || need.pages_at_least < need.pages
            || (twins > 1 && !short.is_empty())
        {
            continue;
        }
        let part = (!whole_area).then_some(need.part.as_str());
        let Some((small, large)) = small_and_large(account, need.area.name(), part) else { continue };
        let (wrong, right) = if fell(need) { (large, small) } else { (small, large) };
        assert_eq!(wrong, 0, "{name}: {} on the wrong pages ({small} on 4K, {large} on 2M)", need.part);
        assert!(right > 0 || !whole_area, "{name}: {} is not in memory", need.part);
    }
}

/// Starts with exactly what is needed: all of it is taken, and all lies on 2M.
fn exact(cell: &Cell, pool: &mut Pool) -> Result<(), String> {
    let needs = cell.needs();
    let (least, most) = pages(&needs, &[]);
    assert!(least == most || cell.subject.feature < 17, "{}: exact from 17 on", cell.name);
    pool.leave(most)?;
    let jvm = Started::new(&cell.java, &cell.options);
    assert!(jvm.ready, "{}: {}", cell.name, jvm.output());
    let taken = most - free();
    assert!((least..=most).contains(&taken), "{}: took {taken}, not {least} to {most}", cell.name);
    check_places(&cell.name, &jvm.account(), &needs, &[]);
    drop(jvm);
    assert!(pool.settled(most), "{}: its pages come back", cell.name);
    Ok(())
}

/// Starts with one page too few: what falls short is what was predicted.
fn one_less(cell: &Cell, pool: &mut Pool) -> Result<(), String> {
    let needs = cell.needs();
    let there = pages(&needs, &[]).0 - 1;
    let short = shortfall(&needs, there, 0);
    assert!(short.iter().any(|short| short.certain), "{}: one page less must tell", cell.name);
    pool.leave(there)?;
    let jvm = Started::new(&cell.java, &cell.options);
    match short[0].need.without {
        Without::VmExits => {
            assert!(!jvm.ready, "{}: starts in spite of all", cell.name);
            assert!(
                jvm.output().contains("Failed to allocate initial Java heap"),
                "{}: {}",
                cell.name,
                jvm.output()
            );
        }
        Without::HeapShrinks => {
            assert!(
                jvm.output().contains("Forcefully lowering max Java heap size"),
                "{}: {}",
                cell.name,
                jvm.output()
            );
        }
        _ => {
            assert!(jvm.ready, "{}: {}", cell.name, jvm.output());
            let (least, most) = pages(&needs, &short);
            let taken = there - free();
            assert!(
                (least..=most).contains(&taken),
                "{}: took {taken}, not {least} to {most}: {short:#?}",
                cell.name
            );
            check_places(&cell.name, &jvm.account(), &needs, &short);
        }
    }
    drop(jvm);
    assert!(pool.settled(there), "{}: its pages come back", cell.name);
    Ok(())
}

/// A pool of all the pages that one of the cells needs, where this machine has the rights and the memory.
fn pool(cells: &[Cell]) -> Option<Pool> {
    if !is_root() {
        skip("only root makes pools of large pages");
        return None;
    }
    let pages = cells.iter().map(|cell| pages(&cell.needs(), &[]).1).max()?;
    Pool::take(pages).map_err(|why| skip(&why)).ok()
}

fn has_memory_for(heap_mib: u64) -> bool {
    let meminfo = std::fs::read_to_string("/proc/meminfo").expect("meminfo");
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:")).expect("MemAvailable");
    let kib: u64 = line.split_whitespace().next().and_then(|kib| kib.parse().ok()).expect("kB");
    let needed = heap_mib * MIB + heap_mib * MIB / 4 + 256 * MIB + SPARE_BYTES;
    if kib * 1024 < needed {
        skip(&format!("a heap of {heap_mib} MiB in large pages: {} MiB of memory are available", kib / 1024));
    }
    kib * 1024 >= needed
}

/// Tests each cell; the host's settings are held for the cells of one JDK at a time.
fn check(cells: &[Cell], test: fn(&Cell, &mut Pool) -> Result<(), String>) {
    let Some(mut pool) = pool(cells) else { return };
    for cell in cells {
        if let Err(why) = test(cell, &mut pool) {
            skip(&format!("{}: {why}", cell.name));
        }
    }
}

/// Every collector of these JDKs; the two modes of one are rows of their own.
fn check_all(jdks: &[&str], test: fn(&Cell, &mut Pool) -> Result<(), String>) {
    for jdk in jdks {
        let Some(java) = java(jdk) else { continue };
        let rows: Vec<Row> = rows().into_iter().filter(|row| row.jdk == *jdk).collect();
        let heaps: Vec<u64> = HEAPS_MIB.into_iter().filter(|heap_mib| has_memory_for(*heap_mib)).collect();
        let cells = heaps.iter().flat_map(|heap| rows.iter().map(|row| Cell::of(row, &java, *heap, &[])));
        check(&cells.collect::<Vec<Cell>>(), test);
    }
}

#[test]
fn the_predicted_pages_are_the_pages_taken() {
    check_all(&["11", "17", "21", "25"], exact);
}

#[test]
fn with_one_page_less_the_predicted_reservation_falls_short() {
    check_all(if is_long() { &["11", "17", "21", "25"] } else { &["11", "25"] }, one_less);
}

/// One start each for the rules that the table of heaps does not touch.
#[test]
fn other_heaps_regions_and_code_caches() {
    let variants: &[(&str, &str, u64, &[&str])] = &[
        ("11", "g1", 300, &["-XX:ReservedCodeCacheSize=64m"]),
        ("17", "g1", 300, &["-XX:G1HeapRegionSize=32m"]),
        ("17", "serial", 300, &["-XX:ReservedCodeCacheSize=65m"]),
        ("17", "shenandoah", 900, &["-XX:ReservedCodeCacheSize=64m"]),
        ("21", "serial", 300, &["-XX:ReservedCodeCacheSize=65m"]),
        ("21", "g1", 1024, &["-XX:GCCardSizeInBytes=256"]),
        ("21", "parallel", 1024, &["-XX:NewRatio=1"]),
        ("25", "serial", 300, &["-XX:ReservedCodeCacheSize=1g"]),
        ("25", "g1", 1024, &["-XX:ObjectAlignmentInBytes=16"]),
    ];
    let cell = |(jdk, gc, heap_mib, more): &(&str, &str, u64, &[&str])| {
        Some(Cell::of(&row(jdk, gc), &java(jdk)?, *heap_mib, more))
    };
    check(&variants.iter().filter_map(cell).collect::<Vec<Cell>>(), exact);
}

/// tests/data/pages-need.tsv again: 196 starts, and a pool of 3.5 GiB. `cargo test --test host pages_need:: -- --ignored`.
#[test]
#[ignore = "minutes; for a new JDK, or a new row"]
fn the_measured_table_again() {
    let text = std::fs::read_to_string(root().join("tests/data/pages-need.tsv")).expect("the table");
    let lines: Vec<Vec<&str>> = text.lines().skip(1).map(|line| line.split('\t').collect()).collect();
    let taken_then = |columns: &[&str]| columns[4].parse::<u64>().expect("pages");
    let most = lines.iter().map(|columns| taken_then(columns)).max().expect("rows") + 8;
    let pool = Pool::take(most).expect("a pool");
    let mut wrong = Vec::new();
    for columns in &lines {
        let Some(java) = java(columns[0]) else { continue };
        let gc = if columns[..2] == ["25", "z"] { "z-generational" } else { columns[1] };
        let mut options = row(columns[0], gc).options;
        options.extend([
            format!("-Xms{0}", columns[2]),
            format!("-Xmx{}", columns[2]),
            "-XX:+UseLargePages".to_string(),
        ]);
        options.push("-XX:+UnlockExperimentalVMOptions".to_string());
        options.extend(columns[3].split_whitespace().map(str::to_string));
        let jvm = Started::new(&java, &options);
        let taken = most - free();
        // Before 17 the address of a mapping decides over its last page.
        let by_place = if ["8", "11"].contains(&columns[0]) { 4 } else { 0 };
        if !jvm.ready || taken.abs_diff(taken_then(columns)) > by_place {
            wrong.push(format!("{columns:?}: {taken}"));
        }
        drop(jvm);
        assert!(pool.settled(most), "{columns:?}: its pages come back");
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
