//! The place of each promised reservation, and its pages. The account names most parts; a table that it does not tell
//! apart is found by a mapping of hugetlb of its size, or by the line that the JVM has logged of it.

use super::{Look, Promise, Row, Verdict, is_kept, transparent};
use crate::base::{Bytes, Range};
use crate::map::page_use::PageUse;
use crate::map::why::{Finding, KnownBy, Reason};
use crate::map::{Area, Owner, Span};
use crate::os::machine::base_page;
use crate::os::maps::Mapping;
use crate::pages::types::{Mode, Need};
use std::collections::{BTreeMap, HashSet};

/// What a plan may call a whole area.
const WHOLE: [(&str, Area); 8] = [
    ("heap", Area::JavaHeap),
    ("javaheap", Area::JavaHeap),
    ("theheap", Area::JavaHeap),
    ("objectheap", Area::JavaHeap),
    ("codecache", Area::JitCode),
    ("reservedcodecache", Area::JitCode),
    ("jitcode", Area::JitCode),
    ("codeheaps", Area::JitCode),
];

/// gc/z/zPhysicalMemoryBacking_linux.cpp.
const ZGC_HEAP: &str = "/memfd:java_heap.hugetlb";
/// The two huge pages in which a generation of Serial may begin and end.
const LEFT_OUT_BYTES_MAX: Bytes = 4 << 20;

/// Pages of hugetlb that are mapped, by their size.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    pub pages: BTreeMap<Bytes, u64>,
}

impl Taken {
    /// The number of pages of this size.
    pub fn pages_of(&self, page_bytes: Bytes) -> u64 {
        self.pages.get(&page_bytes).copied().unwrap_or(0)
    }
    /// On pages of this size or a larger one.
    fn bytes_from(&self, page_bytes: Bytes) -> Bytes {
        let pages = self.pages.range(page_bytes..).map(|(size, pages)| size.saturating_mul(*pages));
        pages.fold(0, Bytes::saturating_add)
    }
}

/// The rows, in the order of the promise.
pub fn rows(promise: &Promise, look: &Look) -> Vec<Row> {
    let needs = joined(&promise.needs);
    let owners: Vec<Vec<usize>> = needs.iter().map(|need| owners(need, promise, look)).collect();
    let mut spent: HashSet<usize> = HashSet::new();
    for span in &look.map.spans {
        if owners.iter().any(|of_need| span.shares.iter().any(|share| of_need.contains(&share.owner))) {
            spent.insert(span.mapping);
        }
    }
    let row = |(need, owners): (Need, Vec<usize>)| {
        let small = need.page_bytes <= base_page();
        let (taken, used, place) = match owners.is_empty() {
            false => of_owners(look, &need, &owners),
            true if small => (Taken::default(), PageUse::default(), false),
            true => elsewhere(look, promise.mode, &need, &mut spent),
        };
        let excused = excused(look, &owners);
        let mut row = Row { need, owners, taken, used, missing_pages: 0, verdict: Verdict::Small };
        if !small {
            // What fills no large page of its own was never promised.
            let whole = row.need.pages.saturating_mul(row.need.page_bytes);
            let rest = row.need.bytes.saturating_sub(whole);
            judge(&mut row, promise.mode, place, excused.max(rest));
        }
        row
    };
    needs.into_iter().zip(owners).map(row).collect()
}

/// The name of the account for parts that a plan distinguishes: G1 up to JDK 17 has two mark bitmaps, a code cache three maps.
fn of_account(need: &Need) -> String {
    match (need.area, need.part.as_str()) {
        (Area::Gc, "previous mark bitmap" | "next mark bitmap") => "mark bitmap".to_string(),
        (Area::Gc, "card counts table") => "card counts".to_string(),
        (Area::JitWork, part) if part.starts_with("segment map '") => "code heap segment map".to_string(),
        (_, part) => part.to_string(),
    }
}

/// Reservations that the account does not distinguish are one row.
fn joined(needs: &[Need]) -> Vec<Need> {
    let mut joined: Vec<Need> = Vec::new();
    for need in needs {
        let need = Need { part: of_account(need), ..need.clone() };
        let is_same = |known: &&mut Need| {
            (known.area, known.page_bytes) == (need.area, need.page_bytes)
                && plain(&known.part) == plain(&need.part)
        };
        match joined.iter_mut().find(is_same) {
            Some(known) => {
                known.bytes = known.bytes.saturating_add(need.bytes);
                known.pages = known.pages.saturating_add(need.pages);
                known.pages_at_least = known.pages_at_least.saturating_add(need.pages_at_least);
            }
            None => joined.push(need),
        }
    }
    joined
}

