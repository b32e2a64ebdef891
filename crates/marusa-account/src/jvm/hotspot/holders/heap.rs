//! The words of the Java heap that are addresses of blocks, and which field of which class holds each. One pass over what is in
//! use, by two threads where memory can be read so. Every word is asked whether a block starts there; behind a hit the
//! nearest header of an object is looked for that is large enough to hold the word.

use super::classes::{Classes, Form};
use super::mappings::Held;
use crate::base::{Addr, Known, Range, holding, joined};
use crate::jvm::hotspot::owners::fetch::{Read, Resident};
use crate::jvm::hotspot::{Hotspot, heap};
use crate::jvm::types::Gc;
use crate::os::Target;
use crate::os::budget;
use crate::os::memory::Bulk;
use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// How often a heap that moves is read, and for how long. A large one is collected in every pass; what holds native memory there
/// has mostly stopped moving.
const PASSES_MAX: usize = 4;
const PASSES_SECONDS_MAX: Duration = Duration::from_secs(1);
/// Bytes that are read at once.
const PIECE_BYTES: u64 = 1 << 20;
/// Fields of larger objects are not found. Static fields of a class lie behind those of its mirror.
const OBJECT_BYTES_MAX: u64 = 2048;
/// `long[]` of up to this size are seen from their last element.
const ARRAY_BYTES_MAX: u64 = 64 << 10;
/// Words that no field holds are looked for in arrays, this number at most in each piece: each costs thousands of looks at headers.
const ARRAYS_LOOKED_MAX: usize = 100;
const HITS_MAX: usize = 4_000_000;

/// A word of the heap that is the address of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hit {
    pub block: u32,
    pub at: Addr,
    /// The address of the object.
    pub head: Addr,
    pub class: Addr,
    pub form: Form,
}

#[derive(Default)]
pub struct Hits {
    pub found: Vec<Hit>,
    pub is_cut: bool,
    /// Whether objects may have moved while the last pass ran, and it still found what the others had not.
    pub has_moved: bool,
}

/// Searches the heap.
pub fn read(vm: &Hotspot, gc: Gc, held: &Held, classes: &Classes) -> Known<Hits> {
    let target = vm.target;
    match target.memory.bulk() {
        Some(bulk) => by_threads(bulk, vm, gc, held, classes),
        None => {
            let read = |at, into: &mut [u8]| target.memory.read_once(at, into).is_ok();
            let resident = |range| target.view.resident_ranges(range);
            let mut pass = Pass::new(&read, &resident, held, classes);
            for range in joined(heap::used(vm, gc)?) {
                pieces(range).for_each(|piece| pass.piece(&piece));
            }
            // A recording keeps what was found, and nothing else of the heap.
            pass.hits.found.iter().for_each(|hit| keep(target, hit));
            Ok(pass.hits)
        }
    }
}

fn keep(target: &Target, hit: &Hit) {
    for at in [hit.head, hit.head.plus(8), hit.head.plus(16), hit.at] {
        let mut word = [0; 8];
        if target.memory.read_once(at, &mut word).is_ok() {
            target.memory.used(at, &word);
        }
    }
}

/// Objects move while they are read, to memory that was read already or that is in use since. So the collector is asked what is in
/// use right before a pass, and where objects may have moved, all is read again until a pass finds nothing new.
fn by_threads(bulk: &dyn Bulk, vm: &Hotspot, gc: Gc, held: &Held, classes: &Classes) -> Known<Hits> {
    let (mut hits, mut blocks, started) = (Hits::default(), HashSet::new(), Instant::now());
    let moves_any_time =
        matches!(gc, Gc::Z | Gc::ZGenerational | Gc::Shenandoah | Gc::ShenandoahGenerational);
    let used = || vm.now(|vm| heap::used(vm, gc)).map(joined);
    let (mut before, mut ranges) = (vm.now(heap::collections), used()?);
    for pass in 1..=PASSES_MAX {
        let more =
            one_pass(bulk, vm.target, ranges.iter().copied().flat_map(pieces).collect(), held, classes);
        let known = blocks.len();
        blocks.extend(more.found.iter().map(|hit| hit.block));
        hits.is_cut |= more.is_cut;
        hits.found.extend(more.found);
        let (after, still) = (vm.now(heap::collections), used()?);
        let may_have_moved = moves_any_time || before != after || !is_within(&ranges, &still);
        let is_new = pass == 1 || blocks.len() > known || blocks.is_empty();
        hits.has_moved = may_have_moved && is_new;
        if !hits.has_moved || hits.is_cut || started.elapsed() > PASSES_SECONDS_MAX {
            break;
        }
        (before, ranges) = (after, still);
    }
    Ok(hits)
}

