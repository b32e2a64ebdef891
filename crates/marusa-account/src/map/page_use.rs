//! On which pages the memory of some owners is, for claims and requirements: by size, and by who gives them.

use super::types::{Figures, MemoryMap, Span};
use crate::base::{Bytes, Range, size};
use crate::os::machine::{base_page, huge_page};
use crate::os::maps::Mapping;
use crate::os::page_kind::Backing;
use crate::snapshot::Snapshot;
use crate::snapshot::page_settings::Advice;
use std::collections::BTreeMap;

/// Who gives a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Provider {
    Base,
    /// Transparent huge pages, of memory and of files.
    Transparent,
    /// Larger folios of the page cache, below a huge page: the file system chooses them, no setting of thp.
    File,
    Hugetlb,
}

impl Provider {
    /// The key in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Provider::Base => "base",
            Provider::Transparent => "transparent",
            Provider::File => "file",
            Provider::Hugetlb => "hugetlb",
        }
    }
}

/// Resident bytes by provider and size of a page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PageUse {
    pub resident_bytes: Bytes,
    pub by: BTreeMap<(Provider, Bytes), Bytes>,
}

impl PageUse {
    /// The page use of the spans that `wanted` takes, with their owners' figures.
    pub fn of(snapshot: &Snapshot, map: &MemoryMap, wanted: impl Fn(&Span, usize) -> bool) -> PageUse {
        let mut sum = PageUse::default();
        for span in &map.spans {
            for share in span.shares.iter().filter(|share| wanted(span, share.owner)) {
                sum.add(&share.figures, is_hugetlb(snapshot, &snapshot.os.mappings[span.mapping]));
            }
        }
        sum
    }

    /// The page use of the spans that lie in `range`.
    pub fn within(snapshot: &Snapshot, map: &MemoryMap, range: Range) -> PageUse {
        PageUse::of(snapshot, map, |span, _| range.covers(span.range))
    }

    fn add(&mut self, figures: &Figures, is_hugetlb: bool) {
        self.resident_bytes = self.resident_bytes.saturating_add(figures.resident);
        for (kind, bytes) in &figures.by_page_kind {
            let provider = match kind.page_bytes() {
                bytes if bytes == base_page() => Provider::Base,
                _ if kind.backing == Backing::Hugetlb => Provider::Hugetlb,
                bytes if bytes < huge_page() && kind.backing == Backing::File => Provider::File,
                _ => Provider::Transparent,
            };
            *self.by.entry((provider, kind.page_bytes())).or_default() += bytes;
        }
        if !figures.by_page_kind.is_empty() {
            return;
        }
        for (page_bytes, bytes) in &figures.by_page_size {
            let provider = match *page_bytes {
                bytes if bytes == base_page() => Provider::Base,
                _ if is_hugetlb => Provider::Hugetlb,
                _ => Provider::Transparent,
            };
            *self.by.entry((provider, *page_bytes)).or_default() += bytes;
        }
    }

    pub fn on(&self, wanted: impl Fn(Provider, Bytes) -> bool) -> Bytes {
        self.by.iter().filter(|((provider, size), _)| wanted(*provider, *size)).map(|(_, bytes)| bytes).sum()
    }

    /// "2M transparent 96.9 %, 4K 3.1 %": the largest share first.
    pub fn text(&self) -> String {
        if self.resident_bytes == 0 {
            return "not in memory".to_string();
        }
        let mut by: Vec<_> = self.by.iter().filter(|(_, bytes)| **bytes > 0).collect();
        by.sort_by_key(|(_, bytes)| std::cmp::Reverse(**bytes));
        let share = |((provider, page_bytes), bytes): (&(Provider, Bytes), &Bytes)| {
            let kind = match provider {
                Provider::Base => "",
                Provider::Transparent => " transparent",
                Provider::File => " of files",
                Provider::Hugetlb => " hugetlb",
            };
            format!("{}{kind} {}", size(*page_bytes), percent(*bytes, self.resident_bytes))
        };
        by.into_iter().map(share).collect::<Vec<_>>().join(", ")
    }
}

/// "96.9 %"; never rounded up to 100 or down to 0.
pub fn percent(part: Bytes, whole: Bytes) -> String {
    match part as f64 * 100.0 / whole.max(1) as f64 {
        _ if part == whole => "100 %".to_string(),
        share if share > 99.9 => "over 99.9 %".to_string(),
        share if share < 0.1 && part > 0 => "under 0.1 %".to_string(),
        share => format!("{share:.1} %"),
    }
}

/// By VmFlags where they were read, else by the names that the kernel gives such memory (fs/hugetlbfs/inode.c) and ZGC
/// gives its own (zPhysicalMemoryBacking_linux.cpp).
fn is_hugetlb(snapshot: &Snapshot, mapping: &Mapping) -> bool {
    let advice = snapshot.taken.page_settings.as_ref().and_then(|settings| settings.advice.as_ref());
    match advice {
        Some(advice) => advice.get(&mapping.range.start) == Some(&Advice::Hugetlb),
        None => mapping.is_hugetlb_name() || mapping.path.starts_with("/memfd:java_heap.hugetlb"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::os::page_kind::PageKind;

    #[test]
    fn shares_in_words() {
        let mut sum = PageUse::default();
        assert_eq!(sum.text(), "not in memory");
        let sizes = BTreeMap::from([(4096, 1 << 20), (2 << 20, 31 << 20)]);
        let figures = Figures { resident: 32 << 20, by_page_size: sizes, ..Figures::default() };
        sum.add(&figures, false);
        assert_eq!(sum.text(), "2M transparent 96.9 %, 4K 3.1 %");
        assert_eq!(sum.on(|provider, _| provider == Provider::Transparent), 31 << 20);
        let of_files = BTreeMap::from([(PageKind::of_folio(Backing::File, 16 << 10), 32 << 20)]);
        let figures = Figures { resident: 32 << 20, by_page_kind: of_files, ..Figures::default() };
        let mut files = PageUse::default();
        files.add(&figures, false);
        assert_eq!(files.text(), "16K of files 100 %");
        assert_eq!(
            (percent(999_999, 1_000_000).as_str(), percent(1, 1_000_000).as_str()),
            ("over 99.9 %", "under 0.1 %")
        );
        assert_eq!((percent(7, 7).as_str(), percent(0, 7).as_str()), ("100 %", "0.0 %"));
    }
}
