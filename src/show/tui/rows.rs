//! The rows of a view: filtered, sorted, with what grew.

use super::history::{Held, Kept};
use super::model::{Model, Sort, Tab, View};
use crate::base::Bytes;
use crate::map::Area;
use crate::map::model::{Account, Amounts, AreaAccount, ArenaAccount};
use crate::measure::look::{LimitOf, Look, growth, rate};
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// One row of whatever is shown.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row {
    pub name: String,
    pub pid: Option<i32>,
    /// The key of an area that has parts; of a part, `None`.
    pub area: Option<&'static str>,
    pub is_part: bool,
    /// In whose colour its bar is.
    pub shade: Option<Area>,
    pub resident_bytes: Option<Bytes>,
    /// Only for arenas.
    pub freed_bytes: Option<Bytes>,
    /// Only for holders of malloc's blocks.
    pub blocks: Option<u64>,
    /// In place of a bar.
    pub detail: Option<String>,
    pub rate: Option<f64>,
    pub since_mark: Option<i64>,
    /// What was in memory at the last samples.
    pub history: Vec<Option<Bytes>>,
    /// For a JVM in a cgroup with a limit.
    pub limit_used_percent: Option<u64>,
    /// Why there is no account.
    pub note: Option<String>,
}

impl Model {
    pub fn rows(&self) -> Vec<Row> {
        match (self.view, self.one()) {
            (View::All, _) => self.sorted(self.all()),
            (View::One(_), Some(kept)) => self.of_one(kept),
            (View::One(_), None) => Vec::new(),
        }
    }

    /// Each JVM; tools of the JDK, which run for a moment, together.
    fn all(&self) -> Vec<Row> {
        let (tools, others): (Vec<&Kept>, Vec<&Kept>) =
            self.jvms.values().partition(|kept| kept.now.is_jdk_tool);
        if tools.len() < 2 {
            return self.jvms.values().map(jvm).collect();
        }
        let sum = tools.iter().map(|kept| kept.now.resident_bytes()).sum::<Option<Bytes>>();
        let name = format!("{} JDK tools", tools.len());
        let together = Row { name, resident_bytes: sum, ..Row::default() };
        others.into_iter().map(jvm).chain([together]).collect()
    }

    fn of_one(&self, kept: &Kept) -> Vec<Row> {
        match self.tab {
            Tab::Areas => self.areas(kept),
            Tab::PageSizes => self.page_sizes(kept),
            Tab::Arenas => self.sorted(rows(kept, arenas)),
            Tab::Holders => self.sorted(holders(kept)),
            Tab::Threads => {
                let stacks = rows(kept, stacks).into_iter();
                self.sorted(stacks.map(|row| Row { shade: Some(Area::Stack), ..row }).collect())
            }
        }
    }

    /// Areas, each with its parts behind it where it is open. A part that fits the filter is shown without being asked for.
    fn areas(&self, kept: &Kept) -> Vec<Row> {
        let Ok(account) = &kept.now.account else { return Vec::new() };
        let mut groups: Vec<(Row, Vec<Row>)> = Vec::new();
        for area in account.areas.iter().filter(|area| area.amounts.resident_bytes > 0) {
            let of =
                |look: &Look| look.account.as_ref().ok().map(|account| account.resident_bytes_of(area.area));
            let head = Row {
                name: area.area.title().to_string(),
                area: Some(area.area.name()),
                shade: Some(area.area),
                resident_bytes: Some(area.amounts.resident_bytes),
                rate: kept.rate(of),
                since_mark: kept.growth(of),
                history: kept.trail.of(area.area),
                ..Row::default()
            };
            let is_asked = self.open.contains(&area.area.name());
            let fits = |row: &Row| !self.filter.is_empty() && self.fits(&row.name);
            let mut parts: Vec<Row> = rows(kept, |account| parts(account, area.area))
                .into_iter()
                .filter(|row| is_asked && self.fits_either(&head.name, &row.name) || fits(row))
                .map(|row| Row { is_part: true, shade: Some(area.area), ..row })
                .collect();
            parts.sort_by(|one, other| self.order(one, other));
            if self.fits(&head.name) || !parts.is_empty() {
                groups.push((head, parts));
            }
        }
        self.laid(groups)
    }

