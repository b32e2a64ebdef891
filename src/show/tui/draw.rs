//! Lays a model out on a screen: a head, rows with bars, and a foot with what can be done. Columns leave where there is no room,
//! the bar first; a screen that is too small says so.

use super::model::{Model, Tab, View};
use super::rows::Row;
use super::style::{Style, letter};
use crate::base::printable::escaped;
use crate::map::Area;
use crate::show::units::{columns, fitted, human, human_signed, shorten};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Clear, Paragraph, Wrap};

/// Below these sizes there is nothing to see.
pub const COLUMNS_MIN: u16 = 40;
pub const LINES_MIN: u16 = 6;
const FIGURE: usize = 11;
const PID: usize = 8;
const NAME_MIN: usize = 16;
const BAR_MIN: usize = 8;
const BAR_MAX: usize = 60;
/// Of a wide screen, so much at most is for names: the rest is for bars.
const NAME_PERCENT: usize = 55;
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
    let mut lines = vec![head(model, style, usize::from(screen.width))];
    if model.view != View::All {
        lines.push(tabs(model, style, usize::from(screen.width)));
    }
    let head = lines.len() + 1;
    model.page = usize::from(screen.height) - head - FOOT;
    model.keep_in_bounds();
    let rows = model.rows();
    let columns = Columns::fit(usize::from(screen.width), model, &rows);
    lines.push(columns.titles(model, style));
    let shown = rows.iter().enumerate().skip(model.top).take(model.page);
    lines.extend(shown.map(|(index, row)| columns.line(row, model, style, index == model.selected)));
    if rows.is_empty() {
        lines.push(Line::styled(empty(model), style.dim()));
    }
    lines.resize(head + model.page, Line::default());
    lines.push(legend(model, style, usize::from(screen.width)));
    lines.push(foot(model, style, usize::from(screen.width)));
    let lines: Vec<Line> = lines.into_iter().map(safe).collect();
    frame.render_widget(Paragraph::new(lines), screen);
    if model.is_help {
        help(frame, screen);
    }
}

/// Who is shown, of how many, how fresh.
fn head(model: &Model, style: Style, width: usize) -> Line<'static> {
    let mut text = match model.one() {
        Some(kept) => {
            let look = &kept.now;
            let sum = look.resident_bytes().map_or("unknown".to_string(), human);
            format!("{} {}  {}  {sum}", look.pid, look.name, look.runtime)
        }
        None if model.view == View::All => {
            let sums = model.jvms.values().filter_map(|kept| kept.now.resident_bytes());
            format!("{} JVMs  {} in memory", model.jvms.len(), human(sums.fold(0, u64::saturating_add)))
        }
        None => "not read yet".to_string(),
    };
    if model.is_paused {
        text += "  PAUSED";
    }
    if let Some(marked_at) = model.marked_at {
        text += &format!("  mark {:.0} s ago", (model.at - marked_at).max(0.0));
    }
    if let Some(age) = model.holders_age() {
        text += &format!("  {age}");
    } else if let Some(round_ms) = model.round_ms {
        text += &format!("  read in {round_ms:.0} ms");
    }
    Line::styled(shorten(&text, width), style.strong())
}

