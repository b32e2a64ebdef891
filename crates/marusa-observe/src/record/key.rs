//! What a series of numbers is of, in the bytes of a file: a subject and a measure of it (`map::rows`).

use crate::base::varint;
use crate::map::Area;
pub use crate::map::rows::{Measure, NAMED_MIN, Named, Subject};

/// Names longer than this are cut: a path has 4096 bytes at most, a class's name may have 65,535.
const NAME_BYTES_MAX: usize = 4096;

#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    pub subject: Subject,
    pub measure: Measure,
}

impl Key {
    pub fn of(subject: &Subject, measure: Measure) -> Key {
        Key { subject: subject.clone(), measure }
    }

    pub fn process(measure: Measure) -> Key {
        Key { subject: Subject::Process, measure }
    }

    pub fn put(&self, into: &mut Vec<u8>) {
        into.push(self.subject.number());
        into.push(self.measure.number());
        match &self.subject {
            Subject::Process => {}
            Subject::Area(area) => varint::put_text(into, area.name()),
            Subject::Part(area, part) => {
                varint::put_text(into, area.name());
                varint::put_text(into, cut(part));
            }
            Subject::Arena(at) => varint::put(into, *at),
            Subject::Library(name) | Subject::Threads(name) | Subject::Named(_, name) => {
                varint::put_text(into, cut(name));
            }
        }
    }

    /// `None`: the bytes end in it. A subject or measure that this version does not know is `Some(None)`: its numbers are skipped.
    pub fn take(from: &mut &[u8]) -> Option<Option<Key>> {
        let [subject, measure] = *varint::take_bytes(from, 2)?.first_chunk::<2>()?;
        let subject = match subject {
            0 => Some(Subject::Process),
            1 => area(&varint::take_text(from)?).map(Subject::Area),
            2 => {
                let (area, part) = (area(&varint::take_text(from)?), varint::take_text(from)?);
                area.map(|area| Subject::Part(area, part))
            }
            3 => Some(Subject::Arena(varint::take(from)?)),
            4 => Some(Subject::Library(varint::take_text(from)?)),
            5 => Some(Subject::Threads(varint::take_text(from)?)),
            number @ NAMED_MIN.. => {
                let name = varint::take_text(from)?;
                Named::of_number(number).map(|kind| Subject::Named(kind, name))
            }
            // Without its form, what follows cannot be read either.
            _ => return None,
        };
        Some(subject.zip(Measure::of_number(measure)).map(|(subject, measure)| Key { subject, measure }))
    }
}

fn area(name: &str) -> Option<Area> {
    Area::ALL.iter().copied().find(|area| area.name() == name)
}

fn cut(name: &str) -> &str {
    let mut end = name.len().min(NAME_BYTES_MAX);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    &name[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_subject_and_measure_comes_back() {
        let subjects = [
            Subject::Process,
            Subject::Area(Area::MallocFreed),
            Subject::Part(Area::JavaHeap, "eden".to_string()),
            Subject::Arena(0x7f00_0000_0030),
            Subject::Library("/lib/libc.so.6".to_string()),
            Subject::Threads("pool-#".to_string()),
            Subject::Named(Named::CgroupRow, "anon".to_string()),
            Subject::Named(Named::Holder, "org.rocksdb.LRUCache.nativeHandle_".to_string()),
        ];
        let mut bytes = Vec::new();
        let keys: Vec<Key> = subjects
            .iter()
            .flat_map(|subject| Measure::ALL.iter().map(|measure| Key::of(subject, *measure)))
            .collect();
        keys.iter().for_each(|key| key.put(&mut bytes));
        let mut rest = &bytes[..];
        let read: Vec<Key> = std::iter::from_fn(|| Key::take(&mut rest)).flatten().collect();
        assert_eq!((read, rest.len()), (keys, 0));
        let mut names: Vec<u8> = Measure::ALL.iter().map(|measure| measure.number()).collect();
        names.dedup();
        assert_eq!(names.len(), Measure::ALL.len(), "each has its own number");
    }

    #[test]
    fn subjects_measures_and_areas_of_a_later_version_are_skipped_and_a_long_name_is_cut() {
        let mut bytes = vec![0, 255];
        bytes.extend([1, 3, 3, b'n', b'e', b'w']);
        bytes.extend([250, 3, 2, b'n', b'o']);
        let mut rest = &bytes[..];
        assert!((0..3).all(|_| Key::take(&mut rest) == Some(None)));
        assert!(rest.is_empty());
        let mut long = Vec::new();
        Key::of(&Subject::Library("é".repeat(5000)), Measure::Resident).put(&mut long);
        assert!(long.len() < 4110);
        assert_eq!(Key::take(&mut &[9, 1][..]), None);
    }
}
