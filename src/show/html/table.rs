//! Tables that can be read as they are, and sorted and filtered by scripts: each cell of a figure carries the plain number.

use super::over_time::UNREAD;
use super::palette::swatch;
use super::safe::escaped;
use crate::base::Bytes;
use crate::map::Area;
use crate::measure::peak::Peak;
use crate::show::plot;
use crate::show::units::{human, human_signed, percent};

pub enum Cell {
    Text(String),
    /// What is of this area, in its colour.
    Of(Area, String),
    /// A path, a command: in letters of one width.
    Code(String),
    /// The same, in one line: addresses.
    Whole(String),
    /// To a place of the page.
    Link(String, String),
    Bytes(Option<Bytes>),
    Signed(i64),
    Count(Option<u64>),
    /// A part of a whole, in bytes.
    Share(Bytes, Bytes),
    /// The areas of a peak, as a bar that would be as long as the cell at this many bytes.
    Bar(Peak, Bytes),
}

impl Cell {
    fn html(&self) -> String {
        let figure =
            |number: String, text: String| format!("<td class=\"n\" data-n=\"{number}\">{text}</td>");
        match self {
            Cell::Text(text) => format!("<td>{}</td>", escaped(text)),
            Cell::Of(area, text) => format!("<td>{}{}</td>", swatch(*area), escaped(text)),
            Cell::Code(text) => format!("<td class=\"code\">{}</td>", escaped(text)),
            Cell::Whole(text) => format!("<td class=\"code whole\">{}</td>", escaped(text)),
            Cell::Link(to, text) => {
                format!("<td><a href=\"#{}\">{}</a></td>", escaped(to), escaped(text))
            }
            Cell::Bytes(None) | Cell::Count(None) => "<td class=\"n\" title=\"not known\">-</td>".to_string(),
            Cell::Bytes(Some(bytes)) => figure(bytes.to_string(), human(*bytes)),
            Cell::Signed(bytes) => figure(bytes.to_string(), human_signed(*bytes)),
            Cell::Count(Some(count)) => figure(count.to_string(), count.to_string()),
            Cell::Share(part, whole) => figure(part.to_string(), percent(*part, *whole)),
            Cell::Bar(peak, whole) => bar(peak, *whole),
        }
    }
}

/// What no account was read of has stripes.
fn bar(peak: &Peak, whole: Bytes) -> String {
    let areas = peak.areas.iter().map(|(area, bytes)| (format!("s-{}", area.name()), area.title(), *bytes));
    let unread = ("striped".to_string(), UNREAD, peak.unread_bytes);
    let (mut html, mut words) = (String::new(), Vec::new());
    for (class, title, bytes) in areas.chain([unread]).filter(|(_, _, bytes)| *bytes > 0) {
        let tip = format!("{}: {}", escaped(title), human(bytes));
        let share = bytes as f64 / whole.max(1) as f64 * 100.0;
        html += &format!("<span class=\"{class}\" style=\"width:{share:.2}%\" title=\"{tip}\"></span>");
        words.push(tip);
    }
    let (all, words) = (peak.most_bytes, words.join(", "));
    format!("<td class=\"bar\" data-n=\"{all}\"><div role=\"img\" aria-label=\"{words}\">{html}</div></td>")
}

/// Rows of a table on paper; the style sheet has the same number, and one more.
const PRINTED: usize = 40;

/// ">BYTES" is a column of numbers. `left_out`: rows that are not among these; a note below says so.
pub fn table(id: &str, caption: &str, columns: &[&str], rows: &[Vec<Cell>], left_out: usize) -> String {
    let caption = escaped(caption);
    let labels = plot::labels(columns.iter().map(|title| title.trim_start_matches('>')));
    let mut html = format!(
        "<div class=\"table\" id=\"{id}\"><h3 id=\"{id}-title\">{caption}</h3>\n<div class=\"scroll\" tabindex=\"0\" \
         role=\"group\" aria-labelledby=\"{id}-title\"><table class=\"data\"{labels} \
         aria-labelledby=\"{id}-title\"><thead><tr>"
    );
    for title in columns {
        let class = if title.starts_with('>') { " class=\"n\"" } else { "" };
        html += &format!("<th scope=\"col\"{class}>{}</th>", escaped(title.trim_start_matches('>')));
    }
    html += "</tr></thead><tbody>\n";
    for row in rows {
        html += "<tr>";
        row.iter().for_each(|cell| html += &cell.html());
        html += "</tr>\n";
    }
    html += "</tbody></table></div>";
    if rows.len() > PRINTED {
        html += &format!("<p class=\"dim printed\">Of {} rows these {PRINTED} are printed.</p>", rows.len());
    }
    if left_out > 0 {
        html += &format!("<p class=\"dim\">and {left_out} more, smaller ones</p>");
    }
    html + "</div>\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_carry_their_numbers_and_names_are_escaped() {
        let columns = ["NAME", ">BYTES"];
        let rows = [
            vec![Cell::Text("<b>x</b>".to_string()), Cell::Bytes(Some(2048))],
            vec![Cell::Code("a\u{1b}[2J".to_string()), Cell::Bytes(None)],
        ];
        let html = table("t", "A & B", &columns, &rows, 3);
        assert!(
            html.contains("data-n=\"2048\">2 KiB<")
                && html.contains("&lt;b&gt;x")
                && html.contains("A &amp; B")
        );
        assert!(
            !html.contains('\u{1b}') && html.contains("3 more") && html.contains("title=\"not known\">-<")
        );
    }
}
