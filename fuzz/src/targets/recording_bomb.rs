//! A recording of a stranger: records that come thousands of times, and payloads that are packed to hardly any bytes. The input
//! is steps of 5 bytes: what comes, of which JVM, with which number, and how often.

use crate::{allowed, bound};
use marusa::base::varint;
use marusa::record::frame::{self, Kind};
use marusa::record::{figures, leaks, over_time, reader};
use std::hint::black_box;

const STEP_BYTES: usize = 5;
const STEPS_MAX: usize = 32;
const FILE_BYTES_MAX: usize = 128 << 10;

fn numbers(numbers: &[u64]) -> Vec<u8> {
    let mut bytes = Vec::new();
    numbers.iter().for_each(|number| varint::put(&mut bytes, *number));
    bytes
}

fn keys(jvm: u64, first: u64, kind: u8, count: u64) -> Vec<u8> {
    let mut payload = numbers(&[jvm, first, count]);
    for at in 0..count {
        match kind % 4 {
            0 => payload.extend([0, [20, 40, 46, 60, 80][(at % 5) as usize]]),
            1 => payload.extend([&[3, 3][..], &numbers(&[at])].concat()),
            2 => payload.extend(
                [&[5, 3][..], &numbers(&[2]), &[b'a' + (at % 26) as u8, b'a' + (at / 26 % 26) as u8]]
                    .concat(),
            ),
            _ => payload
                .extend([&[2, 3, 9][..], b"java_heap", &numbers(&[1]), &[b'a' + (at % 26) as u8]].concat()),
        }
    }
    payload
}

fn sample(jvm: u64, step: u8, count: u64) -> Vec<u8> {
    let mut payload = numbers(&[jvm, u64::from(step) * 2, 0, count]);
    (0..count).for_each(|at| payload.extend(numbers(&[u64::from(step & 1), at * 2])));
    payload
}

fn file(bytes: &[u8]) -> Vec<u8> {
    let mut file = frame::MAGIC.to_vec();
    for [what, jvm, a, b, often] in bytes.as_chunks::<STEP_BYTES>().0.iter().take(STEPS_MAX) {
        let (jvm, count) = (u64::from(*jvm), u64::from(*a) << (b % 8));
        for turn in 0..1_u64 << (often % 13) {
            if file.len() > FILE_BYTES_MAX {
                return file;
            }
            let number = if b & 0x40 == 0 { jvm } else { jvm + turn };
            let (kind, payload) = match what % 8 {
                0 => (
                    Kind::Session,
                    format!("{{\"recording\":\"{turn}\",\"started_ms\":{count}}}").into_bytes(),
                ),
                1 | 2 => {
                    let pid = if b & 0x80 == 0 { jvm } else { number };
                    (Kind::Jvm, [numbers(&[number]), format!("{{\"pid\":{pid}}}").into_bytes()].concat())
                }
                3 => (Kind::Keys, keys(number, 0, *b, count.min(200_000))),
                4 | 5 => (Kind::Sample, sample(number, *b, count.min(200_000))),
                6 => (Kind::Note, [&[0, 0][..], &vec![b'x'; (count as usize).min(4 << 20)]].concat()),
                _ => (Kind::Keys, vec![*a; (count as usize * 1024).min(8 << 20)]),
            };
            frame::put(&mut file, kind, &payload);
        }
    }
    file
}

pub fn run(bytes: &[u8]) {
    let file = file(bytes);
    bound::within(allowed(file.len()), || {
        let Ok(recording) = reader::read(&[&file]) else { return };
        for history in recording.jvms.iter().take(64) {
            assert!(history.moments.is_sorted_by_key(|moment| moment.steady_ms));
            for key in history.keys().iter().take(16) {
                let all: Vec<usize> = (0..history.len()).collect();
                assert_eq!(history.series(key), history.series_at(key, &all), "two ways to one answer");
            }
            if let Some(last) = history.len().checked_sub(1) {
                black_box(figures::sums(history, last));
            }
            if history.len().saturating_mul(history.keys().len()) < 1 << 20 {
                black_box(leaks::judge(history, 0.0, f64::INFINITY, true));
            }
        }
        black_box(over_time::of(&recording));
    });
}
