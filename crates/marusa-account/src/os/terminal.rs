//! Standard output and standard errors: what kind of terminal they are, and the only way to write to them.
//!
//! Names, arguments, paths and answers of a target are in everything that Marusa prints, errors and panics included. So the
//! escaping (`base/printable.rs`) is in the writer, where no command can forget it: `stdout`, `stderr` and `say!` escape, and
//! `tests/fast/tidy.rs` lets no other file open these streams. The raw ones are for what is made of our own words alone, and for a
//! screen or a bar that escapes what it is given.

use crate::base::printable::{self, Escaping};
use std::ffi::{OsStr, OsString};
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;
use std::sync::OnceLock;

/// `--color`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Colours {
    /// On a terminal that has them.
    #[default]
    Auto,
    Always,
    Never,
}

static COLOURS: OnceLock<Colours> = OnceLock::new();

/// A standard stream that escapes what acts on a terminal.
pub struct Out {
    out: Escaping<Box<dyn Write>>,
    is_terminal: bool,
    has_colours: bool,
}

pub fn stdout() -> Out {
    Out::of(raw_stdout(), io::stdout().is_terminal())
}

pub fn stderr() -> Out {
    Out::of(Box::new(io::stderr()), io::stderr().is_terminal())
}

/// Standard output for programs: no styles, and all letters in every locale.
pub fn data() -> Out {
    Out { out: Escaping::new(raw_stdout()), is_terminal: io::stdout().is_terminal(), has_colours: false }
}

/// Standard output for text without a word of a target: completions, the manual, help.
pub fn raw_stdout() -> Box<dyn Write> {
    Box::new(io::stdout())
}

/// Standard output for a file: a page, which other programs read as it is, unless a person would see it.
pub fn document() -> Box<dyn Write> {
    let out = stdout();
    if out.is_terminal { Box::new(out) } else { raw_stdout() }
}

impl Out {
    fn of(out: Box<dyn Write>, is_terminal: bool) -> Out {
        let has_colours = has_colours(is_terminal);
        Out { out: Escaping::for_people(out, has_colours), is_terminal, has_colours }
    }
    pub fn lock(self) -> Out {
        self
    }
    pub fn is_terminal(&self) -> bool {
        self.is_terminal
    }
    pub fn has_colours(&self) -> bool {
        self.has_colours
    }
}

impl Write for Out {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.out.write(bytes)
    }
    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// One line to standard errors, as `eprintln!` does: where it cannot be written, it has no reader.
pub fn say(line: std::fmt::Arguments) {
    let _ = stderr().write_all(format!("{line}\n").as_bytes());
}

/// `eprintln!`, escaped.
#[macro_export]
macro_rules! say {
    ($($arguments:tt)*) => { $crate::os::terminal::say(format_args!($($arguments)*)) };
}

/// A panic may name what the target made us read: its message is escaped as everything else.
pub fn escape_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let thread = std::thread::current();
        let name = thread.name().unwrap_or("<unnamed>");
        say(format_args!("thread '{name}' {panic}"));
        let trace = std::backtrace::Backtrace::capture();
        if trace.status() == std::backtrace::BacktraceStatus::Captured {
            say(format_args!("{trace}"));
        }
    }));
}

/// Its columns: COLUMNS of the environment, which says what the user wants, also for a pipe; else what the terminal says
/// (TIOCGWINSZ, tty_ioctl(4)). `None`: no terminal, or one that does not know.
pub fn columns() -> Option<usize> {
    let wanted = std::env::var("COLUMNS").ok().and_then(|text| text.trim().parse().ok());
    wanted.or_else(|| columns_of(io::stdout())).filter(|columns| *columns > 0)
}

/// What the user wants, before anything is written; a second choice changes nothing.
pub fn choose_colours(colours: Colours) {
    let _ = COLOURS.set(colours);
}

/// Whether a stream gets colours and other styles.
pub fn has_colours(is_terminal: bool) -> bool {
    let colours = COLOURS.get().copied().unwrap_or_default();
    are_shown(colours, is_terminal, std::env::var_os("NO_COLOR"), std::env::var_os("TERM"))
}

/// Without a choice: on a terminal with a name other than "dumb", unless NO_COLOR is set to anything (no-color.org).
fn are_shown(
    colours: Colours,
    is_terminal: bool,
    no_color: Option<OsString>,
    term: Option<OsString>,
) -> bool {
    match colours {
        Colours::Always => true,
        Colours::Never => false,
        Colours::Auto => {
            is_terminal && no_color.is_none_or(|value| value.is_empty()) && is_capable(term.as_deref())
        }
    }
}

/// Whether the terminal moves its cursor where it is asked to.
pub fn has_cursor() -> bool {
    is_capable(std::env::var_os("TERM").as_deref())
}

fn is_capable(term: Option<&OsStr>) -> bool {
    term.is_some_and(|term| !term.is_empty() && term != "dumb")
}

/// Text becomes ASCII in a locale of another character set (locale(7)). Without any locale, as services and containers start
/// programs, a terminal gets ASCII, which is readable on each; a pipe gets all letters.
pub fn choose_letters() {
    let name = ["LC_ALL", "LC_CTYPE", "LANG"]
        .iter()
        .find_map(|name| std::env::var_os(name).filter(|value| !value.is_empty()));
    if !has_all_letters(name.as_deref(), io::stdout().is_terminal()) {
        printable::only_ascii();
    }
}

fn has_all_letters(locale: Option<&OsStr>, is_terminal: bool) -> bool {
    locale
        .map_or(!is_terminal, |name| name.to_string_lossy().to_lowercase().replace('-', "").contains("utf8"))
}

fn columns_of(output: impl AsFd) -> Option<usize> {
    Some(usize::from(rustix::termios::tcgetwinsize(output).ok()?.ws_col))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_terminal_has_no_columns() {
        // Tests are captured, or run on a terminal that knows.
        assert!(columns_of(io::stdout()).is_none_or(|columns| columns < 10_000));
    }

    #[test]
    fn colours_are_for_terminals_that_have_them_unless_the_user_says_otherwise() {
        let of = |colours, is_terminal, no_color: Option<&str>, term: Option<&str>| {
            are_shown(colours, is_terminal, no_color.map(OsString::from), term.map(OsString::from))
        };
        assert!(
            of(Colours::Auto, true, None, Some("xterm")) && of(Colours::Auto, true, Some(""), Some("vt100"))
        );
        for (is_terminal, no_color, term) in [
            (false, None, Some("xterm")),
            (true, Some("1"), Some("xterm")),
            (true, Some("0"), Some("xterm")),
            (true, None, Some("dumb")),
            (true, None, Some("")),
            (true, None, None),
        ] {
            assert!(!of(Colours::Auto, is_terminal, no_color, term), "{is_terminal} {no_color:?} {term:?}");
            assert!(of(Colours::Always, is_terminal, no_color, term));
        }
        assert!(!of(Colours::Never, true, None, Some("xterm")));
    }

    #[test]
    fn a_locale_has_all_letters_where_it_is_utf_8() {
        for (locale, terminal, pipe) in [
            (Some("de_DE.UTF-8"), true, true),
            (Some("C.utf8"), true, true),
            (Some("C"), false, false),
            (Some("en_US.ISO-8859-1"), false, false),
            (Some("en_US"), false, false),
            (None, false, true),
        ] {
            let has = |is_terminal| has_all_letters(locale.map(OsStr::new), is_terminal);
            assert_eq!((has(true), has(false)), (terminal, pipe), "{locale:?}");
        }
    }
}
