//! What is left of the account where the target's memory may not be read, as under Yama's ptrace_scope 1: the kernel's
//! view, whole, and a gap for the rest. This kernel has no Yama, so the refusal is put in by hand.

use crate::common::*;
use marusa::base::Why;
use marusa::map::{Area, join, law};
use marusa::os::memory::NoMemory;
use marusa::os::process::Process;
use marusa::snapshot::take;

#[test]
fn without_the_right_to_read_memory_the_kernels_view_remains() {
    let Some(jvm) = Jvm::under_load(&row("17", "g1"), &["-Xmx100m"], super::LOAD) else { return };
    let process = Process::open(jvm.pid).expect("the JVM");
    let snapshot = take::with_target(&process, |taking, _, symbols| {
        taking.finish(&process, &NoMemory(Why::Denied), symbols)
    })
    .expect("maps and pages can be read");
    let map = join(&snapshot);
    law::check(&map, &snapshot).expect("the laws hold");
    assert!(snapshot.jvm.as_ref().is_err_and(|gap| gap.why == Why::Denied), "{:?}", snapshot.jvm.err());
    assert!(map.gaps.iter().any(|gap| gap.why == Why::Denied));
    let resident = |area| -> u64 {
        let shares = map.shares().filter(|(owner, _)| owner.area == area);
        shares.map(|(_, share)| share.figures.resident).sum()
    };
    assert!(resident(Area::Code) > 5 << 20, "libraries are known by their mappings");
    assert!(resident(Area::Unattributed) > 30 << 20, "the heap is there, its owner is not known");
    assert_eq!(resident(Area::JavaHeap), 0);
}
