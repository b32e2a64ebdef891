//! Thousands of names, read from the target and looked up by a few: the fields, types, constants and flags of the VM.
//!
//! All texts lie in one string and each table in one vector, found by a hash in open addressing: a `HashMap` of `String`s
//! costs an allocation for each name. The names are the target's, so the hash has keys that the target does not know: with
//! fixed ones, 20,000 names of one hash took minutes. Texts have a bound in all.

use crate::base::limits::{C_STRING_BYTES_MAX, VM_TEXTS_BYTES_MAX};
use crate::base::{Addr, PAGE, Why};
use crate::os::{Fault, Memory};
use std::hash::{BuildHasher, RandomState};

/// Few names are longer.
const PIECE_BYTES: u64 = 96;
const SLOTS_MIN: usize = 64;

/// The texts themselves, one behind the other.
#[derive(Debug, Default)]
pub struct Texts(String);

/// Where a text lies in `Texts`, which the limits of the tables keep below 4 GiB.
#[derive(Clone, Copy, Debug, Default)]
pub struct Text {
    start: u32,
    end: u32,
}

impl Texts {
    pub fn push(&mut self, text: &str) -> Text {
        let start = self.0.len() as u32;
        self.0.push_str(text);
        Text { start, end: self.0.len() as u32 }
    }

    pub fn get(&self, text: Text) -> &str {
        self.0.get(text.start as usize..text.end as usize).unwrap_or_default()
    }

    /// Copies the C string at `at`, as `Memory::c_string` gives it.
    pub fn read(&mut self, memory: &dyn Memory, at: Addr) -> Result<Text, Fault> {
        self.read_at_most(memory, at, C_STRING_BYTES_MAX)
    }

    /// As `read`, for a string that is at most `bytes_max` long.
    pub fn read_at_most(&mut self, memory: &dyn Memory, at: Addr, bytes_max: usize) -> Result<Text, Fault> {
        if self.0.len() > VM_TEXTS_BYTES_MAX {
            return Err(Fault { at, why: Why::OverLimit });
        }
        let mut piece = [0; PIECE_BYTES as usize];
        // Never past the end of a page, the next one may be absent.
        let piece = &mut piece[..(PAGE - at.0 % PAGE).min(PIECE_BYTES) as usize];
        let is_read = !memory.keeps_what_is_read() && memory.read(at, piece).is_ok();
        match piece.iter().position(|byte| *byte == 0).filter(|_| is_read) {
            Some(end) => Ok(self.push(&String::from_utf8_lossy(&piece[..end]))),
            None => Ok(self.push(&memory.c_string(at, bytes_max)?)),
        }
    }
}

/// Values by owner and name, whose texts are in one and the same `Texts`.
#[derive(Debug)]
pub struct Table<T> {
    entries: Vec<Entry<T>>,
    /// A power of two of them, at most half in use: the place in `entries` plus one, or 0.
    slots: Vec<u32>,
    keys: [u64; 2],
}

#[derive(Debug)]
struct Entry<T> {
    hash: u64,
    owner: Text,
    name: Text,
    value: T,
}

impl<T> Default for Table<T> {
    fn default() -> Table<T> {
        let random = RandomState::new();
        let keys = [random.hash_one(1), random.hash_one(2) | 1];
        Table { entries: Vec::new(), slots: vec![0; SLOTS_MIN], keys }
    }
}

impl<T> Table<T> {
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// As `HashMap::insert`: the last one of a name stays.
    pub fn insert(&mut self, texts: &Texts, owner: Text, name: Text, value: T) {
        if self.entries.len() * 2 >= self.slots.len() {
            self.grow();
        }
        let hash = self.hash(texts.get(owner), texts.get(name));
        let slot = self.slot(texts, hash, texts.get(owner), texts.get(name));
        let entry = Entry { hash, owner, name, value };
        match self.slots[slot] {
            0 => {
                self.entries.push(entry);
                self.slots[slot] = self.entries.len() as u32;
            }
            place => self.entries[place as usize - 1] = entry,
        }
    }

    pub fn get(&self, texts: &Texts, owner: &str, name: &str) -> Option<&T> {
        let place = self.slots[self.slot(texts, self.hash(owner, name), owner, name)] as usize;
        self.entries.get(place.checked_sub(1)?).map(|entry| &entry.value)
    }

    /// The slot that has the name, or the free one where it belongs.
    fn slot(&self, texts: &Texts, hash: u64, owner: &str, name: &str) -> usize {
        let last = self.slots.len() - 1;
        let mut slot = hash as usize & last;
        while let Some(entry) = self.entries.get((self.slots[slot] as usize).wrapping_sub(1)) {
            if entry.hash == hash && texts.get(entry.name) == name && texts.get(entry.owner) == owner {
                break;
            }
            slot = (slot + 1) & last;
        }
        slot
    }

