use super::super::classes::{ClassTable, Form};
use super::super::on_pages::Spans;
use super::super::pass;
use super::*;
use crate::base::Addr;

const HEAP: u64 = 0x1_0000_0000;
const MARKS: u64 = 0x9000_0000;
const NODE: u64 = 0x5000;
const BYTES: u64 = 0x6000;
const MIRROR: u64 = 0x7000;
/// `byte[]`: a header of 16 bytes, elements of one.
const BYTES_LAYOUT: i32 = (0xc000_0000_u32 | 16 << 16 | 8 << 8) as i32;

fn table() -> ClassTable {
    ClassTable::made_up(&[
        (NODE, 24, Form::Instance),
        (BYTES, BYTES_LAYOUT, Form::Bytes),
        (MIRROR, 96, Form::Mirror),
    ])
}

/// Words from `HEAP` on, of which some pages may be absent.
struct Words {
    bytes: Vec<u8>,
    absent: Vec<Range>,
    /// At `MARKS`.
    marks: Vec<u8>,
}

impl Source for &Words {
    fn pages(&mut self, range: Range) -> Spans {
        Spans::of(range, [(range, 4096)])
    }

    fn aside(&mut self, at: Addr, into: &mut [u8]) -> bool {
        let place = (at.0 - MARKS) as usize;
        into.copy_from_slice(&self.marks[place..place + into.len()]);
        true
    }

    fn fill(&mut self, at: u64, end: u64, into: &mut Vec<u8>) -> Filled {
        if let Some(absent) = self.absent.iter().find(|absent| absent.has(Addr(at))) {
            return Filled::Absent(absent.end.0);
        }
        let behind = self.absent.iter().map(|absent| absent.start.0).filter(|start| *start > at);
        let end = behind.fold(end, u64::min).min(HEAP + self.bytes.len() as u64);
        into.clear();
        into.extend_from_slice(&self.bytes[(at - HEAP) as usize..(end - HEAP) as usize]);
        Filled::Read
    }
}

fn words(words: &[u64]) -> Words {
    Words {
        bytes: words.iter().flat_map(|word| word.to_le_bytes()).collect(),
        absent: Vec::new(),
        marks: Vec::new(),
    }
}

fn region(of: &Words) -> Region {
    Region { range: Range::sized(Addr(HEAP), of.bytes.len() as u64), ..Region::default() }
}

/// Instances and bytes of nodes, arrays and mirrors, and the sums, which add up to the region.
fn walked(words: &Words, region: &Region) -> ([(u64, u64); 3], HeapBytes) {
    let table = table();
    let source = || Box::new(words) as Box<dyn Source + '_>;
    let found = pass::contents(&table, std::slice::from_ref(region), 1, &source).expect("no panic");
    let bytes = found[0].bytes;
    let all = bytes.object_bytes + bytes.dead_bytes + bytes.idle_bytes() + bytes.not_known_bytes();
    assert_eq!(all, region.range.bytes(), "each byte is in one sum: {bytes:?}");
    let of = |class: u32| {
        let count = found[0].counts.iter().find(|(number, _)| *number == class);
        count.map_or((0, 0), |(_, count)| (count.instances, count.bytes))
    };
    ([of(0), of(1), of(2)], bytes)
}

fn node() -> [u64; 3] {
    [1, NODE, 7]
}

/// An array with `length` bytes that look like anything.
fn array(length: u64, content: u64) -> Vec<u64> {
    let mut all = vec![1, BYTES | length << 32];
    all.resize((16 + length).div_ceil(8) as usize, content);
    all
}

#[test]
fn objects_of_all_forms_one_behind_the_other() {
    let mut all = [&node()[..], &array(20, 9), &[1, MIRROR, 14], &[0; 11], &node()].concat();
    let text = words(&all);
    let (counts, bytes) = walked(&text, &region(&text));
    assert_eq!(counts, [(2, 48), (1, 40), (1, 112)]);
    assert_eq!(bytes.object_bytes, all.len() as u64 * 8);
    // A mirror without a size cannot be passed over; what comes after it is found.
    all[8 + 2] = 0;
    all.extend((0..6).flat_map(|_| node()));
    let text = words(&all);
    let (counts, bytes) = walked(&text, &region(&text));
    assert_eq!((counts[2], bytes.unknown_bytes), ((0, 0), 112));
    assert_eq!(counts[0].0, 8);
}

#[test]
fn forged_sizes_end_nothing_and_count_nothing() {
    let huge = [1, BYTES | 0x7fff_ffff << 32];
    for middle in [&huge[..], &[1, BYTES | 0xffff_ffff << 32], &[0, 0], &[1, 0xdead], &[u64::MAX; 4]] {
        let before: Vec<u64> = (0..4).flat_map(|_| node()).collect();
        let text = words(&[&before[..], middle, &before, &before].concat());
        let (counts, bytes) = walked(&text, &region(&text));
        assert_eq!(counts[0], (12, 288), "{middle:x?}");
        assert_eq!(bytes.unknown_bytes, middle.len() as u64 * 8);
    }
    let zeros = words(&[0; 4096]);
    let (counts, bytes) = walked(&zeros, &region(&zeros));
    assert_eq!((counts[0].0, bytes.unknown_bytes), (0, 4096 * 8));
}

