//! A frozen file made of the input. The first byte says whether it is the packed file as it is, or what is in it: the JSON
//! of the header, a NUL, and the pieces of memory.

use crate::{allowed, bound};
use flate2::{Compression, write::GzEncoder};
use marusa::snapshot::file::Frozen;
use std::io::Write;

const MAGIC: &[u8] = b"marusa-frozen 2\n";

fn packed(inside: &[u8]) -> Vec<u8> {
    let (header, pieces) = match inside.iter().position(|byte| *byte == 0) {
        Some(end) => (&inside[..end], &inside[end + 1..]),
        None => (inside, &[][..]),
    };
    let mut packed = GzEncoder::new(MAGIC.to_vec(), Compression::none());
    for bytes in [&(header.len() as u64).to_le_bytes(), header, pieces] {
        packed.write_all(bytes).expect("a Vec takes everything");
    }
    packed.finish().expect("a Vec takes everything")
}

pub fn run(bytes: &[u8]) {
    let file = match bytes {
        [b'p', rest @ ..] => [MAGIC, rest].concat(),
        [_, inside @ ..] => packed(inside),
        [] => return,
    };
    bound::within(allowed(file.len()), || {
        if let Ok(frozen) = Frozen::load(&mut &file[..]) {
            crate::account(&frozen.snapshot());
        }
    });
}
