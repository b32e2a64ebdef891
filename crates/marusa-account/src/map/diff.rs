//! What grew between two moments: by area, part, arena, library and thread, and the few causes that say most of it. Pure: from
//! the sums of both moments alone, wherever they come from.

mod causes;
mod depth;
mod holders;
#[cfg(test)]
mod tests;

use super::area::Area;
use super::rows::Named;
use super::sums::{Sum, Sums};
use crate::base::Bytes;
use std::collections::{BTreeMap, BTreeSet};

pub use causes::{Cause, Causes, What};
pub use depth::{Lost, NOT_DISTINGUISHED};
pub use holders::HolderRow;

/// One line: what there was, and what there is. `None`: it was not there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row<K> {
    pub key: K,
    pub grown: Grown,
}

/// Resident bytes of both moments, and how many bytes more there are; negative: less.
#[derive(Clone, Copy, Debug, PartialEq, Eq, schemars::JsonSchema, serde::Serialize)]
pub struct Grown {
    #[serde(rename = "resident_before_bytes")]
    pub before: Option<Bytes>,
    #[serde(rename = "resident_now_bytes")]
    pub now: Option<Bytes>,
    #[serde(rename = "resident_grown_bytes")]
    pub resident: i64,
    #[serde(rename = "committed_grown_bytes")]
    pub committed: i64,
    #[serde(rename = "reserved_grown_bytes")]
    pub reserved: i64,
    /// `None`: not known at one of the moments.
    #[serde(rename = "in_use_grown_bytes")]
    pub in_use: Option<i64>,
}

/// An arena, by its place in the ring: now, or before where it is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ArenaKey {
    pub at: u64,
    pub number: u64,
}

/// The freed memory of an arena: the reason that an unused one grows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArenaRow {
    pub row: Row<ArenaKey>,
    /// Resident and freed, more or less than before; `None`: its chunks were not read.
    pub freed: Option<i64>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadRow {
    pub row: Row<String>,
    pub threads_before: u64,
    pub threads_now: u64,
}

/// All tables, each with what grew most first; what shrank comes last. Rows that did not change are left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diff {
    pub before: Bytes,
    pub now: Bytes,
    /// The kernel's own sums; `None`: not known at one of the moments.
    pub kernel_resident: Option<i64>,
    pub page_tables: Option<i64>,
    pub areas: Vec<Row<Area>>,
    pub parts: Vec<Row<(Area, String)>>,
    pub arenas: Vec<ArenaRow>,
    pub libraries: Vec<Row<String>>,
    pub threads: Vec<ThreadRow>,
    /// Who holds malloc's blocks; `None`: one of the moments does not have it.
    pub holders: Option<Vec<HolderRow>>,
    /// What class loaders have of the metaspace; the same.
    pub loaders: Option<Vec<HolderRow>>,
    /// The objects of the Java heap by class; the same.
    pub classes: Option<Vec<HolderRow>>,
    /// Rows of the other kinds that both moments have.
    pub named: Vec<Row<(Named, String)>>,
    pub causes: Causes,
    /// Areas that only one of the two accounts distinguishes, and that are therefore compared as one sum.
    pub lost: Vec<Lost>,
}

impl Diff {
    /// Resident bytes more than before.
    pub fn resident(&self) -> i64 {
        difference(self.before, self.now)
    }

    /// The growth of one area, or of all; `Err`: one of the accounts does not distinguish that area.
    pub fn grown(&self, area: Option<Area>) -> Result<i64, &Lost> {
        let Some(area) = area else { return Ok(self.resident()) };
        match self.lost.iter().find(|lost| lost.areas.contains(&area)) {
            Some(lost) => Err(lost),
            None => Ok(self.areas.iter().find(|row| row.key == area).map_or(0, |row| row.grown.resident)),
        }
    }
}

pub fn diff(before: &Sums, now: &Sums) -> Diff {
    let lost = depth::lost(before, now);
    if lost.is_empty() {
        return of(before, now);
    }
    let (before, now) = depth::alike(before, now, &lost);
    Diff { lost, ..of(&before, &now) }
}

fn of(before: &Sums, now: &Sums) -> Diff {
    let known = |one: Option<Bytes>, other: Option<Bytes>| Some(difference(one?, other?));
    let mut diff = Diff {
        before: before.resident(),
        now: now.resident(),
        kernel_resident: known(before.kernel_resident, now.kernel_resident),
        page_tables: known(before.page_tables, now.page_tables),
        areas: rows(&before.areas, &now.areas),
        parts: rows(&before.parts, &now.parts),
        arenas: arenas(before, now),
        libraries: rows(&before.libraries, &now.libraries),
        threads: threads(before, now),
        holders: holders::holders(Named::Holder, before, now),
        loaders: holders::holders(Named::Loader, before, now),
        classes: holders::holders(Named::Class, before, now),
        named: named(before, now),
        causes: Causes::default(),
        lost: Vec::new(),
    };
    diff.causes = causes::causes(&diff);
    diff
}