    /// Multiplications folded to 64 bits, as wyhash has them: whoever does not know the keys, which are others each time,
    /// cannot make names that collide. SipHash, as `HashMap` has it, took 7 % of the time of `list`.
    fn hash(&self, owner: &str, name: &str) -> u64 {
        let [seed, key] = self.keys;
        let mix = |hash: u64, word: u64| {
            let product = u128::from(hash ^ word) * u128::from(key);
            product as u64 ^ (product >> 64) as u64
        };
        // "a" and "bc" are not "ab" and "c".
        let mut hash = mix(seed, owner.len() as u64);
        for text in [owner, name] {
            let (words, rest) = text.as_bytes().as_chunks::<8>();
            hash = words.iter().fold(hash, |hash, word| mix(hash, u64::from_le_bytes(*word)));
            hash = mix(hash, rest.iter().fold(1, |word, byte| word << 8 | u64::from(*byte)));
        }
        hash
    }

    fn grow(&mut self) {
        self.slots = vec![0; self.slots.len() * 4];
        let last = self.slots.len() - 1;
        for (index, entry) in self.entries.iter().enumerate() {
            let mut slot = entry.hash as usize & last;
            while self.slots[slot] != 0 {
                slot = (slot + 1) & last;
            }
            self.slots[slot] = index as u32 + 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::os::memory::Pieces;

    #[test]
    fn each_of_many_names_is_found_and_the_last_of_one_name_stays() {
        let (mut texts, mut table) = (Texts::default(), Table::default());
        let name = |number: usize| format!("a_long_name_of_number_{number}");
        for number in 0..1000 {
            let (owner, text) = (texts.push(["A", "B"][number % 2]), texts.push(&name(number / 2)));
            table.insert(&texts, owner, text, number);
        }
        let (owner, text) = (texts.push("A"), texts.push(&name(7)));
        table.insert(&texts, owner, text, 5000);
        assert_eq!(table.get(&texts, "A", &name(7)), Some(&5000));
        let is_found = |number: usize| {
            table.get(&texts, ["A", "B"][number % 2], &name(number / 2)) == Some(&number) || number == 14
        };
        assert!((0..1000).all(is_found));
        assert_eq!(table.get(&texts, "C", &name(1)), None);
        assert_eq!(table.entries.len(), 1000);
    }

    /// What each name had as hash when the hash had no key: multiplication by 2^64 divided by the golden ratio.
    fn mix(hash: u64, word: u64) -> u64 {
        let spread = (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        spread ^ (spread >> 32)
    }

    #[test]
    fn names_that_were_made_to_collide_lie_apart() {
        let (mut texts, mut table) = (Texts::default(), Table::default());
        let is_text = |word: &u64| word.to_le_bytes().iter().all(|byte| (1..128).contains(byte));
        let words = (0..).map(|number: u64| number | 0x0101_0101_0101_0101).filter(is_text);
        // The second word makes up for what the first did, as in tests/native/hostile_jvm.c.
        let pairs =
            words.filter_map(|first| Some((first, mix(0, first) ^ 0x5a5a)).filter(|(_, word)| is_text(word)));
        let mut longest = 0;
        for (first, second) in pairs.take(500) {
            assert_eq!(mix(mix(0, first), second), mix(0, 0x5a5a));
            let bytes = [first.to_le_bytes(), second.to_le_bytes()].concat();
            let name = texts.push(std::str::from_utf8(&bytes).expect("ASCII"));
            let hash = table.hash("", texts.get(name));
            table.insert(&texts, Text::default(), name, ());
            let home = hash as usize & (table.slots.len() - 1);
            let place = table.slot(&texts, hash, "", texts.get(name));
            longest = longest.max(place.saturating_sub(home.min(place)));
        }
        assert!(longest < 100, "{longest} slots were looked at for one of 500 names");
    }

    #[test]
    fn texts_have_a_bound_in_all() {
        let mut memory = Pieces::default();
        memory.put(Addr(0x1000), &[vec![b'x'; 4000], vec![0]].concat());
        let mut texts = Texts::default();
        let most = VM_TEXTS_BYTES_MAX / 4000 + 2;
        let read = (0..2 * most).map_while(|_| texts.read(&memory, Addr(0x1000)).ok()).count();
        assert!((most - 2..=most).contains(&read), "{read}");
        assert!(texts.read_at_most(&memory, Addr(0x1000), 100).is_err());
    }

    #[test]
    fn a_text_is_read_as_a_c_string_is() {
        let mut memory = Pieces::default();
        let long = "x".repeat(300);
        memory.put(Addr(0x1000), &[b"short\0", long.as_bytes(), b"\0\xff\0"].concat());
        let mut texts = Texts::default();
        for (at, expected) in [(0x1000, "short"), (0x1006, long.as_str()), (0x1133, "\u{fffd}")] {
            let text = texts.read(&memory, Addr(at));
            assert_eq!(text.map(|text| texts.get(text)), Ok(expected));
            assert_eq!(memory.c_string(Addr(at), 4096).as_deref(), Ok(expected));
        }
        assert!(texts.read(&memory, Addr(0x2000)).is_err());
    }
}
