//! What a JVM needs of the memory of its cgroup once its heap is full, from what it has now: the sum behind "fits in 1.4
//! GiB" and "will be killed at".
//!
//! What is counted is private memory and its page tables. The heap is taken at its maximum, the collector's tables grow with it,
//! all else stays as it was measured. What the same group holds next to (other processes, the kernel's own memory, files in use)
//! stays too. Possible growth of the rest is reported separately, as it may never happen.

use super::{Evidence, JvmFacts};
use crate::base::Bytes;
use crate::map::Area;
use crate::measure::heap_tables;
use crate::os::group_memory::GroupMemory;

/// For changes between two samples: code, class metadata, malloc.
const RESERVE_PART: u64 = 10;
const RESERVE_BYTES_MIN: Bytes = 64 << 20;
/// Recommended limits and heaps are multiples of these.
const LIMIT_STEP: Bytes = 64 << 20;
const HEAP_STEP: Bytes = 16 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// The heap's bytes, counted now.
    pub heap_bytes: Bytes,
    /// -Xmx; 0 for a heap on pages of the kernel's pool, which no memory limit counts.
    pub heap_max_bytes: Bytes,
    /// By how much the collector's tables grow with the heap.
    pub tables_growth_bytes: Bytes,
    /// Private memory next to the heap, and page tables.
    pub outside_bytes: Bytes,
    /// Counted to the group, and not of this JVM.
    pub others_bytes: Bytes,
    /// What the code cache may still take of what it reserved.
    pub code_growth_bytes: Bytes,
    /// What direct buffers may still take of their limit, where one is set.
    pub direct_growth_bytes: Option<Bytes>,
}

impl Budget {
    pub fn of(jvm: &JvmFacts, group: &GroupMemory) -> Option<Budget> {
        Budget::with_heap(jvm, group, None)
    }

    /// With another maximum of the heap.
    pub fn with_heap(jvm: &JvmFacts, group: &GroupMemory, max: Option<Bytes>) -> Option<Budget> {
        let heap = jvm.area(Area::JavaHeap);
        let (heap_bytes, heap_max_bytes) = match (jvm.has_pool_heap(), max) {
            (true, _) => (0, 0),
            (false, Some(max)) => (heap.resident_bytes, max),
            (false, None) => (heap.resident_bytes, jvm.heap_max_bytes()?.max(heap.resident_bytes)),
        };
        // ZGC's heap is shared memory, which counts as a file to the page tables and as private to the group.
        let outside: Bytes =
            jvm.areas_outside_the_heap().filter_map(|area| area.amounts.anonymous_bytes).sum();
        let page_tables =
            jvm.account.totals.page_table_bytes.or(jvm.snapshot.os.status.page_table_bytes).unwrap_or(0);
        let outside_bytes = outside.saturating_add(page_tables);
        let others_bytes = group.held_bytes().saturating_sub(heap_bytes.saturating_add(outside_bytes));
        let code = jvm.area(Area::JitCode);
        let tables = jvm.area(Area::Gc);
        let tables_growth = heap_tables::growth(tables.resident_bytes, heap_bytes, heap_max_bytes);
        Some(Budget {
            heap_bytes,
            heap_max_bytes,
            tables_growth_bytes: tables_growth
                .min(tables.reserved_bytes.saturating_sub(tables.resident_bytes)),
            outside_bytes,
            others_bytes,
            code_growth_bytes: code.reserved_bytes.saturating_sub(code.resident_bytes),
            direct_growth_bytes: direct_growth(jvm),
        })
    }

    /// With the heap full.
    pub fn full_bytes(&self) -> Bytes {
        self.fixed_bytes().saturating_add(self.heap_max_bytes).saturating_add(self.tables_growth_bytes)
    }

    fn fixed_bytes(&self) -> Bytes {
        self.outside_bytes.saturating_add(self.others_bytes)
    }

    /// A limit that leaves some room.
    pub fn limit_bytes(&self) -> Bytes {
        let full = self.full_bytes();
        full.saturating_add(reserve(full)).checked_next_multiple_of(LIMIT_STEP).unwrap_or(Bytes::MAX)
    }

    /// The largest -Xmx for which `limit` leaves some room; `None`: there is none worth the name.
    pub fn heap_for(&self, limit: Bytes) -> Option<Bytes> {
        let left = limit.checked_sub(reserve(limit))?.checked_sub(self.fixed_bytes())?;
        // The tables grow in proportion to the heap's growth.
        let growth = self.heap_max_bytes.saturating_sub(self.heap_bytes);
        let for_growth = left.saturating_sub(self.heap_bytes);
        let (part, whole) = (u128::from(growth), u128::from(growth) + u128::from(self.tables_growth_bytes));
        let heap = match whole {
            0 => left,
            _ if left <= self.heap_bytes => left,
            _ => self.heap_bytes + (u128::from(for_growth) * part / whole) as Bytes,
        };
        Some(heap / HEAP_STEP * HEAP_STEP).filter(|heap| *heap > 0)
    }

