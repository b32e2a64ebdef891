//! One run of one arm, as it is saved: a line of JSON each, so that a comparison can be interrupted at any moment and nothing that
//! was measured is lost.

use super::arm_pages::Verified;
use crate::act::trial::Ended;
use crate::base::{Bytes, Gap};
use crate::map::Area;
use crate::os::busy::Others;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

pub const SCHEMA: &str = "marusa/compare-trial/1";

#[derive(Clone, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Trial {
    pub schema: String,
    /// From 1, over all arms.
    pub number: usize,
    /// From 1.
    pub block: usize,
    pub arm: String,
    pub started: String,
    /// Why it does not count; `None`: it does.
    pub left_out: Option<String>,
    /// By the key of the figure.
    pub figures: BTreeMap<String, f64>,
    /// The user's own figures, in the order in which they are shown.
    pub own: Vec<Figure>,
    /// `None`: the program did not start.
    pub ended: Option<Ended>,
    /// What others on the machine took while it ran; `None`: not known.
    #[serde(default)]
    pub others: Option<Others>,
    pub heap_pages: Option<Verified>,
    pub account_end: Option<ResidentAreas>,
    pub account_peak: Option<ResidentAreas>,
    /// Where its output went, next to the file of the trials.
    pub output: Option<String>,
    pub notes: Vec<String>,
    pub gaps: Vec<Gap>,
}

impl Trial {
    /// One that has just begun.
    pub fn new(number: usize, block: usize, arm: &str, started: String) -> Trial {
        Trial { schema: SCHEMA.to_string(), number, block, arm: arm.to_string(), started, ..Trial::default() }
    }

    /// The first reason counts.
    pub fn leave_out(&mut self, why: impl Into<String>) {
        self.left_out.get_or_insert_with(|| why.into());
    }

    pub fn own_figure(&mut self, figure: Figure, value: f64) {
        self.figures.insert(figure.key.clone(), value);
        self.own.push(figure);
    }

    pub fn counts(&self) -> bool {
        self.left_out.is_none()
    }

    pub fn figure(&self, key: &str) -> Option<f64> {
        self.figures.get(key).copied().filter(|value| value.is_finite())
    }
}

/// The account of the trial's JVM at one moment.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct ResidentAreas {
    /// After the program was started.
    pub at_ms: u64,
    /// With pages of hugetlb.
    pub resident_bytes: Bytes,
    /// Areas with a byte in memory, in the order of the account.
    pub areas: Vec<AreaBytes>,
}

#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct AreaBytes {
    pub area: Area,
    pub resident_bytes: Bytes,
}

impl ResidentAreas {
    /// The mean of several, area by area.
    pub fn mean<'a>(accounts: impl Iterator<Item = &'a ResidentAreas>) -> Option<ResidentAreas> {
        let all: Vec<&ResidentAreas> = accounts.collect();
        let count = all.len() as u64;
        if count == 0 {
            return None;
        }
        let mean = |of: &dyn Fn(&ResidentAreas) -> u64| all.iter().map(|one| of(one)).sum::<u64>() / count;
        let areas = Area::ALL
            .iter()
            .map(|area| AreaBytes { area: *area, resident_bytes: mean(&|one| one.of(*area)) });
        let areas: Vec<AreaBytes> = areas.filter(|one| one.resident_bytes > 0).collect();
        let resident_bytes = areas.iter().map(|one| one.resident_bytes).sum();
        Some(ResidentAreas { at_ms: mean(&|one| one.at_ms), resident_bytes, areas })
    }

    pub fn of(&self, area: Area) -> Bytes {
        self.areas.iter().find(|one| one.area == area).map_or(0, |one| one.resident_bytes)
    }
}

/// What a figure is a number of.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    Seconds,
    Milliseconds,
    Bytes,
    Count,
    Percent,
    /// The user's own; empty where he says none.
    Own(String),
}

/// One figure that trials have.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct Figure {
    /// In `Trial::figures`.
    pub key: String,
    pub name: String,
    pub unit: Unit,
    pub lower_is_better: bool,
}

impl Figure {
    /// One of the user's.
    pub fn own(name: &str, unit: Option<&str>, lower_is_better: bool) -> Figure {
        let unit = Unit::Own(unit.unwrap_or_default().to_string());
        Figure { key: format!("metric:{name}"), name: name.to_string(), unit, lower_is_better }
    }

    fn ours(key: &str, name: &str, unit: Unit) -> Figure {
        Figure { key: key.to_string(), name: name.to_string(), unit, lower_is_better: true }
    }
}

pub const WALL: &str = "wall_seconds";
pub const CPU: &str = "cpu_seconds";
pub const USER: &str = "user_seconds";
pub const SYSTEM: &str = "system_seconds";
pub const MINOR_FAULTS: &str = "minor_faults";
pub const MAJOR_FAULTS: &str = "major_faults";
pub const PEAK_RESIDENT: &str = "peak_resident_bytes";
pub const GC_PAUSES: &str = "gc_pauses";
pub const GC_PAUSE_TIME: &str = "gc_pause_ms";
pub const GC_PAUSE_P99: &str = "gc_pause_p99_ms";
pub const GC_PAUSE_MAX: &str = "gc_pause_max_ms";
pub const TRANSLATION: &str = "translation_percent";

/// The figures of these trials: the user's own first, then what every comparison measures.
pub fn all_figures(trials: &[Trial]) -> Vec<Figure> {
    let mut all: Vec<Figure> = Vec::new();
    for figure in trials.iter().flat_map(|trial| &trial.own) {
        if !all.iter().any(|known| known.key == figure.key) {
            all.push(figure.clone());
        }
    }
    all.extend(figures());
    all
}

/// What every comparison measures, next to the user's own.
pub fn figures() -> Vec<Figure> {
    let rows = [
        (WALL, "wall time", Unit::Seconds),
        (CPU, "CPU time", Unit::Seconds),
        (USER, "  of it user", Unit::Seconds),
        (SYSTEM, "  of it system", Unit::Seconds),
        (TRANSLATION, "in translation", Unit::Percent),
        (MINOR_FAULTS, "minor faults", Unit::Count),
        (MAJOR_FAULTS, "major faults", Unit::Count),
        (PEAK_RESIDENT, "peak RSS", Unit::Bytes),
        (GC_PAUSES, "GC stops", Unit::Count),
        (GC_PAUSE_TIME, "GC stopped", Unit::Milliseconds),
        (GC_PAUSE_P99, "GC stop, p99", Unit::Milliseconds),
        (GC_PAUSE_MAX, "longest stop", Unit::Milliseconds),
    ];
    rows.iter().map(|(key, name, unit)| Figure::ours(key, name, unit.clone())).collect()
}
