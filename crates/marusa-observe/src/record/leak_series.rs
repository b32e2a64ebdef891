//! The figures of a recording as they were really read. A recording carries each figure on until it changes, so a figure at a
//! moment may be minutes old; here a series has one point for each reading, at the time of that reading, and none where nothing
//! was read.

use super::history::History;
use super::key::{Key, Measure, Subject};
use crate::base::Bytes;
use crate::map::Area;
use crate::measure::growth::Point;
use std::collections::BTreeMap;

/// Areas that every account of full depth has. An account that lacks one of them has its bytes elsewhere.
const SHAPE: [Area; 4] = [Area::JavaHeap, Area::ClassMetadata, Area::JitCode, Area::MallocFreed];
/// A shape counts where at least one account in this many has it.
const SHAPE_SHARE: usize = 4;
/// Collections of the whole heap by which its live bytes are known; with fewer, its falls must do.
const OLD_MIN: usize = 4;

/// The accounts of a range of time that can be compared: of the same depth, each once.
pub struct Accounts<'a> {
    history: &'a History,
    /// The moment in the history, and when the account was read.
    read: Vec<(usize, f64)>,
}

impl Accounts<'_> {
    pub fn of(history: &History, is_within: impl Fn(usize) -> bool) -> Accounts<'_> {
        let read = read(history, Measure::AccountAt, is_within);
        Accounts { history, read: of_one_shape(history, read) }
    }

    /// The ones that have holders, or the class histograms.
    pub fn of_clock(history: &History, clock: Measure, is_within: impl Fn(usize) -> bool) -> Accounts<'_> {
        Accounts { history, read: read(history, clock, is_within) }
    }

    pub(crate) fn len(&self) -> usize {
        self.read.len()
    }

    /// The moments in the history.
    pub fn moments(&self) -> Vec<usize> {
        self.read.iter().map(|(at, _)| *at).collect()
    }

    pub fn series(&self, key: &Key) -> Vec<Point> {
        let read = self.read.iter();
        let point = |(at, seconds): &(usize, f64)| {
            Some(Point { seconds: *seconds, bytes: self.history.value(key, *at)? as f64 })
        };
        read.filter_map(point).collect()
    }

    /// The resident bytes of all areas, or of all except one.
    pub fn sums(&self, except: Option<Area>) -> Vec<Point> {
        let mut sums: Vec<(f64, Option<f64>)> =
            self.read.iter().map(|(_, seconds)| (*seconds, None)).collect();
        for area in Area::ALL.iter().filter(|area| Some(**area) != except) {
            let key = Key::of(&Subject::Area(*area), Measure::Resident);
            for ((at, _), (_, sum)) in self.read.iter().zip(&mut sums) {
                if let Some(bytes) = self.history.value(&key, *at) {
                    *sum = Some(sum.unwrap_or(0.0) + bytes as f64);
                }
            }
        }
        let point = |(seconds, sum): (f64, Option<f64>)| Some(Point { seconds, bytes: sum? });
        sums.into_iter().filter_map(point).collect()
    }
}

/// Each change of `clock` says when something was read. The moment is that of the sample before it, or, at the start of a file of a
/// ring, later: what was read is restated there.
fn read(history: &History, clock: Measure, is_within: impl Fn(usize) -> bool) -> Vec<(usize, f64)> {
    let first = history.moments.first().map_or(0, |moment| moment.steady_ms);
    let changes = history.changes(&Key::process(clock)).iter();
    let read = changes
        .filter_map(|(at, read_at)| Some((*at as usize, (*read_at)? as f64 / 1e3 - first as f64 / 1e3)));
    read.filter(|(at, _)| is_within(*at)).collect()
}

/// Without the accounts that lack what others have: a budget or a process that changed while it was read cost them their depth.
fn of_one_shape(history: &History, read: Vec<(usize, f64)>) -> Vec<(usize, f64)> {
    let keys = SHAPE.map(|area| Key::of(&Subject::Area(area), Measure::Resident));
    let shape = |at: usize| {
        keys.iter().enumerate().fold(0_u32, |shape, (bit, key)| {
            shape | u32::from(history.value(key, at).is_some_and(|bytes| bytes > 0)) << bit
        })
    };
    let shapes: Vec<u32> = read.iter().map(|(at, _)| shape(*at)).collect();
    let mut counts: BTreeMap<u32, usize> = BTreeMap::new();
    shapes.iter().for_each(|shape| *counts.entry(*shape).or_default() += 1);
    let common = counts.iter().filter(|(_, count)| **count * SHAPE_SHARE >= shapes.len());
    let full = common.map(|(shape, _)| *shape).max_by_key(|shape| shape.count_ones());
    read.into_iter().zip(shapes).filter(|(_, shape)| Some(*shape) == full).map(|(read, _)| read).collect()
}

/// What the heap has after collections, and whether each figure is what a collection of the whole heap left.
pub fn heap_after_collections(history: &History, is_within: impl Fn(usize) -> bool) -> (Vec<Point>, bool) {
    let used = Key::process(Measure::HeapUsed);
    let point =
        |at: usize| Some(Point { seconds: history.seconds(at), bytes: history.value(&used, at)? as f64 });
    let counted = history.changes(&Key::process(Measure::Collections));
    // The VM's figure is new only right after a collection; where it does not count them, each may be.
    let at: Vec<usize> = match counted {
        [] => (0..history.len()).filter(|at| is_within(*at)).collect(),
        counted => counted.iter().map(|(at, _)| *at as usize).filter(|at| is_within(*at)).collect(),
    };
    let live = live(history, &at, &point);
    match live.len() >= OLD_MIN {
        true => (live, true),
        false => (at.into_iter().filter_map(point).collect(), false),
    }
}

/// From one collection of the old generation to the next, the lowest figure: the live bytes, or little more.
fn live(history: &History, collections: &[usize], point: &dyn Fn(usize) -> Option<Point>) -> Vec<Point> {
    let old = Key::process(Measure::OldCollections);
    let is_g1 = history.facts.gc.as_deref().is_some_and(|gc| gc.contains("G1"));
    let young =
        |at: usize| Some(history.process(Measure::Collections, at)?.saturating_sub(history.value(&old, at)?));
    let mut lowest: BTreeMap<u64, Point> = BTreeMap::new();
    for at in collections {
        let (Some(count), Some(point)) = (history.value(&old, *at), point(*at)) else { continue };
        // G1 counts the pauses of its concurrent cycle, at which eden is full of uncollected objects.
        if is_g1 && at.checked_sub(1).is_none_or(|before| young(before) >= young(*at)) {
            continue;
        }
        let lowest = lowest.entry(count).or_insert(point);
        if point.bytes < lowest.bytes {
            *lowest = point;
        }
    }
    // The start of the first was not seen; with G1, the collections that clean up after the last may be still to come.
    let whole = lowest.len().saturating_sub(1 + usize::from(is_g1));
    lowest.into_values().skip(1).take(whole).collect()
}

/// The resident bytes of the process as read last.
pub fn process_bytes(history: &History, is_within: impl Fn(usize) -> bool) -> Bytes {
    let last = (0..history.len()).rev().filter(|at| is_within(*at));
    last.filter_map(|at| history.process(Measure::KernelResident, at)).next().unwrap_or(0)
}