/// Whether all of `ranges` is in `others`, both joined. What was in use is free only after a collection.
fn is_within(ranges: &[Range], others: &[Range]) -> bool {
    ranges.iter().all(|range| holding(others, range.start).is_some_and(|other| other.covers(*range)))
}

/// Two threads, each of which takes the next piece.
fn one_pass(bulk: &dyn Bulk, target: &Target, pieces: Vec<Piece>, held: &Held, classes: &Classes) -> Hits {
    let next = AtomicUsize::new(0);
    let run = || {
        let read = |at, into: &mut [u8]| bulk.read(at, into).is_ok();
        // Asked right before each piece is read: a page that is absent must not come by being read.
        let resident = |range| bulk.resident(range).unwrap_or_else(|| target.view.resident_ranges(range));
        let mut pass = Pass::new(&read, &resident, held, classes);
        while let Some(piece) = pieces.get(next.fetch_add(1, Ordering::Relaxed)) {
            pass.piece(piece);
        }
        pass.hits
    };
    std::thread::scope(|scope| {
        let second = scope.spawn(budget::inherit(run));
        let mut hits = run();
        match second.join() {
            Ok(more) => {
                hits.found.extend(more.found);
                hits.is_cut |= more.is_cut;
            }
            Err(_) => hits.is_cut = true,
        }
        hits
    })
}

struct Piece {
    /// Where it is read from: an object may begin before it.
    lead: Addr,
    range: Range,
}

fn pieces(range: Range) -> impl Iterator<Item = Piece> {
    let starts = (range.start.0..range.end.0).step_by(PIECE_BYTES as usize);
    starts.map(move |start| Piece {
        lead: Addr(start.saturating_sub(OBJECT_BYTES_MAX).max(range.start.0)),
        range: Range::new(Addr(start), Addr((start + PIECE_BYTES).min(range.end.0))),
    })
}

struct Pass<'a> {
    read: Read<'a>,
    resident: Resident<'a>,
    held: &'a Held,
    classes: &'a Classes,
    words: Vec<u64>,
    bytes: Vec<u8>,
    hits: Hits,
}

impl<'a> Pass<'a> {
    fn new(read: Read<'a>, resident: Resident<'a>, held: &'a Held, classes: &'a Classes) -> Pass<'a> {
        Pass { read, resident, held, classes, words: Vec::new(), bytes: Vec::new(), hits: Hits::default() }
    }

    fn piece(&mut self, piece: &Piece) {
        for range in (self.resident)(Range::new(piece.lead, piece.range.end)) {
            if budget::check_now().is_err() || self.hits.is_cut {
                self.hits.is_cut = true;
                return;
            }
            self.look(range, piece.range.start);
        }
    }

    /// Looks for addresses of blocks from `from` on.
    fn look(&mut self, range: Range, from: Addr) {
        self.bytes.resize(range.bytes() as usize, 0);
        // A page that is gone takes the others along.
        if !(self.read)(range.start, &mut self.bytes) {
            return;
        }
        self.words.clear();
        self.words.extend(self.bytes.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word)));
        let mut arrays = Arrays { last: None, looked: 0 };
        let first = from.0.saturating_sub(range.start.0) as usize / 8;
        for place in first..self.words.len() {
            let Some(block) = self.held.at_start(self.words[place]) else { continue };
            let found = self.holder(place).or_else(|| arrays.holding(self.classes, &self.words, place));
            let Some((head, form, class)) = found else { continue };
            let address = |place: usize| range.start.plus(place as u64 * 8);
            let (at, head) = (address(place), address(head));
            self.hits.found.push(Hit { block: block as u32, at, head, class, form });
            if self.hits.found.len() == HITS_MAX {
                self.hits.is_cut = true;
                return;
            }
        }
    }

    /// The nearest object that holds the word: where its header lies, and its class.
    fn holder(&self, place: usize) -> Option<(usize, Form, Addr)> {
        let first = place.saturating_sub(OBJECT_BYTES_MAX as usize / 8);
        (first..=place).rev().find_map(|head| {
            let next = self.words.get(head + 1).copied().unwrap_or(0);
            let (form, class) = self.classes.of_head(self.words[head], next)?;
            let end = match form {
                Form::Instance(bytes) => head + bytes as usize / 8,
                Form::Mirror => head + self.classes.mirror_bytes(&self.words, head) as usize / 8,
                Form::Longs | Form::Objects => return None,
            };
            (place < end).then_some((head, form, class))
        })
    }
}

/// Arrays of `long` in one piece.
struct Arrays {
    /// Where the last one that was found begins and ends, in words.
    last: Option<(usize, usize, Addr)>,
    looked: usize,
}

