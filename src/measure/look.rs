//! One look at a JVM, small enough to keep: what each area, part, page size, arena and thread has. Two looks give what grew and how
//! fast; a live view keeps the last two and the one that was marked.

use crate::base::{Bytes, Gap, Known};
use crate::map::account::{AreaSum, by_area, by_thread};
use crate::map::{Area, MemoryMap, malloc};
use crate::snapshot::Snapshot;
use std::collections::HashMap;

/// A JVM at a moment.
#[derive(Clone, Debug, PartialEq)]
pub struct Look {
    pub pid: i32,
    /// With the pid, who it is: a pid is used again.
    pub start_ticks: u64,
    /// The main class or jar.
    pub name: String,
    /// "21.0.8+9, g1".
    pub runtime: String,
    /// Seconds since any fixed moment.
    pub at: f64,
    pub took_ms: f64,
    /// VmRSS and HugetlbPages, which everybody may read.
    pub kernel_resident_bytes: Option<Bytes>,
    /// `Err`: its memory could not be read.
    pub account: Known<Account>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Account {
    pub resident_bytes: Bytes,
    pub swapped_bytes: Bytes,
    /// Those that have something, the largest first; parts too.
    pub areas: Vec<AreaLook>,
    /// The smallest first.
    pub page_sizes: Vec<SizeLook>,
    pub arenas: Vec<Figure>,
    /// Their stacks.
    pub threads: Vec<Figure>,
    pub gaps: usize,
}

#[derive(Clone, Debug, PartialEq)]
pub struct AreaLook {
    pub area: Area,
    pub resident_bytes: Bytes,
    pub in_use_bytes: Option<Bytes>,
    pub parts: Vec<Figure>,
}

/// What is on pages of one size, and whose it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SizeLook {
    pub page_bytes: Bytes,
    pub figure: Figure,
    /// The keys are those of areas; the largest first.
    pub areas: Vec<Figure>,
}

/// One line of a table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Figure {
    /// Tells it apart from others: names of threads need not.
    pub key: String,
    pub name: String,
    pub resident_bytes: Bytes,
    /// Of an arena: what it holds freed. Else `None`.
    pub freed_bytes: Option<Bytes>,
}

impl Figure {
    fn new(key: impl Into<String>, name: impl Into<String>, resident_bytes: Bytes) -> Figure {
        Figure { key: key.into(), name: name.into(), resident_bytes, freed_bytes: None }
    }
}

impl Account {
    pub fn of(snapshot: &Snapshot, map: &MemoryMap) -> Account {
        let sums = by_area(map);
        let total = &map.balance.total;
        let page_sizes =
            total.by_page_size.iter().map(|(size, bytes)| size_look(*size, *bytes, &sums)).collect();
        let mut areas: Vec<AreaLook> = sums
            .into_iter()
            .filter(|area| area.figures.resident > 0)
            .map(|area| AreaLook {
                area: area.area,
                resident_bytes: area.figures.resident,
                in_use_bytes: area.in_use,
                parts: area
                    .parts
                    .into_iter()
                    .map(|part| Figure::new(part.part.clone(), part.part, part.figures.resident))
                    .collect(),
            })
            .collect();
        areas.sort_by_key(|area| std::cmp::Reverse(area.resident_bytes));
        Account {
            resident_bytes: total.resident,
            swapped_bytes: total.swapped,
            areas,
            page_sizes,
            arenas: arenas(snapshot, map),
            threads: threads(snapshot, map),
            gaps: map.gaps.len(),
        }
    }

    pub fn area(&self, area: Area) -> Bytes {
        self.areas.iter().find(|it| it.area == area).map_or(0, |it| it.resident_bytes)
    }
}

fn size_look(page_bytes: Bytes, bytes: Bytes, sums: &[AreaSum]) -> SizeLook {
    let figure =
        Figure::new(page_bytes.to_string(), format!("pages of {}", crate::base::human(page_bytes)), bytes);
    let of = |sum: &AreaSum| {
        let bytes = sum.figures.by_page_size.get(&page_bytes).copied().filter(|bytes| *bytes > 0)?;
        Some(Figure::new(sum.area.name(), sum.area.title(), bytes))
    };
    let mut areas: Vec<Figure> = sums.iter().filter_map(of).collect();
    areas.sort_by_key(|area| std::cmp::Reverse(area.resident_bytes));
    SizeLook { page_bytes, figure, areas }
}

fn arenas(snapshot: &Snapshot, map: &MemoryMap) -> Vec<Figure> {
    let Some(sum) = malloc::sum(snapshot, map) else { return Vec::new() };
    let figure = |arena: &malloc::ArenaSum| {
        let number = arena.arena.number;
        let name = if number == 0 { "main arena".to_string() } else { format!("arena {number}") };
        let freed_bytes = Some(arena.divided.held_bytes());
        Figure { freed_bytes, ..Figure::new(arena.arena.at.to_string(), name, arena.divided.whole.resident) }
    };
    sum.arenas.iter().map(figure).collect()
}

fn threads(snapshot: &Snapshot, map: &MemoryMap) -> Vec<Figure> {
    let known = snapshot.jvm.iter().flat_map(|jvm| &jvm.threads);
    let names: HashMap<i32, &str> = known.map(|thread| (thread.tid, thread.name.as_str())).collect();
    let figure =
        |(tid, sum): (i32, Bytes)| Figure::new(tid.to_string(), names.get(&tid).copied().unwrap_or("?"), sum);
    by_thread(map).into_iter().map(|(tid, _, sum)| figure((tid, sum.resident))).collect()
}

impl Look {
    /// Of whom nothing but the kernel's sum could be read.
    pub fn unread(&self, gap: Gap) -> Look {
        Look { account: Err(gap), ..self.clone() }
    }

    /// What is in memory: our sum, or else the kernel's.
    pub fn resident_bytes(&self) -> Option<Bytes> {
        self.account.as_ref().map(|account| account.resident_bytes).ok().or(self.kernel_resident_bytes)
    }

    /// Whether it is of the same process.
    pub fn is_of(&self, other: &Look) -> bool {
        (self.pid, self.start_ticks) == (other.pid, other.start_ticks)
    }
}

/// Bytes a second between two looks; `None`: a figure is not known, or no time passed.
pub fn rate(before: Option<Bytes>, now: Option<Bytes>, seconds: f64) -> Option<f64> {
    let (before, now) = (before?, now?);
    (seconds > 0.0).then(|| (now as f64 - before as f64) / seconds)
}

/// What grew (or, below 0, shrank).
pub fn growth(before: Option<Bytes>, now: Option<Bytes>) -> Option<i64> {
    let change = i128::from(now?) - i128::from(before?);
    Some(change.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_does_not_grow() {
        assert_eq!(growth(Some(3), Some(5)), Some(2));
        assert_eq!(growth(Some(u64::MAX), Some(0)), Some(i64::MIN));
        assert_eq!((growth(None, Some(5)), rate(Some(1), None, 1.0)), (None, None));
        assert_eq!((rate(Some(10), Some(4), 2.0), rate(Some(1), Some(2), 0.0)), (Some(-3.0), None));
    }
}
