//! How wide a text form may be: 100 columns, or fewer where the terminal has fewer. Tables then leave columns out, and
//! sentences are wrapped, rather than that lines break anywhere. Set once, before anything is shown.

use std::cell::Cell;

/// The width of every text form where the user sets none.
const WIDEST: usize = 100;
/// Narrower tables would say nothing: their lines break.
const NARROWEST: usize = 40;

thread_local! {
    static COLUMNS: Cell<usize> = const { Cell::new(WIDEST) };
}

/// For all that this thread shows from now on.
pub fn set(columns: usize) {
    COLUMNS.set(columns.clamp(NARROWEST, WIDEST));
}

pub fn width() -> usize {
    COLUMNS.get()
}

/// For tests: the output of `show` in `columns` columns.
#[cfg(test)]
pub fn within<T>(columns: usize, show: impl FnOnce() -> T) -> T {
    set(columns);
    let shown = show();
    set(WIDEST);
    shown
}
