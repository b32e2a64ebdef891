//! The parts of a page that are of a whole recording: the areas over time, and what changed between two moments.

use super::moments_max;
use super::safe::escaped;
use super::table::{Cell, name, number, table};
use crate::base::{Bytes, human, rfc3339};
use crate::map::Area;
use crate::measure::history::{HeldOverTime, History, Row};
use crate::show::plot::{self, Layer};
use std::collections::BTreeSet;
use std::time::{Duration, SystemTime};

const MIB: f64 = 1_048_576.0;
/// Moments of the drawing for paper.
const DRAWN_MAX: usize = 300;

/// "21.0.8+9, g1 · 2026-01-01T00:00:00Z to 2026-01-01T01:00:00Z, 3600 moments".
pub fn summary(histories: &[History]) -> Option<String> {
    let first = histories.iter().filter_map(|history| history.times.first()).copied().reduce(f64::min)?;
    let last = histories.iter().filter_map(|history| history.times.last()).copied().reduce(f64::max)?;
    let moments: usize = histories.iter().map(|history| history.times.len()).sum();
    let who = match histories {
        [one] if one.runtime.is_empty() => String::new(),
        [one] => format!("{} · ", one.runtime),
        many => format!("{} JVMs · ", many.len()),
    };
    Some(format!("{who}{} to {}, {moments} moments", date(first), date(last)))
}

pub fn date(seconds: f64) -> String {
    rfc3339(SystemTime::UNIX_EPOCH + Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or_default())
}

pub fn section(histories: &[History]) -> String {
    let mut html = overview(histories).unwrap_or_default();
    html += "<p class=\"dim needs-script hint\" hidden>Drag over a chart to zoom, Shift and drag to move; the wheel (after a \
             click), arrow keys, + and - do too. A name in the legend takes its area away and brings it back.</p>\n";
    let moments = moments_max(histories);
    html + &each(histories, SHOWN, |index, history| Some(one(index, history, moments)))
}

/// JVMs that are shown without being asked for, where there are many.
const SHOWN: usize = 3;

/// The same of each JVM, the largest first; where there are several, all but the first of them are folded.
pub fn each(histories: &[History], shown: usize, body: impl Fn(usize, &History) -> Option<String>) -> String {
    if let [history] = histories {
        return body(0, history).unwrap_or_default();
    }
    let mut order: Vec<usize> = (0..histories.len()).collect();
    order.sort_by_key(|index| std::cmp::Reverse(most(&histories[*index])));
    let mut html = String::new();
    for (place, index) in order.into_iter().enumerate() {
        let history = &histories[index];
        let Some(body) = body(index, history) else { continue };
        let open = if place < shown { " open" } else { "" };
        let sum = most(history).map_or(String::new(), |bytes| format!(", at most {}", human(bytes)));
        html += &format!(
            "<details class=\"jvm\"{open}><summary>{}<span class=\"dim\">{sum}</span></summary>\n{body}</details>\n",
            escaped(&who(history))
        );
    }
    html
}

/// The kernel's figure is of each moment; where it is not known, the account's stands for it.
fn resident(history: &History) -> Vec<Option<Bytes>> {
    history.kernel_resident_bytes.iter().zip(history.totals()).map(|(kernel, sum)| kernel.or(sum)).collect()
}

fn most(history: &History) -> Option<Bytes> {
    resident(history).into_iter().flatten().max()
}

/// Where there are several: which had most, and which grew.
fn overview(histories: &[History]) -> Option<String> {
    let row = |(index, history): (usize, &History)| {
        let bytes = resident(history);
        let known = || bytes.iter().flatten().copied();
        let (first, last) = (known().next(), known().next_back());
        let change = first.zip(last).map(|(first, last)| last as i64 - first as i64);
        let at = |seconds: Option<&f64>| seconds.map_or(String::new(), |seconds| date(*seconds));
        vec![
            Cell::Link(format!("history-{index}"), history.name.clone()),
            Cell::Count(u64::try_from(history.pid).ok()),
            Cell::Text(at(history.times.first())),
            Cell::Text(at(history.times.last())),
            Cell::Bytes(known().max()),
            Cell::Bytes(last),
            change.map_or(Cell::Bytes(None), Cell::Signed),
        ]
    };
    let columns = [
        name("JVM"),
        number("PID"),
        name("FROM"),
        name("TO"),
        number("MOST"),
        number("LAST"),
        number("CHANGE"),
    ];
    if histories.len() < 2 {
        return None;
    }
    let rows: Vec<Vec<Cell>> = histories.iter().enumerate().map(row).collect();
    Some(bars(histories) + &table("jvms", "All JVMs, in memory", &columns, &rows, 0))
}

/// Bars that are drawn; the table below has all.
const BARS: usize = 25;

