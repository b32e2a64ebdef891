//! The table of `marusa tlb`: counts of an interval become misses a second and shares of CPU time, by kind of thread or by
//! thread, user and kernel, instruction and data side, and the page size of the reload, as trapstat -T has it.

mod model;

use super::counters::{Interval, Slot, ThreadCounts, cycles_slot};
use super::effective::{Effective, effective};
use super::events::{EventSet, Meaning, Model, Side};
use super::interval::Count;
use super::kinds::{Kind, Kinds};
use crate::base::{Gap, Known, Why, or_null};
use crate::os::perf::Mode;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

/// What the model needs next to the counts.
#[derive(Clone, Debug)]
pub struct Context {
    /// Resident bytes by page size.
    pub mapped: Known<BTreeMap<u64, u64>>,
    pub has_hypervisor: Option<bool>,
}

/// One interval.
#[derive(Clone, Debug)]
pub struct Report {
    pub seconds: f64,
    pub is_last: bool,
    pub set: &'static str,
    pub model: Model,
    pub notes: Vec<&'static str>,
    /// What the counts of each row are counts of.
    pub slots: Vec<Slot>,
    /// Biggest first.
    pub rows: Vec<Row>,
    pub total: Row,
    pub effective: Option<Effective>,
    pub gaps: Vec<Gap>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Who {
    Kind(Kind),
    Thread { tid: i32, name: String, kind: Kind },
    Total,
}

/// Whether rows are kinds of threads or threads.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    Kind,
    Thread,
}

#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct Row {
    #[serde(skip)]
    pub who: Who,
    pub threads: usize,
    /// Scaled, all modes that are counted.
    #[serde(serialize_with = "or_null")]
    #[schemars(with = "Option<f64>")]
    pub cycles: Known<f64>,
    /// Both sides, all modes: a share of this row's cycles.
    #[serde(rename = "time_share", serialize_with = "or_null")]
    #[schemars(with = "Option<f64>")]
    pub time: Known<f64>,
    /// The share of time in which the counter that ran least was counting; `None`: no thread ran.
    #[serde(rename = "least_running_share")]
    pub running_share: Option<f64>,
    pub modes: Vec<ModeFigures>,
    /// As they were counted, one for each slot.
    #[serde(skip)]
    pub counts: Vec<Option<Count>>,
}

#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct ModeFigures {
    pub mode: Mode,
    #[serde(serialize_with = "or_null")]
    #[schemars(with = "Option<f64>")]
    pub cycles: Known<f64>,
    pub sides: Vec<SideFigures>,
}

#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct SideFigures {
    pub side: Side,
    #[serde(flatten)]
    pub walks: Walks,
    /// How long one walk was under way, where the processor counts that.
    #[serde(rename = "cycles_per_walk")]
    pub cycles_each: Option<f64>,
    #[serde(rename = "by_reload_size")]
    pub pages: Vec<PageFigures>,
}

#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct PageFigures {
    /// The page size of the TLB's entry; `None`: this processor does not report it.
    pub page_bytes: Option<u64>,
    #[serde(flatten)]
    pub walks: Walks,
}

/// Walks of the page tables in the interval, scaled.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct Walks {
    #[serde(rename = "walks", serialize_with = "or_null")]
    #[schemars(with = "Option<f64>")]
    pub count: Known<f64>,
    #[serde(rename = "walks_per_second", serialize_with = "or_null")]
    #[schemars(with = "Option<f64>")]
    pub per_second: Known<f64>,
    /// A share of the row's cycles.
    #[serde(rename = "time_share", serialize_with = "or_null")]
    #[schemars(with = "Option<f64>")]
    pub time: Known<f64>,
}

/// Java does not run this many cycles in user mode without one walk on the data side: the counter is there, but something
/// (KVM's PMU event filter) keeps it from counting.
const CYCLES_WITH_A_WALK: f64 = 1e10;

