use super::synthetic::{START, Synthetic, check_laws};
use crate::alloc::types::ArenaFigures;
use crate::base::blocks::{Blocks, Head, Labelled, Look, NoWitness, Witness};
use crate::base::{Addr, Range};
use crate::os::memory::Memory;
use crate::os::recording::Recording;

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
    fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.next() as u8).collect()
    }
}

fn counts(figures: &ArenaFigures) -> [crate::alloc::types::ChunkCount; 8] {
    let f = &figures.chunks;
    [f.in_use, f.tcache, f.fast, f.unsorted, f.small, f.large, f.unlisted, f.top]
}

#[test]
fn a_walk_finds_what_was_laid_down_by_threads_one_by_one_and_from_a_recording() {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    for round in 0..40 {
        let count = (random.next() % 1500) as usize;
        let mut heap = Synthetic::of(&random.bytes(count));
        let view = heap.view();
        heap.is_bulk = round % 2 == 0;
        let found = check_laws(Synthetic::walked(&heap, &view, &NoWitness));
        let figures = found.arenas[1].figures.as_ref().expect("walked");
        assert_eq!(counts(figures), counts(&heap.expected), "round {round}");
        assert_eq!(figures.unresolved_bytes, 0);
        let recording = Recording::of(&heap, &view.mappings);
        let seen = check_laws(Synthetic::walked(&recording, &view, &NoWitness));
        let replay = recording.into_seen();
        assert!(replay.keeps_what_is_read());
        let replayed = check_laws(Synthetic::walked(&replay, &view, &NoWitness));
        for other in [seen, replayed] {
            assert_eq!(other.arenas, found.arenas);
            assert_eq!(other.intervals, found.intervals);
        }
    }
}

#[test]
fn a_damaged_heap_is_walked_to_its_end_and_its_books_balance() {
    let mut random = Random(42);
    for _ in 0..60 {
        let mut heap = Synthetic::of(&random.bytes(1200));
        heap.is_bulk = random.next().is_multiple_of(2);
        for _ in 0..random.next() % 20 {
            let at = START + random.next() % (1 << 20) / 8 * 8;
            let value = match random.next() % 5 {
                0 => 0,
                1 => u64::MAX,
                2 => at,
                3 => random.next() % 4096,
                _ => random.next(),
            };
            heap.put(at, &[value]);
        }
        let view = heap.view();
        check_laws(Synthetic::walked(&heap, &view, &NoWitness));
    }
}

/// Blocks of 48 bytes are of label 3, and 20 bytes of each were asked for.
struct Sizes;

impl Witness for Sizes {
    fn look(&self, payload: Range, _head: &Head) -> Look {
        match payload.bytes() {
            40 => Look { label: 3, requested_bytes: Some(20) },
            _ => Look::default(),
        }
    }
}

/// Every block has a header of which all words count.
struct All;

impl Witness for All {
    fn look(&self, payload: Range, _head: &Head) -> Look {
        Look { label: 2, requested_bytes: Some(payload.bytes()) }
    }
}

#[test]
fn the_head_of_the_smallest_block_ends_before_the_size_of_the_next_chunk() {
    let heap = Synthetic::of(&[0; 12]);
    let view = heap.view();
    let recording = Recording::of(&heap, &view.mappings);
    let seen = check_laws(Synthetic::walked(&recording, &view, &All));
    let replayed = check_laws(Synthetic::walked(&recording.into_seen(), &view, &All));
    assert!(seen.in_use[2].blocks > 0 && seen.in_use[2].bytes == seen.in_use[2].blocks * 24);
    assert_eq!(replayed.in_use, seen.in_use);
    assert_eq!(replayed.intervals, seen.intervals);
}

#[test]
fn labels_move_bytes_between_owners_and_rounding_up_is_overhead() {
    let heap = Synthetic::of(&[4, 4, 8, 8, 8, 12]);
    let view = heap.view();
    let mut walked = Synthetic::walked(&heap, &view, &Sizes);
    let mut blocks = Vec::new();
    walked.each(&mut |block| {
        blocks.push(block);
        true
    });
    assert_eq!(blocks.iter().map(|block| block.label).collect::<Vec<_>>(), [3, 3, 0, 0, 0, 0]);
    walked.label(blocks[2].payload.start, 5);
    walked.label(Addr(blocks[3].payload.start.0 + 16), 5);
    let found = check_laws(walked);
    assert_eq!((found.in_use[3].blocks, found.in_use[3].bytes), (2, 40));
    assert_eq!((found.in_use[5].blocks, found.in_use[5].bytes), (1, 56));
    assert_eq!(found.in_use[0].blocks, 3);
}
