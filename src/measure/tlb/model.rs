//! How walks become time, by what the processor counts.
//!
//! Intel: cycles with a walk under way, loads and stores and code each by itself. The core does other work in the meantime, so that
//! is an upper bound of the stall. Arm: cycles stalled by a miss, as they are. Both are given to page sizes in proportion to
//! the walks. AMD and older Arm: walks times the cheapest and the dearest walk that the calibration found for the page sizes
//! that it may have been of.

use super::{Context, Maker, PageFigures, SideFigures, filtered};
use crate::base::{Gap, Known, Why};
use crate::measure::counters::Slot;
use crate::measure::events::{EventSet, Meaning, Model, SIZE_1G, SIZE_2M, SIZE_4K};
use crate::measure::interval::Count;
use crate::measure::walk_costs::{Side, WalkCosts};
use crate::os::perf::Mode;
use std::collections::BTreeSet;
use std::iter::Sum;

/// From at least to at most; both the same where it is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, schemars::JsonSchema, serde::Serialize)]
pub struct Bracket {
    pub low: f64,
    pub high: f64,
}

impl Bracket {
    pub fn exactly(value: f64) -> Bracket {
        Bracket { low: value, high: value }
    }
    pub fn times(self, factor: f64) -> Bracket {
        Bracket { low: self.low * factor, high: self.high * factor }
    }
    pub fn capped(self, most: f64) -> Bracket {
        Bracket { low: self.low.min(most), high: self.high.min(most) }
    }
}

impl Sum for Bracket {
    fn sum<I: Iterator<Item = Bracket>>(brackets: I) -> Bracket {
        brackets.fold(Bracket::default(), |sum, next| Bracket {
            low: sum.low + next.low,
            high: sum.high + next.high,
        })
    }
}

/// Mapped memory on pages of a size counts from this share of all on.
const MAPPED_SHARE_MIN: f64 = 0.01;

