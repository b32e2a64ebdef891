//! What scripts draw from, as one JSON value: the histories, and the runs of pages.

use super::{Page, encode, moments_max, over_time, safe::visible};
use crate::base::{Bytes, PAGE};
use crate::map::Area;
use crate::map::grid::{BLOCK, Grid, State};
use crate::measure::history::{Detail, History, Line};
use crate::os::page_kind::PageKind;
use serde_json::{Value, json};

/// Milliseconds: finer than anybody looks.
const TICKS_PER_SECOND: f64 = 1000.0;

pub fn data(page: &Page) -> Value {
    // The keys of the paper's areas are those of our areas of the same name, so they have their colours.
    let paper = |area: &Area| area.paper().map(|paper| json!({"key": paper, "title": paper.title()}));
    let area = |area: &Area| json!({"key": area.name(), "title": area.title(), "paper": paper(area)});
    let moments = moments_max(page.histories);
    json!({
        "schema": "marusa/page/1",
        "areas": Area::ALL.iter().map(area).collect::<Vec<_>>(),
        "histories": page.histories.iter().map(|one| history(one, moments)).collect::<Vec<_>>(),
        "grid": page.moment.as_ref().and_then(|moment| moment.grid).map(grid),
    })
}

fn history(history: &History, moments: usize) -> Value {
    let short = history.only(&history.told(moments));
    let start = short.times.first().copied().unwrap_or(0.0);
    let ticks = |at: f64| ((at - start) * TICKS_PER_SECOND).round().max(0.0) as Bytes;
    let rows: Vec<Value> = short
        .rows
        .iter()
        .map(|row| {
            let area = Area::ALL.iter().position(|area| *area == row.area);
            let bytes = encode::series(row.resident_bytes.iter().copied());
            json!({"area": area, "part": visible(&row.part), "bytes": bytes})
        })
        .collect();
    let line = |line: &Line| {
        let bytes = encode::series(line.bytes.iter().copied());
        json!({"title": line.title, "shown": line.is_shown, "bytes": bytes})
    };
    let detail = |detail: &Detail| {
        let bytes = encode::series(detail.resident_bytes.iter().copied());
        json!({"kind": detail.kind, "name": visible(&detail.name), "bytes": bytes})
    };
    json!({
        "lines": short.lines.iter().map(line).collect::<Vec<_>>(),
        "details": short.details.iter().map(detail).collect::<Vec<_>>(),
        "name": visible(&over_time::who(history)),
        "start": start,
        "ticks": encode::series(short.times.iter().map(|at| Some(ticks(*at)))),
        "kernel": encode::series(short.kernel_resident_bytes.iter().copied()),
        "rows": rows,
        "events": short.events.iter().map(|event| json!({"at": event.at, "text": visible(&event.text)})).collect::<Vec<_>>(),
    })
}

fn grid(grid: &Grid) -> Value {
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
    let owners: Vec<Value> = grid
        .owners
        .iter()
        .map(|owner| {
            let area = Area::ALL.iter().position(|area| *area == owner.area);
            json!([area, visible(&owner.part), u8::from(owner.is_shared)])
        })
        .collect();
    let kind = |kind: &PageKind| json!({"name": kind.name(), "bytes": kind.page_bytes()});
    json!({
        "page": PAGE,
        "block": BLOCK,
        "owners": owners,
        "kinds": kinds.iter().map(kind).collect::<Vec<_>>(),
        "runs": encode::runs(&grid.runs, state),
    })
}
