//! `map --by buffer` on Netty's own pools (java/netty/Pools.java, jars of Maven Central) against what Netty says of them.

use crate::common::*;
use serde_json::Value;
use std::collections::HashMap;
use std::process::Command;

/// JDK, Netty, options. With a small heap Netty's adaptive allocator divides its chunks in another way.
const JVMS: [(&str, &str, &[&str]); 3] = [
    ("8", "4.1.140", &["-Xmx256m"]),
    ("17", "4.2.20", &["-Xmx1g", "-XX:+UseG1GC"]),
    ("25", "4.2.20", &["-Xmx1g", "-XX:+UseZGC"]),
];
const MORE: [(&str, &str, &[&str]); 3] = [
    (
        "17",
        "4.1.140",
        &[
            "-Xmx1g",
            "--add-opens=java.base/java.nio=ALL-UNNAMED",
            "-Dio.netty.tryReflectionSetAccessible=true",
        ],
    ),
    ("21", "4.2.20", &["-Xmx256m", "-XX:+UseSerialGC"]),
    ("25", "4.1.140", &["-Xmx1g", "-XX:+UseG1GC", "-Dio.netty.noUnsafe=true"]),
];

/// A JVM with pools, and what Netty says of them.
struct Program {
    jvm: Jvm,
    said: HashMap<String, u64>,
}

fn start((jdk, netty, options): (&str, &str, &[&str])) -> Option<Program> {
    let lib = root().join("java/netty/lib").join(netty);
    if !lib.join("classes/Pools.class").exists() {
        skip(&format!("no Netty at {}; java/fetch-netty brings it", lib.display()));
        return None;
    }
    let file = format!("{}/netty-{}-{jdk}-{netty}", env!("CARGO_TARGET_TMPDIR"), std::process::id());
    let mut command = Command::new(java(jdk)?);
    command.args(options).arg("-cp").arg(format!("{0}/*:{0}/classes", lib.display())).args(["Pools", &file]);
    let jvm = Jvm::of(command);
    let said = std::fs::read_to_string(&file).expect("what Netty says");
    std::fs::remove_file(&file).expect("the file");
    let words: Vec<&str> = said.split_whitespace().collect();
    let number = |pair: &[&str]| (pair[0].to_string(), pair[1].parse().unwrap_or(0));
    Some(Program { jvm, said: words.chunks_exact(2).map(number).collect() })
}

fn sum(rows: &Value, is_it: impl Fn(&Value) -> bool, key: &str) -> u64 {
    let rows = rows.as_array().expect("rows").iter().filter(|row| is_it(row));
    rows.map(|row| row.pointer(key).and_then(Value::as_u64).unwrap_or_else(|| panic!("{key} of {row}"))).sum()
}

fn wrong(program: &Program, map: &Value) -> Vec<String> {
    let said = |name: &str| program.said[name];
    let (buffers, netty) = (&map["buffers"], &map["netty"]);
    let of = |kind: &'static str, key| sum(buffers, move |row| row["kind"] == kind, key);
    let all = |rows: &str, key| sum(&netty[rows], |_| true, key);
    let (pool, adaptive) = ("netty_pool", "netty_adaptive");
    let io = |key| sum(&netty["thread_caches"], |row| row["threads"] == "netty-io-#", key);
    let mut pairs = vec![
        ("pool".to_string(), of(pool, "/bytes"), said("pooled")),
        ("pool's free bytes".to_string(), of(pool, "/free_bytes"), said("free")),
        ("chunks".to_string(), all("arenas", "/chunks/count"), said("chunks")),
        ("chunks and huge buffers".to_string(), of(pool, "/count"), said("chunks") + all("arenas", "/huge")),
        ("threads of arenas".to_string(), all("arenas", "/thread_caches"), said("thread_caches")),
        ("caches".to_string(), io("/caches"), said("caches")),
        ("cached".to_string(), io("/bytes"), said("cached")),
        ("adaptive".to_string(), of(adaptive, "/bytes"), said("adaptive")),
        ("adaptive's free bytes".to_string(), of(adaptive, "/free_bytes"), said("adaptive_free")),
        ("adaptive chunks".to_string(), all("adaptive", "/chunks/bytes"), said("adaptive")),
        ("free of adaptive chunks".to_string(), all("adaptive", "/chunks/free_bytes"), said("adaptive_free")),
    ];
    // What Netty takes without a cleaner it counts itself.
    if said("no_cleaner") == 1 {
        let netty = of(pool, "/bytes") + of(adaptive, "/bytes");
        pairs.push(("all of Netty".to_string(), netty, said("platform")));
    }
    for arena in 0..3 {
        let is_it = |row: &Value| row["allocator"] == 0 && row["arena"] == arena;
        let bytes = |key| sum(&netty["arenas"], is_it, key);
        pairs.push((
            format!("arena {arena}"),
            bytes("/chunks/bytes") + bytes("/huge_bytes"),
            said(&format!("arena{arena}")),
        ));
        pairs.push((
            format!("free of arena {arena}"),
            bytes("/chunks/free_bytes"),
            said(&format!("arena{arena}_free")),
        ));
    }
    let differ = pairs.into_iter().filter(|(_, found, said)| found != said);
    differ.map(|(what, found, said)| format!("{what}: {found}, Netty says {said}")).collect()
}

#[test]
fn pools_of_netty_are_what_its_metrics_say() {
    let mut all = Vec::new();
    for case in JVMS.into_iter().chain(MORE.into_iter().filter(|_| is_long())) {
        let Some(program) = start(case) else { continue };
        let output = marusa(&["map", "--by", "buffer", "--json", &program.jvm.pid.to_string()]);
        assert!(output.status.success(), "{}", text(&output.stderr));
        let map: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let wrong = wrong(&program, &map);
        if !wrong.is_empty() {
            all.push(format!("{case:?}: {}\n{:#}\n{:#}", wrong.join("; "), map["buffers"], map["netty"]));
        }
        let table = marusa(&["map", "--by", "buffer", "--width", "120", &program.jvm.pid.to_string()]);
        let table = text(&table.stdout);
        for title in ["NETTY ARENA", "NETTY CACHES OF THREADS", "NETTY ADAPTIVE", "CHUNKS BY USE"] {
            assert!(table.contains(title), "{title}: {table}");
        }
        assert!(table.lines().all(|line| line.chars().count() <= 120), "{table}");
    }
    assert!(all.is_empty(), "{}", all.join("\n"));
}