fn judge(row: &mut Row, mode: Mode, is_found: bool, excused: Bytes) {
    let page_bytes = row.need.page_bytes;
    let promised = row.need.pages_at_least.min(row.need.pages).saturating_mul(page_bytes);
    let resident = row.used.resident_bytes;
    let missing = match mode {
        Mode::Thp if is_kept(transparent(&row.used).saturating_add(excused), resident) => 0,
        Mode::Thp => resident.saturating_sub(transparent(&row.used)).saturating_sub(excused),
        _ => promised.saturating_sub(row.taken.bytes_from(page_bytes)),
    };
    row.missing_pages = missing.div_ceil(page_bytes);
    row.verdict = match () {
        () if !is_found => Verdict::NotFound,
        () if mode == Mode::Thp && resident == 0 => Verdict::NotTouched,
        () if row.missing_pages == 0 => Verdict::Met,
        () => Verdict::NotMet,
    };
    if row.verdict == Verdict::NotFound {
        row.missing_pages = 0;
    }
}

/// Letters and digits only: "CodeHeap 'profiled nmethods'" is "code heap 'profiled nmethods'".
fn plain(name: &str) -> String {
    name.chars().filter(|letter| letter.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// The owners in the account whose memory the need means.
fn owners(need: &Need, promise: &Promise, look: &Look) -> Vec<usize> {
    let all = || look.map.owners.iter().enumerate().filter(|(_, owner)| owner.area == need.area);
    let name = plain(&need.part);
    let has_name = |owner: &Owner| {
        let part = plain(&owner.part);
        part == name || part.strip_suffix('s') == Some(&name) || name.strip_suffix('s') == Some(&part)
    };
    let named: Vec<usize> = all().filter(|(_, owner)| has_name(owner)).map(|(index, _)| index).collect();
    if !named.is_empty() {
        return named;
    }
    let alone = promise.needs.iter().filter(|other| other.area == need.area).count() == 1;
    let is_whole = WHOLE.contains(&(name.as_str(), need.area)) || name == plain(need.area.title());
    let is_reserved_whole = matches!(need.area, Area::JavaHeap | Area::JitCode) && alone;
    if is_whole || is_reserved_whole {
        return all().map(|(index, _)| index).collect();
    }
    Vec::new()
}

fn of_owners(look: &Look, need: &Need, owners: &[usize]) -> (Taken, PageUse, bool) {
    let is_meant = |span: &Span| span.shares.iter().any(|share| owners.contains(&share.owner));
    let spans = look.map.spans.iter().filter(|span| is_meant(span));
    let taken = taken(look, need.page_bytes, spans.map(|span| (span.mapping, span.range)));
    let used = PageUse::of(look.snapshot, look.map, |_, owner| owners.contains(&owner));
    (taken, used, true)
}

/// A reservation that the account has no name for.
fn elsewhere(look: &Look, mode: Mode, need: &Need, spent: &mut HashSet<usize>) -> (Taken, PageUse, bool) {
    let mappings = &look.snapshot.os.mappings;
    let rounded = need.pages.saturating_mul(need.page_bytes);
    let fits = |mapping: &Mapping| mapping.range.bytes() == rounded || mapping.range.bytes() == need.bytes;
    let by_size = mappings.iter().enumerate().find(|(index, mapping)| {
        mode != Mode::Thp && fits(mapping) && is_hugetlb(look, mapping) && !spent.contains(index)
    });
    if let Some((index, mapping)) = by_size {
        spent.insert(index);
        let taken = taken(look, need.page_bytes, std::iter::once((index, mapping.range)));
        return (taken, PageUse::within(look.snapshot, look.map, mapping.range), true);
    }
    let name = plain(&need.part);
    let Some(logged) = look.logged.iter().find(|logged| plain(&logged.what) == name) else {
        return (Taken::default(), PageUse::default(), false);
    };
    let within = mappings.iter().enumerate().filter(|(_, mapping)| mapping.range.overlaps(logged.range));
    let pieces = within.map(|(index, mapping)| (index, mapping.range.intersect(logged.range)));
    let taken = taken(look, need.page_bytes, pieces);
    (taken, PageUse::within(look.snapshot, look.map, logged.range), true)
}

/// All pages of hugetlb that the process has mapped.
pub fn of_process(look: &Look) -> Taken {
    let mappings = look.snapshot.os.mappings.iter().enumerate();
    taken(look, 2 << 20, mappings.map(|(index, mapping)| (index, mapping.range)))
}

/// From the first page of a file up to the last.
type Pages = (u64, u64);

/// By place in the file: each mapping of hugetlb has one, and ZGC maps its own up to three times.
fn taken(look: &Look, expected: Bytes, pieces: impl Iterator<Item = (usize, Range)>) -> Taken {
    let mut places: BTreeMap<(&str, u64, Bytes), Vec<Pages>> = BTreeMap::new();
    let mut zgc = None;
    for (index, range) in pieces {
        let mapping = &look.snapshot.os.mappings[index];
        if !is_hugetlb(look, mapping) {
            continue;
        }
        if mapping.path.starts_with(ZGC_HEAP) {
            zgc = Some(mapping.inode);
        }
        let page_bytes = page_bytes(look, mapping, expected);
        let start = mapping.offset.saturating_add(range.start.0.saturating_sub(mapping.range.start.0));
        let first = start / page_bytes;
        let end = start.saturating_add(range.bytes()).div_ceil(page_bytes);
        places.entry((&mapping.device, mapping.inode, page_bytes)).or_default().push((first, end));
    }
    let mut taken = Taken::default();
    for ((_, inode, page_bytes), pieces) in places {
        let kept = if zgc == Some(inode) { heap_bytes(look).unwrap_or(0) / page_bytes } else { 0 };
        *taken.pages.entry(page_bytes).or_default() += united(pieces).max(kept);
    }
    taken
}

/// What ZGC has of its file: it keeps the pages of what it has unmapped, and has no others.
fn heap_bytes(look: &Look) -> Option<Bytes> {
    look.snapshot.jvm.as_ref().ok()?.heap.as_ref().ok()?.committed_bytes.clone().ok()
}

/// How many numbers half-open ranges cover.
fn united(mut pieces: Vec<Pages>) -> u64 {
    pieces.sort_unstable();
    let (mut sum, mut reached) = (0, 0);
    for (first, end) in pieces {
        let first = first.max(reached);
        sum += end.saturating_sub(first);
        reached = reached.max(end);
    }
    sum
}

fn is_hugetlb(look: &Look, mapping: &Mapping) -> bool {
    let known = match &look.snapshot.os.page_sizes {
        Some(Ok(sizes)) => sizes.hugetlb.iter().any(|range| range.overlaps(mapping.range)),
        _ => false,
    };
    known || mapping.is_hugetlb_name() || mapping.path.starts_with(ZGC_HEAP)
}

/// By a page of it that is in memory. Nobody tells the size of one that was never touched, so that is what was promised, if
/// the mapping is whole pages of that size.
fn page_bytes(look: &Look, mapping: &Mapping, expected: Bytes) -> Bytes {
    let runs = look.snapshot.os.pages.as_deref().unwrap_or_default();
    let first = runs.partition_point(|run| run.range.end <= mapping.range.start);
    let inside = runs[first..].iter().take_while(|run| run.range.start < mapping.range.end);
    let touched = inside.filter(|run| run.is_present() && u64::from(run.page_bytes) > base_page());
    if let Some(run) = touched.take(1).next() {
        return u64::from(run.page_bytes);
    }
    let is_whole = |size: &Bytes| {
        *size > base_page()
            && mapping.range.start.0.is_multiple_of(*size)
            && mapping.range.bytes().is_multiple_of(*size)
    };
    Some(expected).filter(is_whole).unwrap_or(2 << 20)
}

/// Bytes on small pages that no setting could put on larger ones: heads and tails of their mappings, private copies of pages
/// of files (the relocated data of a library), and what a JVM leaves out on purpose: it advises whole huge pages only, so
/// that where two generations of Serial meet within one, neither has it (memory/virtualspace.cpp, `VirtualSpace`).
fn excused(look: &Look, owners: &[usize]) -> Bytes {
    let is_meant = |area: Area, part: &str| {
        owners
            .iter()
            .any(|owner| look.map.owners[*owner].area == area && look.map.owners[*owner].part == part)
    };
    let meant: Vec<&Finding> =
        look.findings.iter().filter(|finding| is_meant(finding.area, &finding.part)).collect();
    let bytes_by = |is_so: fn(&Reason) -> bool| {
        meant.iter().filter(|finding| is_so(&finding.reason)).map(|finding| finding.bytes).sum::<Bytes>()
    };
    let of_layout = bytes_by(|reason| {
        matches!(reason, Reason::Edge | Reason::TooSmall | Reason::Unaligned | Reason::PrivateCopy)
    });
    let left_out =
        bytes_by(|reason| matches!(reason, Reason::NotAdvised { known_by: KnownBy::DespiteFlag, .. }));
    of_layout.saturating_add(left_out.min(LEFT_OUT_BYTES_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_compared_by_letters() {
        assert_eq!(plain("CodeHeap 'non-profiled nmethods'"), plain("code heap 'non-profiled nmethods'"));
        assert_ne!(plain("mark bitmap"), plain("card table"));
    }

    #[test]
    fn views_of_one_file_count_once() {
        assert_eq!(united(vec![(0, 4), (0, 4), (0, 4)]), 4);
        assert_eq!(united(vec![(6, 8), (0, 3), (2, 4)]), 6);
        assert_eq!(united(Vec::new()), 0);
    }
}
