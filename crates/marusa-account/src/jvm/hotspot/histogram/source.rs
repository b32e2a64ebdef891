//! The bytes of the heap for one thread: what is resident at this moment, and nothing else, so that no absent page comes into
//! memory. ZGC maps the heap at several addresses, of which each may have other pages present.

use super::on_pages::Spans;
use crate::base::{Addr, Covered, PAGE, Range};
use crate::os::budget;
use crate::os::memory::{Bulk, Memory};
use crate::os::target::OsView;

/// What came of reading from an address on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filled {
    Read,
    /// Not in memory up to this address, at least.
    Absent(u64),
    /// Reading was given up.
    Gone,
}

/// Where the bytes come from.
pub trait Source {
    /// Fills `into` from `at`, outside of the heap.
    fn aside(&mut self, at: Addr, into: &mut [u8]) -> bool;

    /// Replaces `into` by bytes from `at` on, at least up to the end of the page if they reach it, and none from `end` on.
    fn fill(&mut self, at: u64, end: u64, into: &mut Vec<u8>) -> Filled;

    /// The pages of `range` by their size.
    fn pages(&mut self, range: Range) -> Spans;
}

pub struct Resident<'a> {
    pub bulk: &'a dyn Bulk,
    pub view: &'a OsView,
    /// For absent pages of mapped files, which are read from the files: the archived objects of CDS.
    pub files: Option<Box<dyn Memory + Send + 'a>>,
    /// How far the other mappings of the heap lie behind the first.
    pub shifts: &'a [u64],
}

impl Resident<'_> {
    fn resident(&self, range: Range) -> Vec<Range> {
        self.bulk.resident(range).unwrap_or_else(|| self.view.resident_ranges(range))
    }

    /// A page of a file that is mapped for this process alone and that it has not changed.
    fn read_file(&self, at: Addr, end: u64, into: &mut Vec<u8>) -> bool {
        let mapping = crate::os::maps::find_mapping(&self.view.mappings, at);
        let Some(files) =
            self.files.as_ref().filter(|_| mapping.is_some_and(|it| it.is_file() && !it.rights.shared))
        else {
            return false;
        };
        let bytes = at.plus(1).up_to(PAGE).0.min(end) - at.0;
        into.resize(bytes as usize, 0);
        files.read(at, into).is_ok()
    }
}

impl Source for Resident<'_> {
    /// By the snapshot's look at them. A page that several mappings have counts as the first of them has it.
    fn pages(&mut self, range: Range) -> Spans {
        let (mut pages, mut known) = (Vec::new(), Covered::default());
        for shift in [0].iter().chain(self.shifts) {
            let here = Range::sized(range.start.plus(*shift), range.bytes());
            for (piece, page_bytes) in self.view.page_sizes_in(here) {
                let piece = Range::sized(piece.start.minus(*shift), piece.bytes());
                pages.extend(known.missing(piece).into_iter().map(|rest| (rest, page_bytes)));
                known.add(piece);
            }
        }
        pages.sort_unstable();
        Spans::of(range, pages)
    }

    /// Pages that are absent hold zeros.
    fn aside(&mut self, at: Addr, into: &mut [u8]) -> bool {
        let wanted = Range::sized(at, into.len() as u64);
        self.resident(wanted.widened(PAGE)).into_iter().all(|run| {
            let run = run.intersect(wanted);
            let place = (run.start.0 - at.0) as usize;
            self.bulk.read(run.start, &mut into[place..place + run.bytes() as usize]).is_ok()
        })
    }

    fn fill(&mut self, at: u64, end: u64, into: &mut Vec<u8>) -> Filled {
        if budget::check_now().is_err() {
            return Filled::Gone;
        }
        let mut next = end;
        for shift in [0].iter().chain(self.shifts) {
            let here = Addr(at).plus(*shift);
            let pages = Range::new(here, Addr(end).plus(*shift)).widened(PAGE);
            let Some(run) = self.resident(pages).first().copied() else { continue };
            if run.start > here {
                next = next.min(run.start.0 - shift);
                continue;
            }
            let bytes = run.end.0.min(pages.end.0).min(end + shift).saturating_sub(here.0);
            into.resize(bytes as usize, 0);
            if bytes > 0 && self.bulk.read(here, into).is_ok() {
                return Filled::Read;
            }
        }
        match self.read_file(Addr(at), end, into) {
            true => Filled::Read,
            false => Filled::Absent(next.max(Addr(at).plus(1).up_to(PAGE).0)),
        }
    }
}
