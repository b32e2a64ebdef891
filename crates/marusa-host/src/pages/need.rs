//! The exact need: every reservation of a HotSpot JVM that can come to lie on large pages, in the order in which the JVM
//! makes them. Heap / 2M alone is the classic mistake: the code cache is reserved first, so a pool of just the heap's size
//! leaves the heap, of all things, on 4K. The rules follow OpenJDK's sources by version; docs/large-pages-need.md has the
//! table, tests/host/pages_need holds them against real JVMs.

mod code;
mod flags;
mod g1;
mod parallel;
mod serial;
mod shenandoah;
mod shortfall;
mod sizing;
#[cfg(test)]
mod table_tests;
mod z;

pub use code::compiler_threads;
pub use flags::flag_bytes;
pub use shortfall::{Shortfall, shortfall};

use super::collectors::is_z;
use super::feasible::size_name;
use super::types::{Mode, Need, Subject, Vm};
use crate::base::{Bytes, Gap, Known, Why};
use crate::jvm::Gc;
use sizing::Sizing;

/// The large object heap that any of the rules still holds for: 2^46, more than HotSpot itself reserves.
const HEAP_MAX: Bytes = 1 << 46;

/// Every reservation of `subject`, in the order in which the JVM makes them; the ones that ask for no large pages have
/// `page_bytes` 4096. The pages of each are whole: what the pool must have.
pub fn need(subject: &Subject, mode: Mode) -> Known<Vec<Need>> {
    refuse(subject, mode)?;
    let jvm = Sizing::new(subject, mode);
    let mut needs = code::needs(&jvm);
    match subject.gc {
        Gc::Serial => needs.extend(serial::needs(&jvm)),
        Gc::Cms => needs.extend(serial::needs_cms(&jvm)),
        Gc::Epsilon => needs.push(jvm.heap_need("heap (gc/epsilon/epsilonHeap.cpp)")),
        Gc::Parallel => needs.extend(parallel::needs(&jvm)),
        Gc::G1 => needs.extend(g1::needs(&jvm)),
        Gc::Z | Gc::ZGenerational => needs.extend(z::needs(&jvm)),
        Gc::Shenandoah | Gc::ShenandoahGenerational => needs.extend(shenandoah::needs(&jvm)),
    }
    Ok(needs)
}

/// What is not available, or not known.
fn refuse(subject: &Subject, mode: Mode) -> Known<()> {
    let gap = |what: String, hint: &str| Err(Gap::new(what, Why::NotInThisRuntime).hint(hint));
    if subject.vm != Vm::HotSpot {
        return gap("reservations of OpenJ9".to_string(), "OpenJ9 says what it wants: -verbose:sizes");
    }
    let (feature, gc) = (subject.feature, subject.gc);
    if !(8..=25).contains(&feature) {
        return gap(format!("reservations of JDK {feature}"), "known from 8 to 25");
    }
    if subject.heap_max_bytes == 0 || subject.heap_max_bytes > HEAP_MAX {
        return gap(format!("a heap of {} bytes", subject.heap_max_bytes), "give the heap as -Xmx has it");
    }
    let is_shenandoah = matches!(gc, Gc::Shenandoah | Gc::ShenandoahGenerational);
    let is_there = match gc {
        Gc::Cms => feature < 14,
        Gc::Z | Gc::Epsilon => feature >= 11,
        Gc::ZGenerational => feature >= 21,
        Gc::ShenandoahGenerational => feature >= 24,
        Gc::Shenandoah => feature >= 11,
        _ => true,
    };
    if !is_there {
        return gap(format!("{} in JDK {feature}", gc.name()), "another collector, or another JDK");
    }
    if matches!(mode, Mode::HugeTlb1G | Mode::HugeTlb) && is_z(gc) {
        let hint = "ZGC takes 2M pages only and its VM exits with another LargePageSizeInBytes: hugetlb-2m";
        return gap(format!("ZGC on {} pages", size_name(mode.page_bytes())), hint);
    }
    if mode == Mode::HugeTlb1G && is_shenandoah {
        let hint = "Shenandoah takes each of its bitmaps and tables in whole 1G pages: hugetlb-2m";
        return gap("Shenandoah on 1G pages".to_string(), hint);
    }
    if mode == Mode::HugeTlb1G && feature < 17 {
        let hint = "before 17 LargePageSizeInBytes has no effect on Linux: the VM takes only the kernel's \
                    default_hugepagesz; hugetlb-2m, or a newer JDK";
        return gap(format!("1G pages next to 2M ones in JDK {feature}"), hint);
    }
    Ok(())
}