/// What of one JVM can be shown, each with its key; no more than there is room for.
fn tabs(model: &Model, style: Style, width: usize) -> Line<'static> {
    let mut line = Line::default();
    for (index, tab) in Tab::ALL.into_iter().enumerate() {
        let text = format!(" {} {} ", index + 1, tab.title());
        if line.width() + text.len() > width {
            break;
        }
        line.push_span(Span::styled(text, if tab == model.tab { style.selected() } else { style.dim() }));
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
        let mark = if style.has_colour { '█' } else { letter(area) };
        line.push_span(Span::styled(mark.to_string(), style.of(area)));
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

fn foot(model: &Model, style: Style, width: usize) -> Line<'static> {
    if model.is_filtering {
        return Line::raw(shorten(
            &format!("filter: {}_   Enter keeps it, Esc clears it", model.filter),
            width,
        ));
    }
    if let Some(message) = &model.message {
        return Line::styled(shorten(message, width), style.strong());
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
    Line::styled(shorten(&text, width), style.dim())
}

/// What there is room for.
struct Columns {
    pid: bool,
    name: usize,
    freed: bool,
    blocks: bool,
    rate: bool,
    /// Growth since the mark; of holders, since they were read before.
    mark: bool,
    bar: usize,
    /// What a full bar stands for.
    largest: u64,
}

impl Columns {
    fn fit(width: usize, model: &Model, rows: &[Row]) -> Columns {
        let pid = model.view == View::All;
        let mut left = width.saturating_sub(FIGURE + if pid { PID } else { 0 } + NAME_MIN);
        let mut take = |columns: usize, wanted: bool| {
            let fits = wanted && left >= columns;
            left -= if fits { columns } else { 0 };
            fits
        };
        let is_holders = !pid && model.tab == Tab::Holders;
        let mark = take(
            FIGURE,
            if is_holders { rows.iter().any(|row| row.rate.is_some()) } else { model.marked_at.is_some() },
        );
        let blocks = take(FIGURE, is_holders);
        let rate = take(FIGURE + 2, !is_holders);
        let freed = take(FIGURE, !pid && model.tab == Tab::Arenas);
        let longest = rows.iter().map(|row| columns(&escaped(&row.name)) + 4).max().unwrap_or(0);
        let both = left + NAME_MIN;
        let name_max = if left > BAR_MIN { (both * NAME_PERCENT / 100).max(NAME_MIN) } else { both };
        let name = longest.clamp(NAME_MIN, name_max);
        let left = both - name;
        let bar = if left > BAR_MIN { (left - 1).min(BAR_MAX) } else { 0 };
        let largest = rows.iter().filter_map(|row| row.resident_bytes).max().unwrap_or(0);
        Columns {
            pid,
            name: if bar == 0 { name + left } else { name },
            freed,
            blocks,
            rate,
            mark,
            bar,
            largest,
        }
    }

    fn titles(&self, model: &Model, style: Style) -> Line<'static> {
        let mut text = if self.pid { format!("{:<PID$}", "PID") } else { String::new() };
        let first = if self.pid { "JVM" } else { model.tab.title() };
        let figure = if self.blocks { "BYTES" } else { "IN MEMORY" };
        text += &format!("{:<width$}{figure:>FIGURE$}", first.to_uppercase(), width = self.name);
        if self.blocks {
            text += &format!("{:>FIGURE$}", "BLOCKS");
        }
        if self.freed {
            text += &format!("{:>FIGURE$}", "FREED");
        }
        if self.rate {
            text += &format!("{:>width$}", "RATE", width = FIGURE + 2);
        }
        if self.mark {
            text += &format!("{:>FIGURE$}", if self.blocks { "GREW" } else { "MARK" });
        }
        if self.blocks && self.bar > 0 {
            text += " HOW, C++ TYPE OR LIBRARY";
        }
        Line::styled(text, style.dim())
    }

    fn line(&self, row: &Row, model: &Model, style: Style, is_selected: bool) -> Line<'static> {
        let mut text = row.pid.filter(|_| self.pid).map_or(String::new(), |pid| format!("{pid:<PID$}"));
        let sign = match row.area {
            Some(area) if model.open.contains(&area) => "- ",
            Some(_) => "+ ",
            None if row.is_part => "    ",
            None => "",
        };
        let name = match &row.note {
            Some(note) => format!("{} ({note})", row.name),
            None => format!("{sign}{}", row.name),
        };
        let bytes = |bytes: Option<u64>| bytes.map_or("-".to_string(), human);
        text += &padded(&name, self.name);
        text += &format!("{:>FIGURE$}", bytes(row.resident_bytes));
        if self.blocks {
            text += &format!("{:>FIGURE$}", row.blocks.map_or("-".to_string(), |blocks| blocks.to_string()));
        }
        if self.freed {
            text += &format!("{:>FIGURE$}", bytes(row.freed_bytes));
        }
        if self.rate {
            text += &format!("{:>width$}", row.rate.map_or("-".to_string(), rate), width = FIGURE + 2);
        }
        if self.mark {
            text += &format!("{:>FIGURE$}", row.since_mark.map_or("-".to_string(), human_signed));
        }
        let mut line = Line::default();
        line.push_span(if is_selected { Span::styled(text, style.selected()) } else { Span::raw(text) });
        if let Some(detail) = row.detail.as_ref().filter(|_| self.bar > 0) {
            line.push_span(Span::raw(format!(" {}", shorten(detail, self.bar))));
        } else if self.bar > 0 {
            line.push_span(Span::raw(" "));
            self.bar(row, model, style).into_iter().for_each(|span| line.push_span(span));
        }
        line
    }

    fn bar(&self, row: &Row, model: &Model, style: Style) -> Vec<Span<'static>> {
        let pid = row.pid.filter(|_| self.pid);
        let account =
            pid.and_then(|pid| model.jvms.get(&pid)).and_then(|kept| kept.now.account.as_ref().ok());
        let pieces: Vec<(Area, u64)> = match (account, row.shade, pid) {
            (Some(account), ..) => {
                let areas = account.areas.iter().map(|area| (area.area, area.amounts.resident_bytes));
                let mut areas: Vec<(Area, u64)> = areas.collect();
                areas.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
                areas
            }
            (None, Some(area), _) => vec![(area, row.resident_bytes.unwrap_or(0))],
            (None, None, Some(_)) => Vec::new(),
            (None, None, None) => {
                let cells = cells(row.resident_bytes.unwrap_or(0), self.largest, self.bar);
                return vec![Span::raw(if style.has_colour { "▒" } else { "=" }.repeat(cells))];
            }
        };
        // Borders are rounded, not pieces: so the whole is as long as its sum says.
        let mut sum = 0_u64;
        let mut spans = Vec::new();
        let mut from = 0;
        for (area, bytes) in pieces {
            sum = sum.saturating_add(bytes);
            let to = cells(sum, self.largest, self.bar);
            if to > from {
                spans.push(Span::styled(style.cell(area).to_string().repeat(to - from), style.of(area)));
                from = to;
            }
        }
        spans
    }
}

fn cells(bytes: u64, largest: u64, room: usize) -> usize {
    (bytes as f64 / largest.max(1) as f64 * room as f64).round().min(room as f64) as usize
}

/// "+1.2 MiB/s", "0".
fn rate(bytes: f64) -> String {
    match bytes.round() as i64 {
        0 => "0".to_string(),
        bytes => format!("{}/s", human_signed(bytes)),
    }
}

/// The name, and at least one blank.
fn padded(text: &str, columns: usize) -> String {
    fitted(text, columns.saturating_sub(1)) + " "
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
