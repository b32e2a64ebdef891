//! The holders of malloc's blocks as a part of a snapshot: what takes longest, and must not cost the account.

use crate::alloc::Heap;
use crate::base::Range;
use crate::base::limits::TargetLimits;
use crate::jvm::hotspot::Hotspot;
use crate::jvm::hotspot::holders;
use crate::jvm::{Holders, JvmView};
use crate::os::budget;
use crate::os::elf::Image;

/// Within half the time of a target, so that the account is complete where the holders are not.
pub fn read(vm: &Hotspot, view: &JvmView, heap: &Heap, loaded: &[Image]) -> Holders {
    let limits = budget::limits();
    budget::within(TargetLimits { time: limits.time / 2, ..limits }, || {
        let held: Vec<Range> = heap.held().collect();
        let found = holders::read(vm, view, heap, &held, loaded);
        match budget::ended() {
            // What was not followed to its holder would count as held by nothing.
            Some(gap) => Holders::given_up(gap),
            None => found,
        }
    })
}
