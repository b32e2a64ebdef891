//! What larger pages would give, and what they would cost: an interval of the CPU time, and memory by area. Never one number:
//! what a walk costs hangs on how many wait at once, and which memory the walks were for is not counted.
//!
//! The saving of one walk is the cost on 4 KiB pages less that on 2 MiB pages, both measured on this machine. Where the TLB holds
//! large pages whole the second is about nothing, and walks become fewer; where a hypervisor splinters them it is not, and
//! walks become shorter. One formula serves both.

use super::calibration::{Calibration, Cost};
use super::events::Model;
pub use super::layout::{Layout, layout};
use super::price::{AreaPrice, GIGANTIC, MOVED};
use super::tlb::{Report, Row, Who};
use super::walk_costs::Side;
use crate::base::{Bytes, Gap, Known, Why};
use crate::map::Area;
use crate::os::machine::{base_page, huge_page};
use crate::os::perf::Mode;

/// Less than this part of what is resident on small pages is not worth a word.
const LITTLE: u64 = 100;

/// At least, at most.
pub type Interval = (f64, f64);

/// What a JVM can be configured to use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    Transparent,
    HugeTlb2M,
    HugeTlb1G,
}

impl Choice {
    pub const ALL: [Choice; 3] = [Choice::Transparent, Choice::HugeTlb2M, Choice::HugeTlb1G];

    pub fn name(self) -> &'static str {
        match self {
            Choice::Transparent => "thp_2m",
            Choice::HugeTlb2M => "hugetlb_2m",
            Choice::HugeTlb1G => "hugetlb_1g",
        }
    }
}

/// What was counted of one kind of threads.
#[derive(Clone, Debug, PartialEq)]
pub struct Counted {
    /// "application", "gc".
    pub kind: String,
    /// CPU time that passed while it was counted, in nanoseconds.
    pub cpu_ns: f64,
    /// User walks of each side; `None`: this processor does not count them.
    pub instruction_walks: Option<f64>,
    pub data_walks: Option<f64>,
    /// Share of CPU time that was spent in translation, 0 to 1, where the processor counts that.
    pub translation: Option<Interval>,
}

/// What one choice would bring.
#[derive(Clone, Debug, PartialEq)]
pub struct Prediction {
    pub choice: Choice,
    pub gain: Known<Gain>,
    /// By area, the ones that change.
    pub areas: Vec<(Area, AreaPrice)>,
    /// Why there is no price, if there is none.
    pub price_gap: Option<Gap>,
    /// HugeTLB 2 MiB and 1 GiB pages that the JVM takes at its start.
    pub pool: Option<[(u64, u64); 2]>,
    pub notes: Vec<String>,
}

impl Prediction {
    /// Memory that becomes resident on top, over all areas.
    pub fn lost(&self) -> (Bytes, Bytes) {
        self.areas.iter().fold((0, 0), |sum: (Bytes, Bytes), (_, area)| {
            (sum.0.saturating_add(area.lost().0), sum.1.saturating_add(area.lost().1))
        })
    }
}

/// Shares of CPU time, in percent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Gain {
    pub percent: Interval,
    /// The share of all CPU time that each kind of threads would save.
    pub by_kind: Vec<(String, Interval)>,
}

/// The predictions for every choice. `counted` and `calibration` may be missing: then there is a price, and no gain.
pub fn predict(
    layout: &Layout,
    counted: &Known<Vec<Counted>>,
    calibration: &Known<Calibration>,
) -> Vec<Prediction> {
    let one = |choice| {
        let is_refused = choice == Choice::HugeTlb1G && !layout.takes_gigantic;
        let refused = is_refused.then(|| {
            Gap::new("1 GiB pages", Why::NotInThisRuntime)
                .hint("ZGC takes 2 MiB pages only, and the VM exits with any other size")
        });
        let (areas, pool) = if is_refused { (Vec::new(), None) } else { price_of(layout, choice) };
        let gain = match &refused {
            Some(gap) => Err(gap.clone()),
            None => gain_of(layout, choice, counted, calibration),
        };
        let reserved = if choice == Choice::Transparent { None } else { layout.reserved.as_ref().err() };
        let price_gap = refused.or_else(|| layout.pages.as_ref().err().or(reserved).cloned());
        Prediction {
            choice,
            gain,
            areas,
            price_gap,
            pool,
            notes: notes(choice, layout, counted.is_err(), calibration),
        }
    };
    Choice::ALL.into_iter().map(one).collect()
}

