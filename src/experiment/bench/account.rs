//! The account of a program at one of its stages, as far as the experiments of the 2010 paper compare it ("A Study of Java's
//! Non-Java Memory", OOPSLA 2010): what is resident by area, and what of malloc's freed memory could come back.

use crate::base::{Bytes, Gap};
use crate::map::account::by_area;
use crate::map::trim::predict;
use crate::map::{Area, MemoryMap};
use crate::snapshot::Snapshot;
use std::collections::BTreeMap;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Account {
    /// Only what is known: malloc-then-freed is missing where malloc was not walked.
    resident: BTreeMap<Area, Bytes>,
    pub total_bytes: Bytes,
    pub kernel_resident_bytes: Option<Bytes>,
    pub swapped_bytes: Bytes,
    /// What malloc_trim would give back.
    pub trimmable_bytes: Option<Bytes>,
    pub classes: Option<u64>,
    pub gaps: Vec<Gap>,
}

impl Account {
    pub fn of(snapshot: &Snapshot, map: &MemoryMap) -> Account {
        let walked = snapshot.alloc.as_ref().is_ok_and(|alloc| {
            alloc.arenas.iter().any(|arena| arena.figures.is_ok()) || alloc.arenas.is_empty()
        });
        let mut resident: BTreeMap<Area, Bytes> = Area::ALL.iter().map(|area| (*area, 0)).collect();
        if !walked {
            resident.remove(&Area::MallocFreed);
        }
        let mut swapped_bytes = 0;
        for sum in by_area(map) {
            swapped_bytes += sum.figures.swapped;
            if let Some(bytes) = resident.get_mut(&sum.area) {
                *bytes = sum.figures.resident;
            }
        }
        let classes = snapshot.jvm.as_ref().ok().and_then(|jvm| jvm.classes.as_ref().ok());
        Account {
            resident,
            total_bytes: map.balance.total.resident,
            kernel_resident_bytes: map.balance.kernel_resident,
            swapped_bytes,
            trimmable_bytes: predict(snapshot).ok().map(|one| one.total.trimmable_bytes),
            classes: classes.and_then(|classes| classes.classes.as_ref().ok().copied()),
            gaps: map.gaps.clone(),
        }
    }

    /// `None`: not known.
    pub fn resident(&self, area: Area) -> Option<Bytes> {
        self.resident.get(&area).copied()
    }

    pub fn sum(&self, areas: &[Area]) -> Option<Bytes> {
        areas.iter().map(|area| self.resident(*area)).sum()
    }

    /// The kernel's figure where it is known, else ours.
    pub fn rss_bytes(&self) -> Bytes {
        self.kernel_resident_bytes.unwrap_or(self.total_bytes)
    }

    #[cfg(test)]
    pub fn made_up(figures: &[(Area, Bytes)]) -> Account {
        let total_bytes = figures.iter().map(|(_, bytes)| bytes).sum();
        Account { resident: figures.iter().copied().collect(), total_bytes, ..Account::default() }
    }
}

/// `later` less `earlier`.
pub fn growth(earlier: Option<Bytes>, later: Option<Bytes>) -> Option<i64> {
    let signed = |bytes: Bytes| i64::try_from(bytes).unwrap_or(i64::MAX);
    Some(signed(later?).saturating_sub(signed(earlier?)))
}

/// Some figures of the same kind: the middle one, and how far they spread.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    pub median: f64,
    pub min: f64,
    pub max: f64,
    pub count: usize,
}

impl Spread {
    /// `None`: there are none, or one of them is not known.
    pub fn of(figures: impl IntoIterator<Item = Option<f64>>) -> Option<Spread> {
        let mut all: Vec<f64> = figures.into_iter().collect::<Option<_>>()?;
        all.sort_by(f64::total_cmp);
        let (min, max) = (*all.first()?, *all.last()?);
        let median = (all[(all.len() - 1) / 2] + all[all.len() / 2]) / 2.0;
        Some(Spread { median, min, max, count: all.len() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_is_not_zero() {
        let account = Account::made_up(&[(Area::JitCode, 5), (Area::ClassMetadata, 7)]);
        assert_eq!(account.sum(&[Area::JitCode, Area::ClassMetadata]), Some(12));
        assert_eq!(account.resident(Area::MallocFreed), None);
        assert_eq!(account.sum(&[Area::JitCode, Area::MallocFreed]), None);
        assert_eq!(growth(Some(7), Some(5)), Some(-2));
        assert_eq!(growth(None, Some(5)), None);
    }

    #[test]
    fn the_middle_and_the_ends() {
        let spread = Spread::of([3.0, 1.0, 2.0, 10.0].map(Some)).expect("four");
        assert_eq!((spread.median, spread.min, spread.max, spread.count), (2.5, 1.0, 10.0, 4));
        assert_eq!(Spread::of([Some(1.0), None]), None);
        assert_eq!(Spread::of([]), None);
    }
}
