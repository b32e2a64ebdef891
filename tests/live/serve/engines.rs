//! DuckDB, ClickHouse, Spark and Trino give the same answers about one store, and still do when each has merged its days.

use super::survival::{grow, until};
use super::*;
use crate::common::small_group::Group;
use crate::record::Directory;

/// The engine's name and a file of it, where `scripts/engines` has installed it.
const ENGINES: [(&str, &str); 4] = [
    ("duckdb", "venv/lib/python3*/site-packages/duckdb"),
    ("clickhouse", "venv/lib/python3*/site-packages/chdb"),
    ("spark", "venv/lib/python3*/site-packages/pyspark"),
    ("trino", "trino/bin/launcher"),
];

fn installed() -> Vec<&'static str> {
    let home = std::env::var("MARUSA_ENGINES").map(PathBuf::from).unwrap_or_else(|_| {
        PathBuf::from(std::env::var("HOME").unwrap_or_default()).join(".cache/marusa/engines")
    });
    let is_there = |file: &str| {
        let listed = Command::new("sh").args(["-c", &format!("ls -d {}/{file}", home.display())]).output();
        listed.is_ok_and(|listed| listed.status.success())
    };
    let (found, missing): (Vec<_>, Vec<_>) = ENGINES.into_iter().partition(|(_, file)| is_there(file));
    for (name, _) in missing {
        skip(&format!("no {name} at {}; scripts/engines installs it", home.display()));
    }
    found.into_iter().map(|(name, _)| name).collect()
}

/// A JVM that fills its group until the kernel kills it.
fn doomed() -> Option<(Jvm, Group)> {
    let java = java("17")?;
    let Some(group) = Group::with_bytes(160 << 20) else {
        skip("no cgroup can be made here");
        return None;
    };
    let mut command = group.command(&java.display().to_string());
    command.args(["-Xmx48m", "-XX:+UseSerialGC", "-XX:MaxDirectMemorySize=1g", "-cp"]);
    command.arg(root().join("java/build-out")).args(["marusa.Grow", "direct=10m/s"]);
    Some((Jvm::of(command), group))
}

#[test]
#[ignore = "minutes: four engines read and merge a store"]
fn four_engines_give_the_same_answers() {
    if !is_root() {
        return skip("only root may make a cgroup");
    }
    let engines = installed();
    if engines.is_empty() {
        return;
    }
    let (Some(one), Some(java)) = (grow(&[]), java("21")) else { return };
    // Without an image, the version of Java says what was deployed.
    let _other = Jvm::start(&java, &["-Xmx32m", "-XX:+UseSerialGC"], &["marusa.Grow"]);
    let directory = Directory::new("engines");
    let (ring, store) = (directory.file("node.marusa"), directory.file("store"));
    // Of another cluster.
    let alone = directory.file("one.marusa");
    let recorded = marusa(&["record", &one.pid.to_string(), "-o", &alone, "--for", "3s", "--every", "200ms"]);
    assert!(recorded.status.success(), "{}", text(&recorded.stderr));
    let stored = marusa(&["export", &alone, "--layout", "hive", "--parquet", &store, "--cluster", "eu2"]);
    assert!(stored.status.success(), "{}", text(&stored.stderr));
    let service = Service::start(&["--output", &ring, "--keep", "80s", "--store", &store]);
    service.jvm(one.pid);
    let Some((_killed, _group)) = doomed() else { return };
    until("the kernel kills it", || {
        service.text("/metrics").contains("marusa_jvms_oom_killed_total 1").then_some(())
    });
    // Its end is in the file that is written now, or in the next one.
    let numbers = fs::read_dir(&directory.0)
        .expect("ours")
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.strip_prefix("node.marusa.")?.parse::<u64>().ok());
    let now = numbers.max().map_or(0, |newest| newest + 1);
    let stored = || fs::read_to_string(format!("{ring}.stored")).ok()?.trim().parse::<u64>().ok();
    until("its hour is stored", || stored().filter(|stored| *stored > now).map(drop));
    drop(service);
    let compared = Command::new(root().join("scripts/engines"))
        .args(["compare", &store])
        .args(&engines)
        .env("MARUSA", env!("CARGO_BIN_EXE_marusa"))
        .output()
        .expect("it runs");
    let (said, errors) = (text(&compared.stdout), text(&compared.stderr));
    assert!(compared.status.success(), "{said}{errors}");
    for engine in engines {
        let rows = said.lines().find_map(|line| line.strip_prefix(&format!("{engine}: "))).expect("its rows");
        let rows: Vec<&str> = rows.split(", ").collect();
        assert_eq!(rows.len(), 7, "{said}");
        assert!(rows.iter().all(|rows| !rows.ends_with(" 0")), "each query has an answer: {said}");
    }
}
