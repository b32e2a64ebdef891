//! Which holders of malloc's blocks, and which groups of class loaders, a recording keeps: the largest, and the ones that were
//! among them before, so that the series of one does not end where it becomes small.

use crate::map::rows::{Named, Row};
use std::cmp::Reverse;
use std::collections::BTreeSet;

/// Ones that are kept of each account.
const LARGEST: usize = 20;
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
        let largest: BTreeSet<String> = sizes.into_iter().take(LARGEST).map(|(_, name)| name).collect();
        for name in &largest {
            if self.names.len() < REMEMBERED_MAX {
                self.names.insert(name.clone());
            }
        }
        rows.retain(|(subject, ..)| {
            let is_kept = |name: String| largest.contains(&name) || self.names.contains(&name);
            !subject.is_named(kind) || subject.name().is_some_and(is_kept)
        });
    }
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
