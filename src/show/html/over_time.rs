//! The parts of a page that are of a whole recording: the areas over time, and what changed between two moments.

use super::moments_max;
use super::palette::swatch;
use super::safe::escaped;
use super::table::{Cell, table};
use crate::base::{counted, human, rfc3339};
use crate::map::Area;
use crate::measure::history::{HeldOverTime, History, Row};
use crate::measure::peak::{Others, Peak};
use crate::show::plot::{self, Layer};
use std::collections::BTreeSet;
use std::time::{Duration, SystemTime};

const MIB: f64 = 1_048_576.0;
/// Moments of the drawing for paper.
const DRAWN_MAX: usize = 300;
/// What the time is counted in: the largest unit of which there are some.
const UNITS: [(&str, f64); 3] = [("days", 86_400.0), ("hours", 3_600.0), ("minutes", 60.0)];

/// "21.0.8+9, g1 · 2026-01-01T00:00:00Z to 2026-01-01T01:00:00Z, 3600 moments".
pub fn summary(histories: &[History], others: Option<&Others>) -> Option<String> {
    let first = histories.iter().filter_map(|history| history.times.first()).copied();
    let last = histories.iter().filter_map(|history| history.times.last()).copied();
    let first = first.chain(others.map(|others| others.from)).reduce(f64::min)?;
    let last = last.chain(others.map(|others| others.to)).reduce(f64::max)?;
    let who = match (histories, others) {
        ([one], None) if one.runtime.is_empty() => String::new(),
        ([one], None) => format!("{} · ", one.runtime),
        (many, _) => {
            let jvms = many.len() + others.map_or(0, |others| others.jvms);
            format!("{} · ", counted(jvms, "JVM"))
        }
    };
    let moments: usize = histories.iter().map(|history| history.times.len()).sum();
    let of = others.map_or(String::new(), |_| format!(" of the {} largest", histories.len()));
    Some(format!("{who}{} to {}, {}{of}", date(first), date(last), counted(moments, "sample")))
}

pub fn date(seconds: f64) -> String {
    rfc3339(SystemTime::UNIX_EPOCH + Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or_default())
}

pub fn section(histories: &[History], others: Option<&Others>) -> String {
    let mut html = overview(histories, others).unwrap_or_default();
    html += "<p class=\"dim needs-script hint\" hidden>Drag over a chart to zoom, Shift and drag to move; the wheel (after a \
             click), arrow keys, + and - do too. A name in the legend takes its area away and brings it back.</p>\n";
    let moments = moments_max(histories);
    html + &each(histories, SHOWN, |index, history| Some(one(index, history, moments))).unwrap_or_default()
}

/// JVMs that are shown without being asked for, where there are many.
const SHOWN: usize = 3;

/// The same of each JVM, the largest first; where there are several, all but the first of them are closed.
pub fn each(
    histories: &[History],
    shown: usize,
    body: impl Fn(usize, &History) -> Option<String>,
) -> Option<String> {
    if let [history] = histories {
        return body(0, history);
    }
    let mut html = String::new();
    let bodies =
        histories.iter().enumerate().filter_map(|(index, history)| Some((history, body(index, history)?)));
    for (place, (history, body)) in bodies.enumerate() {
        let open = if place < shown { " open" } else { "" };
        let sum =
            history.peak().map_or(String::new(), |peak| format!(", at most {}", human(peak.most_bytes)));
        html += &format!(
            "<details class=\"jvm\"{open}><summary>{}<span class=\"dim\">{sum}</span></summary>\n{body}</details>\n",
            escaped(&who(history))
        );
    }
    (!html.is_empty()).then_some(html)
}

/// What the kernel counts at the largest moment and the last account before it has not.
pub const UNREAD: &str = "came after the last account";

