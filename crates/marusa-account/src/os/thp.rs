//! `/sys/kernel/mm/transparent_hugepage`: to which memory the kernel gives pages larger than the base page by itself, and
//! when.
//!
//! Documentation/admin-guide/mm/transhuge.rst. Since Linux 6.8 each size has its own `hugepages-<size>kB/enabled` (6.11:
//! `shmem_enabled` too), which may say "inherit": then the top file decides. VmFlags say it of a process (`hg`, `nh`) and
//! `THP_enabled` whether it asked for or against them.

use super::machine::huge_page;
use super::small_file::chosen;
use crate::base::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Below this directory lie the files that are named here.
pub const DIRECTORY: &str = "/sys/kernel/mm/transparent_hugepage";

/// Counters and knobs of khugepaged that are kept.
const KHUGEPAGED: [&str; 8] = [
    "defrag",
    "max_ptes_none",
    "max_ptes_swap",
    "max_ptes_shared",
    "pages_to_scan",
    "scan_sleep_millisecs",
    "pages_collapsed",
    "full_scans",
];

/// The settings, in the kernel's own words.
#[derive(Clone, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct Thp {
    /// "always", "madvise", "never": private memory.
    pub enabled: String,
    /// What a fault does to get one: "always", "defer", "defer+madvise", "madvise", "never".
    pub defrag: Option<String>,
    /// Memory of memfd, SysV and shared anonymous mappings: also "within_size", "advise", "deny", "force".
    pub shmem_enabled: Option<String>,
    pub use_zero_page: Option<bool>,
    /// What one entry of the second-lowest page table maps.
    pub pmd_bytes: Bytes,
    /// By size, smallest first; empty before Linux 6.8.
    pub sizes: Vec<ThpSize>,
    pub khugepaged: BTreeMap<String, u64>,
}

/// One `hugepages-<size>kB` directory.
#[derive(Clone, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct ThpSize {
    pub bytes: Bytes,
    pub enabled: Option<String>,
    pub shmem_enabled: Option<String>,
}

/// What decides for one size, after "inherit" is followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Below `DIRECTORY`.
    pub file: String,
    pub mode: String,
}

impl Policy {
    fn of(file: impl Into<String>, mode: &str) -> Policy {
        Policy { file: file.into(), mode: mode.to_string() }
    }
    /// "transparent_hugepage/enabled is never".
    pub fn text(&self) -> String {
        format!("transparent_hugepage/{} is {}", self.file, self.mode)
    }
}

impl Thp {
    /// From the contents of the files by their names below `DIRECTORY`, and the sizes that have a directory. `None`: a kernel
    /// without them.
    pub fn parse(read: &dyn Fn(&str) -> Option<String>, sizes: &[Bytes]) -> Option<Thp> {
        let word = |file: &str| chosen(&read(file)?);
        let number = |file: &str| read(file)?.trim().parse::<u64>().ok();
        let size = |bytes: &Bytes| {
            let file = |name: &str| format!("hugepages-{}kB/{name}", bytes >> 10);
            let (enabled, shmem_enabled) = (word(&file("enabled")), word(&file("shmem_enabled")));
            ThpSize { bytes: *bytes, enabled, shmem_enabled }
        };
        let mut sizes: Vec<ThpSize> = sizes.iter().map(size).collect();
        sizes.sort_by_key(|size| size.bytes);
        let knob = |name: &&str| Some((name.to_string(), number(&format!("khugepaged/{name}"))?));
        Some(Thp {
            enabled: word("enabled")?,
            defrag: word("defrag"),
            shmem_enabled: word("shmem_enabled"),
            use_zero_page: number("use_zero_page").map(|flag| flag == 1),
            pmd_bytes: number("hpage_pmd_size")
                .filter(|bytes| bytes.is_power_of_two())
                .unwrap_or_else(huge_page),
            sizes,
            khugepaged: KHUGEPAGED.iter().filter_map(knob).collect(),
        })
    }

    /// What decides for private memory: "always", "madvise" or "never" (mm/huge_memory.c, `thp_vma_allowable_orders`).
    pub fn private(&self, bytes: Bytes) -> Policy {
        let own = |size: &ThpSize| size.enabled.clone();
        self.effective(bytes, "enabled", own, Some(&self.enabled))
    }

    /// The same for shared memory (mm/shmem.c, `shmem_allowable_huge_orders`): "deny" and "force" in the top file win over
    /// all.
    pub fn shared(&self, bytes: Bytes) -> Policy {
        let top = self.shmem_enabled.as_deref();
        if let Some(word @ ("deny" | "force")) = top {
            return Policy::of("shmem_enabled", word);
        }
        self.effective(bytes, "shmem_enabled", |size| size.shmem_enabled.clone(), top)
    }

    fn effective(
        &self,
        bytes: Bytes,
        file: &str,
        own: impl Fn(&ThpSize) -> Option<String>,
        top: Option<&str>,
    ) -> Policy {
        let size = self.sizes.iter().find(|size| size.bytes == bytes).and_then(own);
        match size.as_deref() {
            Some("inherit") | None if bytes == self.pmd_bytes || size.is_some() => {
                Policy::of(file, top.unwrap_or("never"))
            }
            Some(word) => Policy::of(format!("hugepages-{}kB/{file}", bytes >> 10), word),
            None => Policy::of(format!("hugepages-{}kB/{file}", bytes >> 10), "never"),
        }
    }
}

#[cfg(any(test, feature = "made-up"))]
#[path = "thp_tests.rs"]
pub mod tests;
