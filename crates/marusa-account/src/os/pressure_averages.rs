//! Pressure stall information as the kernel averages it itself: which share of the last 60 seconds some tasks, or all of
//! them, waited for memory or for input and output. Unlike its totals this needs no watching.
//!
//! Documentation/accounting/psi.rst.

use super::pressure;
use crate::base::Known;

/// Percent of the time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Averages {
    pub some_60: f64,
    pub full_60: f64,
}

/// The averages of the host; `resource`: "memory" or "io".
pub fn host(resource: &str) -> Known<Averages> {
    let path = format!("/proc/pressure/{resource}");
    pressure::read(&path, &path, parse)
}

fn parse(text: &str) -> Option<Averages> {
    let field = |word, name| pressure::field(text, word, name);
    Some(Averages { some_60: field("some", "avg60=")?, full_60: field("full", "avg60=")? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_lines_and_one() {
        let text = "some avg10=1.50 avg60=0.12 avg300=0.30 total=42900555\nfull avg10=0.70 avg60=0.05 avg300=0.00 total=1\n";
        let now = Averages { some_60: 0.12, full_60: 0.05 };
        assert_eq!(parse(text), Some(now));
        assert_eq!(parse("some avg10=2.00 avg60=1.00 avg300=0.30 total=42900555\n"), None);
        assert_eq!(parse("nonsense"), None);
    }
}
