//! A recording made of the input. The first byte says whether it is the file behind its first line as it is, or a list of
//! records, each
//! with its kind, its length and its payload, which then get a right checksum.

use crate::{allowed, bound};
use marusa::map::diff;
use marusa::record::frame::{self, Kind};
use marusa::record::{figures, leaks, reader, rows};
use std::hint::black_box;

const KINDS: [Kind; 7] =
    [Kind::Session, Kind::Jvm, Kind::Keys, Kind::Sample, Kind::End, Kind::Note, Kind::Close];
/// Moments of one JVM that are looked at in full.
const MOMENTS_MAX: usize = 8;

fn records(mut input: &[u8]) -> Vec<u8> {
    let mut file = frame::MAGIC.to_vec();
    while let [kind, length, rest @ ..] = input {
        let (payload, after) = rest.split_at(rest.len().min(usize::from(*length)));
        frame::put(&mut file, KINDS[usize::from(*kind) % KINDS.len()], payload);
        input = after;
    }
    file
}

pub fn run(bytes: &[u8]) {
    let file = match bytes {
        [b'p', rest @ ..] => [frame::MAGIC, rest].concat(),
        [_, rest @ ..] => records(rest),
        [] => return,
    };
    bound::within(allowed(2 * file.len()), || check(&file));
}

fn check(file: &[u8]) {
    if let Ok(whole) = reader::whole_bytes(file) {
        assert!(whole <= file.len());
    }
    let Ok(recording) = reader::read(&[file, file]) else { return };
    for history in &recording.jvms {
        assert!(history.moments.is_sorted_by_key(|moment| moment.steady_ms), "the order of the steady clock");
        let sums: Vec<_> =
            (0..history.len().min(MOMENTS_MAX)).filter_map(|at| figures::sums(history, at)).collect();
        for pair in sums.windows(2) {
            let found = diff::diff(&pair[0], &pair[1]);
            black_box(marusa::show::diff::sentence(&found.causes));
        }
        black_box(leaks::judge(history, 0.0, f64::INFINITY, true));
    }
    let each: Result<(), ()> = rows::each(&recording, |row| {
        black_box(row);
        Ok(())
    });
    assert_eq!(each, Ok(()));
}
