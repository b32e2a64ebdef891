//! Objects that ZGC moved and to which references still lead where they were.

use super::oops::Oops;
use crate::base::{Known, Range};
use crate::jvm::hotspot::Hotspot;
use crate::jvm::hotspot::heap::z_forwarding;
use std::collections::HashMap;

/// By plain addresses.
#[derive(Default)]
pub struct Moves {
    to: HashMap<u64, u64>,
    from: HashMap<u64, Vec<u64>>,
}

impl Moves {
    pub fn read(vm: &Hotspot, oops: Oops, used: &[Range]) -> Known<Moves> {
        if !oops.may_be_stale() {
            return Ok(Moves::default());
        }
        // The heap of generational ZGC begins at a power of two above all offsets.
        let base = match (oops, used.first()) {
            (Oops::Coloured(_), Some(first)) => first.start.0.checked_ilog2().map_or(0, |bit| 1 << bit),
            _ => 0,
        };
        let moved = z_forwarding::moved(vm)?;
        Ok(Moves::of(moved.into_iter().map(|(from, to)| (base | from, base | to))))
    }

    fn of(moved: impl Iterator<Item = (u64, u64)>) -> Moves {
        let mut moves = Moves::default();
        for (from, to) in moved.filter(|(from, to)| from != to) {
            moves.to.insert(from, to);
            moves.from.entry(to).or_default().push(from);
        }
        moves
    }

    /// The plain address of what a reference leads to; 0: nothing.
    pub fn follow(&self, oops: Oops, reference: u64) -> u64 {
        let to = oops.decoded(reference);
        if oops.is_stale(reference) { self.to.get(&to).copied().unwrap_or(to) } else { to }
    }

    /// Where the object was.
    pub fn before(&self, at: u64) -> &[u64] {
        self.from.get(&at).map_or(&[], |from| from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stale_reference_is_corrected_and_one_to_a_new_object_there_is_not() {
        let (moves, oops) = (Moves::of([(8, 80), (16, 80), (24, 24)].into_iter()), Oops::Offset(0xff, 0x100));
        let follow = |reference| moves.follow(oops, reference);
        assert_eq!((follow(0x108), follow(0x208), follow(0x118)), (80, 8, 24));
        assert_eq!((moves.before(80), moves.before(24)), (&[8, 16][..], &[][..]));
    }
}
