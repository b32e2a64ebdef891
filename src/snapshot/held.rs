//! The holders of malloc's blocks as a part of a snapshot: what takes longest, and must not cost the account.

use super::types::LoadedImage;
use crate::alloc::Heap;
use crate::base::Range;
use crate::base::limits::TargetLimits;
use crate::jvm::hotspot::Hotspot;
use crate::jvm::hotspot::holders::{self, Library};
use crate::jvm::{Holders, JvmView};
use crate::os::budget;

/// Within half the time of a target, so that the account is complete where the holders are not.
pub fn read(vm: &Hotspot, view: &JvmView, heap: &Heap, images: &[LoadedImage]) -> Holders {
    let limits = budget::limits();
    budget::within(TargetLimits { time: limits.time / 2, ..limits }, || {
        let held: Vec<Range> = heap.held().collect();
        let found = holders::read(vm, view, heap, &held, &libraries(images));
        match budget::ended() {
            // What was not followed to its holder would count as held by nothing.
            Some(gap) => Holders::given_up(gap),
            None => found,
        }
    })
}

fn libraries(images: &[LoadedImage]) -> Vec<Library> {
    let writable = |image: &LoadedImage| {
        let data = image.segments.iter().filter(|(_, is_writable)| *is_writable);
        Library {
            path: image.path.clone(),
            data: data.map(|(range, _)| *range).collect(),
            image: image.segments.iter().map(|(range, _)| *range).collect(),
        }
    };
    images.iter().map(writable).collect()
}
