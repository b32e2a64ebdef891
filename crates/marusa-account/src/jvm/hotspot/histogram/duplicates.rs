//! Contents of Strings that are there more than once. While the heap is walked, each String's pointer and a hash of each array of
//! bytes or characters are noted; then the arrays that Strings lead to are compared by hash and length. The hash has a key that
//! the target does not know, so equal ones are equal contents.

use super::classes::{ClassTable, Form};
use crate::base::printable::escaped;
use crate::base::{Addr, Gap, Known, Why};
use crate::jvm::hotspot::Hotspot;
use crate::jvm::hotspot::objects::{packing, uncoloured};
use crate::jvm::hotspot::thread_names::decoded;
use crate::jvm::{Duplicate, Duplicates};
use crate::os::budget;
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::LazyLock;

const TOP: usize = 20;
/// 24 bytes each, in each of two lists.
const TEXTS_MAX: usize = 40_000_000;
const VALUE_BYTES_MAX: u64 = 80;

static KEYS: LazyLock<[u64; 2]> = LazyLock::new(|| {
    let random = RandomState::new();
    [random.hash_one(1), random.hash_one(2) | 1]
});

/// What a walk passed.
#[derive(Clone, Debug, Default)]
pub struct Texts {
    /// The pointers of Strings, as they are stored.
    pub strings: Vec<u64>,
    /// Arrays: where they lie, hash of length and content, and their bytes.
    pub arrays: Vec<(u64, u64, u64)>,
}

impl Texts {
    pub fn add(&mut self, mut other: Texts) {
        self.strings.append(&mut other.strings);
        self.arrays.append(&mut other.arrays);
    }

    pub fn start(&self, length: u64) -> u64 {
        mixed(KEYS[0], length)
    }

    /// Pieces of any length, all but the last multiples of 8 bytes behind the first 4.
    pub fn mix(&self, hash: &mut u64, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<4>();
        *hash = words.iter().fold(*hash, |hash, word| mixed(hash, u64::from(u32::from_le_bytes(*word))));
        *hash = rest.iter().fold(*hash, |hash, byte| mixed(hash, u64::from(*byte)));
    }
}

/// As the names of `jvm::hotspot::names`: without the key, two that collide cannot be made.
fn mixed(hash: u64, word: u64) -> u64 {
    let product = u128::from(hash ^ word) * u128::from(KEYS[1]);
    product as u64 ^ (product >> 64) as u64
}

/// `is_moved`: pointers of Strings may lead to where an object was.
pub fn find(
    vm: &Hotspot,
    table: &ClassTable,
    mut texts: Texts,
    is_moved: bool,
    with_values: bool,
) -> Known<Duplicates> {
    if texts.arrays.len().max(texts.strings.len()) > TEXTS_MAX {
        return Err(Gap::new("contents of Strings", Why::OverLimit));
    }
    let narrow = vm.flags.is_on("UseCompressedOops").then(|| packing(vm, "CompressedOops", "_narrow_oop"));
    let narrow = narrow.transpose()?;
    let addresses = |word: u64| match narrow {
        Some((base, shift)) => vec![Addr(base.wrapping_add(word << shift))],
        None => uncoloured(word, false),
    };
    texts.arrays.sort_unstable();
    let held = match is_moved {
        true => vec![true; texts.arrays.len()],
        false => held(&texts, |word| addresses(word).into_iter().map(|at| at.0).collect()),
    };
    budget::checked("contents of Strings")?;
    let mut duplicates = Duplicates { has_all_arrays: is_moved, ..counted(&texts, &held) };
    if with_values {
        values(vm, table, &texts, &mut duplicates);
    }
    Ok(duplicates)
}

/// Which arrays Strings lead to.
fn held(texts: &Texts, addresses: impl Fn(u64) -> Vec<u64>) -> Vec<bool> {
    let mut held = vec![false; texts.arrays.len()];
    for word in &texts.strings {
        let place = addresses(*word)
            .into_iter()
            .find_map(|at| texts.arrays.binary_search_by_key(&at, |it| it.0).ok());
        if let Some(place) = place {
            held[place] = true;
        }
    }
    held
}

