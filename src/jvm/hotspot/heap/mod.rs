//! The Java heap: which collector, and one file per collector for its spaces or regions.

pub mod g1;
pub mod parallel;
pub mod serial;
pub mod shenandoah;
pub mod tables;
pub mod z;

use super::{Found, Hotspot};
use crate::base::{Gap, Known, Why};
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
