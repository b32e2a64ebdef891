//! Faults of pages that a JVM alone does not make: a cgroup that allows few, stacks that a library brought, and code that came
//! when there were no huge pages.

use super::busy::until;
use super::group::Group;
use super::made::{Fault, Made, Program, library, set};
use crate::common::host::{HUGETLB, Host, THP};
use crate::common::skip;

const SERIAL: &str = "-XX:+UseSerialGC";
const IDLE: &[&str] = &["marusa.Idle"];

pub const FAULTS: &[Fault] = &[
    Fault {
        name: "a pool that is large enough, and a cgroup that allows a part of it",
        expects: &[("large-pages-group-limit", "warn")],
        make: |host| {
            let group = Group::of_huge_pages(60 << 20)?;
            let pool = |file: &str| format!("{HUGETLB}/hugepages-2048kB/{file}");
            set(host, &[(&pool("nr_hugepages"), "160"), (&pool("nr_overcommit_hugepages"), "0")])?;
            let heap = ["-XX:+UseParallelGC", "-Xms256m", "-Xmx256m", "-XX:+UseLargePages"];
            let options = &[&heap[..], &["-XX:ReservedCodeCacheSize=48m"]].concat();
            Some(Made::jvm(Program::new("17", options, IDLE).within(&group).start()?).within(group))
        },
    },
    Fault {
        name: "THP always on, and a library that maps the threads' stacks itself",
        expects: &[("thp-stacks", "warn")],
        make: |host| {
            set(host, &[(&thp("enabled"), "always"), (&thp("defrag"), "madvise")])?;
            let program =
                Program::new("17", &[SERIAL, "-Xmx64m", "-Xss4m"], &["marusa.Faults", "threads=60"]);
            Some(Made::jvm(program.variable("LD_PRELOAD", &library("stacks")?).start()?))
        },
    },
    Fault {
        name: "code that was compiled while there were no huge pages, and a heap that has them",
        expects: &[("code-cache-small-pages", "info")],
        make: code,
    },
];

fn thp(file: &str) -> String {
    format!("{THP}/{file}")
}

fn code(host: &mut Host) -> Option<Made> {
    set(host, &[(&thp("enabled"), "madvise"), (&thp("defrag"), "madvise")])?;
    let options = [
        SERIAL,
        "-XX:+UseTransparentHugePages",
        "-Xms420m",
        "-Xmx420m",
        "-Xmn20m",
        // By C1, at the second call.
        "-Xbatch",
        "-XX:TieredStopAtLevel=1",
        "-XX:Tier3InvocationThreshold=1",
        "-XX:Tier3MinInvocationThreshold=1",
        "-XX:Tier3CompileThreshold=1",
        "-XX:Tier0InvokeNotifyFreqLog=0",
        "-XX:CompileCommand=quiet",
        "-XX:CompileCommand=compileonly,generated.Long*::applyAsInt",
    ];
    let mut jvm = Program::new("17", &options, &["marusa.Faults", "fill=380m", "code=210"]).start()?;
    let before = resident_bytes(jvm.pid);
    set(host, &[(&thp("hugepages-2048kB/enabled"), "never")])?;
    jvm.tell("now");
    // All of it: then it grows no more.
    let is_made = || {
        let first = resident_bytes(jvm.pid);
        std::thread::sleep(std::time::Duration::from_millis(700));
        let grown = resident_bytes(jvm.pid).saturating_sub(first);
        first > before + (38 << 20) && grown < 64 << 10
    };
    if !until(is_made) {
        skip("the JIT makes less code of it than was thought");
        return None;
    }
    host.set(thp("hugepages-2048kB/enabled"), "inherit").ok()?;
    Some(Made::jvm(jvm))
}

fn resident_bytes(pid: i32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok()).unwrap_or(0) * 1024
}
