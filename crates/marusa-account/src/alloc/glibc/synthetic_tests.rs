//! Heaps that are made up, for tests and fuzzers: one thread arena as glibc 2.36 lays it out, with chunks as the input
//! says, and what a walk of it must find.

use super::layout::{self, Layout};
use super::walk::{self, Walked};
use crate::alloc::Heap;
use crate::alloc::types::{AllocView, Arena, ArenaFigures, ArenaHeap, ChunkCount, State};
use crate::base::blocks::{Blocks, Witness};
use crate::base::{Addr, PAGE, Range, Why};
use crate::os::maps;
use crate::os::memory::{Bulk, Fault, Memory};
use crate::os::pagemap::PageRun;
use crate::os::target::{NoSymbols, OsView, ProcessFacts, Target};

pub const START: u64 = 0x7f00_0400_0000;
const HEAP_BYTES: u64 = 1 << 20;
const ARENA: u64 = START + 48;
const BINS: u64 = 112;
const FIRST_CHUNK: u64 = START + 0x8d0;
const FASTBINS: u64 = 16;

/// A heap's bytes, and whether threads may read them at once.
pub struct Synthetic {
    pub bytes: Vec<u8>,
    pub is_bulk: bool,
    /// Chunks and bytes as they were laid down.
    pub expected: ArenaFigures,
}

impl Synthetic {
    /// One byte a chunk: the low two bits say what it is, the others how large.
    pub fn of(chunks: &[u8]) -> Synthetic {
        let mut heap = Synthetic {
            bytes: vec![0; HEAP_BYTES as usize],
            is_bulk: true,
            expected: ArenaFigures::default(),
        };
        heap.put(START, &[ARENA, 0, HEAP_BYTES, HEAP_BYTES]);
        heap.put(ARENA + 2184, &[HEAP_BYTES, HEAP_BYTES]);
        for bin in 0..127 {
            let header = ARENA + BINS + bin * 16 - 16;
            heap.put(header + 16, &[header, header]);
        }
        let mut at = FIRST_CHUNK;
        let mut fast = [0_u64; 10];
        let mut unsorted: Vec<u64> = Vec::new();
        let mut was_free = 0;
        for chunk in chunks {
            let size = size_of_chunk(*chunk);
            if at + size + 64 > START + HEAP_BYTES {
                break;
            }
            // Two free chunks in a row would be one.
            let kind = if was_free > 0 { 0 } else { chunk & 3 };
            let flags = 4 | u64::from(was_free == 0);
            heap.put(at, &[was_free, size | flags]);
            was_free = 0;
            let count = match kind {
                2 => {
                    heap.put(at + 8, &[size | 1]);
                    was_free = size;
                    unsorted.push(at);
                    &mut heap.expected.chunks.unsorted
                }
                3 if size <= 176 => {
                    let bin = (size / 16 - 2) as usize;
                    heap.put(at + 16, &[fast[bin] ^ (at + 16) >> 12]);
                    fast[bin] = at;
                    &mut heap.expected.chunks.fast
                }
                _ => &mut heap.expected.chunks.in_use,
            };
            *count = ChunkCount { chunks: count.chunks + 1, bytes: count.bytes + size };
            at += size;
        }
        let top = START + HEAP_BYTES - at;
        heap.put(at, &[was_free, top | u64::from(was_free == 0)]);
        heap.put(ARENA + BINS - 16, &[at]);
        heap.expected.chunks.top = ChunkCount { chunks: 1, bytes: top };
        heap.put(ARENA + FASTBINS, &fast);
        let bin = ARENA + BINS - 16;
        let ring: Vec<u64> = [bin].iter().chain(&unsorted).chain(&[bin]).copied().collect();
        for links in ring.windows(2) {
            heap.put(links[0] + 16, &[links[1]]);
            heap.put(links[1] + 24, &[links[0]]);
        }
        heap
    }

    /// Lays words down; what would lie outside is left out.
    pub fn put(&mut self, at: u64, words: &[u64]) {
        for (index, word) in words.iter().enumerate() {
            let from = at.wrapping_add(index as u64 * 8).wrapping_sub(START) as usize;
            if let Some(bytes) = from.checked_add(8).and_then(|end| self.bytes.get_mut(from..end)) {
                bytes.copy_from_slice(&word.to_le_bytes());
            }
        }
    }