/// The moment of a JVM with its largest account.
struct Peak {
    index: usize,
    sum: Bytes,
    areas: Vec<(Area, Bytes)>,
}

/// What each had when it had most, as a bar of its areas; the largest first.
fn bars(histories: &[History]) -> String {
    let mut peaks: Vec<Peak> =
        histories.iter().enumerate().filter_map(|(index, history)| peak(index, history)).collect();
    peaks.sort_by_key(|peak| std::cmp::Reverse(peak.sum));
    let largest = peaks.first().map_or(1, |peak| peak.sum.max(1));
    let mut html = "<h3>At their largest, by area</h3>\n<div class=\"bars\">\n".to_string();
    for Peak { index, sum, areas } in peaks.iter().take(BARS) {
        let history = &histories[*index];
        html += &format!(
            "<a class=\"who\" href=\"#history-{index}\">{} ({})</a><span class=\"bar\">",
            escaped(&history.name),
            history.pid
        );
        for (area, bytes) in areas {
            html += &format!(
                "<span class=\"s-{}\" style=\"width:{:.2}%\" title=\"{}: {}\"></span>",
                area.name(),
                *bytes as f64 / largest as f64 * 100.0,
                escaped(area.title()),
                human(*bytes)
            );
        }
        html += &format!("</span><span class=\"n\">{}</span>\n", human(*sum));
    }
    html += "</div>\n<ul class=\"legend\">";
    for area in Area::ALL.iter().filter(|area| has(&peaks, **area)) {
        let (name, title) = (area.name(), escaped(area.title()));
        html += &format!("<li><span class=\"swatch s-{name}\" aria-hidden=\"true\"></span>{title}</li>");
    }
    html + "</ul>\n"
}

fn has(peaks: &[Peak], wanted: Area) -> bool {
    peaks.iter().flat_map(|peak| &peak.areas).any(|(area, _)| *area == wanted)
}

fn peak(index: usize, history: &History) -> Option<Peak> {
    let totals = history.totals();
    let (at, sum) =
        totals.iter().enumerate().filter_map(|(at, sum)| Some((at, (*sum)?))).max_by_key(|(_, sum)| *sum)?;
    let areas = history.areas().into_iter().filter_map(|(area, bytes)| Some((area, bytes[at]?)));
    Some(Peak { index, sum, areas: areas.filter(|(_, bytes)| *bytes > 0).collect() })
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
            "<p class=\"dim\">{} samples; drawn are the highest and the lowest of each interval.</p>\n",
            history.times.len()
        );
    }
    if !history.events.is_empty() {
        html += "<h4>What happened</h4><ul class=\"events\">\n";
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
    let short = history.only(&history.told(DRAWN_MAX));
    let Some(start) = short.times.first() else { return "<p>There are no samples.</p>".to_string() };
    let times: Vec<f64> = short.times.iter().map(|at| at - start).collect();
    let layer = |(area, bytes): (Area, Vec<Option<u64>>)| Layer {
        name: area.title().to_string(),
        values: bytes.into_iter().map(|bytes| bytes.map_or(f64::NAN, |bytes| bytes as f64 / MIB)).collect(),
        fill: Some(format!("var(--a-{})", area.name())),
    };
    let layers: Vec<Layer> = short.areas().into_iter().map(layer).collect();
    plot::stacked("Memory by area over time", "seconds", "MiB", &times, &layers)
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
        let columns = [name("HOLDER"), number("LAST READ"), number("FIRST READ"), number("CHANGE")];
        let rows: Vec<Vec<Cell>> = rows.into_iter().map(row).collect();
        let caption = "Blocks of malloc in use, in memory or not, of the largest holders";
        Some(table(&format!("holders-{index}"), caption, &columns, &rows, 0))
    };
    let html = each(histories, 1, one);
    (!html.is_empty()).then_some(html)
}

/// Two moments: the first and the last, until others are chosen.
pub fn diff(histories: &[History]) -> Option<String> {
    let html = each(histories, 1, between);
    (!html.is_empty()).then_some(html)
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
            Cell::Text(row.area.title().to_string()),
            Cell::Text(row.part.clone()),
            Cell::Bytes(row.resident_bytes[from]),
            Cell::Bytes(row.resident_bytes[to]),
            change.map_or(Cell::Bytes(None), Cell::Signed),
        ]
    };
    let rows: Vec<Vec<Cell>> = rows.iter().map(cells).collect();
    let columns = [name("AREA"), name("PART"), number("FROM"), number("TO"), number("CHANGE")];
    let caption = match history.has_holders() {
        true => "At the two moments: in memory, of holders in use",
        false => "In memory at the two moments",
    };
    table(&format!("diff-{index}"), caption, &columns, &rows, 0)
}
