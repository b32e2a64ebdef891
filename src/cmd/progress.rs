//! Progress bars on standard errors. A bar writes its words as they are, and they may name what the user or a target named: they
//! are escaped here, and set nowhere else.

use crate::base::printable::shown;
use crate::os::terminal;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressFinish, ProgressStyle};

/// How often a bar is drawn, at most.
const PER_SECOND: u8 = 20;

/// Where a bar is drawn: nowhere, if standard errors are not a terminal that moves its cursor.
pub fn target() -> ProgressDrawTarget {
    match terminal::has_cursor() {
        true => ProgressDrawTarget::stderr_with_hz(PER_SECOND),
        false => ProgressDrawTarget::hidden(),
    }
}

/// `length` steps of one unit, as "trials"; the bar is gone when it is dropped.
pub fn bar(what: &str, length: usize, unit: &str) -> ProgressBar {
    let template = format!("{{prefix}} [{{wide_bar:.}}] {{pos}}/{{len}} {unit}, {{eta}} left {{msg}}");
    let bar = ProgressBar::with_draw_target(Some(length as u64), target()).with_style(style(&template));
    bar.with_prefix(shown(what).into_owned()).with_finish(ProgressFinish::AndClear)
}

pub fn style(template: &str) -> ProgressStyle {
    let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    style.progress_chars("##-")
}

/// What the bar is at.
pub fn say(bar: &ProgressBar, words: &str) {
    bar.set_message(shown(words).into_owned());
}
