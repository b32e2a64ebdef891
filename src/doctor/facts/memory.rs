//! What several rules about memory ask of a JVM: shares of what is resident, and malloc's freed memory.

use super::JvmFacts;
use crate::base::{Bytes, Gap, Known};
use crate::map::trim::{self, Prediction};
use crate::map::{Area, Figures};
use std::collections::BTreeMap;

impl JvmFacts {
    /// Of all that is resident, in percent; 0 where nothing is known to be.
    pub fn percent_of_resident(&self, bytes: Bytes) -> f64 {
        percent(bytes, self.resident_bytes())
    }

    /// What malloc holds of what the program freed, and what malloc_trim would give back. `None` where malloc is not glibc's, or
    /// could not be walked.
    pub fn freed(&self) -> Option<Prediction> {
        trim::predict(&self.snapshot).ok()
    }

    /// The parts of an area, the largest in memory first.
    pub fn parts(&self, area: Area) -> Vec<(String, Figures)> {
        let mut parts: BTreeMap<&str, Figures> = BTreeMap::new();
        for (owner, share) in self.map.shares().filter(|(owner, _)| owner.area == area) {
            parts.entry(&owner.part).or_default().add(&share.figures);
        }
        let mut parts: Vec<(String, Figures)> =
            parts.into_iter().map(|(part, figures)| (part.to_string(), figures)).collect();
        parts.sort_by(|(a, one), (b, other)| other.resident.cmp(&one.resident).then(a.cmp(b)));
        parts
    }

    /// Bytes of the heap that HotSpot may use: -Xmx.
    pub fn heap_max_bytes(&self) -> Option<Bytes> {
        let of_view = || self.jvm()?.heap.as_ref().ok()?.max_bytes.clone().ok();
        self.number("MaxHeapSize").or_else(of_view).filter(|bytes| *bytes > 0)
    }

    /// Whether the heap is on pages of the kernel's pool, which are taken whole at the start.
    pub fn has_pool_heap(&self) -> bool {
        self.is_on("UseLargePages")
            && !self.is_on("UseTransparentHugePages")
            && self.snapshot.os.status.hugetlb_bytes.is_some_and(|bytes| bytes > 0)
    }

    /// A variable of the environment; an error where that could not be read.
    pub fn variable(&self, name: &str) -> Known<Option<&str>> {
        let all = self.environment.as_ref().map_err(Gap::clone)?;
        Ok(all.get(name).map(String::as_str))
    }
}

/// Of a hundred; 0 where the whole is nothing.
pub fn percent(part: Bytes, whole: Bytes) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 * 100.0 / whole as f64 }
}

#[cfg(test)]
mod tests {
    use super::super::made_up::{M, healthy_jvm};
    use super::*;

    #[test]
    fn sums_of_the_made_up_jvm() {
        let jvm = healthy_jvm();
        let freed = jvm.freed().expect("glibc").total;
        assert_eq!(
            (freed.free_resident_bytes, freed.trimmable_bytes, freed.top_kept_bytes),
            (8 * M, 4 * M, 3 * M)
        );
        assert_eq!(jvm.heap_max_bytes(), Some(2 << 30));
        assert_eq!(jvm.parts(Area::JavaHeap)[0].0, "old");
        assert!(!jvm.has_pool_heap());
        assert_eq!((percent(1, 0), percent(1, 4)), (0.0, 25.0));
    }
}
