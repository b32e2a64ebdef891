//! The chunks of loaders, from literal words as JVMs have them.

use super::*;
use crate::os::memory::{Memory, Pieces};

const LOCK: u64 = 0x7f00_0000_0100;
const METASPACE: u64 = 0x1000;

fn loader() -> LoaderData {
    LoaderData {
        at: Addr(0x500),
        metaspace: Addr(METASPACE),
        lock: Addr(LOCK),
        is_hidden: false,
        class: Addr::NULL,
        name: Addr::NULL,
    }
}

fn read(pieces: &[(u64, Vec<u64>)], form: Form, is_whole: bool) -> Option<(Held, Vec<Range>)> {
    let mut memory = Pieces::default();
    pieces.iter().for_each(|(at, words)| memory.put_words(Addr(*at), words));
    let mut chunks = Vec::new();
    let words = |at, count| memory.words(at, count).ok();
    let held = Chunks { words: &words, is_whole }.of(form, &loader(), &mut |range| chunks.push(range))?;
    Some((held, chunks))
}

/// Changes one word.
fn with(pieces: &[(u64, Vec<u64>)], at: u64, word: usize, value: u64) -> Vec<(u64, Vec<u64>)> {
    let mut pieces = pieces.to_vec();
    pieces.iter_mut().find(|piece| piece.0 == at).expect("a piece").1[word] = value;
    pieces
}

/// A `Metachunk` of JDK 17: base, used and committed words, level and state, node, previous, next.
fn chunk(at: u64, base: u64, used: u64, committed: u64, level: u64, next: u64) -> (u64, Vec<u64>) {
    (at, vec![base, used, committed, 0x7f_0000_0100 | level, 0x9000, 0, next])
}

/// JDK 17: 2 chunks of 1 KiB and 4 KiB, and one of 1 KiB in the class space. After numbers of 4 bytes stands what was there before.
fn arenas() -> Vec<(u64, Vec<u64>)> {
    vec![
        (METASPACE, vec![LOCK, 0x7f00_0000_0002, 0x2000, 0x3000]),
        (0x2000, vec![LOCK, 0x11, 0x22, 0x4000, 0xdead_0000_0002, 0]),
        (0x3000, vec![LOCK, 0x11, 0x22, 0x6000, 1, 0]),
        chunk(0x4000, 0x8000_0400, 0x77, 0x80, 14, 0x5000),
        chunk(0x5000, 0x8000_1000, 0x100, 0x200, 12, 0),
        chunk(0x6000, 0x9000_0000, 0x49, 0x80, 14, 0),
    ]
}

#[test]
fn an_arena_has_the_chunks_that_it_counts() {
    let (held, chunks) = read(&arenas(), Form::Arena(24), false).expect("chunks");
    assert_eq!((held.used, held.class_used), ((0x77 + 0x100 + 0x49) * 8, 0x49 * 8));
    assert_eq!(held.committed, (0x80 + 0x200 + 0x80) * 8);
    assert_eq!(
        chunks,
        [(0x8000_0400, 0x400), (0x8000_1000, 0x1000), (0x9000_0000, 0x400)]
            .map(|(at, bytes)| { Range::sized(Addr(at), bytes) })
    );
    assert_eq!(read(&arenas(), Form::Arena(32), false), None);
    assert_eq!(read(&arenas(), Form::Managers11, false), None);
    // -XX:-UseCompressedClassPointers
    let one = read(&with(&arenas(), METASPACE, 3, 0), Form::Arena(24), false).expect("chunks").0;
    assert_eq!((one.class_used, one.used), (0, 0x177 * 8));
}

