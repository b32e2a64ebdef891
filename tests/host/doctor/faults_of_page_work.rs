//! The faults of pages that other releases of the JDK make, and those of the kernel's work on pages.

use super::made::{Fault, Made, Program, set};
use crate::common::host::{HUGETLB, Host, THP};
use crate::common::skip;
use std::time::{Duration, Instant};

const HEAP: [&str; 3] = ["-Xms64m", "-Xmx64m", "-XX:+AlwaysPreTouch"];
const IDLE: &[&str] = &["marusa.Idle"];

pub const FAULTS: &[Fault] = &[
    Fault {
        name: "a pool for the code cache only, JDK 11: it logs 2 MiB",
        expects: &[("large-pages-not-got", "warn")],
        make: |host| too_few(host, "11"),
    },
    Fault {
        name: "the same, JDK 25: large pages are Enabled (Explicit)",
        expects: &[("large-pages-not-got", "warn"), ("hugetlb-surplus", "info")],
        make: |host| too_few(host, "25"),
    },
    Fault {
        name: "ZGC and THP, and JDK 25 switches its flag off",
        expects: &[("zgc-shmem-thp-off", "warn")],
        make: |host| {
            thp(host, &[("enabled", "madvise"), ("shmem_enabled", "never")])?;
            started("25", &["-XX:+UseZGC", "-XX:+UseTransparentHugePages"])
        },
    },
    Fault {
        name: "khugepaged without a pause, and a heap to work on",
        // Where it finds no free huge page it wakes kcompactd (mm/khugepaged.c, `alloc_charge_folio`).
        expects: &[("khugepaged-busy", "warn"), ("kcompactd-busy", "warn or none")],
        make: restless,
    },
];

fn thp(host: &mut Host, settings: &[(&str, &str)]) -> Option<()> {
    let paths: Vec<(String, &str)> =
        settings.iter().map(|(file, word)| (format!("{THP}/{file}"), *word)).collect();
    set(host, &paths.iter().map(|(path, word)| (path.as_str(), *word)).collect::<Vec<(&str, &str)>>())
}

fn started(jdk: &'static str, options: &[&'static str]) -> Option<Made> {
    let program = Program::new(jdk, &[&HEAP[..], options].concat(), IDLE);
    Some(Made::jvm(program.start()?))
}

/// The code cache takes 24 of 30 pages, and the heap needs 32.
fn too_few(host: &mut Host, jdk: &'static str) -> Option<Made> {
    let pool = |file: &str| format!("{HUGETLB}/hugepages-2048kB/{file}");
    set(host, &[(&pool("nr_hugepages"), "0"), (&pool("nr_overcommit_hugepages"), "30")])?;
    started(jdk, &["-XX:+UseParallelGC", "-XX:+UseLargePages", "-XX:ReservedCodeCacheSize=48m"])
}

/// khugepaged looks at a process from its first fault that could have had a huge page on (mm/khugepaged.c,
/// `khugepaged_enter_vma`); what comes then, while there are none, it finds to do.
fn restless(host: &mut Host) -> Option<Made> {
    thp(host, &[("enabled", "always"), ("defrag", "madvise")])?;
    let options = ["-XX:+UseSerialGC", "-Xms32m", "-Xmx800m", "-XX:+AlwaysPreTouch"];
    let mut jvm = Program::new("21", &options, &["marusa.Faults", "later=600m"]).start()?;
    let mut set =
        |file: &str, word: &str| host.set(format!("{THP}/{file}"), word).map_err(|why| skip(&why)).ok();
    set("hugepages-2048kB/enabled", "never")?;
    jvm.tell("now");
    let started = Instant::now();
    while resident_bytes(jvm.pid) < 600 << 20 && started.elapsed() < Duration::from_secs(20) {
        std::thread::sleep(Duration::from_millis(20));
    }
    set("khugepaged/alloc_sleep_millisecs", "0")?;
    set("khugepaged/scan_sleep_millisecs", "0")?;
    set("hugepages-2048kB/enabled", "inherit")?;
    hasten()?;
    Some(Made::jvm(jvm).watched("600ms"))
}

fn resident_bytes(pid: i32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok()).unwrap_or(0) * 1024
}

/// khugepaged yields to everybody (nice 19, which it sets when it starts), so that it would get nothing on a busy machine.
/// Without huge pages it ends, so that the one that comes when the settings are restored is as before.
fn hasten() -> Option<()> {
    let yields = |pid: &i32| {
        let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let fields = text.split_once("(khugepaged) ").map(|(_, fields)| fields);
        fields.is_some_and(|fields| fields.split(' ').nth(16) == Some("19"))
    };
    for _ in 0..200 {
        let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        let mut pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
        if let Some(pid) = pids.find(yields) {
            // SAFETY: setpriority has no effect on memory.
            unsafe { libc::setpriority(libc::PRIO_PROCESS, pid as u32, -10) };
            return Some(());
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    skip("khugepaged does not come");
    None
}