/// Where there are several: which had most, and which grew.
fn overview(histories: &[History], others: Option<&Others>) -> Option<String> {
    if histories.len() < 2 {
        return None;
    }
    let peaks: Vec<Option<Peak>> = histories.iter().map(History::peak).collect();
    let sums = peaks.iter().flatten().chain(others.map(|others| &others.peak));
    let whole = sums.clone().map(|peak| peak.most_bytes).max().unwrap_or(0);
    let figures = |peak: Option<&Peak>| match peak {
        Some(peak) => [
            Cell::Bytes(Some(peak.most_bytes)),
            Cell::Bytes(Some(peak.last_bytes)),
            Cell::Signed(peak.grown_bytes),
            Cell::Bar(peak.clone(), whole),
        ],
        None => [Cell::Bytes(None), Cell::Bytes(None), Cell::Bytes(None), Cell::Text(String::new())],
    };
    let row = |first: [Cell; 2], peak: Option<&Peak>, from: Option<f64>, to: Option<f64>| {
        let at = |seconds: Option<f64>| Cell::Whole(seconds.map_or(String::new(), date));
        first.into_iter().chain(figures(peak)).chain([at(from), at(to)]).collect::<Vec<Cell>>()
    };
    let of = |((index, history), peak): ((usize, &History), &Option<Peak>)| {
        let link = Cell::Link(format!("history-{index}"), history.name.clone());
        let (from, to) = (history.times.first().copied(), history.times.last().copied());
        row([link, Cell::Count(u64::try_from(history.pid).ok())], peak.as_ref(), from, to)
    };
    let mut rows: Vec<Vec<Cell>> = histories.iter().enumerate().zip(&peaks).map(of).collect();
    rows.extend(others.map(|others| {
        let name = Cell::Text(format!("{}, each with less", counted(others.jvms, "other")));
        row([name, Cell::Count(None)], Some(&others.peak), Some(others.from), Some(others.to))
    }));
    let columns = ["JVM", ">PID", ">MOST", ">LAST", ">CHANGE", "AT ITS LARGEST, BY AREA", "FROM", "TO"];
    let has = |area: &&Area| sums.clone().flat_map(|peak| &peak.areas).any(|(known, _)| known == *area);
    let entry = |area: &Area| format!("<li>{}{}</li>", swatch(*area), escaped(area.title()));
    let mut legend: String = Area::ALL.iter().filter(has).map(entry).collect();
    if sums.clone().any(|peak| peak.unread_bytes > 0) {
        legend += &format!("<li><span class=\"swatch striped\" aria-hidden=\"true\"></span>{UNREAD}</li>");
    }
    let note = others.map_or(String::new(), |others| {
        let (shown, all) = (histories.len(), histories.len() + others.jvms);
        format!(
            "<p>Of all {all}, the {shown} largest JVMs are shown one by one; the others are the last row.</p>\n"
        )
    });
    Some(
        note + &table("jvms", "All JVMs, in memory", &columns, &rows, 0)
            + &format!("<ul class=\"legend\">{legend}</ul>\n"),
    )
}

fn one(index: usize, history: &History, moments: usize) -> String {
    let mut html = format!("<div class=\"history\" id=\"history-{index}\">\n");
    html += &format!(
        "<div class=\"toolbar needs-script\" hidden><label><input type=\"checkbox\" data-heap checked> Java heap</label>\
         <label><input type=\"checkbox\" data-stacked checked> on top of each other</label>\
         <label>Areas <select data-areas><option value=\"ours\">ours</option>\
         <option value=\"paper\">of the paper (OOPSLA 2010)</option></select></label>\
         <button type=\"button\" data-all>All of the time</button>\
         <button type=\"button\" data-last>The last minute</button></div>\n\
         <div class=\"chart needs-script\" data-history=\"{index}\" tabindex=\"0\" role=\"group\" \
         aria-label=\"Memory by area over time; arrow keys move, plus and minus zoom, 0 shows all\" hidden></div>\n\
         <div class=\"still\">{}</div>\n",
        still(history)
    );
    if history.times.len() > moments {
        html += &format!(
            "<p class=\"dim\">{}; drawn are the highest and the lowest of each interval.</p>\n",
            counted(history.times.len(), "sample")
        );
    }
    if !history.events.is_empty() {
        html += "<h3>What happened</h3><ul class=\"events\">\n";
        for event in &history.events {
            html += &format!("<li><time>{}</time> {}</li>\n", date(event.at), escaped(&event.text));
        }
        html += "</ul>\n";
    }
    html + "</div>\n"
}

pub fn who(history: &History) -> String {
    let runtime = if history.runtime.is_empty() { String::new() } else { format!(", {}", history.runtime) };
    format!("{}, pid {}{runtime}", history.name, history.pid)
}

