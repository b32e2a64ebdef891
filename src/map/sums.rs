//! The account in names and numbers alone, without addresses: by it two moments are compared, it is what a recording keeps of
//! each, and it is read back from the JSON of an account.
//!
//! What is told apart keeps its name over time. An arena is known by its address, since its number in malloc's ring changes
//! when another one is made (malloc/arena.c, `_int_new_arena`, puts the new one behind the first). Threads come and go under
//! new numbers, so those of alike names are one: "http-nio-#-exec-#".

pub mod old;

use super::area::Area;
use super::model::{Account, Amounts, ArenaAccount};
use crate::base::Bytes;
use std::collections::BTreeMap;

/// Bytes of one owner. What is not known is `None`, never 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum {
    pub reserved: Bytes,
    pub committed: Bytes,
    pub resident: Bytes,
    pub in_use: Option<Bytes>,
    pub swapped: Option<Bytes>,
}

/// One arena of malloc.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ArenaSum {
    /// In the order of the ring, 0 is the main arena.
    pub number: u64,
    pub resident: Bytes,
    /// Of `resident`, freed and still held; `None` where its chunks were not read.
    pub freed: Option<Bytes>,
    /// Of `resident`, blocks in use.
    pub in_use: Option<Bytes>,
}

/// The stacks of threads of alike names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadSum {
    pub threads: u64,
    pub reserved: Bytes,
    pub resident: Bytes,
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
    pub arenas: BTreeMap<u64, ArenaSum>,
    /// By path.
    pub libraries: BTreeMap<String, Sum>,
    pub threads: BTreeMap<String, ThreadSum>,
}

impl Sums {
    pub fn of(account: &Account) -> Sums {
        let mut sums = Sums {
            kernel_resident: account.totals.kernel_resident_bytes,
            page_tables: account.totals.page_table_bytes,
            arenas: account.malloc.iter().flat_map(|malloc| &malloc.arenas).filter_map(arena).collect(),
            threads: threads(account),
            ..Sums::default()
        };
        for area in &account.areas {
            // Areas of a later version are one here.
            let none = Sum { in_use: Some(0), swapped: Some(0), ..Sum::default() };
            sums.areas.entry(area.area).or_insert(none).add(&Sum::of(&area.amounts));
            for part in &area.parts {
                sums.parts.insert((area.area, part.part.clone()), Sum::of(&part.amounts));
            }
        }
        for library in &account.libraries {
            sums.libraries.insert(library.path.clone(), Sum::of(&library.amounts));
        }
        sums
    }

    /// The sum of all areas.
    pub fn resident(&self) -> Bytes {
        self.areas.values().fold(0, |sum, area| sum.saturating_add(area.resident))
    }
}

impl Sum {
    fn add(&mut self, more: &Sum) {
        let both = |one: Option<Bytes>, other: Option<Bytes>| Some(one?.saturating_add(other?));
        self.reserved = self.reserved.saturating_add(more.reserved);
        self.committed = self.committed.saturating_add(more.committed);
        self.resident = self.resident.saturating_add(more.resident);
        self.in_use = both(self.in_use, more.in_use);
        self.swapped = both(self.swapped, more.swapped);
    }

    fn of(amounts: &Amounts) -> Sum {
        Sum {
            reserved: amounts.reserved_bytes,
            committed: amounts.committed_bytes,
            resident: amounts.resident_bytes,
            in_use: amounts.in_use_bytes,
            swapped: amounts.swapped_bytes,
        }
    }
}

/// `None`: without its address it cannot be followed.
fn arena(arena: &ArenaAccount) -> Option<(u64, ArenaSum)> {
    let sum = ArenaSum {
        number: arena.arena as u64,
        resident: arena.resident_bytes,
        freed: arena.sums.held_resident_bytes,
        in_use: arena.sums.in_use_resident_bytes,
    };
    (!arena.address.is_null()).then_some((arena.address.0, sum))
}

fn threads(account: &Account) -> BTreeMap<String, ThreadSum> {
    let mut threads: BTreeMap<String, ThreadSum> = BTreeMap::new();
    for thread in &account.threads {
        let sum = threads.entry(group_of(&thread.name)).or_default();
        sum.threads += 1;
        if let Some(stack) = &thread.stack {
            sum.reserved = sum.reserved.saturating_add(stack.reserved_bytes);
            sum.resident = sum.resident.saturating_add(stack.resident_bytes);
        }
    }
    threads
}

/// The name without its numbers: "pool-3-thread-17" is "pool-#-thread-#". The first word of "G1 Conc#0" and "C2 CompilerThread1" is
/// no number.
pub fn group_of(name: &str) -> String {
    let is_kept = matches!(name.as_bytes(), [b'A'..=b'Z', b'0'..=b'9', b' ', ..]);
    let (first, rest) = name.split_at(if is_kept { 2 } else { 0 });
    let mut group = String::from(first);
    for letter in rest.chars() {
        match letter {
            '0'..='9' if group.ends_with('#') => {}
            '0'..='9' => group.push('#'),
            other => group.push(other),
        }
    }
    group
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_of_alike_names_are_one() {
        assert_eq!(group_of("http-nio-8080-exec-12"), "http-nio-#-exec-#");
        assert_eq!(group_of("G1 Conc#0"), "G1 Conc#");
        assert_eq!((group_of("main"), group_of("")), ("main".to_string(), String::new()));
    }
}