    /// The heap at which the limit is reached; `None`: not before it is full, or already.
    pub fn heap_when_killed(&self, limit: Bytes) -> Option<Bytes> {
        let left = limit.checked_sub(self.fixed_bytes())?;
        (left < self.heap_max_bytes.saturating_add(self.tables_growth_bytes)).then_some(left)
    }

    /// Its figures, with where each comes from.
    pub fn evidence(&self, jvm: &JvmFacts, group: &GroupMemory) -> Vec<Evidence> {
        let figures: [(&str, Bytes, &str); 9] = [
            ("limit", group.limit_bytes, &group.limit_file),
            ("taken, less what could be dropped at once", group.held_bytes(), &group.path),
            ("heap, now", self.heap_bytes, "the account: java_heap"),
            ("heap, at most", self.heap_max_bytes, "-Xmx"),
            ("the collector's tables grow by", self.tables_growth_bytes, "the account: gc, in proportion"),
            ("next to the heap, with page tables", self.outside_bytes, "the account: private memory"),
            ("others in the group, and the kernel's", self.others_bytes, "what is left of the group's sum"),
            ("needed with the heap full", self.full_bytes(), "the sum of these"),
            ("not in it: the code cache may grow by", self.code_growth_bytes, "the account: jit_code"),
        ];
        let mut evidence: Vec<Evidence> =
            figures.into_iter().map(|(what, bytes, source)| Evidence::bytes(what, bytes, source)).collect();
        let direct = self.direct_growth_bytes.map(|bytes| {
            Evidence::bytes("not in it: direct buffers may grow by", bytes, "-XX:MaxDirectMemorySize")
        });
        let freed = jvm.freed().map(|freed| {
            let bytes = freed.total.trimmable_bytes;
            Evidence::bytes("of it, what a trim of malloc would give back", bytes, "walk of malloc's arenas")
        });
        evidence.extend(direct.into_iter().chain(freed));
        for name in ["oom_kill", "max"] {
            let times = group.events.get(name).copied().filter(|times| *times > 0);
            let event =
                |times| Evidence::count(format!("{}: {name}", group.events_file(name)), times, &group.path);
            evidence.extend(times.map(event));
        }
        evidence
    }
}

fn reserve(bytes: Bytes) -> Bytes {
    (bytes / RESERVE_PART).max(RESERVE_BYTES_MIN)
}

fn direct_growth(jvm: &JvmFacts) -> Option<Bytes> {
    let limit = jvm.number("MaxDirectMemorySize").filter(|bytes| *bytes > 0)?;
    Some(limit.saturating_sub(jvm.area(Area::DirectBuffers).resident_bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::facts::made_up::{G, M, healthy_jvm};

    #[test]
    fn the_heap_is_taken_full_and_all_else_as_it_is() {
        let jvm = healthy_jvm();
        let group = GroupMemory {
            limit_bytes: 4 * G,
            current_bytes: 1300 * M,
            reclaimable_bytes: 50 * M,
            ..GroupMemory::default()
        };
        let budget = Budget::of(&jvm, &group).expect("known");
        assert_eq!((budget.heap_bytes, budget.heap_max_bytes), (900 * M, 2 * G));
        // 20 of 40 MiB of tables are in memory, for 900 MiB of heap.
        assert_eq!(budget.tables_growth_bytes, 20 * M);
        assert_eq!(budget.heap_bytes + budget.outside_bytes + budget.others_bytes, 1250 * M);
        assert_eq!(budget.full_bytes(), 2 * G + 20 * M + 350 * M);
        assert_eq!(budget.limit_bytes() % LIMIT_STEP, 0);
        assert!(budget.limit_bytes() >= budget.full_bytes() + budget.full_bytes() / 10);
    }

    #[test]
    fn the_recommended_heap_fits_its_limit_with_its_reserve() {
        let budget = Budget {
            heap_bytes: 100 * M,
            heap_max_bytes: 2 * G,
            tables_growth_bytes: 40 * M,
            outside_bytes: 200 * M,
            others_bytes: 0,
            code_growth_bytes: 0,
            direct_growth_bytes: None,
        };
        let limit = G;
        let heap = budget.heap_for(limit).expect("there is room");
        assert!(heap > 600 * M && heap + 200 * M + reserve(limit) <= limit, "{heap}");
        assert_eq!(budget.heap_when_killed(limit), Some(824 * M));
        assert_eq!(budget.heap_when_killed(3 * G), None);
        assert_eq!(budget.heap_for(250 * M), None, "not even what is next to the heap");
        assert_eq!(budget.heap_for(0), None);
    }
}
