//! Which holders of malloc's blocks, groups of class loaders and classes a recording keeps: the largest, and the ones that were
//! among them before, so that the series of one does not end where it becomes small. Of classes, the others are one row.

use crate::map::heap::{self, OTHER_CLASSES};
use crate::map::rows::{Named, Row, Subject};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// Ones that are kept of each account, and together with the ones that were among them before.
const LARGEST: (usize, usize) = (20, 120);
/// As many classes as make up this share of the bytes, up to the maximum below.
const CLASSES_SHARE: f64 = 0.95;
const CLASSES_MAX: usize = 200;
/// And the largest of the program's own, which may be few bytes next to the arrays that they hold.
const OWN_CLASSES: usize = 20;
/// Names that are remembered of one JVM: its classes may be named anew each time.
const REMEMBERED_MAX: usize = 100;

/// The names of the ones that were among the largest.
#[derive(Debug)]
pub struct Kept {
    kind: Named,
    names: BTreeSet<String>,
}

impl Kept {
    pub fn new(kind: Named) -> Kept {
        Kept { kind, names: BTreeSet::new() }
    }

    /// Takes the others out of the rows.
    pub fn choose(&mut self, rows: &mut Vec<Row>) {
        let kind = self.kind;
        let holders =
            rows.iter().filter(|(subject, measure, _)| subject.is_named(kind) && *measure == kind.size());
        let mut sizes: Vec<(Reverse<u64>, String)> =
            holders.filter_map(|(subject, _, bytes)| Some((Reverse((*bytes)?), subject.name()?))).collect();
        sizes.sort_unstable();
        let (largest, most) = match kind {
            Named::Class => (covering(&sizes), CLASSES_MAX),
            _ => LARGEST,
        };
        let (largest, others) = sizes.split_at(largest.min(sizes.len()));
        let own = others.iter().filter(|(_, name)| kind == Named::Class && heap::is_of_program(name));
        let own: Vec<_> = own.take(OWN_CLASSES.min(most - largest.len())).collect();
        let mut kept: BTreeSet<&str> = largest.iter().chain(own).map(|(_, name)| name.as_str()).collect();
        let chosen: Vec<&str> = kept.iter().copied().collect();
        let remembered =
            others.iter().map(|(_, name)| name.as_str()).filter(|name| self.names.contains(*name));
        for name in remembered {
            if kept.len() < most {
                kept.insert(name);
            }
        }
        for name in chosen {
            if self.names.len() < REMEMBERED_MAX {
                self.names.insert(name.to_string());
            }
        }
        let mut rest: BTreeMap<_, u64> = BTreeMap::new();
        rows.retain(|(subject, measure, value)| {
            let Subject::Named(of, name) = subject else { return true };
            let is_kept = *of != kind || kept.contains(name.as_str());
            if let (false, Named::Class, Some(value)) = (is_kept, kind, value) {
                let sum = rest.entry(*measure).or_default();
                *sum = sum.saturating_add(*value);
            }
            is_kept
        });
        let other = |(measure, sum)| (Subject::Named(kind, OTHER_CLASSES.to_string()), measure, Some(sum));
        rows.extend(rest.into_iter().map(other));
    }
}

/// How many of the largest are kept of the classes.
fn covering(sizes: &[(Reverse<u64>, String)]) -> usize {
    let all: f64 = sizes.iter().map(|(bytes, _)| bytes.0 as f64).sum();
    let mut sum = 0.0;
    let needed = sizes.iter().take_while(|(bytes, _)| {
        let is_needed = sum < all * CLASSES_SHARE;
        sum += bytes.0 as f64;
        is_needed
    });
    needed.count().min(CLASSES_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::map::Area;
    use crate::map::rows::{Measure, Subject};

    fn rows(sizes: impl Iterator<Item = (usize, u64)>) -> Vec<Row> {
        let holder = |at: usize| Subject::Named(Named::Holder, format!("app.Held{at}.address"));
        let of_holders = sizes.flat_map(|(at, bytes)| {
            [(holder(at), Measure::InUse, Some(bytes)), (holder(at), Measure::Blocks, Some(1))]
        });
        let heap = (Subject::Area(Area::JavaHeap), Measure::Resident, Some(1));
        std::iter::once(heap).chain(of_holders).collect()
    }

    #[test]
    fn the_largest_are_kept_and_those_that_were_among_them() {
        let mut kept = Kept::new(Named::Holder);
        let mut first = rows((0..30).map(|at| (at, 1000 - at as u64)));
        kept.choose(&mut first);
        assert_eq!(first, rows((0..20).map(|at| (at, 1000 - at as u64))));
        let mut second = rows((0..30).map(|at| (at, if at == 0 { 1 } else { 1000 - at as u64 })));
        kept.choose(&mut second);
        assert_eq!(second, rows((0..21).map(|at| (at, if at == 0 { 1 } else { 1000 - at as u64 }))));
    }

    fn classes(sizes: &[u64]) -> Vec<Row> {
        let class = |(at, bytes): (usize, &u64)| {
            let subject = Subject::Named(Named::Class, format!("java.Class{at}"));
            [(subject.clone(), Measure::InUse, Some(*bytes)), (subject, Measure::Instances, Some(1))]
        };
        sizes.iter().enumerate().flat_map(class).collect()
    }

    #[test]
    fn classes_are_kept_up_to_nearly_all_bytes_and_the_others_are_one_row() {
        let mut kept = Kept::new(Named::Class);
        let mut first = classes(&[600, 300, 51, 2, 47]);
        kept.choose(&mut first);
        let other =
            |measure, sum| (Subject::Named(Named::Class, OTHER_CLASSES.to_string()), measure, Some(sum));
        let largest = classes(&[600, 300, 51]);
        let rest = [other(Measure::InUse, 49), other(Measure::Instances, 2)];
        assert_eq!(first, [&largest[..], &rest[..]].concat());
        let mut second = classes(&[960, 1, 1, 37, 1]);
        kept.choose(&mut second);
        let names: Vec<String> = second.iter().step_by(2).filter_map(|row| row.0.name()).collect();
        assert_eq!(
            names,
            ["java.Class0", "java.Class1", "java.Class2", OTHER_CLASSES],
            "they were kept before"
        );
        let own = (Subject::Named(Named::Class, "com.app.Session".to_string()), Measure::InUse, Some(1));
        let mut with_own = [classes(&[960, 40]), vec![own.clone()]].concat();
        Kept::new(Named::Class).choose(&mut with_own);
        assert!(with_own.contains(&own) && with_own.len() == 5, "the program's own: {with_own:?}");
        let mut many = classes(&[10; 1000]);
        Kept::new(Named::Class).choose(&mut many);
        assert_eq!(many.len(), 2 * CLASSES_MAX + 2);
        assert_eq!(many.last(), Some(&other(Measure::Instances, 800)));
    }

    #[test]
    fn names_that_are_always_new_do_not_add_up() {
        let mut kept = Kept::new(Named::Holder);
        for round in 0..50 {
            let mut new = rows((0..20).map(|at| (round * 20 + at, 1000)));
            kept.choose(&mut new);
            assert_eq!(new.len(), 41, "the largest are always there");
        }
        assert_eq!(kept.names.len(), REMEMBERED_MAX);
    }
}
