use super::*;
use crate::base::blocks::{Head, Look};
use crate::os::memory::Pieces;

/// Marks: a word 0xabcd, the size, and the footer "zz".
struct Marks;

impl Witness for Marks {
    fn look(&self, _payload: Range, _head: &Head) -> Look {
        Look::default()
    }
    fn marks_blocks(&self) -> bool {
        true
    }
    fn next_mark(&self, bytes: &[u8], from: usize) -> Option<Mark> {
        let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|byte| bytes[at + byte]));
        let mut starts = (from.div_ceil(16) * 16..bytes.len().saturating_sub(15)).step_by(16);
        let at = starts.find(|at| word(*at) == 0xabcd)?;
        Some(Mark { at, label: 3, header_bytes: 16, requested_bytes: word(at + 8), footer: *b"zz" })
    }
}

/// A block of `size` bytes at `at`.
fn put(bytes: &mut [u8], at: usize, size: u64) {
    bytes[at..at + 8].copy_from_slice(&0xabcd_u64.to_le_bytes());
    bytes[at + 8..at + 16].copy_from_slice(&size.to_le_bytes());
    if let Some(footer) = bytes.get_mut(at + 16 + size as usize..at + 18 + size as usize) {
        footer.copy_from_slice(b"zz");
    }
}

fn blocks(memory: &Pieces, piece: Range, resident: &[Range]) -> Vec<Marked> {
    Scan::new(&MemorySource(memory), &Marks, piece).blocks(resident)
}

#[test]
fn blocks_are_found_across_windows_and_absent_pages() {
    let mut low = vec![0; 0x1000];
    put(&mut low, 0x20, 0x64);
    put(&mut low, 0x800, 0x2000);
    // Within a block: not one.
    put(&mut low, 0x900, 8);
    let mut high = vec![0; 0x1000];
    high[0x810..0x812].copy_from_slice(b"zz");
    // Its footer is another's business.
    put(&mut high, 0x900, 0x100);
    high[0xa10] = 0;
    let mut memory = Pieces::default();
    memory.put(Addr(0x10000), &low);
    memory.put(Addr(0x12000), &high);
    let piece = Range::of(0x10000, 0x14000);
    let resident = [Range::of(0x10000, 0x11000), Range::of(0x12000, 0x13000)];
    let found = blocks(&memory, piece, &resident);
    let ranges: Vec<Range> = found.iter().map(|block| block.range).collect();
    assert_eq!(ranges, [Range::of(0x10020, 0x10096), Range::of(0x10800, 0x12812)]);

    let intervals = intervals(piece, &resident, &found);
    assert_eq!(intervals.len(), 4);
    assert!(intervals.iter().all(|s| s.shares.iter().map(|share| share.1).sum::<u64>() == s.range.bytes()));
    let shares: Vec<_> = intervals.iter().map(|interval| interval.shares.as_slice()).collect();
    assert_eq!(
        shares[0],
        [(State::InUse(3), 0x64 + 0x7f0), (State::Overhead, 18 + 16), (State::NotWalked, 0x1000 - 0x876)]
    );
    assert_eq!(shares[1], [(State::InUse(3), 0x1000)]);
    assert_eq!(
        shares[2],
        [(State::InUse(3), 0x810), (State::Overhead, 2), (State::NotWalked, 0x1000 - 0x812)]
    );
    assert_eq!(shares[3], [(State::NotWalked, 0x1000)]);
    let mut scanned = Scanned::default();
    scanned.count(&found);
    assert_eq!(scanned.in_use[3], BlockCount { blocks: 2, bytes: 0x2064 });
}

#[test]
fn a_size_that_wraps_or_leaves_the_piece_is_no_block() {
    let mut bytes = vec![0; 0x1000];
    put(&mut bytes, 0, 0x100);
    bytes[8..16].copy_from_slice(&u64::MAX.to_le_bytes());
    put(&mut bytes, 0x40, 0xfc0);
    let mut memory = Pieces::default();
    memory.put(Addr(0x10000), &bytes);
    let piece = Range::of(0x10000, 0x11000);
    assert_eq!(blocks(&memory, piece, &[piece]), []);
}

#[test]
fn parts_give_what_the_whole_piece_gives() {
    const BASE: u64 = 0x10000;
    let part = scan_parts::PART_BYTES as usize;
    let mut bytes = vec![0; 3 * part];
    for at in (0x40..part - 0x1000).step_by(0x400) {
        put(&mut bytes, at, 0x64);
    }
    // Over the border of two parts, with what looks like a block behind the border, which hides one more.
    put(&mut bytes, part - 0x100, 0x300);
    put(&mut bytes, part + 0x40, 0x300);
    put(&mut bytes, part + 0x240, 0x30);
    put(&mut bytes, part + 0x800, 8);
    put(&mut bytes, 2 * part, 8);
    let mut memory = Pieces::default();
    memory.put(Addr(BASE), &bytes);
    let range = Range::sized(Addr(BASE), bytes.len() as u64);
    let expected = blocks(&memory, range, &[range]);
    let all = [Piece { range, resident: vec![range] }, Piece { range, resident: Vec::new() }];
    let found = scan_parts::blocks(&All(memory), &Marks, &all);
    assert_eq!(found, [expected, Vec::new()]);
}

/// May be read by two threads.
struct All(Pieces);

impl Source for All {
    fn read(&self, at: Addr, into: &mut [u8]) -> Result<(), crate::os::memory::Fault> {
        crate::os::Memory::read(&self.0, at, into)
    }
}
