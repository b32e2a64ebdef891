//! Lays a model out on a screen: a head, rows with bars, and a foot with what can be done. Columns leave where there is no room,
//! the bar first; a screen that is too small says so.

use super::columns::Columns;
use super::model::{Model, Tab, View};
use super::style::Style;
use crate::base::printable::escaped;
use crate::map::Area;
use crate::measure::look::{LimitOf, MemoryLimit};
use crate::show::units::{columns, counted, human, shorten};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Stylize;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Clear, Paragraph, Wrap};

/// Below these sizes there is nothing to see.
pub const COLUMNS_MIN: u16 = 40;
pub const LINES_MIN: u16 = 6;
const FOOT: usize = 2;

/// Draws; the model learns how many rows the screen has room for.
pub fn draw(frame: &mut Frame, model: &mut Model, style: Style) {
    let screen = frame.area();
    if screen.width < COLUMNS_MIN || screen.height < LINES_MIN {
        let text = format!(
            "{} x {} is too small: {COLUMNS_MIN} x {LINES_MIN} are needed",
            screen.width, screen.height
        );
        return frame.render_widget(Paragraph::new(text).wrap(Wrap { trim: true }), screen);
    }
    let mut lines = vec![head(model, usize::from(screen.width))];
    if model.view != View::All {
        lines.push(tabs(model, usize::from(screen.width)));
    }
    let head = lines.len() + 1;
    model.page = usize::from(screen.height) - head - FOOT;
    model.keep_in_bounds();
    let rows = model.rows();
    let columns = Columns::fit(usize::from(screen.width), model, &rows);
    lines.push(columns.titles(model));
    let shown = rows.iter().enumerate().skip(model.top).take(model.page);
    lines.extend(shown.map(|(index, row)| columns.line(row, model, style, index == model.selected)));
    if rows.is_empty() {
        lines.push(Line::raw(empty(model)).dim());
    }
    lines.resize(head + model.page, Line::default());
    lines.push(legend(model, style, usize::from(screen.width)));
    lines.push(foot(model, usize::from(screen.width)));
    let lines: Vec<Line> = lines.into_iter().map(safe).collect();
    frame.render_widget(Paragraph::new(lines), screen);
    if model.is_help {
        help(frame, screen);
    }
}

/// Who is shown, of how many, how fresh.
fn head(model: &Model, width: usize) -> Line<'static> {
    let first = match model.one() {
        Some(kept) => {
            let look = &kept.now;
            let sum = look.resident_bytes().map_or("unknown".to_string(), human);
            format!("{} {}  {}  {sum}", look.pid, look.name, look.runtime)
        }
        None if model.view == View::All => {
            let sums = model.jvms.values().filter_map(|kept| kept.now.resident_bytes());
            match model.reading() {
                Some((known, all)) => format!("reading {known} of {}", counted(all, "JVM")),
                None => {
                    let sum = human(sums.fold(0, u64::saturating_add));
                    format!("{}  {sum} in memory", counted(model.jvms.len(), "JVM"))
                }
            }
        }
        None => "not read yet".to_string(),
    };
    let mut parts = vec![first];
    parts.extend(model.is_paused.then(|| "PAUSED".to_string()));
    let mark = model.marked_at.map(|marked_at| (model.at - marked_at).max(0.0));
    parts.extend(mark.map(|seconds| format!("mark {seconds:.0} s ago")));
    let age = model.holders_age();
    let round_ms = model.round_ms.filter(|_| age.is_none());
    parts.extend(age);
    parts.extend(model.one().map_or(model.host, |kept| kept.now.memory_limit).map(limit));
    parts.extend(round_ms.map(|round_ms| format!("read in {round_ms:.0} ms")));
    // The last ones go first.
    while parts.len() > 1 && columns(&parts.join("  ")) > width {
        parts.pop();
    }
    Line::raw(shorten(&parts.join("  "), width)).bold()
}

/// "limit 512.0 MiB, 80 % used": of the cgroup, else of the host.
fn limit(limit: MemoryLimit) -> String {
    let of = if limit.of == LimitOf::Cgroup { "limit" } else { "host" };
    format!("{of} {}, {} % used", human(limit.limit_bytes), limit.used_percent())
}

/// What of one JVM can be shown, each with its key; no more than there is room for.
fn tabs(model: &Model, width: usize) -> Line<'static> {
    let mut line = Line::default();
    for (index, tab) in Tab::ALL.into_iter().enumerate() {
        let text = format!(" {} {} ", index + 1, tab.title());
        if line.width() + text.len() > width {
            break;
        }
        let text = Span::raw(text);
        line.push_span(if tab == model.tab { text.reversed() } else { text.dim() });
    }
    line
}

