//! Faults of what a JVM shares with its host: limits of mappings, weights of cgroups, and forks that copy much.

use super::group::Group;
use super::made::{Fault, Made, Program, set};

const SERIAL: &str = "-XX:+UseSerialGC";
const IDLE: &[&str] = &["marusa.Idle"];

pub const FAULTS: &[Fault] = &[
    Fault {
        name: "23,000 of 25,000 mappings",
        expects: &[("max-map-count-near", "critical")],
        make: |host| {
            let program = &["marusa.Mappings", "count=23000"];
            let jvm = Program::new("17", &[SERIAL, "-Xmx64m"], program).start()?;
            set(host, &[("/proc/sys/vm/max_map_count", "25000")])?;
            Some(Made::jvm(jvm))
        },
    },
    Fault {
        name: "processes started by fork from a heap of 1,000 MiB on small pages",
        expects: &[("fork-large-heap", "warn")],
        make: |_| {
            let options = &[SERIAL, "-Xms1000m", "-Xmx1000m", "-XX:+AlwaysPreTouch"];
            let fork = "-Djdk.lang.Process.launchMechanism=FORK";
            let program = Program::new("17", options, IDLE).variable("JAVA_TOOL_OPTIONS", fork);
            Some(Made::jvm(program.start()?))
        },
    },
    Fault {
        name: "JDK 11.0.13 in a group of half a CPU's weight (JDK-8281181)",
        expects: &[("jdk-known-fix", "warn")],
        make: |_| {
            let group = Group::of_shares(512)?;
            let program = Program::new("11", &[SERIAL, "-Xmx64m"], IDLE).within(&group);
            Some(Made::jvm(program.start()?).within(group))
        },
    },
];