/// The table of one interval.
pub fn report(
    interval: &Interval,
    set: &EventSet,
    slots: &[Slot],
    kinds: &Kinds,
    by: By,
    context: &Context,
) -> Report {
    let mut gaps = interval.gaps.clone();
    let maker = Maker { set, slots, seconds: interval.seconds, is_filtered: false };
    let all: Vec<&ThreadCounts> = interval.threads.iter().collect();
    let mut total = maker.row(Who::Total, &all);
    let is_filtered = is_filtered(set, &total);
    let maker = Maker { is_filtered, ..maker };
    if is_filtered {
        gaps.push(filtered());
        total = maker.row(Who::Total, &all);
    }
    let mut rows: Vec<Row> = match by {
        By::Kind => by_kind(interval, kinds)
            .into_iter()
            .map(|(kind, threads)| maker.row(Who::Kind(kind), &threads))
            .collect(),
        By::Thread => all.iter().map(|thread| maker.row(who(thread, kinds), &[thread])).collect(),
    };
    rows.sort_by(|a, b| b.weight().total_cmp(&a.weight()).then_with(|| a.who.cmp(&b.who)));
    gaps.extend(model::gaps(set, slots, context));
    let effective = context.mapped.as_ref().ok().and_then(|mapped| {
        let reloads = total.reloads(Side::Data);
        effective(mapped, &reloads, context.has_hypervisor)
    });
    Report {
        seconds: interval.seconds,
        is_last: interval.is_last,
        set: set.name,
        model: set.model,
        notes: set.notes.clone(),
        slots: slots.to_vec(),
        rows,
        total,
        effective,
        gaps,
    }
}

fn by_kind<'a>(interval: &'a Interval, kinds: &Kinds) -> BTreeMap<Kind, Vec<&'a ThreadCounts>> {
    let mut sorted: BTreeMap<Kind, Vec<&ThreadCounts>> = BTreeMap::new();
    for thread in &interval.threads {
        sorted.entry(kinds.of(thread.tid, &thread.name).0).or_default().push(thread);
    }
    sorted
}

fn who(thread: &ThreadCounts, kinds: &Kinds) -> Who {
    let (kind, name) = kinds.of(thread.tid, &thread.name);
    Who::Thread { tid: thread.tid, name: name.to_string(), kind }
}

fn is_filtered(set: &EventSet, total: &Row) -> bool {
    let counts_walks = set.has(|meaning| matches!(meaning, Meaning::Walks(Side::Data, _)));
    let user = total.modes.iter().find(|mode| mode.mode == Mode::User);
    let cycles = user.and_then(|user| user.cycles.clone().ok()).unwrap_or(0.0);
    let walks = user.and_then(|user| user.side(Side::Data)?.walks.count.clone().ok());
    counts_walks && walks == Some(0.0) && cycles >= CYCLES_WITH_A_WALK
}

fn filtered() -> Gap {
    Gap::new("walks, data side", Why::NotInThisKernel).hint(
        "the counters exist but count nothing: the hypervisor filters these events; ask the host's owner to let them through",
    )
}

struct Maker<'a> {
    set: &'a EventSet,
    slots: &'a [Slot],
    seconds: f64,
    is_filtered: bool,
}

