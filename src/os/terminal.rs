//! Standard output and standard errors: what kind of terminal they are, and the only way to write to them.
//!
//! Names, arguments, paths and answers of a target are in everything that Marusa prints, errors and panics included. So the
//! escaping (`base/printable.rs`) is in the writer, where no command can forget it: `stdout`, `stderr` and `say!` escape, and
//! `tests/fast/tidy.rs` lets nobody else open these streams. The raw ones are for what is made of our own words alone, and for a
//! screen or a bar that escapes what it is given.

use crate::base::printable::Escaping;
use std::io::{self, IsTerminal, Write};
use std::mem::MaybeUninit;

/// A standard stream that escapes what acts on a terminal.
pub struct Out {
    out: Escaping<Box<dyn Write>>,
    is_terminal: bool,
}

pub fn stdout() -> Out {
    let is_terminal = io::stdout().is_terminal();
    Out { out: Escaping::new(raw_stdout()), is_terminal }
}

pub fn stderr() -> Out {
    let is_terminal = io::stderr().is_terminal();
    Out { out: Escaping::new(raw_stderr()), is_terminal }
}

/// Standard output for text without a word of a target: completions, the manual, help.
pub fn raw_stdout() -> Box<dyn Write> {
    Box::new(io::stdout())
}

/// Standard errors, where the cursor has to be moved.
pub fn raw_stderr() -> Box<dyn Write> {
    Box::new(io::stderr())
}

/// Standard output for a file: a page, which other programs read as it is, unless a person would see it.
pub fn document() -> Box<dyn Write> {
    let out = stdout();
    if out.is_terminal { Box::new(out) } else { raw_stdout() }
}

impl Out {
    pub fn lock(self) -> Out {
        self
    }
    pub fn is_terminal(&self) -> bool {
        self.is_terminal
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

/// One line to standard errors, as `eprintln!` does: where it cannot be written, nobody reads it.
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
    wanted.or_else(of_output).filter(|columns| *columns > 0)
}

/// Whether colours are wanted, and there are any: NO_COLOR, when it is set to anything, says no (no-color.org), and so does a
/// terminal that calls itself dumb.
pub fn has_colours() -> bool {
    let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    !is_set("NO_COLOR") && !is_dumb()
}

/// Whether the terminal says that it has neither colours nor a cursor that moves (terminfo(5), "dumb").
pub fn is_dumb() -> bool {
    std::env::var_os("TERM").is_some_and(|term| term == "dumb")
}

fn of_output() -> Option<usize> {
    columns_of(libc::STDOUT_FILENO)
}

/// Of the terminal that standard errors go to.
pub fn columns_of_errors() -> Option<usize> {
    columns_of(libc::STDERR_FILENO).filter(|columns| *columns > 0)
}

fn columns_of(number: libc::c_int) -> Option<usize> {
    let mut size = MaybeUninit::<libc::winsize>::zeroed();
    // SAFETY: the call writes no more than a `winsize`, which `size` has room for.
    let result = unsafe { libc::ioctl(number, libc::TIOCGWINSZ, size.as_mut_ptr()) };
    // SAFETY: all zeros are a `winsize`, and the call may have written a whole one.
    let size = unsafe { size.assume_init() };
    (result == 0).then_some(usize::from(size.ws_col))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_terminal_has_no_columns() {
        // Tests are captured, or run on a terminal that knows.
        assert!(of_output().is_none_or(|columns| columns < 10_000));
    }
}
