//! What to do where a memory limit was reached: that depends on what filled it. A smaller heap helps against a full heap, and not
//! against native memory that grows without bound, or against another process in the same cgroup.

use super::Remedy;
use super::rules::malloc_freed_held;
use crate::base::{Bytes, human};
use crate::map::Area;

/// Less growth than this, or than a part of the limit, did not fill it.
const GROWN_BYTES_MIN: Bytes = 16 << 20;
const GROWN_PART: u64 = 50;

/// What is known of a limit and of those who hold memory under it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filled {
    pub limit: Bytes,
    /// What the cgroup holds and cannot drop; `None`: not known.
    pub held: Option<Bytes>,
    /// The resident memory of this JVM.
    pub resident: Option<Bytes>,
    /// Areas of the JVM and what they have.
    pub areas: Vec<(Area, Bytes)>,
    /// Areas that grew: just before, or since the start of what was recorded.
    pub grown_lately: Vec<(Area, Bytes)>,
    pub grown_in_all: Vec<(Area, Bytes)>,
}

/// Who filled it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// Most of it does not belong to this JVM.
    Others {
        held: Bytes,
        resident: Bytes,
    },
    Grown(Area, Bytes),
    Largest(Area, Bytes),
}

impl Filled {
    pub fn by(&self) -> Option<By> {
        if let (Some(held), Some(resident)) = (self.held, self.resident)
            && resident < held / 2
        {
            return Some(By::Others { held, resident });
        }
        let least = GROWN_BYTES_MIN.max(self.limit / GROWN_PART);
        let grown = [&self.grown_lately, &self.grown_in_all].into_iter().find_map(|grown| most(grown, least));
        grown
            .map(|(area, bytes)| By::Grown(area, bytes))
            .or_else(|| most(&self.areas, 1).map(|(area, bytes)| By::Largest(area, bytes)))
    }

    pub fn remedies(&self) -> Vec<Remedy> {
        match self.by() {
            Some(By::Others { held, resident }) => vec![Remedy::Advice(format!(
                "look at what else is in the cgroup (cgroup.procs, memory.stat) before changing this JVM: it had {} of the {} that \
                 the cgroup held",
                human(resident),
                human(held)
            ))],
            Some(By::Grown(area, bytes)) => {
                let what = format!("grew by {}", human(bytes));
                of_area(area, &format!("{what}, so a smaller heap or a larger limit only postpones the kill"))
            }
            Some(By::Largest(area, bytes)) => {
                of_area(area, &format!("had {}, the most of all", human(bytes)))
            }
            None => vec![Remedy::advice("a larger limit, or less in the cgroup")],
        }
    }
}

fn most(areas: &[(Area, Bytes)], least: Bytes) -> Option<(Area, Bytes)> {
    areas.iter().copied().filter(|(_, bytes)| *bytes >= least).max_by_key(|(_, bytes)| *bytes)
}

/// What bounds an area that filled a limit. `what` says what the area did.
pub fn of_area(area: Area, what: &str) -> Vec<Remedy> {
    let title = area.title();
    if area == Area::JavaHeap {
        let what = what.split(',').next().unwrap_or_default();
        return vec![Remedy::Advice(format!("a smaller heap (-Xmx) or a larger limit: the {title} {what}"))];
    }
    let advice = Remedy::Advice(format!("{}: the area '{title}' {what}", bound_of(area)));
    match area {
        Area::MallocFreed => vec![advice, malloc_freed_held::interval(false)],
        _ => vec![advice],
    }
}

/// What a user can bound, or look for.
fn bound_of(area: Area) -> &'static str {
    match area {
        Area::JavaHeap | Area::Gc => {
            "use a smaller heap (-Xmx) or another collector: the collector's tables grow with the heap"
        }
        Area::ClassMetadata => {
            "find class loaders that are kept (`jcmd PID VM.classloader_stats`) and set -XX:MaxMetaspaceSize"
        }
        Area::JitCode => "set -XX:ReservedCodeCacheSize",
        Area::JitWork => "limit the compiler threads (-XX:CICompilerCount)",
        Area::Stack => "bound the number of threads",
        Area::DirectBuffers => "find who keeps direct buffers; -XX:MaxDirectMemorySize bounds them",
        Area::JvmWork => "find which memory of the VM grows (-XX:NativeMemoryTracking=summary)",
        Area::NativeLibrary | Area::MallocUnknown => {
            "find the native library or the Unsafe memory that is not freed (-XX:NativeMemoryTracking=summary separates it from \
             the memory of the VM)"
        }
        Area::CdsArchive | Area::Code | Area::MappedFile => "map fewer files",
        Area::MallocFreed => "let malloc return freed memory: fewer arenas (MALLOC_ARENA_MAX=2), or trims",
        Area::Overhead => "allocate fewer small native blocks",
        Area::Unattributed => "find the native library that maps it (`marusa map PID --by mapping`)",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: Bytes = 1 << 20;

    fn filled() -> Filled {
        Filled {
            limit: 1024 * MIB,
            held: Some(1020 * MIB),
            resident: Some(1000 * MIB),
            areas: vec![(Area::JavaHeap, 600 * MIB), (Area::MallocUnknown, 300 * MIB)],
            ..Filled::default()
        }
    }

    #[test]
    fn who_grew_filled_it_and_not_who_is_largest() {
        let largest = filled();
        assert_eq!(largest.by(), Some(By::Largest(Area::JavaHeap, 600 * MIB)));
        let grown = |lately: Bytes, in_all: Bytes| {
            Filled {
                grown_lately: vec![(Area::JavaHeap, 2 * MIB), (Area::MallocUnknown, lately)],
                grown_in_all: vec![(Area::JavaHeap, 500 * MIB), (Area::MallocUnknown, in_all)],
                ..filled()
            }
            .by()
        };
        assert_eq!(
            grown(100 * MIB, 0),
            Some(By::Grown(Area::MallocUnknown, 100 * MIB)),
            "lately counts first"
        );
        assert_eq!(grown(20 * MIB, 0), Some(By::Grown(Area::JavaHeap, 500 * MIB)), "a fiftieth of the limit");
        assert_eq!(grown(21 * MIB, 0), Some(By::Grown(Area::MallocUnknown, 21 * MIB)));
        let others = Filled { resident: Some(509 * MIB), ..filled() };
        assert_eq!(others.by(), Some(By::Others { held: 1020 * MIB, resident: 509 * MIB }));
        let half = Filled { resident: Some(510 * MIB), ..filled() };
        assert_eq!(half.by(), largest.by());
        assert_eq!(Filled::default().by(), None);
    }

    #[test]
    fn a_smaller_heap_is_advised_against_a_full_heap_only() {
        for area in Area::ALL {
            let remedies = of_area(*area, "grew by 100 MiB");
            let text = remedies[0].text();
            assert_eq!(text.starts_with("a smaller heap"), *area == Area::JavaHeap, "{text}");
            assert!(text.contains(area.title()) && text.contains("grew by 100 MiB"), "{text}");
        }
        assert_eq!(of_area(Area::MallocFreed, "").len(), 2);
    }
}
