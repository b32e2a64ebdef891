//! What blocks look like at the moment at which the heap is walked. Compilers take chunks for their arenas and give them back
//! all the time: one that was in use in the walk may be free, and overwritten, when the blocks are looked into. So the
//! walk itself asks for the two words by which a chunk is known.

use super::shapes::{fits_pages, is_chunk_length};
use crate::base::Range;
use crate::base::blocks::{Head, Look, SEEN, UNKNOWN, Witness};

/// User addresses end at 2^48, and the first pages are never mapped.
const ADDRESSES: std::ops::Range<u64> = 1 << 16..1 << 48;

/// Knows the chunks of HotSpot's arenas.
pub struct ChunkWitness;

impl Witness for ChunkWitness {
    #[inline]
    fn look(&self, payload: Range, head: &Head) -> Look {
        let [next, length, ..] = *head;
        let is_chunk = is_chunk_length(length)
            && fits_pages(payload, length.saturating_add(16))
            && (next == 0 || next.is_multiple_of(16) && ADDRESSES.contains(&next));
        Look { label: if is_chunk { SEEN } else { UNKNOWN }, requested_bytes: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Addr;

    #[test]
    fn a_chunk_is_seen_by_its_length_and_its_link() {
        let payload = |bytes| Range::sized(Addr(0x7f00_0000_0010), bytes);
        let label = |bytes, next, length| ChunkWitness.look(payload(bytes), &[next, length, 7, 7]).label;
        assert_eq!(label(1000, 0, 984), SEEN);
        assert_eq!(label(32_744, 0x7f00_0001_0010, 32_728), SEEN);
        for (bytes, next, length) in [
            (1000, 0, 900),
            (1000, 0x7f00_0001_0018, 984),
            (1000, 16, 984),
            (1000, u64::MAX - 15, 984),
            (24, 0, 8),
            (1000, 0, u64::MAX),
        ] {
            assert_eq!(label(bytes, next, length), UNKNOWN, "{bytes} {next:#x} {length}");
        }
    }
}
