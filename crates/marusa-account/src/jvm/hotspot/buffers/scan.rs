//! One pass over what is allocated of the Java heap and in memory, by two threads where memory can be read so: objects of wanted
//! classes, and the references to given objects, each with the object that has it.
//!
//! A word and the next one are taken for the header of an object where they name a class and the mark word may be one. A mark that
//! says that the object was moved (lock bits 11, src/hotspot/share/oops/markWord.hpp) is not: the copy is met elsewhere.

use super::heads::Heads;
use super::moves::Moves;
use super::oops::{GENERATIONS, Oops};
use super::targets::Targets;
use crate::base::{Addr, Range};
use crate::jvm::hotspot::holders::classes::{Classes, Form};
use crate::jvm::hotspot::owners::fetch::{Read, Resident};
use crate::jvm::hotspot::window::{array, word};
use crate::os::Target;
use crate::os::budget;
use crate::os::memory::Bulk;

const PIECE_BYTES: u64 = 1 << 20;
const LAST_HEADERS: usize = 4;
pub const OBJECTS_MAX: usize = 4_000_000;
const HITS_MAX: usize = 8_000_000;

/// An object of a wanted class.
pub struct Object {
    /// Plain (`Oops::plain`).
    pub at: u64,
    pub place: Addr,
    pub class: Addr,
    pub bytes: Box<[u8]>,
}

/// A reference to a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hit {
    pub target: u32,
    /// The reference may be one to another object that was there before.
    pub is_uncertain: bool,
    /// The object that has it, where it lies, and its class.
    pub head: Addr,
    pub class: Addr,
    pub form: Form,
    pub offset: u32,
}

#[derive(Default)]
pub struct Seen {
    pub objects: Vec<Object>,
    pub hits: Vec<Hit>,
    pub is_cut: bool,
    /// References before the first header: the target and where it lies.
    loose: Vec<((u32, bool), Addr)>,
    open: Open,
}

/// The objects that the next word may be part of.
#[derive(Clone, Copy, Default)]
struct Open {
    /// The last headers, the newest first, with the class and, of a mirror, the end: what looks like one may lie within another
    /// object.
    heads: [Option<(Addr, Addr, Addr)>; LAST_HEADERS],
    /// The last mirror.
    mirror: Addr,
    /// The last array of references: where it begins and ends, and its class.
    array: Option<(Addr, Addr, Addr)>,
}

impl Open {
    /// The object that has a reference at `at`.
    fn hit(&self, at: Addr, (target, is_uncertain): (u32, bool), classes: &Classes) -> Option<Hit> {
        let hit = |head: Addr, class: Addr, form| Hit {
            target,
            is_uncertain,
            head,
            class,
            form,
            offset: (at.0 - head.0).min(u64::from(u32::MAX)) as u32,
        };
        for (head, class, mirror_end) in self.heads.iter().flatten().copied() {
            let form = classes.form(class);
            let end = match form {
                Some(Form::Instance(bytes)) => head.plus(u64::from(bytes)),
                Some(Form::Mirror) => mirror_end,
                _ => head,
            };
            if let Some(form) = form.filter(|_| at < end) {
                return Some(hit(head, class, form));
            }
        }
        let (head, _, class) = self.array.filter(|(_, end, _)| at < *end)?;
        Some(hit(head, class, Form::Objects))
    }
}

pub struct What<'a> {
    pub heads: &'a Heads<'a>,
    pub oops: Oops,
    pub targets: &'a Targets,
    /// The same by where they were, for references that are stale, by generation.
    pub moved: &'a [Targets; GENERATIONS],
    pub moves: &'a Moves,
}

impl What<'_> {
    #[inline(always)]
    fn target(&self, reference: u64) -> Option<(u32, bool)> {
        let to = self.oops.decoded(reference);
        if to == 0 {
            return None;
        }
        if !self.oops.is_stale(reference) {
            return self.targets.find(to).map(|target| (target, false));
        }
        let mut moved = self.oops.moved_with(reference);
        if let Some(target) = moved.find_map(|generation| self.moved[generation].find(to)) {
            return Some((target, false));
        }
        // What lies there now is not meant if something else was there.
        let found = self.targets.find(to).filter(|_| self.moves.follow(self.oops, reference) == to);
        found.map(|target| (target, true))
    }
}

