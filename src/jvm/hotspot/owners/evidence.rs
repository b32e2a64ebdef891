//! What a recording needs of the blocks to give them the same owners again: of each shape the words that made it, and the
//! pointers that were followed. No text of the target: of a symbol only its length and two letters that are none of its.

use super::given::Given;
use super::shapes::{Shape, Shapes};
use crate::base::Addr;
use crate::os::Memory;

/// What stands for the name of any lock: it fits in the smallest block.
const LOCK_NAME: &[u8] = b"some-lock\0";

/// Notes the evidence, if anybody wants it.
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
    for block in (0..given.index.len()).filter(|block| given.owners[*block].is_some()) {
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
            Shape::LockName => memory.stands_for(start, LOCK_NAME),
            shape => {
                for (from, length) in shapes.evidence(memory, given.index.payload(block), shape) {
                    keep(start.plus(from), length);
                }
            }
        }
        for edge in given.contents.edges_of(block) {
            if given.owners[edge.to as usize].is_some() {
                keep(start.plus(u64::from(edge.word) * 8), 8);
            }
        }
    }
}
