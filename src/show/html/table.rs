//! Tables that can be read as they are, and sorted and filtered by scripts: each cell of a figure carries the plain number.

use super::safe::escaped;
use crate::base::Bytes;
use crate::show::units::{human, human_signed, percent};

pub struct Column {
    pub title: &'static str,
    pub is_number: bool,
}

pub const fn name(title: &'static str) -> Column {
    Column { title, is_number: false }
}

pub const fn number(title: &'static str) -> Column {
    Column { title, is_number: true }
}

pub enum Cell {
    Text(String),
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
}

impl Cell {
    fn html(&self) -> String {
        let figure =
            |number: String, text: String| format!("<td class=\"n\" data-n=\"{number}\">{text}</td>");
        match self {
            Cell::Text(text) => format!("<td>{}</td>", escaped(text)),
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
        }
    }
}

/// Rows of a table on paper; the style sheet has the same number, and one more.
const PRINTED: usize = 40;

/// `left_out`: rows that are not among these, which is said below.
pub fn table(id: &str, caption: &str, columns: &[Column], rows: &[Vec<Cell>], left_out: usize) -> String {
    let caption = escaped(caption);
    let mut html = format!(
        "<div class=\"table\" id=\"{id}\"><h3 id=\"{id}-title\">{caption}</h3>\n<div class=\"scroll\" tabindex=\"0\" \
         role=\"region\" aria-labelledby=\"{id}-title\"><table class=\"data\" aria-labelledby=\"{id}-title\"><thead><tr>"
    );
    for column in columns {
        let class = if column.is_number { " class=\"n\"" } else { "" };
        html += &format!("<th scope=\"col\"{class}>{}</th>", escaped(column.title));
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
        let columns = [name("NAME"), number("BYTES")];
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
