//! Progress bars on standard errors. A message may name what the user or a target named, so a bar writes through the same
//! escaping as everything else; only the moves of its cursor are ours.

use crate::base::printable::shown;
use crate::os::terminal;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressFinish, ProgressStyle, TermLike};
use std::borrow::Cow;
use std::io::{self, Write};

/// How often a bar is drawn, at most.
const PER_SECOND: u8 = 20;
/// Columns of a terminal that does not know them.
const COLUMNS: u16 = 80;

/// Where a bar is drawn: nowhere, if standard errors are not a terminal that moves its cursor.
pub fn target() -> ProgressDrawTarget {
    match terminal::stderr().is_terminal() && terminal::has_cursor() {
        true => ProgressDrawTarget::term_like_with_hz(Box::new(Screen), PER_SECOND),
        false => ProgressDrawTarget::hidden(),
    }
}

/// `length` steps of one unit, as "trials"; the bar is gone when it is dropped.
pub fn bar(what: impl Into<Cow<'static, str>>, length: usize, unit: &str) -> ProgressBar {
    let template = format!("{{prefix}} [{{wide_bar:.}}] {{pos}}/{{len}} {unit}, {{eta}} left {{msg}}");
    let bar = ProgressBar::with_draw_target(Some(length as u64), target());
    let bar = match ProgressStyle::with_template(&template) {
        Ok(style) => bar.with_style(style.progress_chars("##-")),
        Err(_) => bar,
    };
    bar.with_prefix(what).with_finish(ProgressFinish::AndClear)
}

#[derive(Debug)]
struct Screen;

impl Screen {
    /// A cursor movement of ECMA-48: CSI, a number, a letter.
    fn turn(&self, count: usize, letter: char) -> io::Result<()> {
        match count {
            0 => Ok(()),
            count => write!(terminal::raw_stderr(), "\u{1b}[{count}{letter}"),
        }
    }
}

impl TermLike for Screen {
    fn width(&self) -> u16 {
        terminal::columns_of_errors().map_or(COLUMNS, |columns| columns.min(usize::from(u16::MAX)) as u16)
    }
    fn move_cursor_up(&self, count: usize) -> io::Result<()> {
        self.turn(count, 'A')
    }
    fn move_cursor_down(&self, count: usize) -> io::Result<()> {
        self.turn(count, 'B')
    }
    fn move_cursor_right(&self, count: usize) -> io::Result<()> {
        self.turn(count, 'C')
    }
    fn move_cursor_left(&self, count: usize) -> io::Result<()> {
        self.turn(count, 'D')
    }
    fn write_line(&self, line: &str) -> io::Result<()> {
        self.write_str(line)?;
        terminal::raw_stderr().write_all(b"\n")
    }
    fn write_str(&self, text: &str) -> io::Result<()> {
        terminal::raw_stderr().write_all(shown(text).as_bytes())
    }
    fn clear_line(&self) -> io::Result<()> {
        terminal::raw_stderr().write_all(b"\r\x1b[2K")
    }
    fn flush(&self) -> io::Result<()> {
        terminal::raw_stderr().flush()
    }
}
