//! A frozen file of a stranger: patterns of pieces that are packed to hardly any bytes, and a kernel's view with mappings and
//! runs of
//! pages of any size. What is read of it stays within the bound for its length, and what is saved of it is read again.
//!
//! The input: which recorded JVM gives the mappings; whether its memory is kept; then steps of 6 bytes, each a damage of the
//! view or a pattern of pieces: how far from each other, how long, how many.

use crate::{allowed, bound, recorded};
use flate2::{Compression, read::GzDecoder, write::GzEncoder};
use marusa::base::{PAGE, Range};
use marusa::os::flat::Flat;
use marusa::os::pagemap::PageRun;
use marusa::os::target::OsView;
use marusa::snapshot::file::Frozen;
use std::io::{Read, Write};

const MAGIC_BYTES: usize = 16;
const STEP_BYTES: usize = 6;
const STEPS_MAX: usize = 24;
/// To pack as well as `save` does takes time.
const SAVED_AGAIN_BYTES_MAX: usize = 64 << 10;

fn number(into: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        into.push(number as u8 | 0x80);
        number >>= 7;
    }
    into.push(number as u8);
}

/// As the kernel guarantees: sorted, disjoint, runs within mappings. Whatever else is checked by who loads it.
fn damage(os: &mut OsView, [how, at, a, b, c, _]: [u8; STEP_BYTES]) {
    let count = os.mappings.len();
    if count == 0 {
        return;
    }
    let index = at as usize * count / 256;
    let mapping = &mut os.mappings[index];
    match how % 8 {
        0 => {
            let start = mapping.range.start.0;
            mapping.range = Range::of(start, start.saturating_add((u64::from(a) + 1) << (12 + b % 35)));
        }
        1 => mapping.path = "[heap]".to_string(),
        2 => mapping.path = "x".repeat(usize::from(a) * 16),
        3 => mapping.path.clear(),
        4 => {
            let copy = mapping.clone();
            let copies = (0..u64::from(a) * 16).map(|at| {
                let start = copy.range.start.0.saturating_add(at * PAGE * (1 + u64::from(b)));
                marusa::os::maps::Mapping {
                    range: Range::of(start, start.saturating_add(PAGE)),
                    ..copy.clone()
                }
            });
            os.mappings.splice(index..=index, copies.collect::<Vec<_>>());
        }
        _ => {
            let (range, step) = (mapping.range, PAGE * (1 + u64::from(a)));
            let Ok(pages) = &mut os.pages else { return };
            pages.retain(|run| !range.covers(run.range));
            let place = pages.partition_point(|run| run.range.start < range.start);
            let bits =
                [PageRun::PRESENT, PageRun::SWAPPED, PageRun::PRESENT | PageRun::FILE][usize::from(b % 3)];
            let page_bytes = [4096, 2 << 20, 1 << 30, 5][usize::from(c % 4)];
            let runs = (0..64)
                .map(|at| (range.start.0.saturating_add(at * step * 2), bits))
                .filter(|(at, _)| *at < range.end.0);
            let end =
                |at: u64| if c & 16 == 0 { at.saturating_add(step).min(range.end.0) } else { range.end.0 };
            let runs: Vec<PageRun> = runs
                .take(if c & 16 == 0 { 64 } else { 1 })
                .map(|(at, bits)| PageRun {
                    range: Range::of(at, end(at)),
                    bits,
                    page_bytes,
                    mapped_times: 1,
                })
                .collect();
            pages.splice(place..place, runs);
        }
    }
}

fn file(bytes: &[u8]) -> Option<Vec<u8>> {
    let [choice, kept, steps @ ..] = bytes else { return None };
    let recorded = &recorded::choose(*choice).frozen;
    let mut os = recorded.os.clone();
    let mut pieces = Vec::new();
    for step in steps.as_chunks::<STEP_BYTES>().0.iter().take(STEPS_MAX) {
        if step[0] & 0x80 == 0 {
            damage(&mut os, *step);
            continue;
        }
        let mut piece = Vec::new();
        number(&mut piece, u64::from(step[1]) << (step[2] % 32));
        let length = u64::from(step[3] % 32);
        number(&mut piece, length);
        piece.resize(piece.len() + length as usize, step[4]);
        pieces.extend(piece.repeat(1 << (step[5] % 17)));
        pieces.truncate(64 << 20);
    }
    let memory = if kept & 0x3f == 0 { recorded.memory.clone() } else { Flat::default() };
    let frozen = Frozen { taken: recorded.taken.clone(), os, memory, symbols: recorded.symbols.clone() };
    let mut plain = Vec::new();
    frozen.save(&mut plain).expect("a Vec takes everything");
    let mut packed = GzEncoder::new(plain[..MAGIC_BYTES].to_vec(), Compression::fast());
    let mut inside = GzDecoder::new(&plain[MAGIC_BYTES..]);
    let mut buffer = Vec::new();
    inside.read_to_end(&mut buffer).expect("as it was packed");
    packed.write_all(&buffer).and_then(|()| packed.write_all(&pieces)).expect("a Vec takes everything");
    packed.finish().ok()
}

pub fn run(bytes: &[u8]) {
    let Some(file) = file(bytes) else { return };
    bound::within(allowed(file.len()), || {
        let Ok(frozen) = Frozen::load(&mut &file[..]) else { return };
        let pieces: usize = frozen.memory.pieces().iter().map(|(_, bytes)| bytes.len()).sum();
        if pieces > SAVED_AGAIN_BYTES_MAX {
            return crate::account(&frozen.snapshot());
        }
        let mut saved = Vec::new();
        frozen.save(&mut saved).expect("a Vec takes everything");
        let again = Frozen::load(&mut &saved[..]);
        // What is saved may be packed better than what came, and then it is too large for its length.
        if let Ok(again) = again {
            assert_eq!(again.memory.pieces(), frozen.memory.pieces());
            assert_eq!(
                (again.os.mappings, again.os.pages),
                (frozen.os.mappings.clone(), frozen.os.pages.clone())
            );
        }
        drop(saved);
        crate::account(&frozen.snapshot());
    });
}
