//! The columns of the live view: which have room, and a row in them. Names come first, then the share of the limit, then the
//! history and the bar.

use super::history;
use super::model::{Model, Tab, View};
use super::rows::Row;
use super::style::Style;
use crate::base::printable::escaped;
use crate::map::Area;
use crate::show::units::{columns, fitted, human, human_signed, or_dash, shorten, shorten_start};
use ratatui::style::Stylize;
use ratatui::text::{Line, Span};

const FIGURE: usize = 11;
const PID: usize = 8;
const NAME_MIN: usize = 16;
const BAR_MIN: usize = 8;
const BAR_MAX: usize = 60;
/// Names up to this width are whole before there is room for a history or a bar.
const NAME_WHOLE: usize = 48;
/// The most columns of a wide screen for names: the rest is for bars.
const NAME_PERCENT: usize = 55;
const LIMIT: usize = 9;
const HISTORY_MIN: usize = 8;
const HISTORY_MAX: usize = 24;

/// What there is room for.
pub(super) struct Columns {
    pid: bool,
    name: usize,
    freed: bool,
    blocks: bool,
    /// Share of the memory limit that is used.
    limit: bool,
    rate: bool,
    history: usize,
    /// Growth since the mark; of holders, since they were read before.
    mark: bool,
    bar: usize,
    /// What a full bar stands for.
    largest: u64,
}

impl Columns {
    pub(super) fn fit(width: usize, model: &Model, rows: &[Row]) -> Columns {
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
        // A blank, and the sign of an area or the indentation of a part.
        let around = if pid { 1 } else { 5 };
        let longest = rows.iter().map(|row| columns(&escaped(&row.name)) + around).max().unwrap_or(0);
        let both = left + NAME_MIN;
        let name_max = (both * NAME_PERCENT / 100).max(NAME_WHOLE.min(both));
        let name = longest.clamp(NAME_MIN, name_max);
        let mut left = both - name;
        let limit = pid && left >= LIMIT && rows.iter().any(|row| row.limit_used_percent.is_some());
        left -= if limit { LIMIT } else { 0 };
        // Growth since the mark says what a history would: then the bar comes first.
        let bar_first = if mark { BAR_MIN + 1 } else { 0 };
        let has_history = (pid || model.tab == Tab::Areas) && left > bar_first + HISTORY_MIN;
        let history = if has_history { (left / 4).clamp(HISTORY_MIN, HISTORY_MAX) } else { 0 };
        left -= if has_history { history + 1 } else { 0 };
        let bar = if left > BAR_MIN { (left - 1).min(BAR_MAX) } else { 0 };
        let largest = rows.iter().filter_map(|row| row.resident_bytes).max().unwrap_or(0);
        Columns {
            pid,
            name: if bar == 0 { name + left } else { name },
            freed,
            blocks,
            limit,
            rate,
            history,
            mark,
            bar,
            largest,
        }
    }

    pub(super) fn titles(&self, model: &Model) -> Line<'static> {
        let mut text = if self.pid { format!("{:<PID$}", "PID") } else { String::new() };
        let first = if self.pid { "JVM" } else { model.tab.title() };
        let figure = if self.blocks { "BYTES" } else { "RESIDENT" };
        text += &format!("{:<width$}{figure:>FIGURE$}", first.to_uppercase(), width = self.name);
        let grown = if self.blocks { "GREW" } else { "MARK" };
        text += &self.figures(["BLOCKS", "FREED", "OF LIMIT", "RATE", grown].map(str::to_string));
        if self.history > 0 {
            text += &format!(" {:<width$}", "HISTORY", width = self.history);
        }
        if self.blocks && self.bar > 0 {
            text += " HOW, C++ TYPE OR LIBRARY";
        }
        Line::raw(text).dim()
    }

    pub(super) fn line(&self, row: &Row, model: &Model, style: Style, is_selected: bool) -> Line<'static> {
        let mut text = row.pid.filter(|_| self.pid).map_or(String::new(), |pid| format!("{pid:<PID$}"));
        let sign = match row.area {
            Some(area) if model.open.contains(&area) => "- ",
            Some(_) => "+ ",
            None if row.is_part => "    ",
            None => "",
        };
        let name = match &row.note {
            Some(note) if self.bar == 0 => padded(&format!("{} ({note})", row.name), self.name),
            // The end of a class says more than its start.
            _ if self.pid => padded_start(&row.name, self.name),
            _ => padded(&format!("{sign}{}", row.name), self.name),
        };
        text += &format!("{name}{:>FIGURE$}", or_dash(row.resident_bytes.map(human)));
        let figures = [
            row.blocks.map(|blocks| blocks.to_string()),
            row.freed_bytes.map(human),
            row.limit_used_percent.map(|percent| format!("{percent} %")),
            row.rate.map(rate),
            row.since_mark.map(human_signed),
        ];
        text += &self.figures(figures.map(or_dash));
        if self.history > 0 {
            text += &format!(" {}", history::line(&row.history, self.history, style.levels()));
        }
        let mut line = Line::default();
        line.push_span(if is_selected { Span::raw(text).reversed() } else { Span::raw(text) });
        if let Some(detail) = row.detail.as_ref().or(row.note.as_ref()).filter(|_| self.bar > 0) {
            line.push_span(Span::raw(format!(" {}", shorten(detail, self.bar))));
        } else if self.bar > 0 {
            line.push_span(Span::raw(" "));
            self.bar(row, model, style).into_iter().for_each(|span| line.push_span(span));
        }
        line
    }

    /// What there is room for of the blocks, freed memory, share of the limit, rate and growth.
    fn figures(&self, [blocks, freed, limit, rate, mark]: [String; 5]) -> String {
        let figures = [
            (self.blocks, FIGURE, blocks),
            (self.freed, FIGURE, freed),
            (self.limit, LIMIT, limit),
            (self.rate, FIGURE + 2, rate),
            (self.mark, FIGURE, mark),
        ];
        let shown = figures.iter().filter(|(has_room, ..)| *has_room);
        shown.map(|(_, width, text)| format!("{text:>width$}")).collect()
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

/// The same with the end of a name that is too long.
fn padded_start(text: &str, columns: usize) -> String {
    fitted(&shorten_start(text, columns.saturating_sub(1)), columns.saturating_sub(1)) + " "
}
