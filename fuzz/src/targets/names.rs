//! The names of a fake VM, a table of them with collisions: thousands of names that a hash without a key puts into one place. Each
//! name is found with the value that was given last, and no input takes more time than its names.

use marusa::base::Addr;
use marusa::jvm::hotspot::names::{Table, Texts};
use marusa::os::flat::Flat;
use std::collections::HashMap;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

const AT: u64 = 0x10_0000;
/// To find 20,000 of them, as many as a table of vmStructs may have, takes half the time that one input has.
const COLLIDING: usize = 4_000;
/// Colliding names may take this many times the time of as many plain ones, and a little for what a busy machine does in the
/// meantime.
/// Where each is compared with all others, they take a hundred times as much.
const TIMES_MAX: u32 = 20;
const SCHEDULING: Duration = Duration::from_millis(150);

/// Names of 16 letters, which multiplication by 2^64 divided by the golden ratio, without a key, gives one hash.
fn colliding() -> &'static [String] {
    static NAMES: OnceLock<Vec<String>> = OnceLock::new();
    NAMES.get_or_init(|| {
        let mix = |hash: u64, word: u64| {
            let spread = (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            spread ^ (spread >> 32)
        };
        // The owner is empty: its length, and its rest as 1.
        let start = mix(0, 1);
        // What changes first is in the lowest byte, on which all bits of the product depend.
        let letters =
            |number: u64| (0..8).fold(0, |word, at| word | (0x21 + (number >> (at * 5) & 31)) << (at * 8));
        let names = (0_u64..).filter_map(|number| {
            let first = letters(number);
            let second = mix(start, first) ^ 0x4142_4344_4546_4748;
            // One in three thousand is text, so all others should cost little.
            let is_text = second.to_le_bytes().iter().all(|byte| (0x21..0x7f).contains(byte));
            is_text.then(|| {
                let bytes = [first, second].map(u64::to_le_bytes).concat();
                String::from_utf8(bytes).expect("letters")
            })
        });
        names.take(COLLIDING).collect()
    })
}

fn check(names: &[(String, String)]) {
    let (mut texts, mut table, mut expected) = (Texts::default(), Table::default(), HashMap::new());
    for (value, (owner, name)) in names.iter().enumerate() {
        let (owner_text, name_text) = (texts.push(owner), texts.push(name));
        table.insert(&texts, owner_text, name_text, value);
        expected.insert((owner, name), value);
    }
    for ((owner, name), value) in &expected {
        assert_eq!(table.get(&texts, owner, name), Some(value));
    }
    assert_eq!(table.is_empty(), expected.is_empty());
    assert_eq!(table.get(&texts, "no owner", "no name"), None);
}

pub fn run(bytes: &[u8]) {
    let [how, rest @ ..] = bytes else { return };
    if *how == 0xff {
        let time = |name: &dyn Fn(usize) -> String| {
            let names: Vec<_> = (0..COLLIDING).map(|at| (String::new(), name(at))).collect();
            let started = Instant::now();
            check(&names);
            started.elapsed()
        };
        let plain = time(&|at| format!("{at:016}"));
        let hostile = time(&|at| colliding()[at].clone());
        assert!(
            hostile < plain * TIMES_MAX + SCHEDULING,
            "colliding names took {hostile:?}, others {plain:?}"
        );
        return;
    }
    // Texts as a target has them: each up to its NUL, read from its memory.
    let memory = Flat::of([(Addr(AT), rest)]);
    let mut texts = Texts::default();
    let mut names = Vec::new();
    let mut at = 0;
    while at < rest.len() {
        let Ok(text) = texts.read(&memory, Addr(AT + at as u64)) else { break };
        names.push(texts.get(text).to_string());
        at += rest[at..].iter().position(|byte| *byte == 0).unwrap_or(rest.len()) + 1;
    }
    let pairs: Vec<(String, String)> =
        names.chunks(2).map(|pair| (pair[0].clone(), pair.last().cloned().unwrap_or_default())).collect();
    check(&pairs);
}
