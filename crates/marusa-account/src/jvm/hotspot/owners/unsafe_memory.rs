//! What `Unsafe.allocateMemory` took, with Native Memory Tracking on. Direct buffers, `java.lang.foreign` arenas and libraries
//! like Netty all take memory by that call, so their blocks have the same tag. Only direct buffers of `java.nio` count against
//! -XX:MaxDirectMemorySize by their own list in the Java heap; the blocks that this list names are theirs, and the others of the
//! tag are not. Where the list cannot be followed to its ends, the others may be buffers too, and keep the name that says so.

use super::direct;
use super::leads::SmallClass;
use crate::base::blocks::{Block, Blocks, Label, Labelled, Move, SEEN};
use crate::base::limits::OWNED_BLOCKS_MAX;
use crate::base::{Addr, Bytes};
use crate::jvm::hotspot::Hotspot;
use crate::jvm::hotspot::nmt::{HEADER_BYTES, tags};
use crate::jvm::hotspot::window::Windows;
use crate::jvm::types::{BlockOwner, How, JvmView};
use std::collections::HashSet;

/// Gives the blocks of the tag that direct buffers have to direct buffers, and the others to whom they may belong.
pub fn tell_apart(vm: &Hotspot, view: &mut JvmView, classes: &[SmallClass], blocks: &mut dyn Labelled) {
    let tag = tags::unsafe_tag(vm.major);
    let is_tag = |owner: &BlockOwner| owner.how == How::NmtHeader && owner.nmt_tag.as_deref() == Some(tag);
    let Some(place) = view.block_owners.iter().position(is_tag) else { return };
    let (tagged, next) = (place as Label + 1, view.block_owners.len() + 1);
    let found = of_label(blocks, tagged);
    if found.is_empty() || next + 1 >= usize::from(SEEN) {
        return;
    }
    let Some(named) = direct::named(vm, view, classes) else { return };
    let (buffers, others) = (next as Label, next as Label + 1);
    view.block_owners.push(tags::buffers(vm.major));
    view.block_owners.push(tags::without_buffers(vm.major));
    // A buffer's address is that behind the header.
    let at: HashSet<u64> = named.at.iter().map(|at| at.wrapping_sub(HEADER_BYTES)).collect();
    let windows = Windows::new(vm.target);
    let moves = found.into_iter().filter_map(|block| {
        let to = match at.contains(&block.payload.start.0) {
            true => buffers,
            false if named.is_all => others,
            false => return None,
        };
        Some(Move { payload: block.payload.start, to, slack: slack(&windows, &block) })
    });
    let moves: Vec<Move> = moves.collect();
    blocks.hand_over(tagged, &moves);
}

fn of_label(blocks: &dyn Blocks, label: Label) -> Vec<Block> {
    let mut found = Vec::new();
    blocks.each(&mut |block: Block| {
        found.extend((block.label == label).then_some(block));
        found.len() < OWNED_BLOCKS_MAX
    });
    found
}

/// What the block was rounded up by: its header begins with the bytes that were asked for.
fn slack(windows: &Windows, block: &Block) -> Bytes {
    let requested: Addr = windows.addr(block.payload.start).unwrap_or(Addr(block.payload.bytes()));
    block.payload.bytes().saturating_sub(requested.0)
}
