//! Gives every span its share of the pages: resident, swapped, shared, by page size. A page that several owners share is
//! split by bytes; a page of shared memory that is mapped at several addresses counts at the first of them.

use super::split;
use super::types::{Figures, Span};
use crate::base::{Bytes, PAGE, Range};
use crate::os::maps::Mapping;
use crate::os::page_kind::{PageKind, PageSizes, SizeRun};
use crate::os::pagemap::PageRun;
use crate::snapshot::Snapshot;
use std::collections::{BTreeMap, HashMap};

/// Until now the shares of a span know only what they reserve.
pub fn fill(spans: &mut [Span], snapshot: &Snapshot) {
    let wholes = whole(spans, snapshot);
    for (span, whole) in spans.iter_mut().zip(wholes) {
        split::split(&whole, &mut span.shares);
    }
}

/// The figures of each span, whoever owns it.
fn whole(spans: &[Span], snapshot: &Snapshot) -> Vec<Figures> {
    let mappings = &snapshot.os.mappings;
    let reserved = |span: &Span| {
        let bytes = span.range.bytes();
        let committed = if mappings[span.mapping].rights.any() { bytes } else { 0 };
        Figures { reserved: bytes, committed, ..Figures::default() }
    };
    let mut figures: Vec<Figures> = spans.iter().map(reserved).collect();
    let Ok(runs) = &snapshot.os.pages else { return figures };
    let mut aliases = Aliases::new(mappings);
    let mut sizes = match &snapshot.os.page_sizes {
        Some(Ok(sizes)) => Some(Sizes { sizes, rest: &sizes.runs }),
        _ => None,
    };
    let mut first = 0;
    for run in runs {
        while first < spans.len() && spans[first].range.end <= run.range.start {
            first += 1;
        }
        let inside = spans[first..].iter().take_while(|span| span.range.start < run.range.end);
        for (span, figures) in inside.zip(&mut figures[first..]) {
            let piece = run.range.intersect(span.range);
            let mapping = &mappings[span.mapping];
            let mut visit = |piece: Range, kind: Option<PageKind>| {
                let seen_before = aliases.count(mapping, span.mapping, piece, run);
                add(figures, run, piece.bytes(), seen_before, kind);
            };
            match &mut sizes {
                Some(sizes) => sizes.each(piece, run, mapping, visit),
                None => visit(piece, None),
            }
        }
    }
    figures
}

/// The kinds of pages, in the order of addresses.
struct Sizes<'a> {
    sizes: &'a PageSizes,
    rest: &'a [SizeRun],
}

impl Sizes<'_> {
    /// Cuts `piece` of a run of pages where the kind changes. Pieces come in the order of addresses.
    fn each(
        &mut self,
        piece: Range,
        run: &PageRun,
        mapping: &Mapping,
        mut visit: impl FnMut(Range, Option<PageKind>),
    ) {
        let plain = self.sizes.kind_of_run(run, mapping);
        let passed = self.rest.iter().take_while(|size| size.range.end <= piece.start).count();
        self.rest = &self.rest[passed..];
        let mut at = piece.start;
        let is_small = run.is_present() && run.page_bytes as Bytes == PAGE;
        for size in self.rest.iter().take_while(|size| is_small && size.range.start < piece.end) {
            let here = size.range.intersect(piece);
            if at < here.start {
                visit(Range::new(at, here.start), Some(plain));
            }
            visit(here, Some(size.kind));
            at = here.end;
        }
        if at < piece.end {
            visit(Range::new(at, piece.end), Some(plain));
        }
    }
}

fn add(figures: &mut Figures, run: &PageRun, bytes: Bytes, seen_before: Bytes, kind: Option<PageKind>) {
    if run.is_swapped() {
        figures.swapped += bytes;
    }
    if !run.is_present() {
        return;
    }
    let counted = bytes - seen_before;
    figures.aliased += seen_before;
    figures.resident += counted;
    if !run.is_file() {
        figures.anonymous += counted;
    }
    let page_bytes = kind.map_or(run.page_bytes as Bytes, PageKind::page_bytes);
    *figures.by_page_size.entry(page_bytes).or_default() += counted;
    if let Some(kind) = kind {
        *figures.by_page_kind.entry(kind).or_default() += counted;
    }
    match run.mapped_times {
        0 => {
            figures.sharing_unknown += counted;
            figures.proportional += counted;
        }
        times => figures.proportional += bytes / times as u64,
    }
}

/// Which file offsets of shared mappings were counted already.
struct Aliases {
    /// Mappings whose file and offsets another shared mapping has too: index to file.
    files: HashMap<usize, usize>,
    counted: Vec<Intervals>,
}

impl Aliases {
    fn new(mappings: &[Mapping]) -> Aliases {
        let mut by_file: HashMap<(&str, u64), Vec<usize>> = HashMap::new();
        for (index, mapping) in mappings.iter().enumerate() {
            if mapping.is_file() && mapping.rights.shared {
                by_file.entry((&mapping.device, mapping.inode)).or_default().push(index);
            }
        }
        let mut aliases = Aliases { files: HashMap::new(), counted: Vec::new() };
        for indexes in by_file.into_values().filter(|indexes| indexes.len() > 1) {
            for index in indexes {
                aliases.files.insert(index, aliases.counted.len());
            }
            aliases.counted.push(Intervals::default());
        }
        aliases
    }

    /// Notes the pages of `piece`; returns how many of its bytes were counted before, at another address.
    fn count(&mut self, mapping: &Mapping, index: usize, piece: Range, run: &PageRun) -> Bytes {
        match self.files.get(&index) {
            Some(file) if run.is_present() => {
                let start = mapping.offset.saturating_add(piece.start.0 - mapping.range.start.0);
                self.counted[*file].add(start, start.saturating_add(piece.bytes()))
            }
            _ => 0,
        }
    }
}

/// A set of disjoint half-open intervals: start to end.
#[derive(Default)]
struct Intervals(BTreeMap<u64, u64>);

impl Intervals {
    /// Adds one and returns how much of it was there already.
    fn add(&mut self, mut start: u64, mut end: u64) -> u64 {
        let (wanted_start, wanted_end) = (start, end);
        let mut there = 0;
        while let Some((&old_start, &old_end)) = self.0.range(..=end).next_back() {
            if old_end < start {
                break;
            }
            there += old_end.min(wanted_end).saturating_sub(old_start.max(wanted_start));
            self.0.remove(&old_start);
            start = start.min(old_start);
            end = end.max(old_end);
        }
        self.0.insert(start, end);
        there
    }
}

#[cfg(test)]
mod tests {
    use super::Intervals;

    #[test]
    fn an_interval_counts_once_however_it_is_cut() {
        let mut set = Intervals::default();
        assert_eq!(set.add(0, 100), 0);
        assert_eq!(set.add(50, 150), 50);
        assert_eq!(set.add(300, 400), 0);
        assert_eq!(set.add(100, 350), 100);
        assert_eq!(set.add(0, 400), 400);
        assert_eq!(set.0.len(), 1);
    }
}
