//! The rows of a view: filtered, sorted, with what grew.

use super::model::{Kept, Model, Sort, Tab, View};
use crate::base::Bytes;
use crate::map::Area;
use crate::measure::look::{Account, Figure, Look, SizeLook};
use std::cmp::Ordering;

/// One row of whatever is shown.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    pub name: String,
    pub pid: Option<i32>,
    /// The key of an area that has parts; of a part, `None`.
    pub area: Option<&'static str>,
    pub is_part: bool,
    /// In whose colour its bar is.
    pub shade: Option<Area>,
    pub resident_bytes: Option<Bytes>,
    /// Of arenas.
    pub freed_bytes: Option<Bytes>,
    pub rate: Option<f64>,
    pub since_mark: Option<i64>,
    /// Why there is no account.
    pub note: Option<String>,
}

impl Model {
    pub fn rows(&self) -> Vec<Row> {
        match (self.view, self.one()) {
            (View::All, _) => self.sorted(self.jvms.values().map(jvm).collect()),
            (View::One(_), Some(kept)) => self.of_one(kept),
            (View::One(_), None) => Vec::new(),
        }
    }

    fn of_one(&self, kept: &Kept) -> Vec<Row> {
        match self.tab {
            Tab::Areas => self.areas(kept),
            Tab::PageSizes => self.page_sizes(kept),
            Tab::Arenas => self.sorted(figures(kept, |account| &account.arenas)),
            Tab::Threads => {
                let stacks = figures(kept, |account| &account.threads).into_iter();
                self.sorted(stacks.map(|row| Row { shade: Some(Area::Stack), ..row }).collect())
            }
        }
    }

    /// Areas, each with its parts behind it where it is open. A part that fits the filter is shown without being asked for.
    fn areas(&self, kept: &Kept) -> Vec<Row> {
        let Ok(account) = &kept.now.account else { return Vec::new() };
        let mut groups: Vec<(Row, Vec<Row>)> = Vec::new();
        for area in &account.areas {
            let of = |look: &Look| look.account.as_ref().ok().map(|account| account.area(area.area));
            let head = Row {
                name: area.area.title().to_string(),
                pid: None,
                area: Some(area.area.name()),
                is_part: false,
                shade: Some(area.area),
                resident_bytes: Some(area.resident_bytes),
                freed_bytes: None,
                rate: kept.rate(of),
                since_mark: kept.growth(of),
                note: None,
            };
            let parts = |account: &Account| {
                let area = account.areas.iter().find(|it| it.area == area.area);
                area.map(|area| area.parts.clone()).unwrap_or_default()
            };
            let is_asked = self.open.contains(&area.area.name());
            let fits = |row: &Row| !self.filter.is_empty() && self.fits(&row.name);
            let mut parts: Vec<Row> = figures(kept, parts)
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
        let heads = figures(kept, |account| {
            account.page_sizes.iter().map(|size| size.figure.clone()).collect::<Vec<Figure>>()
        });
        let group = |(head, size): (Row, &SizeLook)| {
            let areas = figures(kept, |account| {
                let same = account.page_sizes.iter().find(|it| it.page_bytes == size.page_bytes);
                same.map_or_else(Vec::new, |size| size.areas.clone())
            });
            let shade = |key: &str| Area::ALL.iter().copied().find(|area| area.name() == key);
            let mut parts: Vec<Row> = areas
                .into_iter()
                .zip(&size.areas)
                .map(|(row, area)| Row { is_part: true, shade: shade(&area.key), ..row })
                .filter(|row| self.fits_either(&head.name, &row.name))
                .collect();
            parts.sort_by(|one, other| self.order(one, other));
            (self.fits(&head.name) || !parts.is_empty()).then_some((head, parts))
        };
        self.laid(heads.into_iter().zip(&account.page_sizes).filter_map(group).collect())
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
    Row {
        name: kept.now.name.clone(),
        pid: Some(kept.now.pid),
        area: None,
        is_part: false,
        shade: None,
        resident_bytes: kept.now.resident_bytes(),
        freed_bytes: None,
        rate: kept.rate(Look::resident_bytes),
        since_mark: kept.growth(Look::resident_bytes),
        note: kept.now.account.as_ref().err().map(|gap| gap.to_string()),
    }
}

/// A row for each figure; what has one now but had none before, grew from nothing.
fn figures<'a, F>(kept: &'a Kept, of: impl Fn(&'a Account) -> F) -> Vec<Row>
where
    F: AsRef<[Figure]>,
{
    let Ok(account) = &kept.now.account else { return Vec::new() };
    let before = |look: Option<&'a Look>| look.and_then(|look| look.account.as_ref().ok()).map(&of);
    let (last, mark) = (before(kept.before.as_ref()), before(kept.mark.as_ref()));
    let find = |figures: &Option<F>, key: &str| {
        let figures = figures.as_ref()?.as_ref();
        Some(figures.iter().find(|figure| figure.key == key).map_or(0, |figure| figure.resident_bytes))
    };
    let seconds = kept.before.as_ref().map_or(0.0, |before| kept.now.at - before.at);
    let row = |figure: &Figure| Row {
        name: figure.name.clone(),
        pid: None,
        area: None,
        is_part: false,
        shade: None,
        resident_bytes: Some(figure.resident_bytes),
        freed_bytes: figure.freed_bytes,
        rate: crate::measure::look::rate(find(&last, &figure.key), Some(figure.resident_bytes), seconds),
        since_mark: crate::measure::look::growth(find(&mark, &figure.key), Some(figure.resident_bytes)),
        note: None,
    };
    of(account).as_ref().iter().map(row).collect()
}
