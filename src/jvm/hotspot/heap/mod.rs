//! The Java heap: which collector, and one file per collector for its spaces or regions.

pub mod g1;
pub mod parallel;
pub mod reach;
pub mod serial;
pub mod shenandoah;
mod shenandoah_marks;
mod shenandoah_tables;
mod spaces;
pub mod tables;
mod unowned;
pub mod z;
mod z_pages;
pub mod z_regions;
mod z_tables;

use super::{Found, Hotspot};
use crate::base::limits::COLLECTOR_BYTES_MAX;
use crate::base::{Addr, Gap, Known, Why};
use crate::jvm::types::{Gc, HeapView};

/// Which collector runs, by the `Use...GC` flags.
pub fn collector(vm: &Hotspot) -> Known<Gc> {
    let known = [
        ("UseG1GC", Gc::G1),
        ("UseParallelGC", Gc::Parallel),
        ("UseConcMarkSweepGC", Gc::Cms),
        ("UseSerialGC", Gc::Serial),
        ("UseEpsilonGC", Gc::Epsilon),
    ];
    known
        .iter()
        .find(|(flag, _)| vm.flags.is_on(flag))
        .map(|(_, gc)| *gc)
        .or_else(|| z::collector(vm))
        .or_else(|| shenandoah::collector(vm))
        .ok_or_else(|| Gap::new("collector", Why::NotInThisRuntime))
}

/// Claims the heap's spaces.
pub fn read(vm: &Hotspot, gc: &Known<Gc>, found: &mut Found) -> Known<HeapView> {
    match gc.clone()? {
        Gc::Serial | Gc::Cms | Gc::Epsilon => serial::read(vm, found),
        Gc::Parallel => parallel::read(vm, found),
        Gc::G1 => g1::read(vm, found),
        Gc::Z | Gc::ZGenerational => z::read(vm, found),
        Gc::Shenandoah | Gc::ShenandoahGenerational => shenandoah::read(vm, found),
    }
}

/// The whole object at `at`, whose type vmStructs gives the size of, as words.
fn object_words(vm: &Hotspot, at: Addr, class: &str) -> Known<Vec<u64>> {
    let bytes = vm.structs.size_of(class)?.min(COLLECTOR_BYTES_MAX);
    vm.memory().words(at, (bytes / 8) as usize).map_err(|fault| fault.gap(class))
}

#[cfg(test)]
pub(in crate::jvm::hotspot) mod test_target {
    use crate::os::memory::Pieces;
    use crate::os::status::Status;
    use crate::os::target::{NoSymbols, OsView, ProcessFacts, Target};

    /// A process of which only its mappings are known; all of them count as resident.
    pub fn with_maps(text: &str, test: impl FnOnce(&Target)) {
        let view = OsView {
            process: ProcessFacts::default(),
            status: Status::default(),
            mappings: crate::os::maps::parse(text.as_bytes()).0,
            pages: Err(crate::base::Gap::new("pagemap", crate::base::Why::Denied)),
            tasks: Vec::new(),
            gaps: Vec::new(),
            late: None,
            page_sizes: None,
            smaps: None,
        };
        test(&Target { view: &view, memory: &Pieces::default(), symbols: &NoSymbols });
    }
}
