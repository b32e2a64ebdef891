//! `transparent_hugepage/hugepages-<size>kB/stats`: of each size of page, how often a fault asked for one and got it or fell back
//! to a smaller one, and how many were split. Since Linux 6.10, for the whole host; the counters grow from its start.
//!
//! Documentation/admin-guide/mm/transhuge.rst, "Monitoring usage". Names that a kernel does not have are absent, not zero.

use super::host::number;
use super::hugetlb::directory_bytes;
use super::process::gap;
use super::thp::DIRECTORY;
use crate::base::{Bytes, Gap, Known, Why};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// Sizes that have a directory, and files in each: Linux 6.18 has 10 and 17 on x86-64.
const SIZES_MAX: usize = 64;
const COUNTERS_MAX: usize = 64;

/// The counters of one size.
#[derive(Clone, Debug, Default, PartialEq, Eq, schemars::JsonSchema, Serialize, Deserialize)]
pub struct SizeStats {
    #[serde(rename = "page_bytes")]
    pub bytes: Bytes,
    /// By the kernel's own names: "anon_fault_alloc". The ones that begin with "nr_" are how many there are now.
    pub counters: BTreeMap<String, u64>,
}

impl SizeStats {
    /// How much each counter grew since; the ones that say how many there are now stay as they are.
    pub fn grown(&self, first: &SizeStats) -> SizeStats {
        let grown = |(name, now): (&String, &u64)| {
            let before = if name.starts_with("nr_") { Some(&0) } else { first.counters.get(name) };
            Some((name.clone(), now.saturating_sub(*before?)))
        };
        SizeStats { bytes: self.bytes, counters: self.counters.iter().filter_map(grown).collect() }
    }

    pub fn get(&self, name: &str) -> Option<u64> {
        self.counters.get(name).copied()
    }
}

/// All sizes, smallest first.
pub fn read() -> Known<Vec<SizeStats>> {
    below(Path::new(DIRECTORY))
}

/// What each size grew by; a size that is new is left out.
pub fn grown(first: &[SizeStats], now: &[SizeStats]) -> Vec<SizeStats> {
    let of = |now: &SizeStats| Some(now.grown(first.iter().find(|first| first.bytes == now.bytes)?));
    now.iter().filter_map(of).collect()
}

fn below(directory: &Path) -> Known<Vec<SizeStats>> {
    let missing = || {
        Gap::new("allocations by page size", Why::NotInThisKernel)
            .hint("transparent_hugepage/hugepages-*kB/stats came with Linux 6.10")
    };
    let entries = std::fs::read_dir(directory).map_err(|error| match error.raw_os_error() {
        Some(libc::ENOENT) => missing(),
        _ => gap("transparent_hugepage", &error),
    })?;
    let of = |entry: std::fs::DirEntry| {
        let bytes = directory_bytes(entry.file_name().to_str()?)?;
        let files = std::fs::read_dir(entry.path().join("stats")).ok()?.flatten().take(COUNTERS_MAX);
        let counter = |file: std::fs::DirEntry| {
            let value = number(file.path())?;
            Some((file.file_name().into_string().ok()?, value))
        };
        Some(SizeStats { bytes, counters: files.filter_map(counter).collect() })
    };
    let mut sizes: Vec<SizeStats> = entries.flatten().take(SIZES_MAX).filter_map(of).collect();
    sizes.sort_by_key(|size| size.bytes);
    if sizes.is_empty() { Err(missing()) } else { Ok(sizes) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_grow_and_what_there_is_stays() {
        let of = |pairs: &[(&str, u64)]| SizeStats {
            bytes: 2 << 20,
            counters: pairs.iter().map(|(name, value)| (name.to_string(), *value)).collect(),
        };
        let first = of(&[("anon_fault_alloc", 10), ("nr_anon", 5), ("split", 7)]);
        let now = of(&[("anon_fault_alloc", 13), ("nr_anon", 6), ("split", 7), ("swpin", 4)]);
        let grown = grown(std::slice::from_ref(&first), &[now]);
        assert_eq!(grown, [of(&[("anon_fault_alloc", 3), ("nr_anon", 6), ("split", 0)])]);
        assert_eq!((grown[0].get("split"), grown[0].get("swpin")), (Some(0), None), "swpin has no start");
    }

    #[test]
    fn sizes_by_the_names_of_their_directories() {
        let root = std::env::temp_dir().join(format!("marusa-thp-stats-{}", std::process::id()));
        for (directory, value) in
            [("hugepages-2048kB", "5\n"), ("hugepages-64kB", "9\n"), ("khugepaged", "1\n")]
        {
            let stats = root.join(directory).join("stats");
            std::fs::create_dir_all(&stats).expect("a directory");
            std::fs::write(stats.join("split"), value).expect("a file");
        }
        std::fs::write(root.join("hugepages-64kB/stats/broken"), "x\n").expect("a file");
        let sizes = below(&root).expect("two sizes");
        assert_eq!(sizes.iter().map(|size| size.bytes).collect::<Vec<_>>(), [64 << 10, 2 << 20]);
        assert_eq!((sizes[0].get("split"), sizes[0].get("broken")), (Some(9), None));
        std::fs::remove_dir_all(&root).expect("removed");
        assert_eq!(below(&root).expect_err("no such directory").why, Why::NotInThisKernel);
        assert_eq!(
            (directory_bytes("hugepages-x"), directory_bytes("hugepages-18446744073709551615kB")),
            (None, None)
        );
    }
}