fn empty(model: &Model) -> String {
    if let Some(Err(gap)) = model.one().and_then(|kept| kept.held.as_ref()).map(|held| &held.holders)
        && model.tab == Tab::Holders
    {
        return shorten(&gap.to_string(), 200);
    }
    match model.one().map(|kept| &kept.now.account) {
        Some(Err(gap)) => shorten(&gap.to_string(), 200),
        _ if model.pid().is_some_and(|pid| model.awaited == Some(pid)) => {
            "reading the Java heap and malloc's blocks ...".to_string()
        }
        _ if !model.filter.is_empty() => format!("nothing fits '{}'", shorten(&model.filter, 40)),
        _ if model.round_ms.is_none() => "reading ...".to_string(),
        _ if model.view == View::All => "no JVM runs on this host, or none may be looked at".to_string(),
        _ => "nothing to show".to_string(),
    }
}

/// The areas that bars are made of, as they have most.
fn legend(model: &Model, style: Style, width: usize) -> Line<'static> {
    let mut sums: Vec<(Area, u64)> = Area::ALL.iter().map(|area| (*area, of_area(model, *area))).collect();
    sums.retain(|(_, bytes)| *bytes > 0);
    sums.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
    let mut line = Line::default();
    let mut room = width;
    for (area, _) in sums {
        let name = format!(" {}  ", area.title());
        if name.chars().count() + 1 > room {
            break;
        }
        room -= name.chars().count() + 1;
        line.push_span(Span::styled(style.cell(area).to_string(), style.of(area)));
        line.push_span(Span::raw(name));
    }
    line
}

fn of_area(model: &Model, area: Area) -> u64 {
    let looks = model.jvms.values().map(|kept| &kept.now);
    let shown = looks.filter(|look| model.view == View::All || model.view == View::One(look.pid));
    shown
        .filter_map(|look| look.account.as_ref().ok())
        .fold(0, |sum, account| sum.saturating_add(account.resident_bytes_of(area)))
}

fn foot(model: &Model, width: usize) -> Line<'static> {
    if model.is_filtering {
        return Line::raw(shorten(
            &format!("filter: {}_   Enter keeps it, Esc clears it", model.filter),
            width,
        ));
    }
    if let Some(message) = &model.message {
        return Line::raw(shorten(message, width)).bold();
    }
    let mut keys = match model.view {
        View::All => vec!["Enter one JVM".to_string()],
        View::One(_) if model.tab == Tab::Areas => {
            vec!["Enter parts".to_string(), "Tab next".to_string(), "Esc back".to_string()]
        }
        View::One(_) if model.tab == Tab::Holders => {
            vec!["r read again".to_string(), "Tab next".to_string(), "Esc back".to_string()]
        }
        View::One(_) => vec!["Tab next".to_string(), "5 holders".to_string(), "Esc back".to_string()],
    };
    let order = if model.is_reversed { ", reversed" } else { "" };
    keys.push(format!("s sort: {}{order}", model.sort.title()));
    let filter = if model.filter.is_empty() { String::new() } else { format!(" '{}'", model.filter) };
    keys.push(format!("/ filter{filter}"));
    keys.push("m mark".to_string());
    let mut text = "? help  q quit".to_string();
    // As many as fit, and always those two.
    while !keys.is_empty() && keys.join("  ").chars().count() + 2 + text.chars().count() > width {
        keys.pop();
    }
    keys.push(text);
    text = keys.join("  ");
    Line::raw(shorten(&text, width)).dim()
}

/// What crossterm writes does not pass `os/terminal.rs`, so whatever a line is made of is escaped here.
fn safe(line: Line<'static>) -> Line<'static> {
    let safe = |span: Span<'static>| Span::styled(escaped(&span.content).into_owned(), span.style);
    Line { spans: line.spans.into_iter().map(safe).collect(), ..line }
}

const HELP: &[(&str, &str)] = &[
    ("Up Down PgUp PgDn", "move (also j k g G)"),
    ("Enter", "into one JVM; of an area, its parts"),
    ("Esc", "back: the filter, then the JVM"),
    ("Tab, 1 to 5", "areas, page sizes, arenas, threads, holders"),
    ("s, S", "sort by the next column; reverse"),
    ("/", "filter by name"),
    ("m, M", "set the mark, take it away"),
    ("space, r", "pause; sample now, read holders again"),
    ("q", "quit"),
];

fn help(frame: &mut Frame, screen: Rect) {
    let lines: Vec<Line> = HELP.iter().map(|(key, what)| Line::raw(format!(" {key:<18} {what}"))).collect();
    let (width, height) = (60.min(screen.width), (HELP.len() as u16 + 2).min(screen.height));
    let place = Rect { x: (screen.width - width) / 2, y: (screen.height - height) / 2, width, height };
    frame.render_widget(Clear, place);
    frame.render_widget(Paragraph::new(lines).block(Block::bordered().title(" keys ")), place);
}

#[cfg(test)]
#[path = "draw_tests.rs"]
mod tests;
