//! Who holds more of malloc's blocks than before, which class loaders have more chunks of metaspace, and which classes have more
//! objects. A recording keeps the largest only, so one that it lacks at a moment is not known there; an account that has them
//! has all of them, and one that it lacks held nothing.

use super::difference;
use crate::base::Bytes;
use crate::map::heap::OTHER_CLASSES;
use crate::map::rows::Named;
use crate::map::sums::{Sum, Sums};
use std::cmp::Reverse;
use std::collections::BTreeSet;

/// One holder, one group of class loaders or one class; `None`: not known at that moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HolderRow {
    pub holder: String,
    pub before: Option<Bytes>,
    pub now: Option<Bytes>,
    /// Blocks, class loaders or instances.
    pub count_before: Option<u64>,
    pub count_now: Option<u64>,
}

impl HolderRow {
    /// Bytes more.
    pub fn grown(&self) -> Option<i64> {
        Some(difference(self.before?, self.now?))
    }

    pub fn count_grown(&self) -> Option<i64> {
        Some(difference(self.count_before?, self.count_now?))
    }
}

/// What grew most first, then what is known at one moment only, the largest first; what shrank comes last. `None`: one of the two
/// has none of `kind`.
pub fn holders(kind: Named, before: &Sums, now: &Sums) -> Option<Vec<HolderRow>> {
    let names = |sums: &Sums| -> BTreeSet<String> {
        // Which classes these are differs from one moment to the next.
        let holders = sums.named.keys().filter(|(of, name)| *of == kind && name != OTHER_CLASSES);
        holders.map(|(_, name)| name.clone()).collect()
    };
    let (one, other) = (names(before), names(now));
    if one.is_empty() || other.is_empty() {
        return None;
    }
    let all = one.union(&other).map(|name| row(kind, name, before, now));
    let mut rows: Vec<HolderRow> =
        all.filter(|row| row.before != row.now || row.count_before != row.count_now).collect();
    rows.sort_by_cached_key(|row| {
        let place = row.grown().map_or(1, |grown| if grown > 0 { 0 } else { 2 });
        (place, Reverse((row.grown(), row.now.or(row.before))), row.holder.clone())
    });
    Some(rows)
}

fn row(kind: Named, name: &str, before: &Sums, now: &Sums) -> HolderRow {
    let of = |sums: &Sums, get: fn(&Sum) -> Option<u64>| {
        let has_all = match kind {
            Named::Loader => sums.has_all_loaders,
            Named::Class => sums.has_all_classes,
            _ => sums.has_all_holders,
        };
        sums.named.get(&(kind, name.to_string())).map_or(has_all.then_some(0), get)
    };
    let size = match kind {
        Named::Loader => |sum: &Sum| sum.in_use.map(|_| sum.committed),
        _ => |sum: &Sum| sum.in_use,
    };
    let count = |sum: &Sum| sum.blocks.or(sum.loaders).or(sum.instances);
    HolderRow {
        holder: name.to_string(),
        before: of(before, size),
        now: of(now, size),
        count_before: of(before, count),
        count_now: of(now, count),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jvm::ClassObjects;
    use crate::map::rows::{Measure, Subject};

    fn sums(held: &[(&str, u64)], has_all_holders: bool) -> Sums {
        let mut sums = Sums { has_all_holders, ..Sums::default() };
        for (name, bytes) in held {
            let holder = Subject::Named(Named::Holder, name.to_string());
            sums.add(&holder, Measure::InUse, *bytes);
            sums.add(&holder, Measure::Blocks, bytes / 10);
        }
        sums
    }

    #[test]
    fn what_grew_comes_first_and_what_shrank_last() {
        let before =
            sums(&[("a.Shrank.it", 90), ("b.Grew.it", 10), ("c.Same.it", 50), ("d.Gone.it", 30)], true);
        let now = sums(&[("a.Shrank.it", 80), ("b.Grew.it", 70), ("c.Same.it", 50), ("e.New.it", 100)], true);
        let rows = holders(Named::Holder, &before, &now).expect("holders");
        let of: Vec<_> =
            rows.iter().map(|row| (row.holder.as_str(), row.grown(), row.count_grown())).collect();
        assert_eq!(
            of,
            [
                ("e.New.it", Some(100), Some(10)),
                ("b.Grew.it", Some(60), Some(6)),
                ("a.Shrank.it", Some(-10), Some(-1)),
                ("d.Gone.it", Some(-30), Some(-3)),
            ]
        );
    }

    #[test]
    fn one_that_a_recording_does_not_keep_is_not_known_and_not_0() {
        let (before, now) = (sums(&[("a.B.c", 10)], false), sums(&[("a.B.c", 11), ("d.E.f", 40)], true));
        let rows = holders(Named::Holder, &before, &now).expect("holders");
        assert_eq!((rows[0].grown(), rows[1].before, rows[1].grown()), (Some(1), None, None));
        assert_eq!(holders(Named::Holder, &now, &before).expect("holders")[0].now, None);
    }

    #[test]
    fn class_loaders_are_counted() {
        let loaders = |loaders: u64| {
            let mut sums = Sums { has_all_loaders: true, ..Sums::default() };
            for (name, count) in [("<bootstrap>", 1), ("com.example.PluginLoader", loaders)] {
                let group = Subject::Named(Named::Loader, name.to_string());
                sums.add(&group, Measure::InUse, count * 10);
                sums.add(&group, Measure::Committed, count * 100);
                sums.add(&group, Measure::ClassLoaders, count);
            }
            sums
        };
        let rows = holders(Named::Loader, &loaders(2), &loaders(43)).expect("loaders");
        let of: Vec<_> =
            rows.iter().map(|row| (row.holder.as_str(), row.grown(), row.count_grown())).collect();
        assert_eq!(of, [("com.example.PluginLoader", Some(4100), Some(41))]);
        assert_eq!(holders(Named::Holder, &loaders(2), &loaders(43)), None);
    }

    #[test]
    fn classes_are_compared_one_by_one() {
        let mut recorded = Sums::default();
        for (name, bytes) in [("a.B", 32), (OTHER_CLASSES, 500)] {
            let class = Subject::Named(Named::Class, name.to_string());
            recorded.add(&class, Measure::InUse, bytes);
            recorded.add(&class, Measure::Instances, bytes / 16);
        }
        let mut counted = Sums::default();
        let class = |class: &str, bytes: u64| ClassObjects {
            class: class.to_string(),
            instances: bytes / 16,
            bytes,
            ..ClassObjects::default()
        };
        counted.add_classes(&[class("a.B", 96), class("c.D", 16)]);
        let rows = holders(Named::Class, &recorded, &counted).expect("classes");
        let of = |row: &HolderRow| (row.holder.clone(), row.before, row.grown(), row.count_grown());
        let right = [("a.B".to_string(), Some(32), Some(64), Some(4)), ("c.D".to_string(), None, None, None)];
        assert_eq!(rows.iter().map(of).collect::<Vec<_>>(), right);
    }

    #[test]
    fn without_holders_at_one_of_the_moments_nothing_is_compared() {
        assert_eq!(holders(Named::Holder, &Sums::default(), &sums(&[("a.B.c", 10)], true)), None);
    }
}
