//! The faults that are made of pages: most need a setting of the host that is restored.

use super::made::{Fault, Made, Program, set};
use super::swap::swapped_heap;
use crate::common::host::{HUGETLB, Host, THP};

const SERIAL: &str = "-XX:+UseSerialGC";
const IDLE: &[&str] = &["marusa.Idle"];
const HEAP: [&str; 3] = ["-Xms64m", "-Xmx64m", "-XX:+AlwaysPreTouch"];
const LARGE: &str = "-XX:+UseLargePages";
const TRANSPARENT: &str = "-XX:+UseTransparentHugePages";

pub const FAULTS: &[Fault] = &[
    Fault {
        name: "-XX:+UseLargePages without a pool",
        expects: &[("large-pages-switched-off", "warn")],
        make: |host| {
            set(host, &[(&pool("nr_hugepages"), "0"), (&pool("nr_overcommit_hugepages"), "0")])?;
            with("17", &[SERIAL, LARGE], IDLE)
        },
    },
    Fault {
        name: "-XX:+UseLargePages with a pool for the code cache only",
        expects: &[("large-pages-not-got", "warn")],
        make: |host| {
            set(host, &[(&pool("nr_hugepages"), "30"), (&pool("nr_overcommit_hugepages"), "0")])?;
            with("17", &[SERIAL, LARGE, "-XX:ReservedCodeCacheSize=48m"], IDLE)
        },
    },
    Fault {
        name: "an unused pool of 320 MiB",
        expects: &[("hugetlb-pool-unused", "warn")],
        make: |host| {
            set(host, &[(&pool("nr_hugepages"), "160")])?;
            Some(Made::host())
        },
    },
    Fault {
        name: "large pages by overcommit",
        expects: &[("hugetlb-surplus", "info")],
        make: |host| {
            set(host, &[(&pool("nr_hugepages"), "0"), (&pool("nr_overcommit_hugepages"), "120")])?;
            with("17", &[SERIAL, LARGE, "-XX:ReservedCodeCacheSize=48m"], IDLE)
        },
    },
    Fault {
        name: "THP asked for, and switched off by prctl",
        expects: &[("thp-off-by-prctl", "warn")],
        make: |host| {
            set(host, &[(&thp("enabled"), "madvise")])?;
            let program = program("17", &[SERIAL, TRANSPARENT], IDLE).without_thp();
            Some(Made::jvm(program.start()?))
        },
    },
    Fault {
        name: "THP asked for, and switched off for 2 MiB",
        expects: &[("thp-not-got", "warn"), ("thp-sizes-odd", "info")],
        make: |host| {
            set(host, &[(&thp("enabled"), "madvise"), (&size(2048), "never")])?;
            with("17", &[SERIAL, TRANSPARENT], IDLE)
        },
    },
    Fault {
        name: "THP asked for, and 64 KiB given",
        expects: &[("thp-other-size", "warn"), ("thp-sizes-odd", "info")],
        make: |host| {
            let settings = [(thp("enabled"), "madvise"), (size(2048), "never"), (size(64), "madvise")];
            set(host, &settings.each_ref().map(|(path, value)| (path.as_str(), *value)))?;
            with("17", &[SERIAL, TRANSPARENT], IDLE)
        },
    },
    Fault {
        name: "THP for the first half of the heap only",
        expects: &[("heap-page-split", "warn")],
        make: half,
    },
    Fault {
        name: "THP asked for by ZGC, and not for shared memory",
        expects: &[("zgc-shmem-thp-off", "warn")],
        make: |host| {
            set(host, &[(&thp("enabled"), "madvise"), (&thp("shmem_enabled"), "never")])?;
            let options = &["-XX:+UseZGC", "-XX:+ZGenerational", TRANSPARENT];
            with("21", options, IDLE)
        },
    },
    Fault {
        name: "a heap of zeros on THP",
        expects: &[("thp-bloat", "warn")],
        make: |host| {
            set(host, &[(&thp("enabled"), "madvise"), (&thp("defrag"), "madvise")])?;
            let options = &[SERIAL, TRANSPARENT, "-Xms300m", "-Xmx300m"];
            Some(Made::jvm(Program::new("17", options, &["marusa.Faults", "fill=180m", "zeros=1"]).start()?))
        },
    },
    Fault {
        name: "freed memory of malloc on THP",
        expects: &[("thp-malloc-arenas", "warn"), ("malloc-freed-held", "warn")],
        make: |host| {
            set(host, &[(&thp("enabled"), "madvise"), (&thp("defrag"), "madvise")])?;
            let program = &["marusa.FreedBuffers", "buffers=10000", "bytes=32k", "kept=4"];
            let options = &[SERIAL, "-Xmx64m", "-XX:MaxDirectMemorySize=400m"];
            let program = Program::new("17", options, program);
            // glibc 2.36 advises the main arena only.
            let program = program.variable("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1");
            Some(Made::jvm(program.variable("MALLOC_ARENA_MAX", "1").start()?))
        },
    },
    Fault {
        name: "a heap on THP that jcmd System.map says is on 4K",
        expects: &[("page-size-misreported", "info")],
        make: |host| {
            set(host, &[(&thp("enabled"), "madvise"), (&thp("defrag"), "defer")])?;
            with("25", &[SERIAL, TRANSPARENT], IDLE)
        },
    },
    Fault {
        name: "a heap with holes, where THP is always on",
        expects: &[("thp-sparse-heap", "info"), ("humongous-tails", "info")],
        make: |host| {
            set(host, &[(&thp("enabled"), "never")])?;
            // A humongous object of 600 KiB leaves the rest of its region untouched.
            let options = &["-XX:+UseG1GC", "-XX:G1HeapRegionSize=1m", "-Xms400m", "-Xmx400m"];
            let program = Program::new("17", options, &["marusa.Faults", "fill=150m", "piece=600k"]);
            let jvm = program.start()?;
            set(host, &[(&thp("enabled"), "always")])?;
            Some(Made::jvm(jvm))
        },
    },
    Fault {
        name: "a heap that ksmd merges",
        expects: &[("ksm-on-heap", "info")],
        make: |host| {
            let ksm = |file: &str| format!("/sys/kernel/mm/ksm/{file}");
            let scan = [(ksm("pages_to_scan"), "100000"), (ksm("sleep_millisecs"), "10"), (ksm("run"), "1")];
            set(host, &scan.each_ref().map(|(path, value)| (path.as_str(), *value)))?;
            let options = &[SERIAL, "-Xms100m", "-Xmx100m"];
            let program = Program::new("17", options, &["marusa.Faults", "fill=70m"]).merged();
            let jvm = program.start()?;
            std::thread::sleep(std::time::Duration::from_millis(1500));
            Some(Made::jvm(jvm))
        },
    },
    Fault {
        name: "100 MiB of the heap swapped out",
        expects: &[("swap-heap", "warn")],
        make: |_| swapped_heap(program("17", &[SERIAL, "-Xms110m", "-Xmx110m"], IDLE), 100 << 20),
    },
];

