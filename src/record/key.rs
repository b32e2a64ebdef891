//! What a series of numbers is of: a subject (the process, an area, a part, an arena, a library, threads of one name) and a measure
//! of it. The numbers of subjects and measures stand in files: they are never given anew.

use super::varint;
use crate::map::Area;

/// Names longer than this are cut: a path has 4096 bytes at most, a class's name may have 65,535.
const NAME_BYTES_MAX: usize = 4096;

#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Subject {
    /// The sums of the kernel, of the runtime and of the control group.
    Process,
    Area(Area),
    Part(Area, String),
    /// By the address of its `malloc_state`.
    Arena(u64),
    /// By its path.
    Library(String),
    /// By what their names have in common (`map::sums::group_of`).
    Threads(String),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    pub subject: Subject,
    pub measure: Measure,
}

macro_rules! measures {
    ($($number:literal $variant:ident $name:literal;)*) => {
        /// What is measured. Names have their units last; they are the columns of what is exported.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Measure { $($variant),* }

        impl Measure {
            pub const ALL: &'static [Measure] = &[$(Measure::$variant),*];
            /// In files.
            pub fn number(self) -> u8 {
                match self { $(Measure::$variant => $number),* }
            }
            pub fn name(self) -> &'static str {
                match self { $(Measure::$variant => $name),* }
            }
            fn of_number(number: u8) -> Option<Measure> {
                match number { $($number => Some(Measure::$variant),)* _ => None }
            }
        }
    };
}

measures! {
    // Of the account, and so as old as it.
    1 Reserved "reserved_bytes";
    2 Committed "committed_bytes";
    3 Resident "resident_bytes";
    4 InUse "in_use_bytes";
    5 Swapped "swapped_bytes";
    6 Freed "freed_bytes";
    7 Number "arena";
    8 Threads "threads";
    // Of the kernel, each time (/proc/PID/status).
    20 KernelResident "kernel_resident_bytes";
    21 KernelAnonymous "kernel_anonymous_bytes";
    22 KernelFile "kernel_file_bytes";
    23 KernelShared "kernel_shared_bytes";
    24 KernelHugetlb "kernel_hugetlb_bytes";
    25 KernelSwapped "kernel_swapped_bytes";
    26 PageTables "page_table_bytes";
    27 Virtual "virtual_bytes";
    28 Tasks "tasks";
    // Of the runtime, each time; the VM itself brings them up to date at collections and class loads.
    40 HeapUsed "heap_used_bytes";
    41 HeapCapacity "heap_capacity_bytes";
    42 MetaspaceUsed "metaspace_used_bytes";
    43 MetaspaceCapacity "metaspace_capacity_bytes";
    44 ClassesLoaded "classes_loaded";
    45 ClassesUnloaded "classes_unloaded";
    46 Collections "collections";
    47 CollectionTime "collection_time_us";
    48 JavaThreads "java_threads";
    49 OldCollections "old_collections";
    // Of the control group whose limit is nearest, each time.
    60 GroupLimit "group_limit_bytes";
    61 GroupCurrent "group_current_bytes";
    62 GroupReclaimable "group_reclaimable_bytes";
    63 GroupMaxEvents "group_max_events";
    64 GroupHighEvents "group_high_events";
    65 GroupOomKills "group_oom_kills";
    66 PressureSome "pressure_some_us";
    67 PressureFull "pressure_full_us";
    // Of the reading itself.
    80 AccountAt "account_at_ms";
    81 AccountTook "account_took_us";
    82 AccountGaps "account_gaps";
}

impl Measure {
    /// Whether it belongs to the account, which is read more seldom than the rest.
    pub fn is_of_account(self) -> bool {
        self.number() < 20 || matches!(self, Measure::AccountAt | Measure::AccountTook | Measure::AccountGaps)
    }
}

impl Subject {
    fn number(&self) -> u8 {
        match self {
            Subject::Process => 0,
            Subject::Area(_) => 1,
            Subject::Part(..) => 2,
            Subject::Arena(_) => 3,
            Subject::Library(_) => 4,
            Subject::Threads(_) => 5,
        }
    }

    /// The word of what is exported.
    pub fn word(&self) -> &'static str {
        match self {
            Subject::Process => "process",
            Subject::Area(_) => "area",
            Subject::Part(..) => "part",
            Subject::Arena(_) => "arena",
            Subject::Library(_) => "library",
            Subject::Threads(_) => "threads",
        }
    }
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
            Subject::Library(name) | Subject::Threads(name) => varint::put_text(into, cut(name)),
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
            // Without its form, what follows can not be read either.
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
    fn a_measure_and_an_area_of_a_later_version_are_skipped_and_a_long_name_is_cut() {
        let mut bytes = vec![0, 255];
        bytes.extend([1, 3, 3, b'n', b'e', b'w']);
        let mut rest = &bytes[..];
        assert_eq!((Key::take(&mut rest), Key::take(&mut rest)), (Some(None), Some(None)));
        assert!(rest.is_empty());
        let mut long = Vec::new();
        Key::of(&Subject::Library("é".repeat(5000)), Measure::Resident).put(&mut long);
        assert!(long.len() < 4110);
        assert_eq!(Key::take(&mut &[9, 1][..]), None);
    }
}
