//! Tables for people: columns as wide as what is in them, numbers to the right, within the width of the terminal. Where there is no
//! room, columns are left out in a given order, and then one column is shortened.

use super::paint;
use super::units::{columns, faint, led, shorten, shorten_start};
use super::width::width;
use crate::base::printable::shown;
use crate::base::style::Style;
use std::io::{self, Write};

const GAP: usize = 2;
/// A shortened column still says something; before it gets narrower, columns go that are not meant to.
const READABLE_COLUMNS_MIN: usize = 16;
/// What is left of a shortened column where no other can be left out.
const ELASTIC_COLUMNS_MIN: usize = 4;

/// The columns, and the cells of each row.
pub struct Table {
    titles: Vec<String>,
    is_right: Vec<bool>,
    rows: Vec<Vec<Painted>>,
    /// Below the row of that number: what starts the first line, and the text.
    notes: Vec<(usize, String, String)>,
    indent: usize,
    /// The first goes first.
    dispensable: Vec<usize>,
    elastic: Option<Elastic>,
    is_whole: bool,
}

/// A cell, as it came, and how it is shown.
struct Painted {
    text: String,
    style: Style,
}

/// The column that gives way.
struct Elastic {
    column: usize,
    /// Before another column is left out.
    columns_min: usize,
    /// The start is cut: the end of a path or class says more.
    keeps_end: bool,
}

impl Table {
    /// ">BYTES" is aligned to the right, any other title to the left.
    pub fn new<S: AsRef<str>>(titles: impl IntoIterator<Item = S>) -> Table {
        let titles: Vec<String> = titles.into_iter().map(|title| title.as_ref().to_string()).collect();
        Table {
            is_right: titles.iter().map(|title| title.starts_with('>')).collect(),
            titles: titles.iter().map(|title| title.trim_start_matches('>').to_string()).collect(),
            rows: Vec::new(),
            notes: Vec::new(),
            indent: 0,
            dispensable: Vec::new(),
            elastic: None,
            is_whole: false,
        }
    }

    pub fn indented(mut self, columns: usize) -> Table {
        self.indent = columns;
        self
    }

    /// Columns to leave out where there is no room, the first first.
    pub fn without_room(mut self, columns: &[usize]) -> Table {
        self.dispensable = columns.to_vec();
        self
    }

    /// The column that is shortened in its middle: down to `columns_min` before another is left out, and further where none can be.
    pub fn shortened(mut self, column: usize, columns_min: usize) -> Table {
        self.elastic = Some(Elastic { column, columns_min, keeps_end: false });
        self
    }

    /// The column of which only the end is kept.
    pub fn ends_kept(mut self, column: usize, columns_min: usize) -> Table {
        self.elastic = Some(Elastic { column, columns_min, keeps_end: true });
        self
    }

    /// Nothing is shortened or left out, for a program that reads it.
    pub fn whole(mut self, is_whole: bool) -> Table {
        self.is_whole = is_whole;
        self
    }

    pub fn row<S: ToString>(&mut self, cells: impl IntoIterator<Item = S>) {
        let plain = |cell: S| Painted { text: cell.to_string(), style: Style::Plain };
        self.rows.push(cells.into_iter().map(plain).collect());
    }

    /// These rows below the ones that it has.
    pub fn rows<R: IntoIterator<Item: ToString>>(mut self, rows: impl IntoIterator<Item = R>) -> Table {
        rows.into_iter().for_each(|cells| self.row(cells));
        self
    }

    /// The row that sums the others.
    pub fn total<S: ToString>(&mut self, cells: impl IntoIterator<Item = S>) {
        self.row(cells);
        self.paint(Style::Bold);
    }

    /// The style of the last row.
    pub fn paint(&mut self, style: Style) {
        self.rows.last_mut().into_iter().flatten().for_each(|cell| cell.style = style);
    }

    /// The style of one cell of the last row.
    pub fn paint_cell(&mut self, column: usize, style: Style) {
        if let Some(cell) = self.rows.last_mut().and_then(|row| row.get_mut(column)) {
            cell.style = style;
        }
    }

