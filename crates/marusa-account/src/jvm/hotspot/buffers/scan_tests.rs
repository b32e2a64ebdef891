//! Heaps of a few words.

use super::*;

const HEAP: u64 = 0x1_0000_0000;
const CACHE: u64 = 0x5000;
const BUFFER: u64 = 0x5100;
const MIRROR: u64 = 0x5200;
const ARRAY: u64 = 0x5300;
const TARGET: u64 = HEAP + 0x8000;

/// What is seen in a heap of these words, read in pieces that end at `borders`.
fn seen(words: &[u64], borders: &[usize]) -> Seen {
    let classes = Classes::made_up(&[
        (CACHE, Form::Instance(32)),
        (BUFFER, Form::Instance(24)),
        (MIRROR, Form::Mirror),
        (ARRAY, Form::Objects),
    ]);
    let heads = Heads::new(&classes, [(Addr(BUFFER), 24)], vec![16]);
    let targets = Targets::new(&[(TARGET, 7)]);
    let (moved, moves) = (Targets::none(), Moves::default());
    let what = What { heads: &heads, oops: Oops::Whole, targets: &targets, moved: &moved, moves: &moves };
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let heap = Range::sized(Addr(HEAP), bytes.len() as u64);
    let read = |at: Addr, into: &mut [u8]| {
        let from = (at.0 - HEAP) as usize;
        into.copy_from_slice(&bytes[from..from + into.len()]);
        true
    };
    let resident = |range: Range| vec![range.intersect(heap)];
    let mut pass = Pass::new(&read, &resident, &what);
    let mut from = 0;
    for border in borders.iter().copied().chain([words.len()]) {
        pass.piece(Range::of(HEAP + from as u64 * 8, HEAP + border as u64 * 8));
        from = border;
    }
    pass.seen
}

/// Heads in words, classes and offsets of the references.
fn hits(words: &[u64]) -> Vec<(u64, u64, u32)> {
    let hit = |hit: &Hit| ((hit.head.0 - HEAP) / 8, hit.class.0, hit.offset);
    seen(words, &[]).hits.iter().map(hit).collect()
}

#[test]
fn a_reference_belongs_to_the_object_that_holds_it() {
    assert_eq!(hits(&[1, CACHE, TARGET, 0]), [(0, CACHE, 16)]);
    assert_eq!(hits(&[1, CACHE, 0, 0, TARGET]), [], "behind it");
    assert_eq!(hits(&[1, CACHE, TARGET + 8, 0]), [], "another object");
    // The length of an array lies behind its class; the elements follow.
    assert_eq!(hits(&[1, ARRAY | 2 << 32, 0, TARGET, TARGET]), [(0, ARRAY, 24)]);
    let nested = [1, ARRAY | 9 << 32, TARGET, 1, CACHE, 0, TARGET, TARGET];
    assert_eq!(hits(&nested), [(0, ARRAY, 16), (3, CACHE, 24), (0, ARRAY, 56)]);
}

#[test]
fn objects_of_wanted_classes_are_copied_over_a_border() {
    let words = [0, 1, BUFFER, 42, 1, CACHE, 0, 0];
    for borders in [&[][..], &[2], &[3]] {
        let seen = seen(&words, borders);
        let found: Vec<(u64, &[u8])> = seen.objects.iter().map(|it| (it.at, &it.bytes[16..])).collect();
        assert_eq!(found, [(HEAP + 8, &42_u64.to_le_bytes()[..])], "{borders:?}");
    }
}

#[test]
fn what_is_no_mark_is_no_header() {
    let is_seen = |mark| !seen(&[mark, BUFFER, 0], &[]).objects.is_empty();
    assert!(is_seen(1) && is_seen(0x1234_5601) && is_seen(0x7f00_0000_1000), "unlocked, hashed, locked");
    assert!(!is_seen(0x7f00_0000_1003), "moved");
    assert!(!is_seen(0) && !is_seen(0xffff_0000_0000_1000), "a null, a number");
}

#[test]
fn the_class_in_a_mirror_is_no_header() {
    assert_eq!(hits(&[1, MIRROR, BUFFER, 0, TARGET]), [(0, MIRROR, 32)]);
    assert!(seen(&[1, MIRROR, BUFFER, 0, TARGET], &[]).objects.is_empty());
}

#[test]
fn an_array_behind_a_mirror_is_no_part_of_it() {
    let words = [1, MIRROR, BUFFER, 5, TARGET, 1, ARRAY | 2 << 32, TARGET, TARGET];
    assert_eq!(hits(&words), [(0, MIRROR, 32), (5, ARRAY, 16), (5, ARRAY, 24)]);
    let unknown = [1, MIRROR, BUFFER, 0, TARGET, 1, ARRAY | 1 << 32, TARGET];
    assert_eq!(hits(&unknown), [(0, MIRROR, 32), (0, MIRROR, 56)], "nor known where its size is not");
}

#[test]
fn an_array_goes_on_in_the_second_half() {
    let first = seen(&[1, ARRAY | 3 << 32, 0], &[]);
    let loose = vec![((7, false), Addr(HEAP + 24)), ((7, false), Addr(HEAP + 4096))];
    let second = Seen { loose, ..Seen::default() };
    let classes = Classes::made_up(&[(ARRAY, Form::Objects)]);
    let mut joined = first;
    joined.join(second, &classes);
    let found: Vec<u32> = joined.hits.iter().map(|hit| hit.offset).collect();
    assert_eq!(found, [24], "the other lies behind it");
}