    pub fn view(&self) -> OsView {
        let text = format!("{START:x}-{:x} rw-p 0 00:00 0 \n", START + HEAP_BYTES);
        let range = Range::of(START, START + HEAP_BYTES);
        let page = PageRun { range, bits: PageRun::PRESENT, page_bytes: PAGE as u32, mapped_times: 1 };
        OsView {
            process: ProcessFacts::default(),
            status: Default::default(),
            mappings: maps::parse(text.as_bytes()).0,
            pages: Ok(vec![page]),
            tasks: Vec::new(),
            gaps: Vec::new(),
            late: None,
            page_sizes: None,
            smaps: None,
        }
    }

    /// The heap as it is read through `memory`.
    pub fn walked(memory: &dyn Memory, view: &OsView, witness: &dyn Witness) -> Heap {
        let target = Target { view, memory, symbols: &NoSymbols };
        // A main arena without a heap comes first, as always.
        // That of glibc 2.35 to 2.42.
        let layout = Layout {
            main_arena: Addr(0x5000),
            ring: vec![Addr(0x5000), Addr(ARENA)],
            bins: 112,
            system_bytes: 2184,
            heap_header: Some(48),
            heap_bytes: layout::HEAP_BYTES,
            heap_start: None,
        };
        let reserved = Range::of(START, START + HEAP_BYTES);
        let arena = |at, number, heaps| Arena {
            at: Addr(at),
            number,
            heaps,
            system_bytes: HEAP_BYTES,
            attached_threads: None,
            threads: Vec::new(),
            figures: Ok(ArenaFigures::default()),
        };
        let arenas =
            vec![arena(0x5000, 0, vec![]), arena(ARENA, 1, vec![ArenaHeap { reserved, in_arena: reserved }])];
        let walked: Walked = walk::read(&target, &layout, &arenas, &[], witness);
        let view = AllocView {
            allocator: "glibc".to_string(),
            other: None,
            arenas,
            mmapped: Vec::new(),
            intervals: Vec::new(),
            in_use: Vec::new(),
            gaps: Vec::new(),
        };
        Heap::new(view, walked)
    }
}

/// From 32 bytes to 6 KiB.
fn size_of_chunk(chunk: u8) -> u64 {
    let class = u64::from(chunk >> 2);
    if class < 48 { 32 + class * 16 } else { 800 + (class - 48) * 352 }
}

impl Memory for Synthetic {
    fn read(&self, at: Addr, into: &mut [u8]) -> Result<(), Fault> {
        let fault = Fault { at, why: Why::NotResident(at) };
        let from = at.offset_from(Addr(START)).ok_or(fault)? as usize;
        let end = from.checked_add(into.len()).ok_or(fault)?;
        into.copy_from_slice(self.bytes.get(from..end).ok_or(fault)?);
        Ok(())
    }
    fn bulk(&self) -> Option<&dyn Bulk> {
        if self.is_bulk { Some(self) } else { None }
    }
}

impl Bulk for Synthetic {
    fn read(&self, at: Addr, into: &mut [u8]) -> Result<(), Fault> {
        Memory::read(self, at, into)
    }
    fn resident(&self, _range: Range) -> Option<Vec<Range>> {
        None
    }
}

/// What holds of every walk, whatever the heap's bytes say.
pub fn check_laws(heap: Heap) -> AllocView {
    let mut end = Addr::NULL;
    heap.each(&mut |block| {
        assert!(block.payload.start > end && block.payload.bytes() >= 8, "{block:?}");
        end = block.payload.start;
        true
    });
    let view = heap.finish();
    let mut sums = std::collections::BTreeMap::<State, u64>::new();
    let mut end = Addr(START);
    for interval in &view.intervals {
        assert_eq!(interval.range.start, end, "ranges leave nothing out");
        end = interval.range.end;
        assert_eq!(interval.shares.iter().map(|(_, bytes)| bytes).sum::<u64>(), interval.range.bytes());
        interval.shares.iter().for_each(|(state, bytes)| *sums.entry(*state).or_default() += bytes);
    }
    if let Some(Ok(figures)) = view.arenas.get(1).map(|arena| &arena.figures)
        && !view.intervals.is_empty()
    {
        assert_eq!(sums.get(&State::Top).copied().unwrap_or(0), figures.chunks.top.bytes);
        assert_eq!(sums.get(&State::Fast).copied().unwrap_or(0), figures.chunks.fast.bytes);
        assert_eq!(sums.get(&State::Unsorted).copied().unwrap_or(0), figures.chunks.unsorted.bytes);
        assert_eq!(sums.get(&State::Overhead).copied().unwrap_or(0), figures.overhead_bytes);
        assert_eq!(sums.get(&State::Unresolved).copied().unwrap_or(0), figures.unresolved_bytes);
    }
    view
}
