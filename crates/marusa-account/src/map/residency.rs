//! Gives every span its share of the pages: resident, swapped, shared, by page size. A page that several owners share is
//! split by bytes; a page of shared memory that is mapped at several addresses counts at the first of them.

use super::split;
use super::types::{Figures, Span};
use crate::base::{Bytes, Covered, Range};
use crate::os::maps::Mapping;
use crate::os::page_kind::PageKind;
use crate::os::pagemap::PageRun;
use crate::snapshot::Snapshot;
use std::collections::HashMap;

/// Until now the shares of a span know only what they reserve.
pub fn fill(spans: &mut [Span], snapshot: &Snapshot) {
    let wholes = whole(spans, snapshot);
    for (span, whole) in spans.iter_mut().zip(wholes) {
        split::split(&whole, &mut span.shares);
    }
}

/// The figures of each span, for any owner.
fn whole(spans: &[Span], snapshot: &Snapshot) -> Vec<Figures> {
    let mappings = &snapshot.os.mappings;
    let mut aliases = Aliases::new(mappings);
    let mut reserved = |span: &Span| Figures {
        reserved: span.range.bytes(),
        committed: aliases.committed(&mappings[span.mapping], span.mapping, span.range),
        ..Figures::default()
    };
    let mut figures: Vec<Figures> = spans.iter().map(&mut reserved).collect();
    let Ok(runs) = &snapshot.os.pages else { return figures };
    let sizes = snapshot.os.page_sizes.as_ref().and_then(|sizes| sizes.as_ref().ok());
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
            match sizes {
                Some(sizes) => sizes.each(piece, run, mapping, |piece, kind| visit(piece, Some(kind))),
                None => visit(piece, None),
            }
        }
    }
    figures
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
pub struct Aliases {
    /// Mappings whose file and offsets another shared mapping has too: index to file.
    files: HashMap<usize, usize>,
    /// By file.
    committed: Vec<Covered>,
    counted: Vec<Covered>,
}

impl Aliases {
    pub fn new(mappings: &[Mapping]) -> Aliases {
        let mut by_file: HashMap<(&str, u64), Vec<usize>> = HashMap::new();
        for (index, mapping) in mappings.iter().enumerate() {
            if mapping.is_file() && mapping.rights.shared {
                by_file.entry((&mapping.device, mapping.inode)).or_default().push(index);
            }
        }
        let mut files = HashMap::new();
        let mut count = 0;
        for indexes in by_file.into_values().filter(|indexes| indexes.len() > 1) {
            files.extend(indexes.into_iter().map(|index| (index, count)));
            count += 1;
        }
        Aliases {
            files,
            committed: vec![Covered::default(); count],
            counted: vec![Covered::default(); count],
        }
    }

    /// Which of the files that are mapped more than once this mapping is of, counted from 0, and where in it `piece` lies.
    pub fn place(&self, mapping: &Mapping, index: usize, piece: Range) -> Option<(usize, Range)> {
        if !mapping.rights.shared {
            return None;
        }
        let file = *self.files.get(&index)?;
        let start = mapping.offset.saturating_add(piece.start.0 - mapping.range.start.0);
        Some((file, Range::of(start, start.saturating_add(piece.bytes()))))
    }

    /// The bytes of a piece that are committed and were not at an address before.
    fn committed(&mut self, mapping: &Mapping, index: usize, piece: Range) -> Bytes {
        match self.place(mapping, index, piece) {
            _ if !mapping.rights.any() => 0,
            Some((file, offsets)) => offsets.bytes() - self.committed[file].add(offsets),
            None => piece.bytes(),
        }
    }

    /// Notes the pages of `piece`; returns how many of its bytes were counted before, at another address.
    fn count(&mut self, mapping: &Mapping, index: usize, piece: Range, run: &PageRun) -> Bytes {
        match self.place(mapping, index, piece) {
            Some((file, offsets)) if run.is_present() => self.counted[file].add(offsets),
            _ => 0,
        }
    }
}
