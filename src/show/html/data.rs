//! What scripts draw from, as one JSON value: the histories, and the runs of pages.

use super::{Page, encode, moments_max, over_time, safe::visible};
use crate::base::{Bytes, PAGE};
use crate::map::grid::{BLOCK, Grid, State};
use crate::map::{Area, PaperArea};
use crate::measure::history::{Detail, History, Line, Row};
use crate::os::page_kind::PageKind;
use serde::Serialize;

/// Milliseconds: finer than a reader needs.
const TICKS_PER_SECOND: f64 = 1000.0;

/// What the scripts of a page read.
#[derive(Serialize)]
pub struct Data {
    schema: &'static str,
    areas: Vec<AreaRow>,
    histories: Vec<HistoryRow>,
    grid: Option<GridRow>,
}

#[derive(Serialize)]
struct AreaRow {
    key: Area,
    title: &'static str,
    paper: Option<PaperRow>,
}

#[derive(Serialize)]
struct PaperRow {
    key: PaperArea,
    title: &'static str,
}

/// Series of bytes are encoded (`encode::series`).
#[derive(Serialize)]
struct HistoryRow {
    lines: Vec<LineRow>,
    details: Vec<DetailRow>,
    name: String,
    start: f64,
    ticks: String,
    kernel: String,
    rows: Vec<PartRow>,
    events: Vec<EventRow>,
}

#[derive(Serialize)]
struct LineRow {
    title: &'static str,
    shown: bool,
    bytes: String,
}

#[derive(Serialize)]
struct DetailRow {
    kind: &'static str,
    name: String,
    bytes: String,
}

#[derive(Serialize)]
struct PartRow {
    area: Option<usize>,
    part: String,
    bytes: String,
}

#[derive(Serialize)]
struct EventRow {
    at: f64,
    text: String,
}

#[derive(Serialize)]
struct GridRow {
    page: Bytes,
    block: Bytes,
    /// The number of the area, the part, and 1 where it is shared.
    owners: Vec<(Option<usize>, String, u8)>,
    kinds: Vec<KindRow>,
    runs: String,
}

#[derive(Serialize)]
struct KindRow {
    name: String,
    bytes: Bytes,
}

pub fn data(page: &Page) -> Data {
    // The keys of the paper's areas are those of our areas of the same name, so they have their colours.
    let paper = |paper: PaperArea| PaperRow { key: paper, title: paper.title() };
    let area = |area: &Area| AreaRow { key: *area, title: area.title(), paper: area.paper().map(paper) };
    let moments = moments_max(page.histories);
    Data {
        schema: "marusa/page/1",
        areas: Area::ALL.iter().map(area).collect(),
        histories: page.histories.iter().map(|one| history(one, moments)).collect(),
        grid: page.moment.as_ref().and_then(|moment| moment.grid).map(grid),
    }
}

fn number(area: Area) -> Option<usize> {
    Area::ALL.iter().position(|one| *one == area)
}

fn series(bytes: &[Option<Bytes>]) -> String {
    encode::series(bytes.iter().copied())
}

fn history(history: &History, moments: usize) -> HistoryRow {
    let short = history.only(&history.thinned(moments));
    let start = short.times.first().copied().unwrap_or(0.0);
    let ticks = |at: f64| ((at - start) * TICKS_PER_SECOND).round().max(0.0) as Bytes;
    let row = |row: &Row| PartRow {
        area: number(row.area),
        part: visible(&row.part),
        bytes: series(&row.resident_bytes),
    };
    let line = |line: &Line| LineRow { title: line.title, shown: line.is_shown, bytes: series(&line.bytes) };
    let detail = |detail: &Detail| DetailRow {
        kind: detail.kind,
        name: visible(&detail.name),
        bytes: series(&detail.bytes),
    };
    HistoryRow {
        lines: short.lines.iter().map(line).collect(),
        details: short.details.iter().map(detail).collect(),
        name: visible(&over_time::who(history)),
        start,
        ticks: encode::series(short.times.iter().map(|at| Some(ticks(*at)))),
        kernel: series(&short.kernel_resident_bytes),
        rows: short.rows.iter().map(row).collect(),
        events: short.events.iter().map(|it| EventRow { at: it.at, text: visible(&it.text) }).collect(),
    }
}

fn grid(grid: &Grid) -> GridRow {
    let mut kinds: Vec<PageKind> = Vec::new();
    for run in &grid.runs {
        if let State::Present(kind) = run.state
            && !kinds.contains(&kind)
        {
            kinds.push(kind);
        }
    }
    kinds.sort_unstable_by_key(|kind| (kind.page_bytes(), *kind));
    let state = |state: &State| match state {
        State::Absent => 0,
        State::Swapped => 1,
        State::Present(kind) => 2 + kinds.iter().position(|known| known == kind).unwrap_or(0) as i64,
        State::Some(pages) => -i64::try_from(*pages).unwrap_or(i64::MAX),
    };
    let owners = grid.owners.iter().map(|it| (number(it.area), visible(&it.part), u8::from(it.is_shared)));
    GridRow {
        page: PAGE,
        block: BLOCK,
        owners: owners.collect(),
        kinds: kinds.iter().map(|kind| KindRow { name: kind.name(), bytes: kind.page_bytes() }).collect(),
        runs: encode::runs(&grid.runs, state),
    }
}
