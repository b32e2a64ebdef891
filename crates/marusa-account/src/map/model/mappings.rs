//! `map --by mapping` for programs: every span of the address space in order, with its owner or owners.

use super::Amounts;
use crate::base::Bytes;
use crate::map::why::{CauseId, Reason};
use crate::map::{Area, MemoryMap, Owner, Share, Span};
use crate::os::maps::Mapping;
use crate::os::smaps::{self, Smap};
use crate::snapshot::Snapshot;
use schemars::JsonSchema;
use serde::Serialize;

#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct MappingAccount {
    #[serde(flatten)]
    pub amounts: Amounts,
    pub start: String,
    pub end: String,
    pub rights: String,
    pub path: String,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub smaps: Option<OfSmaps>,
    /// `None`: of several owners, which `shares` names.
    pub area: Option<Area>,
    pub part: Option<String>,
    pub how: Option<String>,
    /// The biggest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub shares: Vec<ShareAccount>,
    /// What holds back most of its small pages.
    pub why_not_larger: Option<CauseId>,
}

/// Where smaps was read.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct OfSmaps {
    pub anonymous_bytes: Bytes,
    pub mapping: Option<WholeMapping>,
}

/// What the kernel says of the whole mapping that a span lies in.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct WholeMapping {
    pub start: String,
    pub end: String,
    pub locked_bytes: Bytes,
    pub thp_eligible: Option<bool>,
    pub flags: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct ShareAccount {
    #[serde(flatten)]
    pub amounts: Amounts,
    pub area: Area,
    pub part: String,
    pub how: String,
}

impl MappingAccount {
    /// One for each span; `reasons` are those of `why::by_span`.
    pub fn all(snapshot: &Snapshot, map: &MemoryMap, reasons: &[Option<Reason>]) -> Vec<MappingAccount> {
        let reasons = reasons.iter().map(|reason| reason.as_ref().map(Reason::id));
        let spans = map.spans.iter().zip(reasons.chain(std::iter::repeat(None)));
        spans.map(|(span, why)| MappingAccount::of(snapshot, map, span, why)).collect()
    }

    fn of(snapshot: &Snapshot, map: &MemoryMap, span: &Span, why: Option<CauseId>) -> MappingAccount {
        let is_swap_known = snapshot.os.status.swapped_bytes.is_some();
        let mapping = &snapshot.os.mappings[span.mapping];
        let figures = span.figures();
        let smaps = snapshot.os.smaps.as_ref().map(|smaps| {
            let smap = smaps.as_ref().ok().and_then(|smaps| smaps::find(smaps, mapping.range.start));
            OfSmaps {
                anonymous_bytes: figures.anonymous,
                mapping: smap.map(|smap| WholeMapping::of(mapping, smap)),
            }
        });
        let share = |share: &Share| ShareAccount::of(&map.owners[share.owner], share, is_swap_known);
        let mut shares: Vec<ShareAccount> = span.shares.iter().map(share).collect();
        shares.sort_by_key(|share| std::cmp::Reverse(share.amounts.reserved_bytes));
        let only = if shares.len() == 1 { shares.pop() } else { None };
        let (area, part, how) = match only {
            Some(share) => (Some(share.area), Some(share.part), Some(share.how)),
            None => (None, None, None),
        };
        MappingAccount {
            amounts: Amounts::of(figures, None, is_swap_known),
            start: span.range.start.to_string(),
            end: span.range.end.to_string(),
            rights: mapping.rights.text(),
            path: mapping.path.clone(),
            smaps,
            area,
            part,
            how,
            shares,
            why_not_larger: why,
        }
    }
}

impl WholeMapping {
    fn of(mapping: &Mapping, smap: &Smap) -> WholeMapping {
        WholeMapping {
            start: mapping.range.start.to_string(),
            end: mapping.range.end.to_string(),
            locked_bytes: smap.locked_bytes,
            thp_eligible: smap.thp_eligible,
            flags: smap.flags.split_ascii_whitespace().map(str::to_string).collect(),
        }
    }
}

impl ShareAccount {
    fn of(owner: &Owner, share: &Share, is_swap_known: bool) -> ShareAccount {
        ShareAccount {
            amounts: Amounts::of(share.figures.clone(), None, is_swap_known),
            area: owner.area,
            part: owner.part.clone(),
            how: owner.how.clone(),
        }
    }
}
