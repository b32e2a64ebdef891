//! Whether output has styles and bars. Set once for a command; off in tests and wherever it was not requested, so that text in a
//! file or a pipe is text alone.

use super::units::columns;
use super::width::width;
use crate::base::style::Style;
use std::cell::Cell;
use std::io::{self, Write};

/// On a terminal with fewer columns, figures need the room.
const BARS_COLUMNS_MIN: usize = 80;
/// The width of a bar.
pub const BAR_CELLS: usize = 8;
const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];

thread_local! {
    static HAS_STYLES: Cell<bool> = const { Cell::new(false) };
    static IS_TERMINAL: Cell<bool> = const { Cell::new(false) };
}

/// For all that this thread shows from now on.
pub fn set(has_styles: bool, is_terminal: bool) {
    HAS_STYLES.set(has_styles);
    IS_TERMINAL.set(is_terminal);
}

/// Writes text that was made printable, in a style where there are styles.
pub fn put(out: &mut dyn Write, style: Style, text: &str) -> io::Result<()> {
    match HAS_STYLES.get() {
        true => style.write(out, text),
        false => out.write_all(text.as_bytes()),
    }
}

/// A line in one style.
pub fn line(out: &mut dyn Write, style: Style, text: &str) -> io::Result<()> {
    put(out, style, text)?;
    writeln!(out)
}

/// Whether a person sees it at once.
pub fn is_terminal() -> bool {
    IS_TERMINAL.get()
}

pub fn has_bars() -> bool {
    is_terminal() && width() >= BARS_COLUMNS_MIN
}

/// A bar of eighths of cells: empty for nothing, and at least an eighth for anything else.
pub fn bar(part: u64, whole: u64) -> String {
    let eighths_max = (BAR_CELLS * 8) as u128;
    let eighths = match (part, whole) {
        (0, _) | (_, 0) => 0,
        _ => {
            let exact = (u128::from(part) * eighths_max + u128::from(whole) / 2) / u128::from(whole);
            exact.clamp(1, eighths_max) as usize
        }
    };
    let bar = "█".repeat(eighths / 8) + EIGHTHS[eighths % 8];
    debug_assert!(columns(&bar) <= BAR_CELLS);
    bar
}

/// For tests: what `show` gives on a terminal with styles.
#[cfg(test)]
pub fn on_a_terminal<T>(show: impl FnOnce() -> T) -> T {
    set(true, true);
    let shown = show();
    set(false, false);
    shown
}

/// For tests: what a person sees on a terminal with styles.
#[cfg(test)]
pub fn seen(show: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> String {
    let mut bytes = Vec::new();
    on_a_terminal(|| show(&mut crate::base::printable::Escaping::for_people(&mut bytes, true)))
        .expect("written");
    String::from_utf8(bytes).expect("UTF-8")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_as_long_as_its_share() {
        assert_eq!((bar(0, 9).as_str(), bar(1, 0).as_str()), ("", ""));
        assert_eq!((bar(1, 1 << 40).as_str(), bar(1, 2).as_str()), ("▏", "████"));
        assert_eq!((bar(9, 16).as_str(), bar(7, 7).as_str()), ("████▌", "████████"));
        assert_eq!(bar(u64::MAX, 1), "████████", "more than the whole");
    }

    #[test]
    fn bars_need_a_terminal_of_80_columns() {
        assert!(!has_bars());
        assert!(on_a_terminal(|| has_bars() && crate::show::width::within(80, has_bars)));
        assert!(!on_a_terminal(|| crate::show::width::within(79, has_bars)));
    }
}
