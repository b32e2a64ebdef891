//! What a recording needs of the blocks to give them the same owners again: of each shape the words that made it, and the
//! pointers that were followed. No text of the target: of a symbol only its length and two letters that are none of its.

use super::given::Given;
use super::shapes::{Shape, Shapes};
use crate::base::{Addr, Range};
use crate::os::Memory;

/// What stands for the name of any lock: it fits in the smallest block.
pub const LOCK_NAME: &[u8] = b"some-lock\0";

/// What stands for a word that is none of what shapes look for: no link, no count, no length.
pub const NOTHING: [u8; 8] = [0xff; 8];
/// Shapes that need no more than pointers and zeros are those of blocks up to this.
const MISLEADING_BYTES_MAX: u64 = 352;

/// Notes the evidence, if it is wanted.
pub fn note(memory: &dyn Memory, shapes: &Shapes, given: &Given) {
    if !memory.keeps_what_is_read() {
        return;
    }
    let keep = |at: Addr, length: usize| {
        let mut bytes = vec![0; length];
        if memory.read_once(at, &mut bytes).is_ok() {
            memory.used(at, &bytes);
        }
    };
    for block in 0..given.index.len() {
        let is_small = given.index.payload(block).bytes() <= MISLEADING_BYTES_MAX;
        if is_small && given.shape(block) == Shape::None {
            note_what_it_is_not(memory, shapes, given, given.index.payload(block));
        }
        if given.owners[block].is_none() {
            continue;
        }
        let start = given.index.payload(block).start;
        match given.shape(block) {
            shape @ (Shape::Symbol | Shape::SymbolNode) => {
                for (at, length, is_text) in shapes.evidence_of_symbol(memory, start, shape) {
                    if is_text {
                        memory.stands_for(at, b"x");
                    } else {
                        keep(at, length);
                    }
                }
            }
            Shape::LockName => memory.used(start, LOCK_NAME),
            shape => {
                for (from, length) in shapes.evidence(memory, given.index.payload(block), shape) {
                    keep(start.plus(from), length);
                }
            }
        }
        // Those to blocks without an owner, too: an array of buckets is known by their number.
        for edge in given.contents.edges_of(block) {
            keep(start.plus(u64::from(edge.word) * 8), 8);
        }
    }
}

/// A block without a shape may seem to have one where only its pointers are known and the rest is zeros.
fn note_what_it_is_not(memory: &dyn Memory, shapes: &Shapes, given: &Given, payload: Range) {
    let mut bytes = vec![0; payload.bytes() as usize];
    if memory.read_once(payload.start, &mut bytes).is_err() {
        return;
    }
    let is_pointer = |word: u64| given.index.holding(word).is_some() || shapes.is_class(word);
    let (mut pointers, mut others) = (bytes, Vec::new());
    for (index, bytes) in pointers.as_chunks_mut::<8>().0.iter_mut().enumerate() {
        let word = u64::from_le_bytes(*bytes);
        if word != 0 && !is_pointer(word) {
            *bytes = [0; 8];
            others.push(payload.start.plus(index as u64 * 8));
        }
    }
    if shapes.of(payload, &pointers, given.index) != Shape::None {
        others.iter().for_each(|at| memory.stands_for(*at, &NOTHING));
    }
}