#[test]
fn unused_ends_of_buffers_hold_no_objects_though_they_look_so() {
    let all: Vec<u64> = (0..20).flat_map(|_| node()).collect();
    let text = words(&all);
    let hole = |first: u64, end: u64| Range::of(HEAP + first * 24, HEAP + end * 24);
    let region = Region { holes: vec![hole(3, 5), hole(18, 20)], ..region(&text) };
    let (counts, bytes) = walked(&text, &region);
    assert_eq!((counts[0].0, bytes.unused_buffer_bytes), (16, 4 * 24));
}

#[test]
fn what_the_last_marking_found_dead_is_counted_apart() {
    let mut text = words(&(0..8).flat_map(|_| node()).collect::<Vec<u64>>());
    // Two bits for each word: the first and the third node are marked, and the last two are newer.
    text.marks = vec![1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let marks =
        Marks { map: Addr(MARKS), bits: 128, first: HEAP, bits_each: 2, limit: HEAP + 6 * 24, ..Marks::ALL };
    let region = Region { marks: Some(marks), ..region(&text) };
    let (counts, bytes) = walked(&text, &region);
    assert_eq!((counts[0].0, bytes.dead_bytes), (4, 4 * 24));
}

#[test]
fn absent_pages_are_passed_over() {
    let nodes: Vec<u64> = (0..2048).flat_map(|_| node()).collect();
    let mut text = words(&nodes);
    text.absent = vec![Range::of(HEAP + 4096, HEAP + 3 * 4096)];
    let (counts, bytes) = walked(&text, &region(&text));
    let first = 4096 / 24;
    assert!(bytes.absent_bytes >= 2 * 4096 - 24 && bytes.absent_bytes <= 2 * 4096, "{bytes:?}");
    assert!((first..=2048).contains(&counts[0].0) && bytes.object_bytes >= (2048 - 345) * 24);
}

#[test]
fn one_object_is_all_of_a_humongous_region() {
    let text = words(&[&array(100, 1)[..], &node(), &[0; 50]].concat());
    let region = Region { lie: Lie::Single, ..region(&text) };
    let (counts, bytes) = walked(&text, &region);
    assert_eq!((counts[0], counts[1]), ((0, 0), (1, 120)));
    assert_eq!(bytes.tail_bytes, region.range.bytes() - 120);
}

#[test]
fn free_chunks_of_cms_and_the_room_that_small_objects_have() {
    let free = |words: u64| [&[0x81 | words << 8, HEAP, 0][..], &vec![7; words as usize - 3]].concat();
    let small = [1, BYTES, 0];
    let text = words(&[&node()[..], &free(20), &small, &node()].concat());
    let region = Region { lie: Lie::WithFreeChunks, ..region(&text) };
    let (counts, bytes) = walked(&text, &region);
    assert_eq!((counts[0], counts[1]), ((2, 48), (1, 16)));
    assert_eq!((bytes.free_bytes, bytes.tail_bytes), (160, 8));
}

#[test]
fn objects_at_multiples_of_a_unit() {
    let mut all = array(500, 3);
    all.resize(256, 0);
    all.extend(array(3000, 3));
    all.resize(3 * 256, 0);
    let text = words(&all);
    let region = Region { lie: Lie::Aligned(2048), ..region(&text) };
    let (counts, bytes) = walked(&text, &region);
    assert_eq!(counts[1].0, 2);
    assert_eq!(bytes.tail_bytes, 3 * 2048 - counts[1].1);
}

/// A region of several parts: arrays lie over the borders, and one is full of what looks like objects.
#[test]
fn parts_are_walked_from_guesses_that_must_be_arrived_at() {
    let mut all: Vec<u64> = Vec::new();
    let (mut nodes, mut arrays) = (0, 0);
    let forged: Vec<u64> = (0..1 << 20).flat_map(|_| node()).collect();
    for round in 0..6_u64 {
        (0..10_000).for_each(|_| all.extend(node()));
        nodes += 10_000;
        let mut one = array((20 << 20) + round, 0);
        let room = one.len() - 2;
        one[2..2 + room.min(forged.len())].copy_from_slice(&forged[..room.min(forged.len())]);
        all.extend(one);
        arrays += 1;
    }
    let text = words(&all);
    let (counts, bytes) = walked(&text, &region(&text));
    assert_eq!((counts[0].0, counts[1].0), (nodes, arrays));
    assert_eq!(bytes.unknown_bytes, 0);
}