impl Maker<'_> {
    pub fn side(&self, counts: &[Option<Count>], mode: Mode, side: Side, cycles: &Known<f64>) -> SideFigures {
        let sizes = self.sizes(side);
        let walks: Vec<(Option<u64>, Known<f64>)> = sizes
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
        let pages: Vec<PageFigures> = match self.direct(side) {
            Some(meaning) => {
                // Of the row's cycles, not of this mode's.
                let lost = self.share(counts, mode, meaning).and_then(|share| {
                    let own = self.cycles(counts, mode)?;
                    Ok(Bracket::exactly(ratio(own * share.min(1.0), cycles.clone()?)))
                });
                return SideFigures {
                    pages: walks
                        .into_iter()
                        .map(|(size, walks)| in_proportion(size, walks, &sum, &lost))
                        .collect(),
                    cycles_each: self.cycles_each(counts, mode, side, &sum),
                    walks: sum,
                    time: lost,
                    side,
                };
            }
            None => walks.into_iter().map(|(size, walks)| self.costed(side, size, walks, cycles)).collect(),
        };
        let time = match sum {
            Ok(_) => pages
                .iter()
                .map(|page| page.time.clone())
                .sum::<Known<Bracket>>()
                .map(|time| time.capped(1.0)),
            Err(ref gap) => Err(gap.clone()),
        };
        SideFigures { side, walks: sum, time, cycles_each: None, pages }
    }

    fn sizes(&self, side: Side) -> BTreeSet<Option<u64>> {
        let events = self.set.groups.iter().flat_map(|group| group.iter());
        let size = |meaning| match meaning {
            Meaning::Walks(of, size) if of == side => Some(size),
            _ => None,
        };
        events.filter_map(|event| size(event.meaning)).collect()
    }

    /// What counts the time itself.
    fn direct(&self, side: Side) -> Option<Meaning> {
        match self.set.model {
            Model::WalkActive => Some(Meaning::WalkActive(side)),
            Model::Stall => Some(Meaning::Stall(side)),
            Model::Calibrated | Model::None => None,
        }
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

    fn costed(&self, side: Side, size: Option<u64>, walks: Known<f64>, cycles: &Known<f64>) -> PageFigures {
        let time = walks.clone().and_then(|walks| {
            if walks == 0.0 {
                return Ok(Bracket::default());
            }
            let cost = self.cost(side, size)?;
            Ok(cost.times(ratio(walks, cycles.clone()?)).capped(1.0))
        });
        PageFigures { page_bytes: size, walks, time }
    }

    /// What one walk costs that ended with an entry of this size.
    fn cost(&self, side: Side, size: Option<u64>) -> Known<Bracket> {
        let costs = self.context.costs.as_ref().map_err(Gap::clone)?;
        let may_be = self.may_be_mapped(side, size, costs);
        let bracket = costs.bracket(side, &may_be);
        let (low, high) = bracket.ok_or_else(|| not_calibrated(side, size))?;
        Ok(Bracket { low, high })
    }

    /// The page sizes, of the ones that were measured, that the mapping may have: under a hypervisor an entry may be smaller than
    /// what the guest mapped, and the walk is as short as that is large.
    fn may_be_mapped(&self, side: Side, size: Option<u64>, costs: &WalkCosts) -> Vec<u64> {
        let entry = size.map_or(SIZE_4K, class);
        let is_exact = size.is_some() && self.context.has_hypervisor == Some(false);
        let mapped = self.context.mapped.as_ref().ok().filter(|_| side == Side::Data);
        let total: u64 =
            mapped.iter().flat_map(|sizes| sizes.values()).fold(0, |sum, next| sum.saturating_add(*next));
        let is_mapped = |measured: u64| {
            let of_class =
                mapped.iter().flat_map(|sizes| sizes.iter()).filter(|(size, _)| class(**size) == measured);
            let bytes = of_class.fold(0_u64, |sum, (_, bytes)| sum.saturating_add(*bytes));
            total == 0 || bytes as f64 >= total as f64 * MAPPED_SHARE_MIN
        };
        let fits = |measured: u64| match is_exact {
            true => measured == entry,
            false => measured >= entry && is_mapped(measured),
        };
        costs.sizes(side).into_iter().filter(|measured| fits(class(*measured))).collect()
    }
}

/// The level of the page tables at which a mapping of this size ends.
fn class(size: u64) -> u64 {
    match size {
        ..SIZE_2M => SIZE_4K,
        SIZE_2M..SIZE_1G => SIZE_2M,
        _ => SIZE_1G,
    }
}

fn ratio(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

fn in_proportion(
    size: Option<u64>,
    walks: Known<f64>,
    all: &Known<f64>,
    lost: &Known<Bracket>,
) -> PageFigures {
    let time = walks.clone().and_then(|walks| {
        let all = all.clone()?;
        lost.clone().map(|lost| lost.times(ratio(walks, all)))
    });
    PageFigures { page_bytes: size, walks, time }
}

fn not_calibrated(side: Side, size: Option<u64>) -> Gap {
    let size = size.map_or("any".to_string(), |size| format!("{} KiB", size >> 10));
    Gap::new(format!("cost of a walk, {} side, {size} pages", side.word()), Why::NotRead).hint(
        "the calibration has no such pages: `marusa tlb --calibrate` measures the ones that this machine gives",
    )
}

/// What this model cannot say, whatever was counted.
pub fn gaps(set: &EventSet, slots: &[Slot], context: &Context) -> Vec<Gap> {
    let mut gaps = Vec::new();
    let has_walks = slots.iter().any(|slot| matches!(slot.event.meaning, Meaning::Walks(..)));
    if set.model == Model::Calibrated && has_walks {
        gaps.extend(context.costs.as_ref().err().cloned());
    }
    gaps.extend(context.mapped.as_ref().err().cloned());
    gaps
}
