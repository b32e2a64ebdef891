//! The terminal that standard output goes to.

use std::mem::MaybeUninit;

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
    !is_set("NO_COLOR") && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

fn of_output() -> Option<usize> {
    let mut size = MaybeUninit::<libc::winsize>::zeroed();
    // SAFETY: the call writes no more than a `winsize`, which `size` has room for.
    let result = unsafe { libc::ioctl(libc::STDOUT_FILENO, libc::TIOCGWINSZ, size.as_mut_ptr()) };
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
