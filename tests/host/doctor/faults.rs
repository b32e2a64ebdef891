//! The faults that are made: one line of docs/doctor.md each. Those of pages are in `faults_of_pages.rs`.

use super::group::{Group, TmpfsFile};
use super::made::{Fault, Made, Program, library};
use crate::common::java;
use std::process::Command;

const SERIAL: &str = "-XX:+UseSerialGC";
const FREEING: &[&str] = &[SERIAL, "-Xmx64m", "-XX:MaxDirectMemorySize=400m"];
const IDLE: &[&str] = &["marusa.Idle"];

pub const FAULTS: &[Fault] = &[
    Fault {
        name: "Native Memory Tracking left on",
        expects: &[("nmt-on", "info")],
        make: |_| jvm("21", &[SERIAL, "-Xmx64m", "-XX:NativeMemoryTracking=detail"], IDLE),
    },
    Fault {
        name: "300 MiB of direct buffers freed by one thread",
        expects: &[("malloc-freed-held", "warn"), ("no-trim-set", "info")],
        make: |_| jvm("21", FREEING, &["marusa.FreedBuffers", "buffers=10000", "bytes=32k", "kept=4"]),
    },
    Fault {
        name: "the same by eight threads, each in an arena of its own",
        expects: &[("malloc-arenas", "warn")],
        make: |_| {
            let program = &["marusa.FreedBuffers", "buffers=10000", "bytes=32k", "kept=4", "threads=8"];
            jvm("17", FREEING, program)
        },
    },
    Fault {
        name: "60 of 64 MiB of direct buffers",
        expects: &[("direct-buffers-near-limit", "warn")],
        make: |_| {
            jvm("21", &[SERIAL, "-Xmx64m", "-XX:MaxDirectMemorySize=64m"], &["marusa.Faults", "direct=60m"])
        },
    },
    Fault {
        name: "200 of 320 MiB of direct buffers, and System.gc() switched off",
        expects: &[("explicit-gc-disabled", "warn")],
        make: |_| {
            let options = &[SERIAL, "-Xmx64m", "-XX:MaxDirectMemorySize=320m", "-XX:+DisableExplicitGC"];
            jvm("17", options, &["marusa.Faults", "direct=200m"])
        },
    },
    Fault {
        name: "64 of 64 MiB of direct buffers",
        expects: &[("direct-buffers-near-limit", "critical")],
        make: |_| {
            jvm("17", &[SERIAL, "-Xmx64m", "-XX:MaxDirectMemorySize=64m"], &["marusa.Faults", "direct=64m"])
        },
    },
    Fault {
        name: "a code cache that is full",
        expects: &[("code-cache-near-full", "critical")],
        make: |_| {
            let cache = &["-XX:ReservedCodeCacheSize=2600k", "-XX:-UseCodeCacheFlushing"];
            let options = [&[SERIAL, "-Xmx100m", "-Xcomp", "-XX:TieredStopAtLevel=1"][..], cache].concat();
            jvm("17", &options, IDLE)
        },
    },
    Fault {
        name: "a limit of metaspace nearly reached",
        expects: &[("metaspace-near-limit", "warn")],
        make: |_| {
            let options = &[SERIAL, "-Xmx64m", "-XX:MaxMetaspaceSize=24m"];
            jvm("17", options, &["marusa.Faults", "loaders=3170"])
        },
    },
    Fault {
        name: "12,000 class loaders of one class, JDK 11",
        expects: &[("class-loaders-many", "warn"), ("metaspace-fragmentation", "info")],
        make: |_| jvm("11", &[SERIAL, "-Xmx128m"], &["marusa.Faults", "loaders=12000"]),
    },
    Fault {
        name: "a heap of 600 MiB committed at start",
        expects: &[("heap-committed-untouched", "info")],
        make: |_| jvm("21", &[SERIAL, "-Xms600m", "-Xmx600m"], IDLE),
    },
    Fault {
        name: "300 MiB of garbage, collected and kept",
        expects: &[("heap-can-shrink", "info")],
        make: |_| {
            let options = &["-XX:+UseParallelGC", "-Xms420m", "-Xmx420m", "-Xmn32m"];
            jvm("21", options, &["marusa.Faults", "garbage=300m"])
        },
    },
    Fault {
        name: "280 threads that used all of their stacks",
        expects: &[("thread-stacks", "warn")],
        make: |_| jvm("17", &[SERIAL, "-Xmx64m", "-Xss1m"], &["marusa.Faults", "stacks=280"]),
    },
    Fault {
        name: "a library that maps 160 MiB and keeps the pointer",
        expects: &[("jni-library-memory", "info")],
        make: |_| {
            let program = Program::new("17", &[SERIAL, "-Xmx64m"], IDLE);
            Some(Made::jvm(program.variable("LD_PRELOAD", &library("holder")?).start()?))
        },
    },
    Fault {
        name: "a library that maps 160 MiB and keeps no pointer",
        expects: &[("unattributed-large", "info")],
        make: |_| {
            let program = Program::new("17", &[SERIAL, "-Xmx64m"], IDLE).variable("HOLDER_FORGETS", "1");
            Some(Made::jvm(program.variable("LD_PRELOAD", &library("holder")?).start()?))
        },
    },
    Fault {
        name: "a memory limit that a full heap does not fit in",
        expects: &[("container-limit", "warn")],
        make: |_| {
            let group = Group::of_memory(200 << 20)?;
            let program = Program::new("21", &[SERIAL, "-Xmx256m"], IDLE).within(&group);
            Some(Made::jvm(program.start()?).within(group))
        },
    },
    Fault {
        name: "a memory limit that is reached",
        expects: &[("container-limit", "critical")],
        make: |_| {
            let group = Group::of_memory(400 << 20)?;
            let program = Program::new("21", &[SERIAL, "-Xms150m", "-Xmx150m", "-XX:+AlwaysPreTouch"], IDLE)
                .within(&group);
            let jvm = program.start()?;
            group.tighten();
            Some(Made::jvm(jvm).within(group))
        },
    },
    Fault {
        name: "100 MiB of a file on tmpfs under a limit of 320 MiB",
        expects: &[("limit-filled", "warn")],
        make: |_| {
            let group = Group::of_memory(320 << 20)?;
            let file = TmpfsFile::new("/dev/shm", 100 << 20, &group)?;
            let program = Program::new("21", &[SERIAL, "-Xmx64m"], IDLE).within(&group);
            Some(Made::jvm(program.start()?).with(file).within(group))
        },
    },
    Fault {
        name: "container support switched off under a limit",
        expects: &[("container-support-off", "warn")],
        make: |_| {
            let group = Group::of_memory(300 << 20)?;
            let program = Program::new("21", &[SERIAL, "-Xmx64m", "-XX:-UseContainerSupport"], IDLE);
            Some(Made::jvm(program.within(&group).start()?).within(group))
        },
    },
    Fault {
        name: "a CPU quota of 20 %, and two threads that compute",
        expects: &[("cpu-throttled", "warn")],
        make: |_| {
            let group = Group::of_cpu(20_000)?;
            let program = Program::new("21", &[SERIAL, "-Xmx64m"], &["marusa.Faults", "busy=2"]);
            Some(Made::jvm(program.within(&group).start()?).within(group).watched("1500ms"))
        },
    },
    Fault {
        name: "16 GC threads on 2 CPUs",
        expects: &[("gc-threads", "warn")],
        make: |_| {
            jvm(
                "21",
                &["-XX:+UseParallelGC", "-XX:ParallelGCThreads=16", "-XX:ActiveProcessorCount=2", "-Xmx64m"],
                IDLE,
            )
        },
    },
    Fault {
        name: "16 compiler threads on 2 CPUs",
        expects: &[("compiler-threads", "info")],
        make: |_| jvm("21", &[SERIAL, "-XX:CICompilerCount=16", "-Xmx64m"], IDLE),
    },
    Fault {
        name: "97 % of the open files that may be",
        expects: &[("files-near-limit", "warn")],
        make: |_| {
            let program =
                Program::new("21", &[SERIAL, "-Xmx64m", "-XX:-MaxFDLimit"], &["marusa.Faults", "files=950"]);
            Some(Made::jvm(program.files(1000).start()?))
        },
    },
    Fault {
        name: "a cgroup of 64 tasks, nearly full",
        expects: &[("threads-near-limit", "warn")],
        make: |_| {
            let group = Group::of_tasks(64)?;
            let program = Program::new(
                "21",
                &[SERIAL, "-Xmx64m", "-XX:CICompilerCount=2"],
                &["marusa.Faults", "threads=40"],
            );
            Some(Made::jvm(program.within(&group).start()?).within(group))
        },
    },
    Fault {
        name: "processes started by fork",
        expects: &[("fork-large-heap", "info")],
        make: |_| jvm("21", &[SERIAL, "-Xmx64m", "-Djdk.lang.Process.launchMechanism=FORK"], IDLE),
    },
    Fault {
        name: "a library that forks by itself",
        expects: &[("fork-by-library", "info")],
        make: |_| {
            let program = Program::new("17", &[SERIAL, "-Xmx64m"], IDLE);
            Some(Made::jvm(program.variable("LD_PRELOAD", &library("forker")?).start()?))
        },
    },
    Fault {
        name: "processes started by vfork, JDK 25",
        expects: &[("vfork-deprecated", "info")],
        make: |_| jvm("25", &[SERIAL, "-Xmx64m", "-Djdk.lang.Process.launchMechanism=VFORK"], IDLE),
    },
    Fault {
        name: "a JDK that was replaced while the JVM runs",
        expects: &[("jdk-replaced", "warn")],
        make: |_| replaced(),
    },
    Fault {
        name: "JDK 17 under a quota of the group above its own (JDK-8322420)",
        expects: &[("jdk-known-fix", "warn")],
        make: |_| {
            let group = Group::of_cpu(50_000)?.with_inner();
            let program = Program::new("17", &[SERIAL, "-Xmx64m"], IDLE);
            Some(Made::jvm(program.within(&group).start()?).within(group))
        },
    },
    Fault {
        name: "a page here and there of a file of 20 GiB",
        expects: &[("page-tables-large", "info")],
        make: |_| jvm("21", &[SERIAL, "-Xmx64m"], &["marusa.Sparse", "bytes=20g"]),
    },
];

/// A copy of a JDK, of which the libraries are removed once it runs.
fn replaced() -> Option<Made> {
    let home = java("17")?.parent()?.parent()?.to_path_buf();
    let copy = home.with_file_name(format!("doctor-{}", std::process::id()));
    let copied = Command::new("cp").arg("-al").arg(&home).arg(&copy).status();
    let made = match copied.is_ok_and(|status| status.success()) {
        true => {
            let program = Program::new("17", &[SERIAL, "-Xmx64m"], IDLE).from(copy.join("bin/java"));
            program.start().map(Made::jvm)
        }
        false => None,
    };
    std::fs::remove_dir_all(&copy).expect("the copy is ours");
    made
}

fn jvm(jdk: &'static str, options: &[&'static str], program: &[&str]) -> Option<Made> {
    Some(Made::jvm(Program::new(jdk, options, program).start()?))
}
