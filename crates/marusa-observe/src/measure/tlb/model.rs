//! How walks become time, by what the processor counts.
//!
//! Intel: cycles with a walk under way, loads and stores and code each by itself. The core does other work in the meantime, so that
//! is an upper bound of the stall. Arm: cycles stalled by a miss, as they are. Both are given to page sizes in proportion to
//! the walks. AMD and older Arm count walks only: no constant makes time of them, for what a walk costs depends on what waits for
//! it, a chain of dependent loads 30 times as long as independent ones.

use super::{Context, Maker, PageFigures, SideFigures, Walks, filtered};
use crate::base::{Gap, Known, Why};
use crate::measure::counters::Slot;
use crate::measure::events::{EventSet, Meaning, Model, Side};
use crate::measure::interval::Count;
use crate::os::perf::Mode;
use std::collections::BTreeSet;

impl Maker<'_> {
    pub fn side(&self, counts: &[Option<Count>], mode: Mode, side: Side, cycles: &Known<f64>) -> SideFigures {
        let walks: Vec<(Option<u64>, Known<f64>)> = self
            .sizes(side)
            .into_iter()
            .map(|size| {
                let walks = match self.is_filtered && side == Side::Data {
                    true => Err(filtered()),
                    false => self.scaled(counts, mode, Meaning::Walks(side, size)),
                };
                (size, walks)
            })
            .collect();
        let sum: Known<f64> = match walks.is_empty() {
            true => Err(Gap::new("walks", Why::NotInThisKernel)),
            false => walks.iter().map(|(_, walks)| walks.clone()).sum(),
        };
        let time = self.time(counts, mode, side, cycles, &sum);
        let page = |(page_bytes, walks): (Option<u64>, Known<f64>)| {
            let time = in_proportion(&walks, &sum, &time);
            PageFigures { page_bytes, walks: self.walks(walks, time) }
        };
        SideFigures {
            pages: walks.into_iter().map(page).collect(),
            cycles_each: self.cycles_each(counts, mode, side, &sum),
            walks: self.walks(sum, time),
            side,
        }
    }

    fn walks(&self, count: Known<f64>, time: Known<f64>) -> Walks {
        Walks { per_second: count.clone().map(|count| count / self.seconds), count, time }
    }

    /// Of the row's cycles, not of this mode's.
    fn time(
        &self,
        counts: &[Option<Count>],
        mode: Mode,
        side: Side,
        cycles: &Known<f64>,
        walks: &Known<f64>,
    ) -> Known<f64> {
        let meaning = match self.set.model {
            Model::WalkActive => Meaning::WalkActive(side),
            Model::Stall => Meaning::Stall(side),
            Model::Walks | Model::None => {
                return match (walks.clone()?, self.set.model.untimed()) {
                    (walks, Some(untimed)) if walks > 0.0 => Err(untimed),
                    _ => Ok(0.0),
                };
            }
        };
        let share = self.share(counts, mode, meaning)?;
        let own = self.cycles(counts, mode)?;
        Ok(ratio(own * share.min(1.0), cycles.clone()?))
    }

    fn sizes(&self, side: Side) -> BTreeSet<Option<u64>> {
        let events = self.set.groups.iter().flat_map(|group| group.iter());
        let size = |meaning| match meaning {
            Meaning::Walks(of, size) if of == side => Some(size),
            _ => None,
        };
        events.filter_map(|event| size(event.meaning)).collect()
    }

    fn cycles_each(
        &self,
        counts: &[Option<Count>],
        mode: Mode,
        side: Side,
        walks: &Known<f64>,
    ) -> Option<f64> {
        let pending = self.scaled(counts, mode, Meaning::WalkPending(side)).ok()?;
        let walks = *walks.as_ref().ok()?;
        (walks >= 1.0).then(|| pending / walks)
    }
}

fn ratio(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

fn in_proportion(walks: &Known<f64>, all: &Known<f64>, lost: &Known<f64>) -> Known<f64> {
    match walks {
        Ok(0.0) => Ok(0.0),
        _ => walks.clone().and_then(|walks| Ok(lost.clone()? * ratio(walks, all.clone()?))),
    }
}

/// What this model cannot say, whatever was counted.
pub fn gaps(set: &EventSet, slots: &[Slot], context: &Context) -> Vec<Gap> {
    let has_walks = slots.iter().any(|slot| matches!(slot.event.meaning, Meaning::Walks(..)));
    let untimed = set.model.untimed().filter(|_| has_walks);
    untimed.into_iter().chain(context.mapped.as_ref().err().cloned()).collect()
}
