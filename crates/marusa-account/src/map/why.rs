//! Why memory is on a page smaller than it could be: every resident byte on a small page gets one reason, by the part of
//! the account that owns it. Memory that was never touched is reported too, since it has no page at all.
//!
//! The larger page is the one that an entry of the second-lowest page table maps, 2 MiB on x86-64. A block of that size can
//! only be one page if it lies whole in one mapping; that is looked at first, then what stands in the way of the mapping
//! (`context`), then the block itself.

mod blocks;
mod cause;
mod context;
mod reason;
mod required;

use super::area::Area;
use super::page_claims::Asked;
use super::split::apportion;
use super::types::{MemoryMap, Owner, Span};
use crate::base::Bytes;
use crate::os::maps::Mapping;
use crate::os::pagemap::PageRun;
use crate::snapshot::Snapshot;
use blocks::{Blocks, Zone};
pub use cause::CauseId;
use context::Context;
pub use reason::{KnownBy, Reason, at_boot, is_vms};
pub use required::{Held, has_shared_heap, held_back};
use std::collections::{BTreeMap, HashMap};

/// Bytes of one part that have one reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub area: Area,
    pub part: String,
    pub reason: Reason,
    /// On small pages; of `Reason::NeverTouched`: not in memory.
    pub bytes: Bytes,
    /// The part of `bytes` in blocks of which some was never touched.
    pub partly_touched_bytes: Bytes,
    /// The area, or `Area::MallocFreed` for the blocks of malloc that it has: the reasons of the area's own
    /// mappings do not hold for them.
    pub lies_as: Area,
    pub asked: Asked,
}

impl Finding {
    pub fn remedy(&self) -> String {
        self.reason.remedy(self.lies_as, &self.asked)
    }
}

/// Whose mapping it is: a collector's objects are in the memory of malloc, for which no flag of the JVM is.
pub fn lies_as(owner: &Owner) -> Area {
    if is_vms(owner.area) && owner.instance.is_mallocs() { Area::MallocFreed } else { owner.area }
}

/// All of them, the most bytes first; what was never touched comes last. The bytes of a part sum to what it has on small
/// pages.
pub fn findings(snapshot: &Snapshot, map: &MemoryMap) -> Vec<Finding> {
    Book::fill(snapshot, map).map_or(Vec::new(), Book::findings)
}

/// What holds back most of the small pages of each span, in the order of the spans. `None`: it has no small page.
pub fn by_span(snapshot: &Snapshot, map: &MemoryMap) -> Vec<Option<Reason>> {
    let Some(book) = Book::fill(snapshot, map) else { return vec![None; map.spans.len()] };
    book.of_spans.iter().map(|reason| Some(book.reasons[(*reason)?].clone())).collect()
}

/// Why memory has no pages of HugeTLB, though they were asked for: this number of bytes is needed.
pub fn no_hugetlb(snapshot: &Snapshot, page_bytes: Bytes, needed_bytes: Bytes) -> Reason {
    Context::new(snapshot).no_hugetlb(page_bytes, needed_bytes)
}

/// The findings while they are summed. Reasons and owners go by number: malloc's memory has a hundred thousand ranges.
struct Book<'a> {
    context: Context<'a>,
    map: &'a MemoryMap,
    reasons: Vec<Reason>,
    /// By owner and reason.
    sums: HashMap<(usize, usize), Sum>,
    /// For each span so far, the reason that holds back most of it.
    of_spans: Vec<Option<usize>>,
    /// For shared memory, what each owner has committed and what of it is not absent. Where it is mapped at several addresses,
    /// what is committed counts at one and what is in memory perhaps at another: only the sums can be held against each other.
    shared: HashMap<usize, (Bytes, Bytes)>,
}

#[derive(Clone, Copy, Default)]
struct Sum {
    bytes: Bytes,
    partly: Bytes,
}

/// What one span has on small pages for one reason.
struct Piece {
    reason: usize,
    sum: Sum,
}