#[test]
fn an_arena_that_makes_no_sense_has_no_figure() {
    for (at, word, value, why) in [
        (METASPACE, 0, LOCK + 8, "another lock"),
        (METASPACE, 1, 77, "no type of metaspace"),
        (0x2000, 4, 3, "fewer chunks than are counted"),
        (0x2000, 4, 1, "more chunks than are counted"),
        (0x5000, 6, 0x4000, "a circle"),
        (0x5000, 6, 0xdead_0000, "a chunk that is not there"),
        (0x5000, 1, 0x201, "more in use than committed"),
        (0x5000, 2, 0x20_0001, "more than a chunk of this level"),
        (0x5000, 0, 0x8000_1008, "not where a chunk begins"),
        (0x5000, 3, 12, "a free chunk"),
        (0x6000, 1, u64::MAX, "more than there is"),
    ] {
        assert_eq!(read(&with(&arenas(), at, word, value), Form::Arena(24), true), None, "{why}");
    }
}

/// JDK 11: of 1 KiB and 4 KiB, and one of 1 KiB in the class space; each has a header of 8 words.
fn managers() -> Vec<(u64, Vec<u64>)> {
    vec![
        (METASPACE, vec![0x2, LOCK, 0x2000, 0x3000]),
        (0x2000, vec![LOCK, 0x2_0000_0001, 0x80_0400, 0x80_0400, 16, 0x280, 0x17a, 1, 1, 0, 0]),
        (0x3000, vec![LOCK, 0x2_0000_0000, 0x90_0000, 0x90_0000, 8, 0x80, 0x4a, 1, 0, 0, 0]),
        (0x80_0400, vec![0x80, 0x80_1000]),
        (0x80_1000, vec![0x200, 0]),
        (0x90_0000, vec![0x80, 0]),
    ]
}

#[test]
fn a_manager_of_jdk_11_has_the_chunks_that_it_counts() {
    let (held, chunks) = read(&managers(), Form::Managers11, true).expect("chunks");
    assert_eq!(held, Held { used: (0x17a + 0x4a) * 8, class_used: 0x4a * 8, committed: 0x300 * 8 });
    assert_eq!(chunks.len(), 3);
    assert_eq!(read(&managers(), Form::Managers11, false), Some((held, Vec::new())), "by its counts alone");
    for (at, word, value, why) in [
        (0x2000, 0, LOCK + 8, "another lock"),
        (0x2000, 6, 0x271, "no room for the headers"),
        (0x2000, 7, u64::MAX, "a count that is too large"),
        (0x2000, 5, 0, "nothing committed"),
    ] {
        assert_eq!(read(&with(&managers(), at, word, value), Form::Managers11, false), None, "{why}");
    }
    for (at, word, value, why) in [
        (0x2000, 8, 2, "fewer chunks than are counted"),
        (0x80_1000, 0, 0x180, "smaller than is counted"),
        (0x80_1000, 1, 0x80_0400, "a circle"),
        (0x80_1000, 0, u64::MAX, "larger than there is"),
    ] {
        assert_eq!(read(&with(&managers(), at, word, value), Form::Managers11, true), None, "{why}");
    }
}

#[test]
fn a_manager_of_jdk_8_has_four_lists() {
    let pieces = vec![
        (METASPACE, vec![0x2000, 0x3000, 0, 0]),
        (0x2000, vec![LOCK, 0x7f_0000_0001, 0, 0x80_0000, 0x81_0000, 0, 0x81_0000, 0xa5d, 0x2200, 2]),
        (0x3000, vec![LOCK, 0, 0x90_0000, 0, 0, 0, 0x90_0000, 0x49, 0x80, 1]),
        (0x80_0000, vec![0x200, 0]),
        (0x81_0000, vec![0x2000, 0]),
        (0x90_0000, vec![0x80, 0]),
    ];
    let (held, chunks) = read(&pieces, Form::Managers8, true).expect("chunks");
    assert_eq!(held, Held { used: (0xa5d + 0x49) * 8, class_used: 0x49 * 8, committed: 0x2280 * 8 });
    assert_eq!(chunks.len(), 3);
    assert_eq!(read(&with(&pieces, 0x2000, 1, 7), Form::Managers8, true), None);
    assert_eq!(read(&with(&pieces, 0x2000, 9, 3), Form::Managers8, true), None);
    assert_eq!(read(&with(&pieces, 0x3000, 0, 0), Form::Managers8, false), None);
}