    /// Sizes, each with the areas that are on it.
    fn page_sizes(&self, kept: &Kept) -> Vec<Row> {
        let Ok(account) = &kept.now.account else { return Vec::new() };
        let group = |(head, size): (Row, Bytes)| {
            let shade = |title: &str| Area::ALL.iter().copied().find(|area| area.title() == title);
            let mut parts: Vec<Row> = rows(kept, |account| areas_on(account, size))
                .into_iter()
                .map(|row| Row { is_part: true, shade: shade(&row.name), ..row })
                .filter(|row| self.fits_either(&head.name, &row.name))
                .collect();
            parts.sort_by(|one, other| self.order(one, other));
            (self.fits(&head.name) || !parts.is_empty()).then_some((head, parts))
        };
        let sizes = account.whole().by_page_size.into_keys();
        self.laid(rows(kept, page_sizes).into_iter().zip(sizes).filter_map(group).collect())
    }

    fn laid(&self, mut groups: Vec<(Row, Vec<Row>)>) -> Vec<Row> {
        groups.sort_by(|(one, _), (other, _)| self.order(one, other));
        groups.into_iter().flat_map(|(head, parts)| std::iter::once(head).chain(parts)).collect()
    }

    fn sorted(&self, mut rows: Vec<Row>) -> Vec<Row> {
        rows.retain(|row| self.fits(&row.name) || row.pid.is_some_and(|pid| self.fits(&pid.to_string())));
        rows.sort_by(|one, other| self.order(one, other));
        rows
    }

    /// Without regard to capitals.
    fn fits(&self, name: &str) -> bool {
        name.to_lowercase().contains(&self.filter.to_lowercase())
    }

    fn fits_either(&self, one: &str, other: &str) -> bool {
        self.fits(one) || self.fits(other)
    }

    /// What is not known comes last, either way.
    fn order(&self, one: &Row, other: &Row) -> Ordering {
        let by = |one: Option<f64>, other: Option<f64>| match (one, other) {
            (Some(one), Some(other)) if self.is_reversed => one.total_cmp(&other),
            (Some(one), Some(other)) => other.total_cmp(&one),
            (known, unknown) => unknown.is_some().cmp(&known.is_some()),
        };
        let by_name = one.name.cmp(&other.name);
        let order = match self.sort {
            Sort::Resident => by(
                one.resident_bytes.map(|bytes| bytes as f64),
                other.resident_bytes.map(|bytes| bytes as f64),
            ),
            Sort::Rate => by(one.rate, other.rate),
            Sort::SinceMark => {
                by(one.since_mark.map(|bytes| bytes as f64), other.since_mark.map(|bytes| bytes as f64))
            }
            Sort::Name if self.is_reversed => by_name.reverse(),
            Sort::Name => by_name,
        };
        order.then(by_name).then(one.pid.cmp(&other.pid))
    }
}

fn jvm(kept: &Kept) -> Row {
    let limit = kept.now.memory_limit.filter(|limit| limit.of == LimitOf::Cgroup);
    Row {
        name: kept.now.name.clone(),
        pid: Some(kept.now.pid),
        resident_bytes: kept.now.resident_bytes(),
        rate: kept.rate(Look::resident_bytes),
        since_mark: kept.growth(Look::resident_bytes),
        history: kept.trail.resident(),
        limit_used_percent: limit.map(|limit| limit.used_percent()),
        note: kept.now.account.as_ref().err().map(|gap| gap.to_string()),
        ..Row::default()
    }
}

/// A figure of an account that becomes a row.
struct Figure {
    /// Unique among the rows: names of threads need not be.
    key: String,
    name: String,
    resident_bytes: Bytes,
    freed_bytes: Option<Bytes>,
}

impl Figure {
    fn new(key: impl ToString, name: impl Into<String>, resident_bytes: Bytes) -> Figure {
        Figure { key: key.to_string(), name: name.into(), resident_bytes, freed_bytes: None }
    }
}

