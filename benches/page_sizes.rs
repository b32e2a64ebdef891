//! What the page size of every byte costs: `map --by page-size` against plain `map`, and against the kernel's own
//! tools/mm/thpmaps where it is at hand (on the PATH, or named by MARUSA_THPMAPS). `cargo bench --bench page_sizes`.
//!
//! The contenders take turns on the same JVM, so that a machine that gets slower or faster in the meantime hits all alike.

#[path = "../tests/common/mod.rs"]
mod common;

use common::work::{free_mib, median, time};
use common::{Jvm, java};
use std::path::PathBuf;
use std::process::Command;

const ROUNDS: usize = 9;
const SLOW_ROUNDS: usize = 3;
const RATIO_MAX: f64 = 1.5;
const THPMAPS_RATIO_MAX: f64 = 0.1;

fn main() {
    let Some(java) = java("21") else { return };
    let thpmaps = thpmaps();
    if thpmaps.is_none() {
        println!(
            "skipped: no thpmaps on the PATH and none named by MARUSA_THPMAPS (tools/mm/thpmaps of Linux; it needs numpy)"
        );
    }
    let collectors = [("Parallel", "-XX:+UseParallelGC"), ("ZGC, in shared memory", "-XX:+UseZGC")];
    for (name, option) in collectors {
        let heap_mib = if free_mib() > 6 << 10 { 4096 } else { 1024 };
        let (min, max) = (format!("-Xms{heap_mib}m"), format!("-Xmx{heap_mib}m"));
        let options = [option, "-XX:+AlwaysPreTouch", "-XX:-UseTransparentHugePages", &min, &max];
        let load = ["marusa.Load", "heap=30m", "threads=20", "classes=500", "quiet=1"];
        let jvm = Jvm::start(&java, &options, &load);
        println!(
            "JVM of {heap_mib} MiB resident in 4 KiB pages, JDK 21, {name}; median of {ROUNDS} whole processes"
        );
        measure(jvm.pid, thpmaps.as_ref());
    }
}

fn measure(pid: i32, thpmaps: Option<&PathBuf>) {
    let pid = pid.to_string();
    let marusa = |more: &[&str]| {
        time(Command::new(env!("CARGO_BIN_EXE_marusa")).args(["map", &pid, "--json"]).args(more))
    };
    let (mut plain, mut sizes, mut mappings, mut theirs) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        plain.push(marusa(&[]));
        sizes.push(marusa(&["--by", "page-size"]));
        mappings.push(marusa(&["--by", "mapping"]));
        if let Some(path) = thpmaps.filter(|_| round < SLOW_ROUNDS) {
            theirs.push(time(
                Command::new(path).args(["--pid", &pid, "--rollup", "--cont", "16K", "--cont", "64K"]),
            ));
        }
    }
    let [plain, sizes, mappings] = [plain, sizes, mappings].map(|times| median(&times));
    println!("{:<34} {plain:>8.1} ms", "marusa map");
    println!(
        "{:<34} {sizes:>8.1} ms   {:.2} of it (at most {RATIO_MAX})",
        "marusa map --by page-size",
        sizes / plain
    );
    println!("{:<34} {mappings:>8.1} ms   with smaps", "marusa map --by mapping");
    if !theirs.is_empty() {
        let theirs = median(&theirs);
        println!(
            "{:<34} {theirs:>8.1} ms   --by page-size takes {:.4} of it (at most {THPMAPS_RATIO_MAX})",
            "thpmaps --cont 16K --cont 64K",
            sizes / theirs
        );
    }
}

fn thpmaps() -> Option<PathBuf> {
    let named = std::env::var_os("MARUSA_THPMAPS").map(PathBuf::from);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let on_path = std::env::split_paths(&path).map(|directory| directory.join("thpmaps"));
    named.into_iter().chain(on_path).find(|file| file.is_file())
}
