//! The account over time: what of it is steady, how far runs of the same program differ, and whether the memory of the JIT
//! compiler and what malloc holds after it was freed mirror each other.
//!
//! Source: "A Study of Java's Non-Java Memory" (OOPSLA 2010): Apache DayTrader on WebSphere under 30 client threads for 10 minutes,
//! heap at most 256 MB; DaCapo bloat with a heap of 13 MB.

use super::Machine;
use super::http_load::HttpLoad;
use super::rounds::Mean;
use crate::base::{Bytes, Gap, word_of};
use crate::map::area::{Area, PaperArea};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// What is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Program {
    /// The server under load
    #[value(name = "daytrader")]
    DayTrader,
    /// Scala's compiler
    Compiler,
    /// Lucene indexes texts
    Lucene,
    /// H2, statements of SQL
    H2,
    /// Xalan transforms XML
    Xalan,
    /// PMD checks Java sources
    Pmd,
}

impl Program {
    pub fn title(self) -> &'static str {
        match self {
            Program::DayTrader => "DayTrader on TomEE",
            Program::Compiler => "Scala's compiler",
            Program::Lucene => "Lucene, an index of texts",
            Program::H2 => "H2, a database in memory",
            Program::Xalan => "Xalan, XSLT",
            Program::Pmd => "PMD, a checker of Java sources",
        }
    }

    /// A server under load; all others are batch programs, which run again and again: in place of DaCapo, which no registry has.
    pub fn is_server(self) -> bool {
        self == Program::DayTrader
    }
}

impl fmt::Display for Program {
    fn fmt(&self, into: &mut fmt::Formatter) -> fmt::Result {
        into.write_str(&word_of(self))
    }
}

/// What was asked for, and where.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Settings {
    pub machine: Machine,
    pub jdk: String,
    pub programs: Vec<Program>,
    pub runs: usize,
    pub seconds: f64,
    pub interval_seconds: f64,
    pub heap_bytes: Bytes,
    pub batch_heap_bytes: Bytes,
    pub clients: u32,
    pub options: Vec<String>,
}

/// The account at one moment, in resident bytes.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Sample {
    /// Since the load, or the program, began.
    pub seconds: f64,
    pub took_ms: f64,
    pub areas: BTreeMap<Area, Bytes>,
    pub kernel_resident_bytes: Option<Bytes>,
    pub threads: usize,
    /// The target changed while it was read, and reading it again did not help.
    pub is_torn: bool,
}

impl Sample {
    fn of(&self, row: Row) -> Bytes {
        let areas = self.areas.iter().filter(|(area, _)| Row::of(**area) == row);
        areas.map(|(_, bytes)| *bytes).sum()
    }
}

/// One run of a program.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Run {
    pub program: Program,
    /// From 1.
    pub run: usize,
    pub interval_seconds: f64,
    /// How long it was to be looked at; less where the program ended, or marusa was interrupted.
    pub wanted_seconds: f64,
    pub is_complete: bool,
    pub jvm_options: Vec<String>,
    pub samples: Vec<Sample>,
    pub load: Option<HttpLoad>,
    /// Share of one CPU, over the whole time; `None`: it was not known.
    pub cpu_share: Option<f64>,
    /// What the program says it did: "12 runs in 57.1 s".
    pub said: Option<String>,
    pub gaps: Vec<Gap>,
}

/// A row of the paper's table, and the figures shown with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, JsonSchema, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Row {
    JavaHeap,
    Unattributed,
    #[serde(untagged)]
    Paper(PaperArea),
}

impl Row {
    pub fn of(area: Area) -> Row {
        match area.paper() {
            Some(paper) => Row::Paper(paper),
            None if area == Area::JavaHeap => Row::JavaHeap,
            None => Row::Unattributed,
        }
    }

