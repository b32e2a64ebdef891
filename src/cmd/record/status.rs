//! The status line of a recorder on a terminal: a recording that runs for days says that it goes on, and how to end it. It is
//! drawn in place on standard errors, and nowhere else.

use crate::cmd::progress;
use crate::show::record::{self, Recorded};
use indicatif::ProgressBar;
use std::time::{Duration, Instant};

/// How old the line may be.
const EVERY: Duration = Duration::from_secs(1);

pub struct Status {
    bar: ProgressBar,
    /// What `--for` says.
    length: Option<Duration>,
    next: Instant,
}

impl Status {
    pub fn new(length: Option<Duration>) -> Status {
        let bar = ProgressBar::with_draw_target(None, progress::target());
        let bar = bar.with_style(progress::style("{wide_msg}"));
        Status { bar, length, next: Instant::now() }
    }

    /// When it has to be drawn again; `None`: it is not visible.
    pub fn next(&self) -> Option<Instant> {
        (!self.bar.is_hidden()).then_some(self.next)
    }

    pub fn show(&mut self, recorded: impl FnOnce() -> Recorded) {
        if self.next().is_some_and(|next| next <= Instant::now()) {
            self.next = Instant::now() + EVERY;
            progress::say(&self.bar, &record::status(&recorded(), self.length));
        }
    }
}

impl Drop for Status {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
