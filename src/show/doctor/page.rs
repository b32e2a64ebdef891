//! The page of a rule on a terminal: its Markdown, wrapped to the columns that there are, with bold headings and tables as lists. A
//! pipe gets the page as it is.

use crate::base::style::Style;
use crate::show::paint;
use crate::show::units::{led, painted, paragraph};
use std::io::{self, Write};

/// The first cell of a row, where it is one of the levels.
const CELL_COLUMNS: usize = 10;

pub fn page(out: &mut dyn Write, text: &str) -> io::Result<()> {
    if !paint::is_terminal() {
        return write!(out, "{text}");
    }
    let mut is_code = false;
    // Lines of one paragraph, or of one item of a list.
    let mut open: Vec<&str> = Vec::new();
    for line in text.lines() {
        let is_fence = line.starts_with("```");
        let starts = is_fence || is_code || line.trim().is_empty() || line.starts_with(['#', '|']);
        if starts || line.starts_with("- ") || (line.starts_with("    ") && open.is_empty()) {
            close(out, &mut open)?;
        }
        match line {
            _ if is_fence => is_code = !is_code,
            _ if is_code => writeln!(out, "    {line}")?,
            _ if line.starts_with("    ") && open.is_empty() => writeln!(out, "{line}")?,
            _ if line.trim().is_empty() => writeln!(out)?,
            _ if line.starts_with('#') => {
                let title = line.trim_start_matches('#').trim_start();
                painted(out, ("", Style::Plain), "", (title, Style::Bold))?;
            }
            _ if line.starts_with('|') => row(out, line)?,
            _ => open.push(line.trim()),
        }
    }
    close(out, &mut open)
}

fn close(out: &mut dyn Write, open: &mut Vec<&str>) -> io::Result<()> {
    let text = std::mem::take(open).join(" ");
    match text.strip_prefix("- ") {
        _ if text.is_empty() => Ok(()),
        Some(item) => paragraph(out, "- ", "  ", item),
        None => paragraph(out, "", "", &text),
    }
}

/// A row of a table; nothing for the line between its titles and its rows.
fn row(out: &mut dyn Write, line: &str) -> io::Result<()> {
    let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
    match cells.split_first() {
        Some((first, _)) if !first.is_empty() && first.chars().all(|letter| "-: ".contains(letter)) => Ok(()),
        Some((first, rest)) => led(out, &format!("  {first:<CELL_COLUMNS$}"), &rest.join("; ")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::show::units::columns;
    use crate::show::width::within;

    const PAGE: &str = "# id: a title\n\nOne sentence of several words\nover two lines.\n\n| level | when |\n| --- | --- |\n\
                        | warn | 8 MiB and more than a tenth of it all |\n\n- an item that is\n  longer\n- `another`\n\n    a = b\n";

    #[test]
    fn a_terminal_gets_wrapped_words_and_a_pipe_the_page() {
        let mut plain = Vec::new();
        page(&mut plain, PAGE).expect("written");
        assert_eq!(String::from_utf8_lossy(&plain), PAGE);
        let seen = within(40, || paint::seen(|out| page(out, PAGE)));
        assert_eq!(
            seen,
            "\u{1b}[0;1mid: a title\u{1b}[0m\n\nOne sentence of several words over two\nlines.\n\n\
             \x20 level     when\n\x20 warn      8 MiB and more than a tenth\n\x20           of it all\n\n\
             - an item that is longer\n- `another`\n\n    a = b\n"
        );
    }

    #[test]
    fn every_page_fits_the_terminal_except_what_is_pasted() {
        paint::set(false, true);
        for entry in crate::doctor::CATALOG {
            let mut seen = Vec::new();
            within(80, || page(&mut seen, entry.page)).expect("written");
            let seen = String::from_utf8(seen).expect("UTF-8");
            let is_wide = |line: &&str| columns(line) > 80 && !line.starts_with("    ");
            assert_eq!(seen.lines().find(is_wide), None, "{}", entry.rule.id);
        }
        paint::set(false, false);
    }
}
