//! The comparison byte by byte: the ranges that the JVM labels, intersected with our spans.

use super::tags;
use crate::base::{Bytes, Range};
use crate::jvm::hotspot::report::nmt::Region;
use crate::jvm::hotspot::report::system_map::Row;
use crate::map::area::Area;
use crate::map::types::{Figures, MemoryMap, Share};
use schemars::JsonSchema;
use serde::{Serialize, Serializer};

/// Disagreements that are listed; all are counted.
const LISTED_MAX: usize = 200;

/// A range with the tags the JVM gives it. `System.map` names every tag in a mapping without saying which bytes are
/// whose, so any of them will do; the regions of the detail report have one each and are the better witness.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    pub range: Range,
    /// Empty: the JVM knows nothing of this range.
    pub tags: Vec<String>,
    /// The whole range is the JVM's own. A mapping of `System.map` is not: the kernel merges neighbours, so that a block
    /// of malloc and a table of the collector may be one mapping, labelled GC.
    pub exact: bool,
}

impl From<&Row> for Label {
    fn from(row: &Row) -> Label {
        Label { range: row.range, tags: row.tags.clone(), exact: false }
    }
}

impl From<&Region> for Label {
    fn from(region: &Region) -> Label {
        Label { range: region.range, tags: vec![region.tag.clone()], exact: true }
    }
}

fn as_text<S: Serializer>(range: &Range, into: S) -> Result<S::Ok, S::Error> {
    into.collect_str(range)
}

/// How far both labels go together. All bytes are resident ones, aliases included, as the kernel counts them by mapping.
#[derive(Clone, Debug, Default, PartialEq, Eq, JsonSchema, Serialize)]
pub struct Agreement {
    /// Bytes that the JVM labels and our account knows.
    pub labelled_bytes: Bytes,
    pub agreed_bytes: Bytes,
    /// Bytes of malloc's in a mapping that the kernel made of them and of memory the JVM labels; not part of the share.
    pub merged_bytes: Bytes,
    /// Bytes that we call heap, metaspace, archive or JIT code and the JVM does not label at all; not part of the share.
    pub ours_alone_bytes: Bytes,
    /// Biggest first.
    pub disagreements: Vec<Disagreement>,
}

#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize)]
pub struct Disagreement {
    #[serde(serialize_with = "as_text")]
    #[schemars(with = "String")]
    pub range: Range,
    #[serde(rename = "resident_bytes")]
    pub bytes: Bytes,
    /// "CODE,GC"; empty where the JVM has no label.
    pub theirs: String,
    /// "malloc_unknown/malloc main arena".
    pub ours: String,
}

impl Agreement {
    /// The share of labelled bytes on which both agree; `None` when nothing is labelled.
    pub fn share(&self) -> Option<f64> {
        (self.labelled_bytes > 0).then(|| self.agreed_bytes as f64 / self.labelled_bytes as f64)
    }
}

pub fn compare(map: &MemoryMap, labels: &[Label]) -> Agreement {
    let mut labels: Vec<&Label> = labels.iter().collect();
    labels.sort_by_key(|label| label.range.start);
    let mut agreement = Agreement::default();
    let mut first = 0;
    for label in labels {
        while map.spans.get(first).is_some_and(|span| span.range.end <= label.range.start) {
            first += 1;
        }
        let inside = map.spans[first..].iter().take_while(|span| span.range.start < label.range.end);
        for (span, share) in inside.flat_map(|span| span.shares.iter().map(move |share| (span, share))) {
            agreement.count(map, label, span.range, share);
        }
    }
    agreement.disagreements.sort_by_key(|one| std::cmp::Reverse(one.bytes));
    agreement.disagreements.truncate(LISTED_MAX);
    agreement
}

impl Agreement {
    fn count(&mut self, map: &MemoryMap, label: &Label, span: Range, share: &Share) {
        let range = label.range.intersect(span);
        let bytes = resident_in(span, &share.figures, range);
        let Some(owner) = map.owners.get(share.owner).filter(|_| bytes > 0) else { return };
        let known = label.tags.iter().any(|tag| !tags::areas(tag).is_empty());
        let agrees = label.tags.iter().any(|tag| tags::areas(tag).contains(&owner.area));
        // Proven by the allocator's own structures, so that no tag of a whole mapping overrides it.
        if known && !agrees && !label.exact && !span.covers(label.range) && owner.instance.is_mallocs() {
            self.merged_bytes += bytes;
            return;
        }
        if known {
            self.labelled_bytes += bytes;
        }
        if agrees {
            self.agreed_bytes += bytes;
            return;
        }
        if !known {
            if !is_always_tagged(owner.area) {
                return;
            }
            self.ours_alone_bytes += bytes;
        }
        self.disagreements.push(Disagreement {
            range,
            bytes,
            theirs: label.tags.join(","),
            ours: format!("{}/{}", owner.area.name(), owner.part),
        });
    }
}

/// Areas whose every mapping NMT knows, so that a range without a label is worth a sample.
fn is_always_tagged(area: Area) -> bool {
    matches!(area, Area::JavaHeap | Area::ClassMetadata | Area::CdsArchive | Area::JitCode)
}

/// The resident bytes of an owner's share of a span that lie in a part of it; in proportion where the mapping changed
/// between both reports.
fn resident_in(span: Range, share: &Figures, part: Range) -> Bytes {
    let resident = share.resident.saturating_add(share.aliased);
    if part == span || span.is_empty() {
        return resident;
    }
    let share = u128::from(resident) * u128::from(part.bytes()) / u128::from(span.bytes());
    u64::try_from(share).unwrap_or(resident)
}