/// The drawing without scripts, and on paper.
fn still(history: &History) -> String {
    let short = history.only(&history.thinned(DRAWN_MAX));
    let Some(start) = short.times.first() else { return "<p>There are no samples.</p>".to_string() };
    let length = short.times.last().map_or(0.0, |last| last - start);
    let (unit, unit_seconds) =
        UNITS.into_iter().find(|(_, seconds)| length >= 3.0 * seconds).unwrap_or(("seconds", 1.0));
    let times: Vec<f64> = short.times.iter().map(|at| (at - start) / unit_seconds).collect();
    let layer = |(area, bytes): (Area, Vec<Option<u64>>)| Layer {
        name: area.title().to_string(),
        values: bytes.into_iter().map(|bytes| bytes.map_or(f64::NAN, |bytes| bytes as f64 / MIB)).collect(),
        fill: Some(format!("var(--a-{})", area.name())),
    };
    let layers: Vec<Layer> = short.areas().into_iter().map(layer).collect();
    plot::stacked("Memory by area over time", unit, "MiB", &times, &layers)
}

/// Who held malloc's blocks, where the recorder read it.
pub fn holders(histories: &[History]) -> Option<String> {
    let one = |index: usize, history: &History| {
        let rows = history.held()?;
        let row = |held: HeldOverTime| {
            vec![
                Cell::Code(held.name.to_string()),
                Cell::Bytes(Some(held.last_bytes)),
                Cell::Bytes(Some(held.first_bytes)),
                Cell::Signed(held.grown_bytes),
            ]
        };
        let columns = ["HOLDER", ">LAST READ", ">FIRST READ", ">CHANGE"];
        let rows: Vec<Vec<Cell>> = rows.into_iter().map(row).collect();
        let caption = "Blocks of malloc in use, in memory or not, of the largest holders";
        Some(table(&format!("holders-{index}"), caption, &columns, &rows, 0))
    };
    each(histories, 1, one)
}

/// Two moments: the first and the last, until others are chosen.
pub fn diff(histories: &[History]) -> Option<String> {
    each(histories, 1, between)
}

fn between(index: usize, history: &History) -> Option<String> {
    let last = history.times.len().checked_sub(1).filter(|last| *last > 0)?;
    let by = choice(history);
    // How many moments scripts have to choose from is theirs to say.
    let mut html = format!(
        "<div class=\"diff\" data-history=\"{index}\"><div class=\"toolbar needs-script\" hidden>\
         <label>From <input type=\"range\" min=\"0\" value=\"0\" data-moment=\"from\"> \
         <output data-at=\"from\"></output></label>\
         <label>To <input type=\"range\" min=\"0\" value=\"0\" data-moment=\"to\"> \
         <output data-at=\"to\"></output></label>\
         {by}<span class=\"dim\">A click into the chart sets the end, with Ctrl the start.</span></div>\n\
         <p data-sum role=\"status\">From {} to {}</p>\n",
        date(history.times[0]),
        date(history.times[last])
    );
    html += &rows(index, history, 0, last);
    Some(html + "</div>\n")
}

/// What the rows are, where there is more than parts.
fn choice(history: &History) -> String {
    let kinds: BTreeSet<&str> = history.details.iter().map(|detail| detail.kind).collect();
    if kinds.is_empty() {
        return String::new();
    }
    let options: String =
        kinds.iter().map(|kind| format!("<option value=\"{kind}\">by {kind}</option>")).collect();
    format!("<label>Rows <select data-by><option value=\"part\">by part</option>{options}</select></label> ")
}

fn rows(index: usize, history: &History, from: usize, to: usize) -> String {
    let change = |row: &Row| Some(row.resident_bytes[to]? as i64 - row.resident_bytes[from]? as i64);
    let mut rows: Vec<(&Row, Option<i64>)> = history.rows.iter().map(|row| (row, change(row))).collect();
    rows.sort_by_key(|(_, change)| std::cmp::Reverse(change.map(i64::unsigned_abs)));
    let cells = |(row, change): &(&Row, Option<i64>)| {
        vec![
            Cell::Of(row.area, row.area.title().to_string()),
            Cell::Text(row.part.clone()),
            Cell::Bytes(row.resident_bytes[from]),
            Cell::Bytes(row.resident_bytes[to]),
            change.map_or(Cell::Bytes(None), Cell::Signed),
        ]
    };
    let rows: Vec<Vec<Cell>> = rows.iter().map(cells).collect();
    let columns = ["AREA", "PART", ">FROM", ">TO", ">CHANGE"];
    let caption = match history.has_holders() {
        true => "At the two moments: in memory, of holders in use",
        false => "In memory at the two moments",
    };
    table(&format!("diff-{index}"), caption, &columns, &rows, 0)
}