/// Looks through `ranges`, which are sorted and disjoint.
pub fn scan(target: &Target, ranges: &[Range], what: &What) -> Seen {
    let resident = ranges.iter().flat_map(|range| target.view.resident_ranges(*range));
    let pieces: Vec<Range> = resident.flat_map(pieces).collect();
    match target.memory.bulk() {
        Some(bulk) => by_threads(bulk, target, &pieces, what),
        None => {
            let read = |at, into: &mut [u8]| target.memory.read_once(at, into).is_ok();
            let resident = |range| target.view.resident_ranges(range);
            let mut pass = Pass::new(&read, &resident, what);
            pieces.iter().for_each(|piece| pass.piece(*piece));
            // A recording keeps what was found, and nothing else of the heap.
            keep(target, &pass.seen, what);
            pass.seen
        }
    }
}

fn keep(target: &Target, seen: &Seen, what: &What) {
    let used = |at: Addr, bytes: u64| {
        let mut into = vec![0; bytes as usize];
        if target.memory.read_once(at, &mut into).is_ok() {
            target.memory.used(at, &into);
        }
    };
    seen.objects.iter().for_each(|object| target.memory.used(object.place, &object.bytes));
    for hit in &seen.hits {
        used(hit.head, 24);
        if let (Form::Mirror, Some(at)) = (hit.form, what.heads.classes.mirror_size_at) {
            used(hit.head.plus(at), 4);
        }
        used(hit.head.plus(u64::from(hit.offset)), what.oops.bytes() as u64);
    }
}

fn by_threads(bulk: &dyn Bulk, target: &Target, pieces: &[Range], what: &What) -> Seen {
    let run = |pieces: &[Range]| {
        let read = |at, into: &mut [u8]| bulk.read(at, into).is_ok();
        // Asked right before each piece is read: a page that is absent must not come by being read.
        let resident = |range| bulk.resident(range).unwrap_or_else(|| target.view.resident_ranges(range));
        let mut pass = Pass::new(&read, &resident, what);
        pieces.iter().for_each(|piece| pass.piece(*piece));
        pass.seen
    };
    let (one, other) = pieces.split_at(pieces.len() / 2);
    std::thread::scope(|scope| {
        let second = scope.spawn(budget::inherit(|| run(other)));
        let mut seen = run(one);
        match second.join() {
            Ok(more) => seen.join(more, what.heads.classes),
            Err(_) => seen.is_cut = true,
        }
        seen
    })
}

impl Seen {
    /// What the other thread saw, behind this.
    fn join(&mut self, more: Seen, classes: &Classes) {
        self.objects.extend(more.objects);
        self.hits.extend(more.hits);
        self.is_cut |= more.is_cut;
        // The last object of the first half may go on in the second.
        let open = self.open;
        let loose = more.loose.into_iter().filter_map(|(target, at)| open.hit(at, target, classes));
        self.hits.extend(loose);
    }
}

fn pieces(range: Range) -> impl Iterator<Item = Range> {
    let starts = (range.start.0..range.end.0).step_by(PIECE_BYTES as usize);
    starts.map(move |start| Range::new(Addr(start), Addr((start + PIECE_BYTES).min(range.end.0))))
}

struct Pass<'a> {
    read: Read<'a>,
    resident: Resident<'a>,
    what: &'a What<'a>,
    bytes: Vec<u8>,
    words: Vec<u64>,
    seen: Seen,
}