    pub fn title(self) -> &'static str {
        match self {
            Row::JavaHeap => "Java heap",
            Row::Paper(area) => area.title(),
            Row::Unattributed => "unattributed",
        }
    }

    /// The key in JSON and CSV.
    pub fn name(self) -> String {
        word_of(&self)
    }

    /// The Java heap first, what is unattributed last.
    pub fn all() -> Vec<Row> {
        let paper = PaperArea::ALL.iter().map(|area| Row::Paper(*area));
        std::iter::once(Row::JavaHeap).chain(paper).chain([Row::Unattributed]).collect()
    }

    /// What the paper says of it for DayTrader on WebSphere; its figures are in pictures, so the words are all there is.
    pub fn published(self) -> &'static str {
        match self {
            Row::Paper(PaperArea::ClassMetadata) => "largest from the start",
            Row::Paper(PaperArea::JvmWork) => "large; up at 30 s (direct buffers)",
            Row::Paper(PaperArea::MallocFreed) => "third largest",
            Row::Paper(PaperArea::JitWork) => "jumps at times",
            _ => "",
        }
    }
}

/// The published figures of DayTrader, among them the memory without the Java heap.
#[derive(Clone, Copy, Debug, JsonSchema, Serialize)]
pub struct Published {
    pub non_java_mb_after_9_minutes: u64,
    pub threads: usize,
    pub clients: u32,
}

pub const PUBLISHED: Published = Published { non_java_mb_after_9_minutes: 210, threads: 155, clients: 30 };

impl Run {
    pub fn seconds(&self) -> Vec<f64> {
        self.samples.iter().map(|sample| sample.seconds).collect()
    }

    /// In bytes, one number a sample.
    pub fn series(&self, row: Row) -> Vec<f64> {
        self.samples.iter().map(|sample| sample.of(row) as f64).collect()
    }

    /// `None`: all but the Java heap.
    fn of_row(&self, row: Option<Row>) -> Vec<f64> {
        if let Some(row) = row {
            return self.series(row);
        }
        let of = |sample: &Sample| -> Bytes {
            sample.areas.iter().filter(|(area, _)| **area != Area::JavaHeap).map(|(_, bytes)| *bytes).sum()
        };
        self.samples.iter().map(|sample| of(sample) as f64).collect()
    }

    pub fn took_ms_median(&self) -> Option<f64> {
        let mut took: Vec<f64> = self.samples.iter().map(|sample| sample.took_ms).collect();
        took.sort_by(f64::total_cmp);
        took.get(took.len() / 2).copied()
    }
}

/// One row of the steady state.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct Steady {
    /// `None`: all but the Java heap.
    #[serde(rename = "area", serialize_with = "area")]
    #[schemars(with = "String")]
    pub row: Option<Row>,
    /// The mean of the last tenth of the time.
    pub late_bytes: f64,
    pub low_bytes: f64,
    pub high_bytes: f64,
    pub mean_bytes: f64,
}

fn area<S: serde::Serializer>(row: &Option<Row>, into: S) -> Result<S::Ok, S::Error> {
    into.serialize_str(&row.map_or("all_but_java_heap".to_string(), Row::name))
}

/// What is the first tenth of the time, in which the program gets warm, is left out; the rest is the steady state.
pub const WARM_UP_SHARE: f64 = 0.1;
pub const LATE_SHARE: f64 = 0.9;

/// Each row, and the sum without the Java heap last; empty where nothing was seen after the warm-up.
pub fn steady(run: &Run) -> Vec<Steady> {
    let of = |row: Option<Row>| {
        let series = run.of_row(row);
        let from = |share: f64| {
            let begin = share * run.wanted_seconds;
            let first = run.samples.partition_point(|sample| sample.seconds < begin);
            series[first..].to_vec()
        };
        let (steady, late) = (from(WARM_UP_SHARE), from(LATE_SHARE));
        // A run that ended early has no last tenth: its last moment stands for it.
        let late = if late.is_empty() { steady.last().copied().into_iter().collect() } else { late };
        Some(Steady {
            row,
            late_bytes: mean(&late)?,
            low_bytes: steady.iter().copied().reduce(f64::min)?,
            high_bytes: steady.iter().copied().reduce(f64::max)?,
            mean_bytes: mean(&steady)?,
        })
    };
    Row::all().into_iter().map(Some).chain([None]).filter_map(of).collect()
}