/// Made last: tasks wait for memory in the meantime, and that is seen for a minute.
pub const WAITED_FOR: &[Fault] = &[Fault {
    name: "a heap that comes back from swap all the time",
    expects: &[("swapping", "critical"), ("swap-heap", "warn")],
    make: |_| {
        let program = program_of(&[SERIAL, "-Xms120m", "-Xmx120m", "-Xmn10m"]);
        swapped_heap(program, 100 << 20).map(Made::swapped_again)
    },
}];

fn thp(file: &str) -> String {
    format!("{THP}/{file}")
}
fn size(kilobytes: u32) -> String {
    thp(&format!("hugepages-{kilobytes}kB/enabled"))
}
fn pool(file: &str) -> String {
    format!("{HUGETLB}/hugepages-2048kB/{file}")
}

fn program(jdk: &'static str, options: &[&'static str], main: &[&str]) -> Program {
    let mut all = HEAP.to_vec();
    all.extend(options);
    Program::new(jdk, &all, main)
}

fn program_of(options: &[&'static str]) -> Program {
    Program::new("17", options, &["marusa.Faults", "fill=100m", "touch=1"])
}

fn with(jdk: &'static str, options: &[&'static str], main: &[&str]) -> Option<Made> {
    Some(Made::jvm(program(jdk, options, main).start()?))
}

/// The second half is touched while the host gives none.
fn half(host: &mut Host) -> Option<Made> {
    set(host, &[(&thp("enabled"), "madvise"), (&thp("defrag"), "madvise")])?;
    let options = &[SERIAL, TRANSPARENT, "-Xms300m", "-Xmx300m", "-Xmn20m"];
    let program = Program::new("17", options, &["marusa.Faults", "fill=100m", "later=100m"]);
    let mut jvm = program.start()?;
    let was = std::fs::read_to_string(size(2048)).ok()?;
    host.set(size(2048), "never").ok()?;
    jvm.tell("now");
    std::thread::sleep(std::time::Duration::from_millis(700));
    let chosen = was.split_once('[')?.1.split_once(']')?.0.to_string();
    host.set(size(2048), &chosen).ok()?;
    Some(Made::jvm(jvm))
}