fn notes(
    choice: Choice,
    layout: &Layout,
    is_uncounted: bool,
    calibration: &Known<Calibration>,
) -> Vec<String> {
    let mut notes = Vec::new();
    let moved_small: Bytes = moved(layout).map(|price| price.movable).sum();
    let resident: Bytes = layout.areas.values().map(|price| price.now).sum();
    // How much walks for the rest could save is known only where they are counted.
    let is_little = moved_small <= resident / LITTLE;
    let is_left = layout.pages.is_ok() && !(moved_small == 0 || is_uncounted && is_little);
    let footprint = of_side(layout, Side::Data).1;
    if let (true, Ok(calibration)) =
        (is_left && footprint > 0 && is_uncounted && choice != Choice::HugeTlb1G, calibration)
        && let Ok((low, high)) = saved_by_walk_ns(calibration, Side::Data, footprint, choice)
    {
        let source = match calibration.is_of_a_busy_machine() {
            true => "a calibration of a busy machine (run `marusa tlb --calibrate` again)",
            false => "calibration",
        };
        // A million walks a second, each a nanosecond shorter, are a thousandth of a CPU.
        notes.push(format!(
            "a walk for data would take {low:.1} to {high:.1} ns less on 2 MiB pages, by {source}, for the {} MiB of the \
             heap and the collector's tables that are on small pages: if there are a million a second, {:.1} to {:.1} % of a CPU",
            footprint.div_ceil(1 << 20),
            low / 10.0,
            high / 10.0
        ));
    }
    if let (true, Err(gap)) = (is_uncounted, calibration) {
        notes.push(gap.to_string());
    }
    if layout.pages.is_ok() && !is_left {
        let rest = if moved_small == 0 { "" } else { ", except for less than 1 % of what is resident" };
        notes.push(format!(
            "nothing is left to gain: the heap, the collector's tables and the code cache are on large pages already{rest}"
        ));
    }
    if calibration.as_ref().is_ok_and(|calibration| calibration.is_splintered() == Some(true)) {
        notes.push("the host splinters large pages: walks become shorter, not fewer".to_string());
    }
    if choice == Choice::HugeTlb1G && layout.takes_gigantic {
        notes.push(
            "walks of 1 GiB pages were not measured: they cost no more than those of 2 MiB pages, and may vanish"
                .to_string(),
        );
    }
    notes
}

fn moved(layout: &Layout) -> impl Iterator<Item = &AreaPrice> {
    MOVED.iter().filter_map(|area| layout.areas.get(area))
}

type Pool = Option<[(u64, u64); 2]>;

fn price_of(layout: &Layout, choice: Choice) -> (Vec<(Area, AreaPrice)>, Pool) {
    if layout.pages.is_err() {
        return (Vec::new(), None);
    }
    let of = |area: Area| layout.areas.get(&area).copied().unwrap_or_default();
    let heap_page = match choice {
        Choice::Transparent => return (MOVED.iter().map(|area| (*area, of(*area))).collect(), None),
        Choice::HugeTlb2M => huge_page(),
        Choice::HugeTlb1G => GIGANTIC,
    };
    let Ok(reserved) = &layout.reserved else { return (Vec::new(), None) };
    let mut pool = [(0_u64, 0_u64); 2];
    let mut areas = Vec::new();
    for (area, after) in reserved.after(heap_page) {
        let now = of(area);
        // A table that is too small for a large page stays as it is.
        let after = if area == Area::Gc { (now.now, after.1.max(now.now)) } else { after };
        areas.push((area, AreaPrice { after, ..now }));
    }
    for (area, after) in reserved.after(heap_page) {
        let (row, page) = match area {
            Area::JavaHeap if heap_page == GIGANTIC => (1, GIGANTIC),
            _ => (0, huge_page()),
        };
        pool[row].0 = pool[row].0.saturating_add(after.0 / page);
        pool[row].1 = pool[row].1.saturating_add(after.1 / page);
    }
    (areas, Some(pool))
}

fn gain_of(
    layout: &Layout,
    choice: Choice,
    counted: &Known<Vec<Counted>>,
    calibration: &Known<Calibration>,
) -> Known<Gain> {
    let counted = counted.as_ref().map_err(Gap::clone)?;
    layout.pages.clone()?;
    let cpu_ns: f64 = counted.iter().map(|kind| kind.cpu_ns).sum();
    let moved_small: Bytes = moved(layout).map(|price| price.movable).sum();
    if !(cpu_ns > 0.0 && cpu_ns.is_finite()) {
        return Err(Gap::new("gain of larger pages", Why::NotRead)
            .hint("the target did not run during the measurement"));
    }
    let mut gain = Gain::default();
    for kind in counted {
        let saved = if moved_small == 0 { (0.0, 0.0) } else { saved_ns(layout, choice, kind, calibration)? };
        let percent = (saved.0 / cpu_ns * 100.0, saved.1 / cpu_ns * 100.0);
        gain.percent = (gain.percent.0 + percent.0, gain.percent.1 + percent.1);
        gain.by_kind.push((kind.kind.clone(), percent));
    }
    Ok(gain)
}

