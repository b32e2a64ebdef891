//! Memory of libraries that HotSpot does not allocate: zlib's, for each `Inflater` and `Deflater` of the program.

use super::given::Given;
use super::owner::Owner;

/// `inflate_state` has some 7 KB, `deflate_state` some 6 KB (zlib 1.2 and 1.3).
const STATE_BYTES: std::ops::Range<u64> = 1 << 11..1 << 14;

/// A stream, its state, and what that points to: the window, and for deflating the chains and the pending output.
pub fn zlib(given: &mut Given) {
    for block in std::mem::take(&mut given.candidates.streams) {
        let Some(state) = given.at_word(block, 7) else { continue };
        if STATE_BYTES.contains(&given.index.payload(state).bytes()) && given.take(block, Owner::Zlib) {
            given.take(state, Owner::Zlib);
            for edge in given.contents.edges_of(state) {
                given.take(edge.to as usize, Owner::Zlib);
            }
        }
    }
}
