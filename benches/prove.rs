//! What `marusa pages prove` claims: of a program whose time goes into address translation a gain each time, of one that works
//! in registers none. 20 searches of each, every one with a fresh JVM. `cargo bench --bench prove`; one alone with `-- random` or
//! `-- registers`. `-- reach`: the gain by how much memory a program reads at random, three searches of each size.

#[path = "../tests/common/mod.rs"]
mod common;
#[path = "../tests/host/pages_prove/program.rs"]
mod program;

use program::{Program, json};
use std::time::Instant;

const SEARCHES: usize = 20;
const REACH_SEARCHES: usize = 3;
/// Around what a TLB's entries for 4 KiB pages cover: 12 MiB with 3,072 of them, as an AMD EPYC of 2022 has.
const REACH_MIB: [usize; 7] = [1, 4, 16, 64, 256, 1024, 4096];

fn main() {
    if !common::is_root() {
        return common::skip("pages of another process can be changed by root only");
    }
    println!("JDK 21, Parallel, periods of 500 ms, each search with a fresh JVM");
    let wanted: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let is_wanted = |name: &str| wanted.is_empty() || wanted.iter().any(|word| name.contains(word.as_str()));
    if is_wanted("random") {
        search("random access to 512 MiB", SEARCHES, || Program::random_access("21", "512m", "1200m"));
    }
    if is_wanted("registers") {
        search("work in registers, 256 MiB in memory", SEARCHES, || Program::spin("21", "256m"));
    }
    for mib in REACH_MIB.into_iter().filter(|_| wanted.iter().any(|word| word == "reach")) {
        let (array, heap) = (format!("{mib}m"), format!("{}m", mib * 5 / 4 + 192));
        let start = || Program::random_access("21", &array, &heap);
        search(&format!("random access to {mib} MiB"), REACH_SEARCHES, start);
    }
}

fn search(name: &str, searches: usize, start: impl Fn() -> Option<Program>) {
    println!("\n{name}");
    let mut counts = std::collections::BTreeMap::<String, usize>::new();
    for number in 1..=searches {
        let Some(program) = start() else { return };
        let started = Instant::now();
        let found = json(&program.prove(&["--period", "500ms", "--settle", "300ms"]));
        let verdict = found["verdict"].as_str().unwrap_or("none").to_string();
        let seconds = started.elapsed().as_secs_f64();
        println!("  {number:>2}: {} ({seconds:.0} s)", found["text"].as_str().unwrap_or("no answer"));
        *counts.entry(verdict).or_default() += 1;
    }
    for (verdict, count) in counts {
        println!("  {verdict}: {count} of {searches}");
    }
}
