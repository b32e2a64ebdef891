//! The blocks of malloc that loaders and their classes lead to. Only blocks of the VM for classes, modules, metaspace and locks are
//! followed, from all loaders at once: a block belongs to the one that is the fewest steps away, so the modules of another
//! loader, which those of a loader name, stay with that one. Symbols are shared and have no owner here.

use super::OfClass;
use super::groups::Groups;
use crate::base::blocks::{Blocks, Label};
use crate::base::limits::BLOCK_SEARCHED_BYTES_MAX;
use crate::base::{Gap, Known, Why};
use crate::jvm::hotspot::Hotspot;
use crate::jvm::hotspot::nmt::HEADER_BYTES;
use crate::jvm::hotspot::owners::index::Index;
use crate::jvm::types::JvmView;
use crate::os::budget;

/// Tags of Native Memory Tracking, which are known without it, too.
const TAGS: [&str; 5] = ["Class", "Module", "Metaspace", "Synchronization", "Synchronizer"];

pub fn add(
    vm: &Hotspot,
    view: &JvmView,
    blocks: &dyn Blocks,
    of_classes: &[OfClass],
    groups: &mut Groups,
) -> Known<()> {
    const WHAT: &str = "blocks of malloc that class loaders have";
    let is_wanted = |label: Label| {
        let owner = usize::from(label).checked_sub(1).and_then(|place| view.block_owners.get(place));
        owner.and_then(|owner| owner.nmt_tag.as_deref()).is_some_and(|tag| TAGS.contains(&tag))
    };
    let index = Index::with(blocks, is_wanted);
    if index.is_cut {
        return Err(Gap::new(WHAT, Why::OverLimit));
    }
    // With Native Memory Tracking on, the VM's pointers lead behind the header of a block.
    let header = if view.is_tracked() { HEADER_BYTES } else { 0 };
    let block_at = |word: u64| index.at_start(word.wrapping_sub(header));
    let mut loaders: Vec<(u64, u32)> = groups.loaders().map(|(loader, group)| (loader.0, group)).collect();
    loaders.sort_unstable();
    let mut given = vec![false; index.len()];
    let mut now = Vec::new();
    let mut take = |word: u64, group: u32, next: &mut Vec<(usize, u32)>| {
        let block = block_at(word).filter(|block| !std::mem::replace(&mut given[*block], true));
        next.extend(block.map(|block| (block, group)));
        block.is_some()
    };
    for (word, group) in loaders {
        take(word, group, &mut now);
    }
    // What only a class leads to comes as late as what is one step away from its loader.
    let mut from_classes = Some(of_classes);
    while !now.is_empty() || from_classes.is_some() {
        let mut next = Vec::new();
        for (block, group) in &now {
            budget::checked(WHAT)?;
            let payload = index.payload(*block);
            let row = groups.row(*group);
            row.malloc_bytes = row.malloc_bytes.map(|sum| sum.saturating_add(payload.bytes()));
            let words = (payload.bytes().min(BLOCK_SEARCHED_BYTES_MAX) / 8) as usize;
            // What is not in memory leads nowhere.
            let Ok(words) = vm.memory().peek_words(payload.start, words) else { continue };
            for (place, word) in words.into_iter().enumerate() {
                if take(word, *group, &mut next) {
                    vm.memory().used(payload.start.plus(place as u64 * 8), &word.to_le_bytes());
                }
            }
        }
        for (word, group) in from_classes.take().into_iter().flatten() {
            take(*word, *group, &mut next);
        }
        now = next;
    }
    Ok(())
}
