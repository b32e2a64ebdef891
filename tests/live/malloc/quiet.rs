//! C programs at rest: every figure equals glibc's, on each glibc and under each tunable.

use super::compare::differences;
use super::glibcs::{self, Glibc};
use super::info::{Count, Info};
use super::programs::{Program, TemporaryFile, snapshot};
use crate::common::*;
use marusa::alloc::AllocView;

/// Cases of tests/native/heap.c, with the number of threads.
const CASES: &[(&str, usize)] = &[
    ("empty", 0),
    ("mix", 0),
    ("bins", 0),
    ("aligned", 0),
    ("mapped", 0),
    ("foreign", 0),
    ("between", 0),
    ("blocked", 0),
    ("threads", 8),
    ("threads", 40),
    ("ended", 8),
    ("heaps", 3),
];
const TUNABLES: &[&str] = &[
    "glibc.malloc.hugetlb=1",
    "glibc.malloc.hugetlb=2",
    "glibc.malloc.tcache_count=0",
    "glibc.malloc.tcache_count=100:glibc.malloc.tcache_max=600",
    "glibc.malloc.arena_max=2",
    "glibc.malloc.mxfast=0",
    "glibc.malloc.perturb=1",
    "glibc.malloc.mmap_threshold=4096:glibc.malloc.mmap_max=1000000",
    "glibc.malloc.trim_threshold=1:glibc.malloc.top_pad=1",
    "glibc.mem.decorate_maps=1",
];

/// Chunks in use that the program did not ask for itself: its report file, and for each thread its cache and its vector
/// of thread-local storage.
fn libc_chunks_max(threads: usize) -> u64 {
    3 * threads as u64 + 8
}

/// Runs one case and lists what differs.
fn run(libc: &Glibc, case: &str, threads: usize, tunables: &str) -> Vec<String> {
    let report = TemporaryFile::new("malloc-info");
    let path = report.0.display().to_string();
    let mut command = libc.command(&libc.program("heap"), &[]);
    command.args([&path, case, &threads.to_string()]).env("GLIBC_TUNABLES", tunables);
    let program = Program::of(command);
    let info = Info::parse(&std::fs::read_to_string(&report.0).expect("the report"));
    let view = match snapshot(program.pid).and_then(|snapshot| snapshot.alloc) {
        Ok(view) => view,
        Err(gap) => return vec![gap.to_string()],
    };
    let mut found = differences(&view, &info);
    found.extend(beyond_the_live(&view, info.live.expect("the program's own sum"), threads));
    found
}

/// malloc_info cannot tell what is cached from what is in use; the program can.
fn beyond_the_live(view: &AllocView, live: Count, threads: usize) -> Option<String> {
    let figures = view.arenas.iter().flat_map(|arena| &arena.figures);
    let in_use = figures.fold(Count::default(), |sum, one| Count {
        chunks: sum.chunks + one.chunks.in_use.chunks,
        bytes: sum.bytes + one.chunks.in_use.bytes,
    });
    let is_right = in_use.chunks >= live.chunks
        && in_use.bytes >= live.bytes
        && in_use.chunks - live.chunks <= libc_chunks_max(threads);
    (!is_right).then(|| format!("in use {in_use:?}, the program holds {live:?}"))
}

/// Runs cases, and fails with all that differs.
fn run_all(runs: &[(Glibc, &str, usize, &str)]) {
    let mut broken = Vec::new();
    for (libc, case, threads, tunables) in runs {
        let found = run(libc, case, *threads, tunables);
        let name = format!("{} {case} {threads} {tunables}", libc.name);
        println!("{name:<60} {}", if found.is_empty() { "equal" } else { "DIFFERS" });
        broken.extend(found.into_iter().take(8).map(|what| format!("{name}: {what}")));
    }
    assert!(broken.is_empty(), "{broken:#?}");
}

#[test]
fn every_figure_equals_malloc_info_on_every_glibc() {
    let all = glibcs::all();
    let runs: Vec<_> = all
        .iter()
        .flat_map(|libc| CASES.iter().map(|(case, threads)| (libc.clone(), *case, *threads, "")))
        .collect();
    run_all(&runs);
}

#[test]
fn every_figure_equals_malloc_info_under_every_tunable() {
    let mut runs = Vec::new();
    for libc in [Some(glibcs::system()), glibcs::of_suite("sid")].into_iter().flatten() {
        for tunables in TUNABLES {
            for (case, threads) in [("threads", 8), ("mapped", 0), ("blocked", 0), ("heaps", 2)] {
                runs.push((libc.clone(), case, threads, *tunables));
            }
        }
    }
    // Caches hold large chunks since 2.42.
    runs.extend(
        glibcs::of_suite("sid").map(|libc| (libc, "large-cache", 0, "glibc.malloc.tcache_max=1048576")),
    );
    run_all(&runs);
}

#[test]
fn every_figure_equals_malloc_info_on_pages_of_2_mib() {
    let Some(_pool) = HugePages::reserve(48) else { return };
    // Not "mapped": glibc 2.36 and 2.43 resize such a chunk by 4 KiB, and then munmap refuses to free it. What leaks so looks
    // like a chunk.
    let runs: Vec<_> = [("mix", 0), ("threads", 4), ("bins", 0)]
        .into_iter()
        .map(|(case, threads)| (glibcs::system(), case, threads, "glibc.malloc.hugetlb=2"))
        .collect();
    run_all(&runs);
}

/// Reserved 2 MiB pages, given back when dropped.
struct HugePages {
    before: String,
}

const POOL: &str = "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages";

impl HugePages {
    fn reserve(pages: usize) -> Option<HugePages> {
        let read = || std::fs::read_to_string(POOL).ok();
        let Some(before) = read() else {
            skip("this kernel has no 2 MiB pages");
            return None;
        };
        let pool = HugePages { before: before.trim().to_string() };
        let wanted = pool.before.parse::<usize>().unwrap_or(0) + pages;
        let is_there = std::fs::write(POOL, wanted.to_string()).is_ok()
            && read().is_some_and(|text| text.trim() == wanted.to_string());
        if !is_there {
            skip("2 MiB pages cannot be reserved here (root, and enough free memory)");
            return None;
        }
        Some(pool)
    }
}

impl Drop for HugePages {
    fn drop(&mut self) {
        let _ = std::fs::write(POOL, &self.before);
    }
}
