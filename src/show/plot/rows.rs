//! One row an arm: every figure as a dot, and the interval of what is estimated. The same form serves for differences, with
//! a line at 0.

use super::axis::Axis;
use super::{colour, escaped, mark, open, ticks};
use crate::show::units::shorten;

/// One figure, and its tooltip.
#[derive(Clone, Debug)]
pub struct Dot {
    pub value: f64,
    pub tip: String,
    /// It does not count.
    pub is_hollow: bool,
}

/// An estimate with its interval.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    pub estimate: f64,
    pub low: f64,
    pub high: f64,
}

#[derive(Clone, Debug)]
pub struct Row {
    pub name: String,
    /// Which colour and mark; the same arm has the same in all plots.
    pub index: usize,
    pub dots: Vec<Dot>,
    pub span: Option<Span>,
    /// At the right end: "100.3 ± 0.4".
    pub note: String,
}

/// How wide a plot is, and what of it is for names and notes.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    width: f64,
    label: f64,
    note: f64,
    label_letters: usize,
    note_letters: usize,
    steps: usize,
}

impl Room {
    /// As wide as a page.
    pub const WHOLE: Room = Room {
        width: super::WIDTH,
        label: 130.0,
        note: 200.0,
        label_letters: 18,
        note_letters: 32,
        steps: 6,
    };
    /// The same, for names of arms.
    pub const LONG_NAMES: Room =
        Room { label: 200.0, note: 180.0, label_letters: 28, note_letters: 29, ..Room::WHOLE };
    /// Two next to each other.
    pub const HALF: Room =
        Room { width: 500.0, label: 100.0, note: 100.0, label_letters: 13, note_letters: 16, steps: 4 };

    fn end(&self) -> f64 {
        self.width - self.note - 10.0
    }
}

const ROW: f64 = 40.0;
const TOP: f64 = 26.0;

/// `zero`: a line at this value, and the scale reaches it.
pub fn rows(room: Room, title: &str, unit: &str, rows: &[Row], zero: Option<f64>) -> String {
    let bottom = TOP + ROW * rows.len() as f64;
    let values = rows.iter().flat_map(|row| {
        let span = row.span.iter().flat_map(|span| [span.low, span.high, span.estimate]);
        row.dots.iter().map(|dot| dot.value).chain(span)
    });
    let axis = Axis::around(values, zero, room.label, room.end(), room.steps);
    let mut svg = open(title, room.width, bottom + 36.0) + &ticks(&axis, [TOP, bottom], bottom + 15.0);
    if let Some(zero) = zero {
        let x = axis.place(zero);
        svg += &format!("<line class=\"zero\" x1=\"{x:.1}\" y1=\"{TOP}\" x2=\"{x:.1}\" y2=\"{bottom}\"/>\n");
    }
    for (at, row) in rows.iter().enumerate() {
        svg += &one(&room, row, TOP + ROW * (at as f64 + 0.5), &axis);
    }
    let middle = (room.label + room.end()) / 2.0;
    svg += &format!(
        "<text class=\"dim middle\" x=\"{middle:.0}\" y=\"{:.0}\">{}</text></svg>\n",
        bottom + 31.0,
        escaped(unit)
    );
    svg
}

fn one(room: &Room, row: &Row, y: f64, axis: &Axis) -> String {
    let mut svg = format!(
        "<text class=\"end\" x=\"{:.0}\" y=\"{:.1}\">{}</text>",
        room.label - 12.0,
        y + 4.0,
        escaped(&shorten(&row.name, room.label_letters))
    );
    if let Some(span) = row.span {
        let (low, high, at) = (axis.place(span.low), axis.place(span.high), axis.place(span.estimate));
        let colour = colour(row.index);
        svg += &format!(
            "<line class=\"span\" x1=\"{low:.1}\" y1=\"{y:.1}\" x2=\"{high:.1}\" y2=\"{y:.1}\" stroke=\"{colour}\"/>"
        );
        svg += &format!(
            "<line x1=\"{at:.1}\" y1=\"{:.1}\" x2=\"{at:.1}\" y2=\"{:.1}\" stroke=\"var(--ink)\" stroke-width=\"2\"/>",
            y - 9.0,
            y + 9.0
        );
    }
    for (at, dot) in row.dots.iter().filter(|dot| dot.value.is_finite()).enumerate() {
        // Above and below the middle by turns, so that equal figures are both seen.
        let aside = [-11.0, 11.0, -7.0, 7.0, -15.0, 15.0][at % 6];
        svg += &mark(row.index, axis.place(dot.value), y + aside, dot.is_hollow, &dot.tip);
    }
    svg + &format!(
        "<text x=\"{:.0}\" y=\"{:.1}\">{}</text>\n",
        room.end() + 14.0,
        y + 4.0,
        escaped(&shorten(&row.note, room.note_letters))
    )
}
