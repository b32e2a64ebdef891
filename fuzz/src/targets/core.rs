//! A core file made of the input: its headers, its notes, and memory in which there is hardly ever a JVM.

use crate::{allowed, bound};
use marusa::os::core::Core;
use marusa::snapshot::Taken;
use marusa::snapshot::Want;
use marusa::snapshot::take::interpret;
use std::hint::black_box;

pub fn run(bytes: &[u8]) {
    bound::within(allowed(bytes.len()), || check(bytes));
}

fn check(bytes: &[u8]) {
    let Ok(core) = Core::of_bytes(bytes.to_vec()) else { return };
    let mappings = &core.view().mappings;
    assert!(mappings.windows(2).all(|pair| pair[0].range.end <= pair[1].range.start));
    if let Ok(pages) = &core.view().pages {
        assert!(pages.windows(2).all(|pair| pair[0].range.end <= pair[1].range.start));
    }
    let _ = black_box(marusa::snapshot::core::read(&core, Want::default()));
    let view = core.view().clone();
    crate::account(&interpret(
        view,
        Taken::default(),
        &core.memory(),
        &core.symbols(),
        Want { holders: true, ..Want::default() },
    ));
}
