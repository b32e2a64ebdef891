//! A recorded JVM whose memory says something else than it did: whatever it says, reading it ends, and the books balance.

use crate::damage::{self, Damaged};
use crate::{account, allowed, bound, recorded};
use marusa::snapshot::Want;
use marusa::snapshot::take::interpret;

pub fn run(bytes: &[u8]) {
    let [choice, steps @ ..] = bytes else { return };
    let recorded = recorded::choose(*choice);
    let frozen = &recorded.frozen;
    let mut memory = Damaged::of(&frozen.memory);
    let mut os = frozen.os.clone();
    damage::apply(steps, recorded, &recorded.pieces, &mut memory, &mut os);
    // A recorded JVM has half a megabyte in its file.
    bound::within(allowed(512 << 10), || {
        account(&interpret(
            os,
            frozen.taken.clone(),
            &memory,
            &frozen.symbols,
            Want { holders: true, ..Want::default() },
        ))
    });
}
