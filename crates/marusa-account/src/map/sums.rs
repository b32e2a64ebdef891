//! The account in names and numbers alone, without addresses: by it two moments are compared, it is what a recording keeps of
//! each, and it is read back from the JSON of an account.
//!
//! Parts that are listed apart keep their names over time. An arena is known by its address, since its number in malloc's ring
//! changes when another one is made (malloc/arena.c, `_int_new_arena`, puts the new one behind the first). Threads come and go
//! under new numbers, so those of alike names are one: "http-nio-#-exec-#".

use super::area::Area;
use super::heap;
use super::model::Account;
use super::rows::{Measure, Named, Subject};
use crate::base::Bytes;
pub use crate::base::alike::group_of;
use crate::jvm::{ClassObjects, HeldBy};
use std::collections::BTreeMap;

/// Bytes of one owner. What is not known is `None`, never 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum {
    pub reserved: Bytes,
    pub committed: Bytes,
    pub resident: Bytes,
    pub in_use: Option<Bytes>,
    pub swapped: Option<Bytes>,
    /// Only for a holder.
    pub blocks: Option<u64>,
    /// Only for a group of class loaders.
    pub loaders: Option<u64>,
    /// Only for a class.
    pub instances: Option<u64>,
    /// Only for an arena: its place in the order of the ring, 0 is the main arena; and the part of `resident` that is freed and
    /// still held, `None` where its chunks were not read.
    pub number: u64,
    pub freed: Option<Bytes>,
    /// Only for the stacks of threads of alike names.
    pub threads: u64,
}

/// The account of one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    /// VmRSS and HugetlbPages.
    pub kernel_resident: Option<Bytes>,
    pub page_tables: Option<Bytes>,
    pub areas: BTreeMap<Area, Sum>,
    pub parts: BTreeMap<(Area, String), Sum>,
    /// By address.
    pub arenas: BTreeMap<u64, Sum>,
    /// By path.
    pub libraries: BTreeMap<String, Sum>,
    pub threads: BTreeMap<String, Sum>,
    /// What only has a name; empty: nothing of it was recorded.
    pub named: BTreeMap<(Named, String), Sum>,
    /// `named` has every holder, every class loader, every class; else only the largest, as a recording does.
    pub has_all_holders: bool,
    pub has_all_loaders: bool,
    pub has_all_classes: bool,
}

impl Sums {
    pub fn of(account: &Account) -> Sums {
        let mut sums = Sums {
            kernel_resident: account.totals.kernel_resident_bytes,
            page_tables: account.totals.page_table_bytes,
            has_all_holders: account
                .holders
                .as_ref()
                .is_some_and(|all| all.iter().all(|held| held.how != HeldBy::Unknown)),
            has_all_loaders: account.loaders.is_some(),
            ..Sums::default()
        };
        // Areas of a later version are one here, so figures of one name add up.
        let known = account
            .rows()
            .into_iter()
            .filter_map(|(subject, measure, value)| Some((subject, measure, value?)));
        known.for_each(|(subject, measure, value)| sums.add(&subject, measure, value));
        sums
    }

    /// The classes of a heap that was counted whole.
    pub fn add_classes(&mut self, classes: &[ClassObjects]) {
        for (subject, measure, value) in heap::rows(classes) {
            value.into_iter().for_each(|value| self.add(&subject, measure, value));
        }
        self.has_all_classes = true;
    }

    /// One figure more.
    pub fn add(&mut self, subject: &Subject, measure: Measure, value: u64) {
        match subject {
            Subject::Process => {}
            Subject::Area(area) => self.areas.entry(*area).or_default().add(measure, value),
            Subject::Part(area, part) => {
                self.parts.entry((*area, part.clone())).or_default().add(measure, value);
            }
            Subject::Library(path) => self.libraries.entry(path.clone()).or_default().add(measure, value),
            Subject::Arena(at) => self.arenas.entry(*at).or_default().add(measure, value),
            Subject::Threads(name) => self.threads.entry(name.clone()).or_default().add(measure, value),
            Subject::Named(kind, name) => {
                self.named.entry((*kind, name.clone())).or_default().add(measure, value);
            }
        }
    }

    /// The sum of all areas.
    pub fn resident(&self) -> Bytes {
        self.areas.values().fold(0, |sum, area| sum.saturating_add(area.resident))
    }
}

impl Sum {
    fn add(&mut self, measure: Measure, value: Bytes) {
        let more = |sum: &mut Bytes| *sum = sum.saturating_add(value);
        match measure {
            Measure::Reserved => more(&mut self.reserved),
            Measure::Committed => more(&mut self.committed),
            Measure::Resident => more(&mut self.resident),
            Measure::InUse => more(self.in_use.get_or_insert_default()),
            Measure::Swapped => more(self.swapped.get_or_insert_default()),
            Measure::Blocks => more(self.blocks.get_or_insert_default()),
            Measure::ClassLoaders => more(self.loaders.get_or_insert_default()),
            Measure::Instances => more(self.instances.get_or_insert_default()),
            Measure::Number => self.number = value,
            Measure::Freed => more(self.freed.get_or_insert_default()),
            Measure::Threads => more(&mut self.threads),
            _ => {}
        }
    }
}