/// One row over all runs of the same program.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct OverRuns {
    /// `None`: all but the Java heap.
    #[serde(rename = "area", serialize_with = "area")]
    #[schemars(with = "String")]
    pub row: Option<Row>,
    /// Of each run the mean of the last tenth of its time.
    pub late_bytes: Mean,
    pub late_low_bytes: f64,
    pub late_high_bytes: f64,
    /// How far two runs are apart at the same moment: the mean over all moments and all pairs of runs. `None`: no two were seen.
    pub distance_bytes: Option<f64>,
    /// The distance in parts of the mean of both; `None`: that is 0, or no two were seen.
    pub relative: Option<f64>,
}

/// Each row, and the sum without the Java heap last; moments are compared in the order of samples.
pub fn over_runs(runs: &[&Run]) -> Vec<OverRuns> {
    let late: Vec<Steady> = runs.iter().flat_map(|run| steady(run)).collect();
    let of = |row: Option<Row>| {
        let late: Vec<f64> = late.iter().filter(|one| one.row == row).map(|one| one.late_bytes).collect();
        let all: Vec<Vec<f64>> = runs.iter().map(|run| run.of_row(row)).collect();
        let pairs =
            all.iter().enumerate().flat_map(|(at, one)| all[at + 1..].iter().map(move |it| (one, it)));
        let moments = pairs.flat_map(|(one, other)| one.iter().zip(other));
        let (distances, middles): (Vec<f64>, Vec<f64>) =
            moments.map(|(a, b)| ((a - b).abs(), (a + b) / 2.0)).unzip();
        let distance_bytes = mean(&distances);
        let middle = mean(&middles).filter(|middle| *middle > 0.0);
        Some(OverRuns {
            row,
            late_bytes: Mean::of(late.iter().copied())?,
            late_low_bytes: late.iter().copied().reduce(f64::min)?,
            late_high_bytes: late.iter().copied().reduce(f64::max)?,
            distance_bytes,
            relative: distance_bytes.zip(middle).map(|(distance, middle)| distance / middle),
        })
    };
    Row::all().into_iter().map(Some).chain([None]).filter_map(of).collect()
}

/// How JIT work and malloc-then-freed go together: 1 alike, -1 as a mirror, 0 not at all.
#[derive(Clone, Copy, Debug, PartialEq, JsonSchema, Serialize)]
pub struct Mirror {
    /// Correlation of the amounts at each moment.
    pub levels: Option<f64>,
    /// Correlation of the changes from one moment to the next: here a mirror image shows even while both grow.
    pub changes: Option<f64>,
}

pub fn mirror(run: &Run) -> Mirror {
    let work = run.series(Row::Paper(PaperArea::JitWork));
    let freed = run.series(Row::Paper(PaperArea::MallocFreed));
    let changes = |series: &[f64]| series.windows(2).map(|pair| pair[1] - pair[0]).collect::<Vec<f64>>();
    Mirror { levels: correlation(&work, &freed), changes: correlation(&changes(&work), &changes(&freed)) }
}

/// Pearson's; `None`: fewer than three pairs, or one of them never changes.
fn correlation(one: &[f64], other: &[f64]) -> Option<f64> {
    if one.len() < 3 || one.len() != other.len() {
        return None;
    }
    let (mean_one, mean_other) = (mean(one)?, mean(other)?);
    let sum = |of: &dyn Fn(f64, f64) -> f64| {
        one.iter().zip(other).map(|(a, b)| of(a - mean_one, b - mean_other)).sum::<f64>()
    };
    let spread = (sum(&|a, _| a * a) * sum(&|_, b| b * b)).sqrt();
    (spread > 0.0).then(|| sum(&|a, b| a * b) / spread)
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// All samples of all runs, a line each: what a spreadsheet reads.
pub fn csv(runs: &[Run]) -> String {
    let mut text = "program,run,seconds,threads".to_string();
    Row::all().iter().for_each(|row| text.push_str(&format!(",{}_bytes", row.name())));
    text.push('\n');
    for run in runs {
        for sample in &run.samples {
            text.push_str(&format!("{},{},{:.3},{}", run.program, run.run, sample.seconds, sample.threads));
            Row::all().iter().for_each(|row| text.push_str(&format!(",{}", sample.of(*row))));
            text.push('\n');
        }
    }
    text
}

#[cfg(test)]
#[path = "account_series_tests.rs"]
mod tests;