/// CPU time that one kind of threads would not have spent.
fn saved_ns(
    layout: &Layout,
    choice: Choice,
    kind: &Counted,
    calibration: &Known<Calibration>,
) -> Known<Interval> {
    // What was measured in translation is the most that can be saved.
    let most = kind.translation.map_or(1.0, |(_, most)| most.clamp(0.0, 1.0)) * kind.cpu_ns;
    let Ok(calibration) = calibration else {
        return match (kind.translation, calibration) {
            (Some(_), _) => Ok((0.0, most)),
            (None, Err(gap)) => Err(gap.clone()),
            (None, Ok(_)) => Err(Gap::new("cost of a walk", Why::NotRead)),
        };
    };
    let mut saved = (0.0, 0.0);
    let sides = [(Side::Data, kind.data_walks), (Side::Instruction, kind.instruction_walks)];
    if sides.iter().all(|(_, walks)| walks.is_none()) {
        return Err(Gap::new("walks", Why::NotInThisKernel).hint("this processor does not count walks"));
    }
    for (side, walks) in sides.iter().filter_map(|(side, walks)| Some((*side, (*walks)?))) {
        let (share, footprint) = of_side(layout, side);
        let (low, high) = saved_by_walk_ns(calibration, side, footprint, choice)?;
        saved = (saved.0 + walks * share * low, saved.1 + walks * high);
    }
    Ok((saved.0.clamp(0.0, most), saved.1.clamp(0.0, most)))
}

/// The share of this side's small pages that would become large, and how many bytes these are. That walks are for memory as it
/// is resident is the low end; that they are all for what would become large is the high end.
fn of_side(layout: &Layout, side: Side) -> (f64, Bytes) {
    let is_of_side = |area: &Area| match side {
        Side::Data => !matches!(area, Area::Code | Area::JitCode),
        Side::Instruction => matches!(area, Area::Code | Area::JitCode),
    };
    let of_side = || layout.areas.iter().filter(|(area, _)| is_of_side(area));
    let all: Bytes = of_side().map(|(_, price)| price.on_small).sum();
    let moved: Bytes =
        of_side().filter(|(area, _)| MOVED.contains(area)).map(|(_, price)| price.movable).sum();
    (moved as f64 / all.max(1) as f64, moved)
}

/// What one walk takes less, in nanoseconds, for memory of this size: from the least that independent accesses would save to the
/// most that dependent ones would.
pub fn saved_by_walk_ns(
    calibration: &Calibration,
    side: Side,
    footprint: Bytes,
    choice: Choice,
) -> Known<Interval> {
    let near = calibration.costs_near(Some(footprint));
    // Where the cost for instructions was not measured, that of data stands for it.
    let side = if near.iter().any(|cost| cost.side == side) { side } else { Side::Data };
    let of = |page_bytes: Bytes| near.iter().filter(move |c| c.side == side && c.page_bytes == page_bytes);
    let mut saved: Option<Interval> = None;
    for small in of(base_page()) {
        let large = of(huge_page()).find(|large| large.footprint_bytes == small.footprint_bytes);
        let Some((low, high)) = large.map(|large| saved_between(small, large, choice)) else { continue };
        let (least, most) = saved.unwrap_or((low, high));
        saved = Some((least.min(low), most.max(high)));
    }
    saved.ok_or_else(|| {
        Gap::new("what a walk costs on 2 MiB pages", Why::NotRead)
            .hint("the calibration got no large pages: see its own gaps with `marusa tlb --calibrate`")
    })
}

fn saved_between(small: &Cost, large: &Cost, choice: Choice) -> Interval {
    let low = (small.low_ns.middle - large.low_ns.middle).max(0.0);
    let high = match choice {
        Choice::HugeTlb1G => small.high_ns.middle,
        _ => (small.high_ns.middle - large.high_ns.middle).max(0.0),
    };
    (low.min(high), high.max(low))
}

/// What `predict` needs of a table: user mode only, since the kernel's own memory is not what would move.
pub fn counted(report: &Report) -> Vec<Counted> {
    let by_kind: Vec<&Row> = report.rows.iter().filter(|row| matches!(row.who, Who::Kind(_))).collect();
    let rows = if by_kind.is_empty() { vec![&report.total] } else { by_kind };
    let is_measured = matches!(report.model, Model::WalkActive | Model::Stall);
    let one = |row: &Row| {
        let user = row.modes.iter().find(|figures| figures.mode == Mode::User);
        let walks = |side: Side| user?.side(side)?.walks.as_ref().ok().copied();
        Counted {
            kind: match &row.who {
                Who::Kind(kind) => kind.word().to_string(),
                _ => "all".to_string(),
            },
            // The time in which a thread ran: its counters are enabled then, and share the processor's.
            cpu_ns: row.counts.iter().flatten().map(|count| count.enabled_ns).max().unwrap_or(0) as f64,
            instruction_walks: walks(Side::Instruction),
            data_walks: walks(Side::Data),
            translation: row.time.as_ref().ok().filter(|_| is_measured).map(|time| (time.low, time.high)),
        }
    };
    rows.into_iter().map(one).collect()
}

#[cfg(test)]
#[path = "predict_tests.rs"]
mod tests;
