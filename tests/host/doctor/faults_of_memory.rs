//! Faults of a host whose memory is in small pieces, short, or waited for, and of its disk. They take seconds each, so they are
//! made by a test of their own (tests/host/doctor_host), one after the other in the same pieces of memory.

use super::busy::{self, Again, Hastened, Readers, until};
use super::group::Group;
use super::made::{Fault, Made, Program, set};
use crate::common::fragments::available_mib;
use crate::common::host::{Host, THP};
use crate::common::{java, skip};

const SERIAL: &str = "-XX:+UseSerialGC";
/// Its heap grows by 300 MiB and shrinks again, all the time.
const GROWS: &[&str] = &["-Xms16m", "-Xmx500m", "-XX:MinHeapFreeRatio=5", "-XX:MaxHeapFreeRatio=10"];
const PROACTIVENESS: &str = "/proc/sys/vm/compaction_proactiveness";
/// Doctor names 10 direct compactions a second, and 100 ms of a daemon: these are there for longer than it watches.
const STALLS_PER_SECOND: f64 = 40.0;
const DAEMON_MS_PER_SECOND: f64 = 200.0;
/// What 4 GiB of heap and the rest of the machine need.
const LARGE_HEAP_MIB: u64 = 7 << 10;

/// Before memory is made small pieces of.
pub const WHOLE: &[Fault] = &[
    Fault {
        name: "4,200 MiB of live heap on small pages, where huge ones are available",
        expects: &[("large-heap-small-pages", "info")],
        make: |host| {
            policy(host, "madvise", "madvise")?;
            if available_mib() < LARGE_HEAP_MIB {
                skip("a heap of 4 GiB does not fit");
                return None;
            }
            let options = &[SERIAL, "-Xms4300m", "-Xmx4300m", "-Xmn60m"];
            Some(Made::jvm(Program::new("17", options, &["marusa.Faults", "fill=4200m"]).start()?))
        },
    },
    Fault {
        name: "the JVM's counters on a disk that others read all the time",
        expects: &[("perf-data-on-disk", "info")],
        make: |_| {
            let options = &[SERIAL, "-Xmx64m", "-XX:-PerfDisableSharedMem"];
            let jvm = Program::new("17", options, &["marusa.Idle"]).start()?;
            let library = java("17")?.parent()?.parent()?.join("lib/server/libjvm.so");
            let readers = Readers::of_disk(&library)?;
            if !until(|| busy::pressure("io", "some").is_some_and(|percent| percent >= 6.0)) {
                skip("nobody waits for this disk");
                return None;
            }
            Some(Made::jvm(jvm).with(readers))
        },
    },
];

/// In memory that is in small pieces.
pub const IN_PIECES: &[Fault] = &[
    Fault {
        name: "a heap that grows again and again, THP always, defrag always, memory in small pieces",
        expects: &[("thp-always-harm", "warn"), ("memory-pressure", "warn or none")],
        make: |host| {
            policy(host, "always", "always")?;
            growing(&[])
        },
    },
    Fault {
        name: "a heap that asks for THP and grows again and again, defrag madvise, memory in small pieces",
        // What it waits for in vain stays on small pages.
        expects: &[
            ("thp-defrag-stalls", "warn"),
            ("memory-pressure", "warn or none"),
            ("heap-page-split", "warn or none"),
            ("thp-not-got", "warn or none"),
        ],
        make: |host| {
            policy(host, "madvise", "madvise")?;
            growing(&["-XX:+UseTransparentHugePages"])
        },
    },
    Fault {
        name: "vm.compaction_proactiveness 100, written again and again, memory in small pieces",
        expects: &[("kcompactd-busy", "warn or critical")],
        make: |host| {
            policy(host, "madvise", "madvise")?;
            set(host, &[(PROACTIVENESS, "100")])?;
            // By itself kcompactd rests for half a minute after a run that brought nothing; each write wakes it.
            let writer = Again::of(|| drop(std::fs::write(PROACTIVENESS, "100")));
            let hastened = Hastened::of("kcompactd");
            let made = Made::host().with(writer).with(hastened).watched("1s");
            Some(made.while_grows(|| busy::cpu_ms("kcompactd"), DAEMON_MS_PER_SECOND))
        },
    },
    Fault {
        name: "four processes that read in a cgroup that is full",
        expects: &[("memory-pressure", "warn or critical")],
        make: |_| {
            let group = Group::of_memory(16 << 20)?;
            let readers = Readers::of_holes(Some(&group), 4)?;
            let started = busy::waited_ms("memory");
            let is_waited_for = || {
                let percent = |which| busy::pressure("memory", which).unwrap_or(0.0);
                // By these, and not by what was before.
                busy::waited_ms("memory") > started + 2000.0
                    && (percent("some") >= 11.0 || percent("full") >= 1.5)
            };
            if !until(is_waited_for) {
                skip("nobody waits for memory");
                return None;
            }
            Some(Made::host().with(readers).with(group))
        },
    },
    // After it, since tasks wait for memory here too, and that is seen for a minute.
    Fault {
        name: "a file of which more is read than there is memory for",
        expects: &[("kswapd-busy", "warn or critical")],
        make: |host| {
            policy(host, "madvise", "madvise")?;
            // So that kswapd does the work, before the readers must do it themselves.
            set(host, &[("/proc/sys/vm/watermark_scale_factor", "100")])?;
            let readers = Readers::of_mapped_holes(2)?;
            let hastened = Hastened::of("kswapd");
            let made = Made::host().with(readers).with(hastened).watched("1s");
            Some(made.while_grows(|| busy::cpu_ms("kswapd"), DAEMON_MS_PER_SECOND))
        },
    },
];

fn policy(host: &mut Host, enabled: &str, defrag: &str) -> Option<()> {
    // kcompactd does nothing of its own accord in the meantime.
    set(
        host,
        &[(&format!("{THP}/enabled"), enabled), (&format!("{THP}/defrag"), defrag), (PROACTIVENESS, "0")],
    )
}

fn growing(options: &[&'static str]) -> Option<Made> {
    let options = [&[SERIAL], GROWS, options].concat();
    let jvm = Program::new("17", &options, &["marusa.Faults", "again=300m"]).start()?;
    // The first huge pages that it gets are the ones that were left whole.
    Some(Made::jvm(jvm).watched("2s").while_grows(busy::compactions, STALLS_PER_SECOND))
}