/// More than any process has, and far from where sums of differences would end: files may say anything.
const DIFFERENCE_MAX: i128 = 1 << 55;

pub fn difference(before: Bytes, now: Bytes) -> i64 {
    (i128::from(now) - i128::from(before)).clamp(-DIFFERENCE_MAX, DIFFERENCE_MAX) as i64
}

fn row<K>(key: K, before: Option<&Sum>, now: Option<&Sum>) -> Row<K> {
    let of = |get: fn(&Sum) -> Bytes| difference(before.map_or(0, get), now.map_or(0, get));
    // Where it was not, nothing was in use.
    let in_use = |sum: Option<&Sum>| sum.map_or(Some(0), |sum| sum.in_use);
    let grown = Grown {
        before: before.map(|sum| sum.resident),
        now: now.map(|sum| sum.resident),
        resident: of(|sum| sum.resident),
        committed: of(|sum| sum.committed),
        reserved: of(|sum| sum.reserved),
        in_use: in_use(before).zip(in_use(now)).map(|(before, now)| difference(before, now)),
    };
    Row { key, grown }
}

impl<K> Row<K> {
    fn is_changed(&self) -> bool {
        let Grown { resident, committed, reserved, in_use, .. } = self.grown;
        resident != 0 || committed != 0 || reserved != 0 || in_use.is_some_and(|more| more != 0)
    }
}

fn rows<K: Ord + Clone>(before: &BTreeMap<K, Sum>, now: &BTreeMap<K, Sum>) -> Vec<Row<K>> {
    let keys: BTreeSet<&K> = before.keys().chain(now.keys()).collect();
    let rows = keys.into_iter().map(|key| row(key.clone(), before.get(key), now.get(key)));
    let mut rows: Vec<Row<K>> = rows.filter(Row::is_changed).collect();
    rows.sort_by_key(|row| std::cmp::Reverse((row.grown.resident, row.grown.committed, row.grown.reserved)));
    rows
}

/// A kind that one of the moments has nothing of was not recorded there.
fn named(before: &Sums, now: &Sums) -> Vec<Row<(Named, String)>> {
    let has = |sums: &Sums, kind: Named| sums.named.keys().any(|(of, _)| *of == kind);
    let mut rows = rows(&before.named, &now.named);
    let is_compared =
        |kind: Named| !matches!(kind, Named::Holder | Named::Loader | Named::Compiled | Named::Class);
    rows.retain(|row| is_compared(row.key.0) && has(before, row.key.0) && has(now, row.key.0));
    rows
}

fn arenas(before: &Sums, now: &Sums) -> Vec<ArenaRow> {
    let keys: BTreeSet<u64> = before.arenas.keys().chain(now.arenas.keys()).copied().collect();
    let of = |at: u64| {
        let (one, other) = (before.arenas.get(&at), now.arenas.get(&at));
        let freed = |arena: Option<&Sum>| arena.map_or(Some(0), |arena| arena.freed);
        let number = other.or(one).map_or(0, |arena| arena.number);
        ArenaRow {
            row: row(ArenaKey { at, number }, one, other),
            freed: freed(one).zip(freed(other)).map(|(before, now)| difference(before, now)),
        }
    };
    let mut rows: Vec<ArenaRow> = keys.into_iter().map(of).collect();
    rows.retain(|arena| arena.row.is_changed() || arena.freed.is_some_and(|more| more != 0));
    rows.sort_by_key(|arena| std::cmp::Reverse(arena.row.grown.resident));
    rows
}

fn threads(before: &Sums, now: &Sums) -> Vec<ThreadRow> {
    let keys: BTreeSet<&String> = before.threads.keys().chain(now.threads.keys()).collect();
    let of = |name: &String| {
        let (one, other) = (before.threads.get(name), now.threads.get(name));
        let count = |threads: Option<&Sum>| threads.map_or(0, |threads| threads.threads);
        ThreadRow {
            row: row(name.clone(), one, other),
            threads_before: count(one),
            threads_now: count(other),
        }
    };
    let mut rows: Vec<ThreadRow> = keys.into_iter().map(of).collect();
    rows.retain(|thread| thread.row.is_changed() || thread.threads_before != thread.threads_now);
    rows.sort_by_key(|thread| std::cmp::Reverse((thread.row.grown.resident, thread.threads_now)));
    rows
}
