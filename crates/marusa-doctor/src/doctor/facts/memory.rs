//! What several rules about memory ask of a JVM: shares of what is resident, and malloc's freed memory.

use super::JvmFacts;
use crate::base::{Bytes, Gap, Known};
use crate::map::Area;
use crate::map::trim::{self, Prediction};

impl JvmFacts {
    /// The percentage of all resident memory; 0 where none is known.
    pub fn percent_of_resident(&self, bytes: Bytes) -> f64 {
        percent(bytes, self.resident_bytes())
    }

    /// What malloc holds of what the program freed, and what malloc_trim would give back. `None` where malloc is not glibc's, or
    /// could not be walked.
    pub fn freed(&self) -> Option<Prediction> {
        trim::predict(&self.snapshot).ok()
    }

    /// Resident bytes of the parts of an area whose name contains `name`.
    pub fn resident_bytes_of_parts(&self, area: Area, name: &str) -> Bytes {
        let parts = self.account.area(area).into_iter().flat_map(|area| &area.parts);
        parts.filter(|part| part.part.contains(name)).map(|part| part.amounts.resident_bytes).sum()
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

/// A percentage; 0 where the whole is 0.
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
        assert_eq!(jvm.resident_bytes_of_parts(Area::MallocFreed, ""), 8 * M);
        assert!(!jvm.has_pool_heap());
        assert_eq!((percent(1, 0), percent(1, 4)), (0.0, 25.0));
    }
}