impl<'a> Pass<'a> {
    fn new(read: Read<'a>, resident: Resident<'a>, what: &'a What<'a>) -> Pass<'a> {
        let (bytes, words) = (Vec::new(), Vec::new());
        Pass { read, resident, what, bytes, words, seen: Seen::default() }
    }

    fn piece(&mut self, piece: Range) {
        for range in (self.resident)(piece) {
            self.seen.is_cut |= budget::check_now().is_err()
                || self.seen.objects.len() > OBJECTS_MAX
                || self.seen.hits.len() > HITS_MAX;
            if self.seen.is_cut {
                return;
            }
            self.look(range);
        }
    }

    fn look(&mut self, range: Range) {
        self.bytes.resize(range.bytes() as usize, 0);
        // A page that is gone takes the others along.
        if !(self.read)(range.start, &mut self.bytes) {
            return;
        }
        self.words.clear();
        self.words.extend(self.bytes.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word)));
        // The word behind may have the class of the last header.
        let after = self.over_the_border(range.end, 8);
        self.words.push(word(&after, 0));
        let has_targets = !self.what.targets.is_empty();
        let is_narrow = self.what.oops.bytes() == 4;
        for place in 0..self.words.len() - 1 {
            let (word, next) = (self.words[place], self.words[place + 1]);
            if let Some(class) = self.what.heads.class(word, next) {
                self.head(range, place, class);
            }
            if !has_targets || word == 0 {
                continue;
            }
            let at = range.start.plus(place as u64 * 8);
            if is_narrow {
                self.reference(at, word & 0xffff_ffff);
                self.reference(at.plus(4), word >> 32);
            } else {
                self.reference(at, word);
            }
        }
    }

    fn head(&mut self, range: Range, place: usize, class: u64) {
        let at = range.start.plus(place as u64 * 8);
        let open = &mut self.seen.open;
        if self.what.heads.is_in_mirror(at, open.mirror) {
            return;
        }
        open.heads.rotate_right(1);
        let mut mirror_end = at;
        if self.what.heads.mirror == class {
            open.mirror = at;
            mirror_end = at.plus(self.what.heads.classes.mirror_bytes(&self.words, place));
        }
        open.heads[0] = Some((at, Addr(class), mirror_end));
        if self.what.heads.is_array(class) {
            let length_at = place * 8 + self.what.heads.length_at as usize;
            let length = u64::from(array(&self.bytes, length_at).map_or(0, u32::from_le_bytes));
            let bytes = length.saturating_mul(self.what.oops.bytes() as u64);
            let first = (self.what.heads.length_at + 4).next_multiple_of(self.what.oops.bytes() as u64);
            let end = at.plus(first).plus(bytes);
            open.array = Some((at, end, Addr(class)));
        }
        let Some(bytes) = self.what.heads.wanted.get(&class) else { return };
        let (from, bytes) = (place * 8, *bytes as usize);
        let object = match self.bytes.get(from..from + bytes) {
            Some(whole) => whole.into(),
            None => self.over_the_border(at, bytes),
        };
        if !object.is_empty() {
            let plain = self.what.oops.plain(at);
            self.seen.objects.push(Object { at: plain, place: at, class: Addr(class), bytes: object });
        }
    }

    fn over_the_border(&self, at: Addr, bytes: usize) -> Box<[u8]> {
        let range = Range::sized(at, bytes as u64);
        let mut object = vec![0; bytes];
        let is_read = (self.resident)(range.widened(crate::base::PAGE)).iter().any(|it| it.covers(range))
            && (self.read)(at, &mut object);
        if is_read { object.into() } else { Box::default() }
    }

    #[inline(always)]
    fn reference(&mut self, at: Addr, reference: u64) {
        if let Some(target) = self.what.target(reference) {
            self.hit(at, target);
        }
    }

    fn hit(&mut self, at: Addr, target: (u32, bool)) {
        match self.seen.open.hit(at, target, self.what.heads.classes) {
            Some(hit) => self.seen.hits.push(hit),
            None if self.seen.open.heads[0].is_none() && self.seen.loose.len() < HITS_MAX => {
                self.seen.loose.push((target, at));
            }
            None => {}
        }
    }
}

#[cfg(test)]
#[path = "scan_tests.rs"]
mod tests;