fn parts(account: &Account, area: Area) -> Vec<Figure> {
    let parts = account.area(area).into_iter().flat_map(|area| &area.parts);
    parts.map(|part| Figure::new(&part.part, &part.part, part.amounts.resident_bytes)).collect()
}

fn arenas(account: &Account) -> Vec<Figure> {
    let arenas = account.malloc.iter().flat_map(|malloc| &malloc.arenas);
    let figure = |arena: &ArenaAccount| Figure {
        freed_bytes: arena.sums.held_resident_bytes,
        ..Figure::new(arena.address, arena.title(), arena.resident_bytes)
    };
    arenas.map(figure).collect()
}

fn stacks(account: &Account) -> Vec<Figure> {
    let stacks = account.stacks().into_iter();
    stacks.map(|(thread, stack)| Figure::new(thread.tid, &thread.name, stack.resident_bytes)).collect()
}

/// The smallest first.
fn page_sizes(account: &Account) -> Vec<Figure> {
    let title = |size: Bytes| format!("{} pages", crate::base::human(size));
    let sizes = account.whole().by_page_size.into_iter();
    sizes.map(|(size, bytes)| Figure::new(size, title(size), bytes)).collect()
}

/// What areas have on pages of one size.
fn areas_on(account: &Account, size: Bytes) -> Vec<Figure> {
    let on = |amounts: &Amounts| amounts.by_page_size.get(&size).copied().filter(|bytes| *bytes > 0);
    let figure =
        |area: &AreaAccount| Some(Figure::new(area.area.name(), area.area.title(), on(&area.amounts)?));
    account.areas.iter().filter_map(figure).collect()
}

/// A row for each figure; what has one now but had none before, grew from nothing.
fn rows(kept: &Kept, of: impl Fn(&Account) -> Vec<Figure>) -> Vec<Row> {
    let Ok(account) = &kept.now.account else { return Vec::new() };
    let before = |look: Option<&Look>| look.and_then(|look| look.account.as_ref().ok()).map(&of);
    let (last, mark) = (before(kept.before.as_ref()), before(kept.mark.as_ref()));
    let find = |figures: &Option<Vec<Figure>>, key: &str| {
        let mut figures = figures.as_ref()?.iter();
        Some(figures.find(|figure| figure.key == key).map_or(0, |figure| figure.resident_bytes))
    };
    let seconds = kept.seconds();
    let row = |figure: Figure| Row {
        rate: rate(find(&last, &figure.key), Some(figure.resident_bytes), seconds),
        since_mark: growth(find(&mark, &figure.key), Some(figure.resident_bytes)),
        name: figure.name,
        resident_bytes: Some(figure.resident_bytes),
        freed_bytes: figure.freed_bytes,
        ..Row::default()
    };
    of(account).into_iter().map(row).collect()
}

/// A row for each holder; what grew is since they were read before.
fn holders(kept: &Kept) -> Vec<Row> {
    let Some(Held { at, holders: Ok(holders), before }) = &kept.held else { return Vec::new() };
    let known: Option<BTreeMap<_, Bytes>> = before.as_ref().map(|(_, holders)| {
        holders.iter().map(|held| ((&held.holder, held.how, held.is_mapping), held.bytes)).collect()
    });
    let seconds = before.as_ref().map_or(0.0, |(before, _)| at - before);
    let row = |held: &crate::jvm::Held| {
        let last = known
            .as_ref()
            .map(|known| known.get(&(&held.holder, held.how, held.is_mapping)).copied().unwrap_or(0));
        Row {
            name: held.holder.clone(),
            resident_bytes: Some(held.bytes),
            blocks: Some(held.blocks),
            rate: rate(last, Some(held.bytes), seconds),
            since_mark: growth(last, Some(held.bytes)),
            detail: Some(match held.of_what() {
                Some(what) => format!("{}, {what}", held.how_in_words()),
                None => held.how_in_words(),
            }),
            ..Row::default()
        }
    };
    holders.iter().map(row).collect()
}
