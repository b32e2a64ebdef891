//! Plots as static SVG, for pages that are one offline file: nothing is loaded, nothing is run, and they print. A page sets
//! `STYLE` once; colours follow the reader's light or dark setting. Colours are those of Okabe and Ito ("Color Universal
//! Design", 2008), which people with any kind of colour vision distinguish; marks have shapes too, so that a black and white
//! print does.

mod axis;
mod lines;
mod rows;
mod stacked;

pub use axis::{Axis, grouped};
pub use lines::{Series, lines};
pub use rows::{Dot, Room, Row, Span, rows};
pub use stacked::{Layer, stacked};

use crate::base::printable::escaped_lines;

/// Width of every plot in its own units; a page scales it.
const WIDTH: f64 = 760.0;
/// Colours before they come again, lighter.
const COLOURS: usize = 8;

/// What a page that has plots puts into its `<style>`.
pub const STYLE: &str = include_str!("../../web/plot.css");
/// And one that has tables of the class `data`, with `label_rules`.
pub const CARDS: &str = include_str!("../../web/cards.css");

/// The names of a table's columns as an attribute, for a narrow screen: there each cell has its own above it.
pub fn labels<'a>(titles: impl Iterator<Item = &'a str>) -> String {
    let label = |(index, title): (usize, &str)| {
        // Numbers of characters, so that nothing ends the text or the attribute.
        let text = |letter: char| match letter.is_ascii_alphanumeric() || letter == ' ' {
            true => letter.to_string(),
            false => format!("\\{:x} ", u32::from(letter)),
        };
        format!("--l{}:'{}';", index + 1, title.chars().map(text).collect::<String>())
    };
    format!(" style=\"{}\"", titles.enumerate().map(label).collect::<String>())
}

/// The rules that put `labels` above the cells of tables of at most that many columns; the first is the head of the card.
pub fn label_rules(columns: usize) -> String {
    let rule = |column| format!("table.data td:nth-child({column})::before{{content:var(--l{column})}}");
    format!("@media(max-width:600px){{{}}}\n", (2..=columns).map(rule).collect::<String>())
}

/// Text within HTML and SVG, also within quotation marks. Control characters, which XML forbids, are made visible.
pub fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in escaped_lines(text).chars() {
        match letter {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            letter => safe.push(letter),
        }
    }
    safe
}

/// The start of a plot of this height: what it is, for readers that see none, and its title.
fn open(title: &str, width: f64, height: f64) -> String {
    let title = escaped(title);
    format!(
        "<svg class=\"plot\" viewBox=\"0 0 {width:.0} {height:.0}\" role=\"img\" aria-label=\"{title}\">\
         <text class=\"title\" x=\"0\" y=\"14\">{title}</text>\n"
    )
}

fn colour(index: usize) -> String {
    format!("var(--c{})", index % COLOURS)
}

/// A mark at a place: circle, square, triangle, diamond, and again.
fn mark(index: usize, x: f64, y: f64, is_hollow: bool, tip: &str) -> String {
    let colour = colour(index);
    let class = if is_hollow { " class=\"hollow\"" } else { "" };
    let paint = format!("fill=\"{colour}\" stroke=\"{colour}\" stroke-width=\"1.2\"{class}");
    let tip = if tip.is_empty() { String::new() } else { format!("<title>{}</title>", escaped(tip)) };
    match index % 4 {
        0 => format!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.4\" {paint}>{tip}</circle>"),
        1 => format!(
            "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"6.2\" height=\"6.2\" {paint}>{tip}</rect>",
            x - 3.1,
            y - 3.1
        ),
        2 => format!("<path d=\"M{x:.1} {:.1}l3.9 6.8h-7.8z\" {paint}>{tip}</path>", y - 3.9),
        _ => format!("<path d=\"M{x:.1} {:.1}l4.2 4.2l-4.2 4.2l-4.2 -4.2z\" {paint}>{tip}</path>", y - 4.2),
    }
}

/// The ticks of a scale across, lines from one height to the other, with their labels at `label`.
fn ticks(axis: &Axis, [from, to]: [f64; 2], label: f64) -> String {
    let tick = |tick: f64| {
        let x = axis.place(tick);
        format!(
            "<line class=\"grid\" x1=\"{x:.1}\" y1=\"{from}\" x2=\"{x:.1}\" y2=\"{to}\"/>\
             <text class=\"dim middle\" x=\"{x:.1}\" y=\"{label:.0}\">{}</text>\n",
            axis.label(tick)
        )
    };
    axis.ticks().into_iter().map(tick).collect()
}

/// Names with their marks, wrapped; and the height that they take.
fn legend(names: &[(usize, String)], top: f64) -> (String, f64) {
    let (mut text, mut x, mut y) = (String::new(), 0.0, top + 12.0);
    for (index, name) in names {
        let name = crate::show::units::shorten(name, 40);
        let width = 26.0 + 6.8 * name.chars().count() as f64;
        if x > 0.0 && x + width > WIDTH {
            (x, y) = (0.0, y + 18.0);
        }
        text += &format!(
            "{}<text x=\"{:.0}\" y=\"{:.0}\">{}</text>\n",
            mark(*index, x + 5.0, y - 4.0, false, ""),
            x + 14.0,
            y,
            escaped(&name)
        );
        x += width;
    }
    (text, y + 8.0 - top)
}

#[cfg(test)]
mod tests;
