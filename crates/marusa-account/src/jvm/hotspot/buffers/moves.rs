//! Objects that ZGC moved and to which references still lead where they were.

use super::oops::{GENERATIONS, Oops};
use crate::base::{Known, Range};
use crate::jvm::hotspot::Hotspot;
use crate::jvm::hotspot::heap::z_forwarding;
use std::collections::HashMap;

/// By plain addresses, for each generation: one generation's pages come to lie where the other's were, so an address alone does
/// not tell which object was there.
#[derive(Default)]
pub struct Moves {
    to: [HashMap<u64, u64>; GENERATIONS],
    from: HashMap<u64, Vec<(u64, usize)>>,
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
        let mut moves = Moves::default();
        for (generation, moved) in z_forwarding::moved(vm)?.into_iter().take(GENERATIONS).enumerate() {
            moves.add(generation, moved.into_iter().map(|(from, to)| (base | from, base | to)));
        }
        Ok(moves)
    }

    fn add(&mut self, generation: usize, moved: impl Iterator<Item = (u64, u64)>) {
        for (from, to) in moved.filter(|(from, to)| from != to) {
            self.to[generation].insert(from, to);
            self.from.entry(to).or_default().push((from, generation));
        }
    }

    /// The number of moved objects.
    pub fn count(&self) -> usize {
        self.to.iter().map(HashMap::len).sum()
    }

    /// The plain address of what a reference leads to; 0: nothing.
    pub fn follow(&self, oops: Oops, reference: u64) -> u64 {
        let to = oops.decoded(reference);
        let mut moved = oops.moved_with(reference).filter_map(|generation| self.to[generation].get(&to));
        moved.next().copied().unwrap_or(to)
    }

    /// Where the object was, and with which generation it moved.
    pub fn before(&self, at: u64) -> &[(u64, usize)] {
        self.from.get(&at).map_or(&[], |from| from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stale_reference_is_corrected_and_one_to_a_new_object_there_is_not() {
        let (mut moves, oops) = (Moves::default(), Oops::Offset(0xff, 0x100));
        moves.add(0, [(8, 80), (16, 80), (24, 24)].into_iter());
        let follow = |reference| moves.follow(oops, reference);
        assert_eq!((follow(0x108), follow(0x208), follow(0x118)), (80, 8, 24));
        assert_eq!((moves.before(80), moves.before(24)), (&[(8, 0), (16, 0)][..], &[][..]));
    }

    #[cfg(not(target_arch = "aarch64"))]
    #[test]
    fn a_reference_is_corrected_by_the_generation_whose_bit_is_stale() {
        let at = 0x400_0020_0040_u64;
        let mut moves = Moves::default();
        moves.add(0, [(at, 80), (at + 8, 88)].into_iter());
        moves.add(1, [(at, 160)].into_iter());
        // Good is "00", bit 12.
        let oops = Oops::Coloured(0xe000);
        let follow =
            |at: u64, bit: u64, other_bits| moves.follow(oops, at << (bit + 1) | 1 << bit | other_bits);
        assert_eq!((follow(at, 12, 0), follow(at, 13, 0), follow(at, 14, 0)), (at, 160, 80));
        assert_eq!((follow(at, 15, 0x10), follow(at + 8, 15, 0x10)), (160, 88), "both are stale");
        assert_eq!(follow(at, 15, 0x30), 80, "from an old object to an old one");
    }
}
