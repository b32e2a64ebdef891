//! Accounts of marusa 0.1, in recordings and in JSON, have memory of malloc without a known owner in the area of the JVM's work.
//! It goes to the area that it has now, so that a comparison with such an account shows no bytes moving between the two.

use super::{Sum, Sums};
use crate::map::area::Area;
use crate::map::malloc::owners::is_unknown;
use std::collections::BTreeMap;

pub fn renew(sums: &mut Sums) {
    if sums.areas.contains_key(&Area::MallocUnknown) {
        return;
    }
    for area in [Area::JvmWork, Area::NativeLibrary] {
        let is_moved = |of: &Area, part: &str| *of == area && is_unknown(part);
        let moved: BTreeMap<String, Sum> = sums
            .parts
            .iter()
            .filter(|((of, part), _)| is_moved(of, part))
            .map(|((_, part), sum)| (part.clone(), *sum))
            .collect();
        let Some(from) = sums.areas.get_mut(&area).filter(|_| !moved.is_empty()) else { continue };
        let mut to = Sum { in_use: Some(0), swapped: Some(0), ..Sum::default() };
        moved.values().for_each(|sum| from.give(&mut to, sum));
        if *from == (Sum { in_use: from.in_use, swapped: from.swapped, ..Sum::default() }) {
            sums.areas.remove(&area);
        }
        let unknown = sums.areas.entry(Area::MallocUnknown).or_insert(Sum {
            in_use: Some(0),
            swapped: Some(0),
            ..Sum::default()
        });
        to.give(unknown, &to.clone());
        sums.parts.retain(|(of, part), _| !is_moved(of, part));
        sums.parts.extend(moved.into_iter().map(|(part, sum)| ((Area::MallocUnknown, part), sum)));
    }
}

impl Sum {
    /// Takes `bytes` off and adds them to `to`.
    fn give(&mut self, to: &mut Sum, bytes: &Sum) {
        let known = |one: Option<u64>, other: Option<u64>, of: fn(u64, u64) -> u64| Some(of(one?, other?));
        for (from, to, bytes) in [
            (&mut self.reserved, &mut to.reserved, bytes.reserved),
            (&mut self.committed, &mut to.committed, bytes.committed),
            (&mut self.resident, &mut to.resident, bytes.resident),
        ] {
            (*from, *to) = (from.saturating_sub(bytes), to.saturating_add(bytes));
        }
        to.in_use = known(to.in_use, bytes.in_use, u64::saturating_add);
        self.in_use = known(self.in_use, bytes.in_use, u64::saturating_sub);
        to.swapped = known(to.swapped, bytes.swapped, u64::saturating_add);
        self.swapped = known(self.swapped, bytes.swapped, u64::saturating_sub);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_of_unknown_owners_goes_to_its_own_area_and_nothing_is_lost() {
        let sum =
            |resident| Sum { reserved: 10 * resident, resident, in_use: Some(resident), ..Sum::default() };
        let key = |area, part: &str| (area, part.to_string());
        let mut sums = Sums {
            areas: [(Area::JvmWork, sum(9)), (Area::NativeLibrary, sum(5)), (Area::Gc, sum(1))].into(),
            parts: [
                (key(Area::JvmWork, "malloc, owner unknown"), sum(6)),
                (key(Area::JvmWork, "malloc thread arenas"), sum(1)),
                (key(Area::JvmWork, "symbols"), sum(2)),
                (key(Area::NativeLibrary, "jemalloc 5.3.0: free, its own tables, other libraries'"), sum(5)),
            ]
            .into(),
            ..Sums::default()
        };
        let before = sums.resident();
        renew(&mut sums);
        assert_eq!((sums.resident(), sums.areas[&Area::JvmWork].resident), (before, 2));
        let unknown = sums.areas[&Area::MallocUnknown];
        assert_eq!((unknown.resident, unknown.reserved, unknown.in_use), (12, 120, Some(12)));
        assert!(!sums.areas.contains_key(&Area::NativeLibrary), "nothing is left of it");
        assert_eq!(sums.parts[&key(Area::MallocUnknown, "malloc, owner unknown")], sum(6));
        let again = sums.clone();
        renew(&mut sums);
        assert_eq!(sums, again, "an account of today stays as it is");
    }
}