impl Maker<'_> {
    fn row(&self, who: Who, threads: &[&ThreadCounts]) -> Row {
        let counts: Vec<Option<Count>> = (0..self.slots.len()).map(|slot| sum(threads, slot)).collect();
        let mut modes: Vec<Mode> = self.slots.iter().map(|slot| slot.mode).collect();
        modes.sort_unstable();
        modes.dedup();
        let cycles: Known<f64> = modes.iter().map(|mode| self.cycles(&counts, *mode)).sum();
        let modes: Vec<ModeFigures> = modes
            .into_iter()
            .map(|mode| ModeFigures {
                mode,
                cycles: self.cycles(&counts, mode),
                sides: Side::ALL.iter().map(|side| self.side(&counts, mode, *side, &cycles)).collect(),
            })
            .collect();
        let times = modes.iter().flat_map(|mode| &mode.sides).map(|side| side.walks.time.clone());
        let time = times.sum::<Known<f64>>().map(|time| time.min(1.0));
        let shares = counts.iter().flatten().filter_map(|count| count.running_share());
        let running_share =
            shares.fold(None, |least: Option<f64>, share| Some(least.map_or(share, |it| it.min(share))));
        Row { who, threads: threads.len(), modes, cycles, time, running_share, counts }
    }

    /// The mean over the groups, each of which counts them.
    fn cycles(&self, counts: &[Option<Count>], mode: Mode) -> Known<f64> {
        let of_mode = self.slots.iter().zip(counts);
        let cycles: Vec<f64> = of_mode
            .filter(|(slot, _)| slot.mode == mode && slot.event.meaning == Meaning::Cycles)
            .filter_map(|(_, count)| count.and_then(Count::scaled))
            .collect();
        match cycles.len() {
            0 => Err(Gap::new("cycles", Why::NotInThisKernel)),
            number => Ok(cycles.iter().sum::<f64>() / number as f64),
        }
    }

    /// The events of this meaning, each scaled by its own time. An event that is in the set but could not be opened, or did
    /// not run, makes the sum a gap.
    fn scaled(&self, counts: &[Option<Count>], mode: Mode, meaning: Meaning) -> Known<f64> {
        let expected = self.set.groups.iter().flat_map(|group| group.iter());
        let expected = expected.filter(|event| event.meaning == meaning).count();
        let found: Vec<f64> = self
            .with(mode, meaning)
            .filter_map(|index| counts.get(index).copied().flatten().and_then(Count::scaled))
            .collect();
        if expected == 0 || found.len() < expected {
            return Err(Gap::new(format!("{meaning:?}"), Why::NotInThisKernel));
        }
        Ok(found.iter().sum())
    }

    /// Cycles of this meaning as a share of the cycles that the same group counted.
    fn share(&self, counts: &[Option<Count>], mode: Mode, meaning: Meaning) -> Known<f64> {
        // For the check of what is missing.
        self.scaled(counts, mode, meaning)?;
        let shares = self.with(mode, meaning).map(|index| {
            let cycles = cycles_slot(self.slots, self.slots[index].group)?;
            let (part, whole) = (counts[index]?.raw, counts[cycles]?.raw);
            Some(if part == 0 { 0.0 } else { part as f64 / (whole.max(1) as f64) })
        });
        let share: Option<f64> = shares.sum();
        share.ok_or_else(|| Gap::new(format!("{meaning:?}"), Why::NotInThisKernel))
    }

    fn with(&self, mode: Mode, meaning: Meaning) -> impl Iterator<Item = usize> {
        let slots = self.slots.iter().enumerate();
        slots
            .filter(move |(_, slot)| slot.mode == mode && slot.event.meaning == meaning)
            .map(|(index, _)| index)
    }
}

/// One slot summed over threads; an unknown value is left out, and reported elsewhere.
fn sum(threads: &[&ThreadCounts], slot: usize) -> Option<Count> {
    let known = threads.iter().filter_map(|thread| thread.counts.get(slot).copied().flatten());
    known.fold(None, |sum: Option<Count>, count| {
        let mut sum = sum.unwrap_or_default();
        sum += count;
        Some(sum)
    })
}

impl Row {
    /// What puts a row before another: cycles lost at most, and cycles where that is not known.
    fn weight(&self) -> f64 {
        let cycles = self.cycles.as_ref().copied().unwrap_or(0.0);
        // A fraction of the cycles orders the rows when nothing is known to be lost.
        cycles * (1e-9 + self.time.as_ref().copied().unwrap_or(0.0))
    }

    /// By page size, all modes; walks of unknown size are left out.
    pub fn reloads(&self, side: Side) -> BTreeMap<u64, f64> {
        let mut reloads = BTreeMap::new();
        let sides = self.modes.iter().filter_map(|mode| mode.side(side));
        for page in sides.flat_map(|side| &side.pages) {
            if let (Some(bytes), Ok(walks)) = (page.page_bytes, &page.walks.count) {
                *reloads.entry(bytes).or_default() += walks;
            }
        }
        reloads
    }
}

impl ModeFigures {
    pub fn side(&self, side: Side) -> Option<&SideFigures> {
        self.sides.iter().find(|figures| figures.side == side)
    }
}

#[cfg(test)]
#[path = "tlb/tests.rs"]
mod tests;