fn counted(texts: &Texts, held: &[bool]) -> Duplicates {
    let mut sums = Duplicates::default();
    let mut by_content: HashMap<u64, (u64, u64)> = HashMap::new();
    for ((_, hash, bytes), _) in texts.arrays.iter().zip(held).filter(|(_, is_held)| **is_held) {
        sums.arrays += 1;
        sums.array_bytes = sums.array_bytes.saturating_add(*bytes);
        let known = by_content.entry(*hash).or_insert((0, *bytes));
        known.0 += 1;
    }
    let mut top: Vec<Duplicate> = Vec::new();
    for (hash, (arrays, bytes)) in by_content.into_iter().filter(|(_, (arrays, _))| *arrays > 1) {
        let wasted_bytes = (arrays - 1).saturating_mul(bytes);
        sums.duplicate_arrays += arrays - 1;
        sums.wasted_bytes = sums.wasted_bytes.saturating_add(wasted_bytes);
        let hash = format!("{hash:016x}");
        top.push(Duplicate { array_bytes: bytes, hash, arrays, wasted_bytes, value: None });
    }
    top.sort_by(|one, other| {
        other.wasted_bytes.cmp(&one.wasted_bytes).then_with(|| one.hash.cmp(&other.hash))
    });
    top.truncate(TOP);
    sums.top = top;
    sums
}

/// The start of each content, as text.
fn values(vm: &Hotspot, table: &ClassTable, texts: &Texts, duplicates: &mut Duplicates) {
    let of_hash: HashMap<u64, u64> = texts.arrays.iter().map(|(at, hash, _)| (*hash, *at)).collect();
    for duplicate in &mut duplicates.top {
        let hash = u64::from_str_radix(&duplicate.hash, 16).unwrap_or(0);
        duplicate.value = of_hash.get(&hash).and_then(|at| value(vm, table, Addr(*at)));
    }
}

fn value(vm: &Hotspot, table: &ClassTable, at: Addr) -> Option<String> {
    let mut head = [0; 24];
    vm.memory().read_now(at, &mut head).ok()?;
    let words = head.as_chunks::<8>().0;
    let words = [0, 1, 2].map(|place| u64::from_le_bytes(words[place]));
    let is_wide = table.head(words)?.form == Form::Chars;
    let length = (table.array_length(words) << u32::from(is_wide)).min(VALUE_BYTES_MAX);
    let mut text = vec![0; length as usize];
    vm.memory().read_now(at.plus(table.text_at), &mut text).ok()?;
    Some(escaped(&decoded(&text, is_wide)).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(length: u64, content: &[u8]) -> u64 {
        let (texts, mut hash) = (Texts::default(), Texts::default().start(length));
        texts.mix(&mut hash, content);
        hash
    }

    #[test]
    fn a_content_is_the_same_in_one_piece_or_in_two_and_the_length_counts() {
        let (texts, bytes) = (Texts::default(), [7_u8; 20]);
        let mut pieces = texts.start(20);
        texts.mix(&mut pieces, &bytes[..12]);
        texts.mix(&mut pieces, &bytes[12..]);
        assert_eq!(pieces, hash(20, &bytes));
        assert_ne!(hash(19, &bytes), hash(20, &bytes), "padding of the last word does not count");
    }

    #[test]
    fn arrays_that_strings_lead_to_are_counted_by_content() {
        let (one, other) = (hash(4, b"one."), hash(4, b"two."));
        let arrays =
            vec![(0x10, one, 24), (0x28, other, 24), (0x40, one, 24), (0x58, one, 24), (0x70, one, 24)];
        // Two Strings share an array; nothing leads to the last one.
        let texts = Texts { strings: vec![0x10, 0x28, 0x40, 0x40, 0x58, 0x99], arrays };
        let held = held(&texts, |word| vec![word]);
        assert_eq!(held, [true, true, true, true, false]);
        let found = counted(&texts, &held);
        assert_eq!((found.arrays, found.duplicate_arrays, found.wasted_bytes), (4, 2, 48));
        assert_eq!(found.top.len(), 1);
        assert_eq!((found.top[0].arrays, found.top[0].array_bytes), (3, 24));
    }
}
