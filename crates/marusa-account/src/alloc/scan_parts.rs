//! The search for marked blocks by two threads: each piece of memory is cut into parts, and who is free takes the next. What
//! is found is what one thread would find that goes through the piece from its start: where a block goes on beyond the end
//! of its part, the next part is searched again from there.

use super::glibc::window::Source;
use super::scan::{Marked, Piece, Scan};
use crate::base::blocks::Witness;
use crate::base::{Addr, Gap, Range, Why};
use crate::os::budget;
use crate::os::memory::{Bulk, Fault};
use crate::os::target::OsView;

/// Large enough that a block over a border is rare.
pub(super) const PART_BYTES: u64 = 4 << 20;

/// Memory for several threads, of which only what the view shows as resident is read.
pub(super) struct Resident<'a> {
    pub bulk: &'a dyn Bulk,
    pub view: &'a OsView,
}

impl Source for Resident<'_> {
    fn read(&self, at: Addr, into: &mut [u8]) -> Result<(), Fault> {
        let wanted = Range::sized(at, into.len() as u64);
        if self.view.resident_ranges(wanted) != [wanted] {
            return Err(Fault { at, why: Why::NotResident(at) });
        }
        self.bulk.read(at, into)
    }
}

/// What one thread takes at once: resident memory of one piece.
struct Part {
    piece: usize,
    resident: Vec<Range>,
}

/// The blocks of each piece.
pub(super) fn blocks(
    source: &(dyn Source + Sync),
    witness: &dyn Witness,
    pieces: &[Piece],
) -> Vec<Vec<Marked>> {
    let parts: Vec<Part> = pieces.iter().enumerate().flat_map(|(index, piece)| parts(index, piece)).collect();
    let search = |part: &Part| Scan::new(source, witness, pieces[part.piece].range).blocks(&part.resident);
    let mut found: Vec<Vec<Marked>> = pieces.iter().map(|_| Vec::new()).collect();
    let failed = Gap::new("blocks of the VM in other anonymous memory", Why::Torn);
    let worker = || |index: usize| Ok(search(&parts[index]));
    let by_part = budget::divided(parts.len(), parts.len() > 1, failed, worker).unwrap_or_default();
    for (part, mut blocks) in parts.iter().zip(by_part) {
        let before = &mut found[part.piece];
        let end = before.last().map_or(Addr::NULL, |last| last.range.end);
        if blocks.first().is_some_and(|first| first.range.start < end) {
            let rest =
                part.resident.iter().map(|range| Range::new(range.start.max(end.up_to(16)), range.end));
            let resident = rest.filter(|range| range.start < range.end).collect();
            blocks = search(&Part { piece: part.piece, resident });
        }
        before.append(&mut blocks);
    }
    found
}

fn parts(piece: usize, of: &Piece) -> Vec<Part> {
    let mut parts = Vec::new();
    let (mut resident, mut bytes) = (Vec::new(), 0);
    for range in &of.resident {
        let mut from = range.start;
        while from < range.end {
            let to = from.plus(PART_BYTES - bytes).min(range.end);
            resident.push(Range::new(from, to));
            bytes += to.0 - from.0;
            from = to;
            if bytes == PART_BYTES {
                parts.push(Part { piece, resident: std::mem::take(&mut resident) });
                bytes = 0;
            }
        }
    }
    if !resident.is_empty() {
        parts.push(Part { piece, resident });
    }
    parts
}
