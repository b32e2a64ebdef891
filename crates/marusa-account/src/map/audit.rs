//! Our account held against what the JVM says of itself when asked: figure by figure, and mapping by mapping. Pure.
//!
//! The two rarely measure the same thing, so every row says what it compares, and a row whose sides differ by nature says
//! why. Only the comparison by range is exact: for each byte in memory that the JVM labels, is our label one that the
//! JVM's may stand for?

pub mod malloc;
mod ranges;
mod sums;
pub mod tags;

pub use ranges::{Agreement, Disagreement, Label};

use super::area::Area;
use super::types::MemoryMap;
use crate::base::Bytes;
use crate::jvm::hotspot::report::heap_info::HeapInfo;
use crate::jvm::hotspot::report::malloc_info::MallocInfo;
use crate::jvm::hotspot::report::nmt::Summary;
use schemars::JsonSchema;
use serde::{Serialize, Serializer};

/// What the JVM said; the parts that it could not or was not asked to say are `None`.
#[derive(Clone, Debug, Default)]
pub struct Said {
    pub nmt: Option<Summary>,
    /// From `System.map` or from the detail report: see `Label`.
    pub labels: Option<Vec<Label>>,
    pub heap: Option<HeapInfo>,
    pub malloc: Option<MallocInfo>,
}

/// The comparison.
#[derive(Clone, Debug, Default)]
pub struct Audit {
    pub rows: Vec<AuditRow>,
    pub agreement: Option<Agreement>,
    /// The audit of the blocks behind the account: see `malloc::compare`.
    pub malloc: Option<malloc::MallocAudit>,
}

/// One figure, ours and theirs.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize)]
pub struct AuditRow {
    /// `None`: memory that we see only as malloc's, whole.
    #[serde(serialize_with = "area_or_malloc")]
    #[schemars(with = "String")]
    pub area: Option<Area>,
    pub ours: Figure,
    pub ours_bytes: Option<Bytes>,
    /// "NMT Class + Metaspace", "heap info".
    pub theirs: String,
    pub theirs_figure: Figure,
    pub theirs_bytes: Bytes,
    /// The unit that theirs was printed in: no difference below it means anything.
    #[serde(skip)]
    pub unit_bytes: Bytes,
    /// Why the two need not be equal.
    pub reason: Option<&'static str>,
    /// Ours less theirs.
    pub difference_bytes: Option<i64>,
}

fn area_or_malloc<S: Serializer>(area: &Option<Area>, into: S) -> Result<S::Ok, S::Error> {
    into.serialize_str(area.map_or("malloc", |area| area.name()))
}

/// What a figure counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Figure {
    Reserved,
    Committed,
    Resident,
    #[serde(rename = "in use")]
    InUse,
    /// Blocks got from malloc.
    Malloc,
}

impl Figure {
    pub fn name(self) -> &'static str {
        match self {
            Figure::Reserved => "reserved",
            Figure::Committed => "committed",
            Figure::Resident => "resident",
            Figure::InUse => "in use",
            Figure::Malloc => "malloc",
        }
    }
}

impl AuditRow {
    /// Whether both sides are the same to within the unit of theirs and `share` of theirs.
    pub fn agrees(&self, share: f64) -> Option<bool> {
        let apart = self.difference_bytes?.unsigned_abs();
        Some(apart <= self.unit_bytes || apart as f64 <= self.theirs_bytes as f64 * share)
    }
}

pub fn audit(map: &MemoryMap, said: &Said) -> Audit {
    let mut rows = Vec::new();
    if let Some(nmt) = &said.nmt {
        sums::of_nmt(map, nmt, &mut rows);
    }
    if let Some(heap) = &said.heap {
        sums::of_heap_info(map, heap, &mut rows);
    }
    Audit { rows, agreement: said.labels.as_ref().map(|labels| ranges::compare(map, labels)), malloc: None }
}

#[cfg(test)]
#[path = "audit/tests.rs"]
mod tests;
