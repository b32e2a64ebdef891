//! How much of each class lies on pages of each size. The pages of a part are asked for once, in runs of one size; an object within
//! the run of the one before it costs an addition.

use crate::base::{Addr, Bytes, PAGE, Range};

/// Binary logarithms of the page's size, in small pages: from 4 KiB to 16 GiB.
const SIZES: usize = 23;
const ABSENT: u8 = SIZES as u8;

/// Up to `end` from the end of the one before, pages of one size, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    end: u64,
    size: u8,
}

/// Runs of pages in the order of addresses, without gaps.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spans(Vec<Span>);

impl Spans {
    /// `pages`: what is in memory of `range`, sorted, by the size of a page.
    pub fn of(range: Range, pages: impl IntoIterator<Item = (Range, Bytes)>) -> Spans {
        let mut spans = Spans::default();
        let mut at = range.start.0;
        for (piece, page_bytes) in pages {
            let piece = piece.intersect(range);
            if !piece.is_empty() && piece.end.0 > at {
                spans.add(piece.start.0.max(at), ABSENT, at);
                spans.add(piece.end.0, size(page_bytes), piece.start.0);
                at = piece.end.0;
            }
        }
        spans.add(range.end.0, ABSENT, at);
        spans
    }

    fn add(&mut self, end: u64, size: u8, from: u64) {
        match self.0.last_mut() {
            _ if from >= end => {}
            Some(last) if last.size == size => last.end = end,
            _ => self.0.push(Span { end, size }),
        }
    }
}

fn size(page_bytes: Bytes) -> u8 {
    ((page_bytes / PAGE).max(1).ilog2() as u8).min(ABSENT - 1)
}

/// A class, a page size, and the bytes on such pages.
pub type OnSize = (u32, u8, Bytes);

pub fn page_bytes(size: u8) -> Bytes {
    PAGE << size
}

/// The sums of one walk, from lower to higher addresses.
pub struct OnPages {
    spans: Vec<Span>,
    place: usize,
    here: Span,
    /// By size, and by the number of the class; those of absent pages are the last.
    sums: [Vec<Bytes>; SIZES + 1],
    classes: usize,
}

impl OnPages {
    pub fn new(classes: usize) -> OnPages {
        let here = Span { end: 0, size: ABSENT };
        OnPages { spans: Vec::new(), place: 0, here, sums: Default::default(), classes }
    }

    pub fn start(&mut self, spans: Spans) {
        (self.spans, self.place) = (spans.0, 0);
        self.here = Span { end: 0, size: ABSENT };
    }

    /// `pages`: of memory behind the part.
    #[inline]
    pub fn count(&mut self, pages: impl FnMut(Range) -> Spans, number: u32, at: u64, bytes: Bytes) {
        match at + bytes <= self.here.end {
            true => self.sums[self.here.size as usize][number as usize] += bytes,
            false => self.count_over_border(pages, number, at, bytes),
        }
    }

    #[cold]
    fn count_over_border(
        &mut self,
        mut pages: impl FnMut(Range) -> Spans,
        number: u32,
        mut at: u64,
        bytes: Bytes,
    ) {
        let end = at + bytes;
        while at < end {
            while self.spans.get(self.place).is_some_and(|span| span.end <= at) {
                self.place += 1;
            }
            let Some(here) = self.spans.get(self.place) else {
                // The object ends behind the part.
                let beyond = Range::new(Addr(at), Addr(end));
                (self.spans, self.place) = (pages(beyond).0, 0);
                if self.spans.last().is_none_or(|span| span.end <= at) {
                    return;
                }
                continue;
            };
            self.here = *here;
            let sums = &mut self.sums[here.size as usize];
            if sums.is_empty() {
                sums.resize(self.classes, 0);
            }
            let to = here.end.min(end);
            sums[number as usize] += to - at;
            at = to;
        }
    }

    /// Takes what these classes have on pages in memory; then it begins anew.
    pub fn take(&mut self, classes: &[u32], into: &mut Vec<OnSize>) {
        for (size, sums) in self.sums.iter_mut().enumerate().filter(|(_, sums)| !sums.is_empty()) {
            for number in classes {
                let bytes = std::mem::take(&mut sums[*number as usize]);
                if bytes > 0 && size as u8 != ABSENT {
                    into.push((*number, size as u8, bytes));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two small pages, an absent one, and a huge one; what lies behind is small.
    fn mixed(range: Range) -> Spans {
        let pages = [(Range::of(0, 0x2000), 4096), (Range::of(0x20_0000, 0x40_0000), 2 << 20)];
        Spans::of(range, pages.into_iter().chain([(Range::of(0x40_0000, 0x50_0000), 4096)]))
    }

    #[test]
    fn an_object_over_borders_is_split_and_what_is_absent_counts_nothing() {
        let mut on = OnPages::new(3);
        let mut taken = |objects: &[(u32, u64, u64)]| {
            on.start(mixed(Range::of(0, 0x30_0000)));
            objects.iter().for_each(|(number, at, bytes)| on.count(mixed, *number, *at, *bytes));
            let mut found = Vec::new();
            on.take(&[0, 1, 2], &mut found);
            found
        };
        assert_eq!(taken(&[(1, 0, 24), (1, 24, 16), (2, 0x1ff0, 0x20)]), [(1, 0, 40), (2, 0, 0x10)]);
        let large = taken(&[(0, 0x1000, 0x45_0000 - 0x1000)]);
        assert_eq!(large, [(0, 0, 0x1000 + 0x5_0000), (0, 9, 2 << 20)], "behind the part, too");
        assert_eq!(taken(&[(0, 0x20_0000, 8), (0, 0x60_0000, 64)]), [(0, 9, 8)]);
        assert_eq!(taken(&[]), []);
    }

    #[test]
    fn sizes_are_named_by_their_bytes() {
        assert_eq!(
            [4096, 65_536, 2 << 20, 1 << 30].map(|bytes| page_bytes(size(bytes))),
            [4096, 65_536, 2 << 20, 1 << 30]
        );
    }
}