impl Arrays {
    fn holding(&mut self, classes: &Classes, words: &[u64], place: usize) -> Option<(usize, Form, Addr)> {
        let found = |(head, end, class)| (place < end).then_some((head, Form::Longs, class));
        if let Some(found) = self.last.and_then(found) {
            return Some(found);
        }
        if self.looked == ARRAYS_LOOKED_MAX {
            return None;
        }
        self.looked += 1;
        let (first_at, length_at) = classes.longs_at();
        let first = place.saturating_sub(ARRAY_BYTES_MAX as usize / 8);
        self.last = (first..place).rev().find_map(|head| {
            let next = words.get(head + 1).copied().unwrap_or(0);
            let (Form::Longs, class) = classes.of_head(words[head], next)? else { return None };
            let word = words.get(head + length_at as usize / 8)?;
            let length = if length_at % 8 == 4 { word >> 32 } else { word & 0xffff_ffff } as usize;
            let end = head + first_at as usize / 8 + length;
            (place >= head + first_at as usize / 8 && place < end).then_some((head, end, class))
        });
        self.last.and_then(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCK: u64 = 0x7f00_0000_0010;
    const HEAP: u64 = 0x1_0000_0000;
    const CLASS: u64 = 0x5000;
    const SMALL: u64 = 0x6000;
    const LONGS: u64 = 0x7000;
    const MIRROR: u64 = 0x8000;

    /// The hits in a heap of these words: head and form.
    fn hits(words: &[u64]) -> Vec<(u64, Form)> {
        let held = Held::made_up(&[(BLOCK, 100), (BLOCK + 0x1000, 100)], &[]);
        let classes = Classes::made_up(&[
            (CLASS, Form::Instance(32)),
            (SMALL, Form::Instance(16)),
            (LONGS, Form::Longs),
            (MIRROR, Form::Mirror),
        ]);
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let heap = Range::sized(Addr(HEAP), bytes.len() as u64);
        let read = |at: Addr, into: &mut [u8]| {
            let from = (at.0 - HEAP) as usize;
            into.copy_from_slice(&bytes[from..from + into.len()]);
            true
        };
        let resident = |range: Range| vec![range.intersect(heap)];
        let mut pass = Pass::new(&read, &resident, &held, &classes);
        pieces(heap).for_each(|piece| pass.piece(&piece));
        pass.hits.found.iter().map(|hit| ((hit.head.0 - HEAP) / 8, hit.form)).collect()
    }

    #[test]
    fn the_nearest_object_that_is_large_enough_holds_a_word() {
        let object = Form::Instance(32);
        assert_eq!(hits(&[1, CLASS, 0, BLOCK]), [(0, object)]);
        assert_eq!(hits(&[1, CLASS, 1, SMALL, BLOCK]), [], "behind both");
        assert_eq!(hits(&[1, SMALL, 1, CLASS, BLOCK, 7]), [(2, object)]);
        assert_eq!(hits(&[1, CLASS, 0, BLOCK + 96]), [], "no block starts there or right before it");
        assert_eq!(hits(&[7, 7, BLOCK]), []);
    }

    #[test]
    fn elements_of_arrays_of_long_are_found() {
        let array = [1, LONGS | 3 << 32, BLOCK, 9, BLOCK + 0x1000, BLOCK];
        assert_eq!(hits(&array), [(0, Form::Longs), (0, Form::Longs)], "the last word lies behind it");
    }

    #[test]
    fn what_follows_a_mirror_is_no_part_of_it() {
        let mirror = [1, MIRROR, 0, 5, BLOCK];
        assert_eq!(hits(&mirror), [(0, Form::Mirror)]);
        let array = [1, LONGS | 2 << 32, BLOCK, BLOCK];
        assert_eq!(
            hits(&[&mirror[..], &array].concat()),
            [(0, Form::Mirror), (5, Form::Longs), (5, Form::Longs)]
        );
    }

    #[test]
    fn memory_that_was_in_use_and_is_not_any_more_shows_a_collection() {
        let range = |start, end| Range::new(Addr(start), Addr(end));
        let before = [range(0x1000, 0x2000), range(0x4000, 0x5000)];
        assert!(is_within(&before, &[range(0x1000, 0x2800), range(0x4000, 0x5000)]), "it only grew");
        assert!(is_within(&before, &[range(0x1000, 0x6000)]));
        assert!(!is_within(&before, &[range(0x1000, 0x2000)]), "the second is free");
        assert!(!is_within(&before, &[range(0x1000, 0x2000), range(0x4800, 0x5000)]));
        assert!(!is_within(&before, &[]));
    }

    #[test]
    fn an_object_over_the_border_of_two_pieces_is_met() {
        let border = PIECE_BYTES as usize / 8;
        let mut words = vec![0; border + 8];
        words[border - 2..border + 2].copy_from_slice(&[1, CLASS, BLOCK, BLOCK]);
        let head = border as u64 - 2;
        assert_eq!(hits(&words), [(head, Form::Instance(32)), (head, Form::Instance(32))]);
    }
}