impl<'a> Book<'a> {
    fn fill(snapshot: &'a Snapshot, map: &'a MemoryMap) -> Option<Book<'a>> {
        let mut rest = &snapshot.os.pages.as_ref().ok()?[..];
        let context = Context::new(snapshot);
        let (reasons, of_spans) = (Vec::new(), Vec::new());
        let mut book = Book { context, map, reasons, sums: HashMap::new(), of_spans, shared: HashMap::new() };
        for spans in map.spans.chunk_by(|a, b| a.mapping == b.mapping) {
            let mapping = &snapshot.os.mappings[spans[0].mapping];
            rest = &rest[rest.partition_point(|run| run.range.end <= mapping.range.start)..];
            let inside = rest.partition_point(|run| run.range.start < mapping.range.end);
            let (of_mapping, after) = rest.split_at(inside);
            book.add_mapping(mapping, spans, of_mapping);
            rest = after;
        }
        book.close_shared();
        Some(book)
    }

    fn number(&mut self, reason: Reason) -> usize {
        if let Some(number) = self.reasons.iter().position(|known| *known == reason) {
            return number;
        }
        self.reasons.push(reason);
        self.reasons.len() - 1
    }

    fn add_mapping(&mut self, mapping: &Mapping, spans: &[Span], mut runs: &[PageRun]) {
        let blocks = Blocks::new(mapping.range, runs, self.context.pmd_bytes);
        let mut obstacles: HashMap<(bool, Area), Option<Reason>> = HashMap::new();
        let has_own_pages = mapping.is_anonymous() || mapping.path.starts_with("/memfd:");
        for span in spans {
            runs = &runs[runs.partition_point(|run| run.range.end <= span.range.start)..];
            let area = span
                .shares
                .first()
                .map_or(Area::Unattributed, |share| lies_as(&self.map.owners[share.owner]));
            let mut pieces: Vec<Piece> = Vec::new();
            for run in runs.iter().take_while(|run| run.range.start < span.range.end) {
                if !run.is_present() || u64::from(run.page_bytes) >= self.context.pmd_bytes {
                    continue;
                }
                let obstacle = obstacles
                    .entry((run.is_file(), area))
                    .or_insert_with(|| self.context.obstacle(mapping, run.is_file(), area))
                    .clone();
                blocks.each(run, run.range.intersect(span.range), &mut |zone, bytes| {
                    let reason = self.reason(run, zone, obstacle.as_ref());
                    let reason = self.number(reason);
                    let partly = if blocks.is_partly(zone) { bytes } else { 0 };
                    note(&mut pieces, reason, Sum { bytes, partly });
                });
            }
            let by_kind = self.share_out(span, &pieces);
            let most = pieces.iter().map(|piece| (piece.sum.bytes, piece.reason)).chain(by_kind).max();
            self.of_spans.push(most.map(|(_, reason)| reason));
            if mapping.rights.write && has_own_pages {
                self.add_untouched(span, mapping.rights.shared);
            }
        }
    }

    /// A block that is not a whole one can be no huge page, whatever the settings; but a JVM that had got its hugetlb would
    /// have laid it out otherwise.
    fn reason(&self, run: &PageRun, zone: Zone, obstacle: Option<&Reason>) -> Reason {
        match (zone, obstacle) {
            (_, Some(reason)) if reason.is_of_hugetlb() => reason.clone(),
            (Zone::Outside(reason), _) => reason.clone(),
            (Zone::Block(_), Some(reason)) => reason.clone(),
            (Zone::Block(resident), None) => self.context.of_block(run.is_file(), resident),
        }
    }

    /// Divides what a span has over its owners, as their figures were divided. A folio between both sizes, or a huge one that
    /// is mapped in pieces, is a reason by itself; the largest such is given back.
    fn share_out(&mut self, span: &Span, pieces: &[Piece]) -> Option<(Bytes, usize)> {
        let mut by_kind = None;
        let weights: Vec<Bytes> = pieces.iter().map(|piece| piece.sum.bytes).collect();
        for share in &span.shares {
            let sizes = share.figures.by_page_size.range(..self.context.pmd_bytes);
            let mut small: Bytes = sizes.map(|(_, bytes)| bytes).sum();
            for (kind, bytes) in &share.figures.by_page_kind {
                if let Some(reason) = self.context.of_kind(*kind) {
                    let reason = self.number(reason);
                    self.sums.entry((share.owner, reason)).or_default().bytes += bytes;
                    small = small.saturating_sub(*bytes);
                    by_kind = by_kind.max(Some((*bytes, reason)));
                }
            }
            let parts = if pieces.is_empty() { Vec::new() } else { apportion(small, &weights) };
            for (piece, part) in pieces.iter().zip(parts) {
                let whole = u128::from(piece.sum.bytes.max(1));
                let partly = u128::from(piece.sum.partly) * u128::from(part) / whole;
                let sum = self.sums.entry((share.owner, piece.reason)).or_default();
                sum.bytes += part;
                sum.partly += partly as Bytes;
            }
        }
        by_kind
    }

    fn add_untouched(&mut self, span: &Span, is_shared: bool) {
        for share in &span.shares {
            let figures = &share.figures;
            let present = figures.resident.saturating_add(figures.swapped);
            if is_shared {
                let sum = self.shared.entry(share.owner).or_default();
                sum.0 = sum.0.saturating_add(figures.committed);
                sum.1 = sum.1.saturating_add(present);
            } else {
                self.add_never(share.owner, figures.committed, present);
            }
        }
    }

    fn close_shared(&mut self) {
        for (owner, (committed, present)) in std::mem::take(&mut self.shared) {
            self.add_never(owner, committed, present);
        }
    }

    fn add_never(&mut self, owner: usize, committed: Bytes, present: Bytes) {
        if committed > present {
            let never = self.number(Reason::NeverTouched);
            self.sums.entry((owner, never)).or_default().bytes += committed - present;
        }
    }

    fn findings(self) -> Vec<Finding> {
        let mut by_part: BTreeMap<(Area, &str, Area, &Reason), Sum> = BTreeMap::new();
        for ((owner, reason), sum) in &self.sums {
            let owner = &self.map.owners[*owner];
            let known =
                by_part.entry((owner.area, &owner.part, lies_as(owner), &self.reasons[*reason])).or_default();
            known.bytes += sum.bytes;
            known.partly += sum.partly;
        }
        let asked = self.context.asked;
        let finding = |((area, part, lies_as, reason), sum): ((Area, &str, Area, &Reason), Sum)| Finding {
            area,
            part: part.to_string(),
            reason: reason.clone(),
            bytes: sum.bytes,
            partly_touched_bytes: sum.partly,
            lies_as,
            asked,
        };
        let mut findings: Vec<Finding> =
            by_part.into_iter().filter(|(_, sum)| sum.bytes > 0).map(finding).collect();
        let is_absent = |finding: &Finding| finding.reason == Reason::NeverTouched;
        findings.sort_by_key(|finding| (is_absent(finding), std::cmp::Reverse(finding.bytes)));
        findings
    }
}

fn note(pieces: &mut Vec<Piece>, reason: usize, sum: Sum) {
    match pieces.iter_mut().find(|piece| piece.reason == reason) {
        Some(piece) => {
            piece.sum.bytes += sum.bytes;
            piece.sum.partly += sum.partly;
        }
        None => pieces.push(Piece { reason, sum }),
    }
}

#[cfg(test)]
mod tests;