    /// A paragraph below the last row, which `first` starts.
    pub fn note(&mut self, first: &str, text: &str) {
        self.notes.push((self.rows.len(), first.to_string(), text.to_string()));
    }

    /// Below a blank line.
    pub fn write_below(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out)?;
        self.write(out)
    }

    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut widths: Vec<Option<usize>> =
            (0..self.titles.len()).map(|column| self.width_of(column)).collect();
        let left_out = if self.is_whole { Vec::new() } else { self.make_room(&mut widths) };
        self.line(out, self.titles.iter().map(|title| (title.as_str(), Style::Bold)), &widths)?;
        for (index, row) in self.rows.iter().enumerate() {
            self.line(out, row.iter().map(|cell| (cell.text.as_str(), cell.style)), &widths)?;
            let notes = self.notes.iter().filter(|(below, ..)| *below == index + 1);
            notes.into_iter().try_for_each(|(_, first, text)| led(out, first, text))?;
        }
        if left_out.is_empty() {
            return Ok(());
        }
        let columns = width();
        let text = format!(
            "no room in {columns} columns for {}: --width 100 or --json has all",
            left_out.join(", ")
        );
        faint(out, &text, 0)
    }

    /// The width of the widest cell; `None`: no row has anything in this column.
    fn width_of(&self, column: usize) -> Option<usize> {
        let cells = self.rows.iter().filter_map(|row| row.get(column));
        let widest = cells.map(|cell| columns(&shown(&cell.text))).max().unwrap_or(0);
        (widest > 0 || self.rows.is_empty()).then(|| widest.max(columns(&self.titles[column])))
    }

    /// Leaves columns out and shortens one until a line fits; the titles of the ones that are left out.
    fn make_room(&self, widths: &mut [Option<usize>]) -> Vec<&str> {
        let room = width();
        let over = |widths: &[Option<usize>]| {
            let cells: Vec<usize> = widths.iter().flatten().copied().collect();
            (self.indent + cells.iter().sum::<usize>() + GAP * cells.len().saturating_sub(1))
                .saturating_sub(room)
        };
        let spare = |widths: &[Option<usize>], columns_min: usize| {
            self.elastic
                .as_ref()
                .map_or(0, |elastic| widths[elastic.column].unwrap_or(0).saturating_sub(columns_min))
        };
        // Names get no more than half of a narrow terminal before figures go.
        let columns_min = self.elastic.as_ref().map_or(0, |elastic| elastic.columns_min.min(room / 2));
        let mut left_out = Vec::new();
        for column in &self.dispensable {
            if over(widths) <= spare(widths, columns_min) {
                break;
            }
            self.leave_out(*column, widths, &mut left_out);
        }
        // On a very narrow terminal all others from the right, except what the rows are of and the first figure.
        let is_kept = |column: usize| {
            column == 0 || self.elastic.as_ref().is_some_and(|elastic| elastic.column == column)
        };
        for column in (0..widths.len()).rev().filter(|column| !is_kept(*column)) {
            let shown = widths.iter().flatten().count();
            if shown <= 2 || over(widths) <= spare(widths, columns_min.min(READABLE_COLUMNS_MIN)) {
                break;
            }
            self.leave_out(column, widths, &mut left_out);
        }
        if let Some(elastic) = &self.elastic
            && let Some(columns) = &widths[elastic.column]
        {
            widths[elastic.column] =
                Some(columns.saturating_sub(over(widths)).max(ELASTIC_COLUMNS_MIN.min(*columns)));
        }
        left_out
    }

    fn leave_out<'a>(&'a self, column: usize, widths: &mut [Option<usize>], left_out: &mut Vec<&'a str>) {
        if widths[column].take().is_some() && !self.titles[column].is_empty() {
            left_out.push(self.titles[column].as_str());
        }
    }

    fn line<'a>(
        &self,
        out: &mut dyn Write,
        cells: impl Iterator<Item = (&'a str, Style)>,
        widths: &[Option<usize>],
    ) -> io::Result<()> {
        // Blanks are written when something follows them.
        let mut blanks = self.indent;
        for (column, ((cell, style), width)) in cells.zip(widths).enumerate() {
            let Some(width) = *width else { continue };
            let keeps_end =
                self.elastic.as_ref().is_some_and(|elastic| elastic.column == column && elastic.keeps_end);
            let cell = if keeps_end { shorten_start(cell, width) } else { shorten(cell, width) };
            let free = width.saturating_sub(columns(&cell));
            let (before, behind) = if self.is_right[column] { (free, 0) } else { (0, free) };
            // A name may start with the blanks that set it in.
            let text = cell.trim_matches(' ');
            let set_in = cell.len() - cell.trim_start_matches(' ').len();
            if !text.is_empty() {
                write!(out, "{}", " ".repeat(blanks + before + set_in))?;
                paint::put(out, style, text)?;
                blanks = 0;
            }
            blanks += if text.is_empty() { width } else { behind + cell.len() - set_in - text.len() } + GAP;
        }
        writeln!(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::show::width;

    fn text(table: &Table) -> String {
        let mut bytes = Vec::new();
        table.write(&mut bytes).expect("written");
        String::from_utf8(bytes).expect("UTF-8")
    }

    #[test]
    fn columns_are_as_wide_as_their_cells_and_numbers_stand_right() {
        let mut table = Table::new(["NAME", ">BYTES"]).indented(1);
        table.row(["a", "1"]);
        table.row(["日本", "12345678"]);
        assert_eq!(text(&table), " NAME     BYTES\n a            1\n 日本  12345678\n");
    }

    #[test]
    fn what_has_no_room_is_left_out_and_named_and_one_column_is_shortened() {
        let main = "org.example.".repeat(12);
        let mut table = Table::new(["A", "B", "MAIN"]).without_room(&[1]).ends_kept(2, 20);
        table.row(["a".repeat(70).as_str(), "b".repeat(20).as_str(), main.as_str()]);
        let narrow = text(&table);
        assert!(narrow.lines().all(|line| columns(line) <= width::width()), "{narrow}");
        assert!(narrow.contains("columns for B:") && narrow.contains("…"), "{narrow}");
        assert!(text(&table.whole(true)).contains(&main));
    }

    #[test]
    fn a_cell_that_acts_on_a_terminal_does_not() {
        let mut table = Table::new(["A"]);
        table.row(["\u{1b}[31mred"]);
        assert!(!text(&table).contains('\u{1b}'));
    }

    #[test]
    fn a_terminal_that_is_too_narrow_keeps_the_first_columns() {
        let mut table = Table::new(["NAME", ">A", ">B", ">C"]).shortened(0, 36).without_room(&[3]);
        table.row(["a".repeat(60).as_str(), "1000.0 MiB", "2000.0 MiB", "3000.0 MiB"]);
        let narrow = width::within(40, || text(&table));
        assert!(narrow.lines().all(|line| columns(line) <= 40), "{narrow}");
        assert!(narrow.contains("1000.0 MiB  2000.0 MiB") && narrow.contains("for C:"), "{narrow}");
    }

    #[test]
    fn styles_are_around_the_words_and_only_where_there_are_styles() {
        let mut table = Table::new(["A", ">B"]);
        table.row(["  x", "1"]);
        table.paint(Style::Red);
        table.row(["total", ""]);
        table.paint_cell(0, Style::Bold);
        assert_eq!(text(&table), "A      B\n  x    1\ntotal\n");
        let (bold, red, plain) = ("\u{1b}[0;1m", "\u{1b}[0;31m", "\u{1b}[0m");
        assert_eq!(
            paint::seen(|out| table.write(out)),
            format!(
                "{bold}A{plain}      {bold}B{plain}\n  {red}x{plain}    {red}1{plain}\n{bold}total{plain}\n"
            )
        );
    }
}
