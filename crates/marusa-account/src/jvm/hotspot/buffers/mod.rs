//! Buffers outside the Java heap and who holds them. One pass over the heap finds the objects that will free memory and the ones
//! that lead to it (`scan`, `collect`); a pass for each step finds who refers to them (`referrers`).

mod collect;
mod counters;
mod heads;
mod live;
mod moves;
mod netty;
pub mod oops;
mod referrers;
mod rows;
mod scan;
mod single;
mod targets;
mod threads;
mod types;

use super::Hotspot;
use super::heap;
use super::holders::classes::{Classes, FieldsOf};
use super::nmt::HEADER_BYTES;
use super::owners::index::Index;
use super::window::Windows;
use crate::base::blocks::Blocks;
use crate::base::{Bytes, Gap, Known, Why};
use crate::jvm::Buffers;
use crate::jvm::types::{Gc, JvmView};
use collect::{Memory, Wanted};
use heads::Heads;
use live::Live;
use moves::Moves;
use oops::Oops;
use referrers::Referrers;
use rows::Rows;
use scan::{OBJECTS_MAX, What, scan};
use single::Single;
use std::collections::HashSet;
use targets::Targets;
use threads::Caches;
use types::Types;

/// A collection while the heap is read moves objects, so it is read again.
const ATTEMPTS: usize = 3;

/// Notes the buffers and their holders, or why they are not known.
pub fn note(vm: &Hotspot, view: &mut JvmView, blocks: Option<&dyn Blocks>) {
    match read(vm, view, blocks) {
        Ok(buffers) => view.buffers = Some(buffers),
        Err(gap) => view.gaps.push(Gap { what: format!("buffers outside the heap: {}", gap.what), ..gap }),
    }
}

/// Finds the buffers and their holders. `blocks`: those of malloc, where they could be read.
fn read(vm: &Hotspot, view: &JvmView, blocks: Option<&dyn Blocks>) -> Known<Buffers> {
    let index = blocks.map(|blocks| Index::with(blocks, |_| true));
    let attempt = || {
        let gc = view.gc.clone()?;
        vm.now(|vm| Reader { vm, view, gc, index: index.as_ref() }.read())
    };
    for _ in 1..ATTEMPTS {
        if let (buffers, false) = attempt()? {
            return Ok(buffers);
        }
    }
    let (mut buffers, has_moved) = attempt()?;
    let hint =
        "the garbage collector moved objects while they were read: read them again in a quieter moment";
    buffers.gaps.extend(has_moved.then(|| Gap::new("buffers", Why::Torn).hint(hint)));
    Ok(buffers)
}

struct Reader<'a> {
    vm: &'a Hotspot<'a>,
    view: &'a JvmView,
    gc: Gc,
    index: Option<&'a Index>,
}

impl Reader<'_> {
    /// And whether the heap moved while it was read.
    fn read(&self) -> Known<(Buffers, bool)> {
        let (vm, windows) = (self.vm, Windows::new(self.vm.target));
        let collections = || vm.now(heap::collections);
        let before = collections();
        let used = heap::used(vm, self.gc)?;
        let live = Live::read(vm, self.gc, &used);
        let oops = Oops::read(vm, self.gc)?;
        let classes = Classes::read(vm, &windows)?;
        let fields = FieldsOf::new(vm, &windows, &classes, |_| true)?;
        let moves = Moves::read(vm, oops, &used)?;
        let single = Single::new(vm, &windows, &classes, &fields, (oops, &moves), &used);
        let wanted = Wanted::read(vm, &windows, &classes, &single)?;
        let in_mirror = ["_klass_offset", "_array_klass_offset"]
            .into_iter()
            .filter_map(|name| vm.memory().u32(vm.structs.static_at("java_lang_Class", name).ok()?).ok());
        let heads = Heads::new(&classes, wanted.bytes.iter().copied(), in_mirror.collect());
        let (none, moved) = (Targets::new(&[]), Targets::none());
        let what = What { heads: &heads, oops, targets: &none, moved: &moved, moves: &moves };
        let seen = scan(vm.target, &used, &what);
        let totals = counters::read(&single)?;
        let in_use = |base: u64, bytes: Bytes| self.in_use(base, bytes);
        let found = collect::memory(&seen.objects, &wanted, &single, &in_use);
        let mut referrers = Referrers::new(&fields, Types::new(vm, &windows, &fields), oops);
        let found = numbered(found, &mut referrers);
        let is_dead = |at| live.as_ref().is_ok_and(|live| live.is_marked(vm, at) == Some(false));
        referrers.climb(vm.target, &used, (&heads, &moves), &is_dead);
        let live = live.and_then(|live| Ok(live.still(&vm.now(|vm| Live::read(vm, self.gc, &used))?)));
        let mut gaps: Vec<Gap> = live.as_ref().err().cloned().into_iter().collect();
        let rows = Rows { live: live.ok(), ..self.rows(&single, &referrers) };
        if seen.is_cut || referrers.is_cut || seen.objects.len() > OBJECTS_MAX {
            gaps.push(Gap::new("buffers and their holders", Why::OverLimit));
        }
        let mut buffers = rows.finish(&found, &in_use, gaps);
        (buffers.totals.direct, buffers.totals.mapped) = totals;
        let has_moved =
            || vm.now(|vm| Moves::read(vm, oops, &used).map(|now| now.count())) != Ok(moves.count());
        Ok((buffers, before != collections() || has_moved()))
    }

    fn rows<'a>(&'a self, single: &'a Single<'a>, referrers: &'a Referrers<'a>) -> Rows<'a> {
        let holders = referrers.holders();
        let caches: HashSet<u64> = holders.iter().flatten().map(|holder| holder.object).collect();
        Rows {
            view: self.view,
            live: None,
            single,
            referrers,
            sessions: referrers.below(rows::session_of, |at| is_open(single, at)),
            caches: Caches::read(single, self.view, &caches),
            holders,
        }
    }

    /// Whether a block of malloc of this size starts there, behind the header of Native Memory Tracking or without one.
    fn in_use(&self, base: u64, bytes: Bytes) -> Option<bool> {
        let index = self.index?;
        let is_block = |at: u64, bytes: Bytes| {
            index
                .at_start(at)
                .is_some_and(|block| index.payload(block).bytes() >= bytes.min(u64::from(u32::MAX)))
        };
        Some(
            is_block(base, bytes)
                || self.view.is_tracked()
                    && is_block(base.wrapping_sub(HEADER_BYTES), bytes.saturating_add(HEADER_BYTES)),
        )
    }
}

/// Whether a session was not closed: `MemorySessionImpl.state` is negative then (JDK 17 to 25).
fn is_open(single: &Single, session: u64) -> bool {
    single.number(session, "state").is_none_or(|state| state >= 0)
}

fn numbered(found: Vec<Memory>, referrers: &mut Referrers) -> Vec<(Memory, Vec<u32>)> {
    let number = |memory: Memory| {
        let objects = memory.objects.iter().map(|(at, class)| referrers.add(*at, *class)).collect();
        (memory, objects)
    };
    found.into_iter().map(number).collect()
}
