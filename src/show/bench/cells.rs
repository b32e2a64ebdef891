//! How figures of trials are written in tables: three digits that count, a mean with its interval, a factor with its own; "-" where
//! a figure is not known.

use crate::experiment::bench::rounds::{Mean, Ratio};
use crate::experiment::bench::spread::Spread;

/// The ends of an interval that says something are no further apart than by this factor.
const WIDEST: f64 = 2.0;

/// "1623", "16.2", "1.62", "0.016".
pub fn number(value: f64) -> String {
    match value.abs() {
        100.0.. => format!("{value:.0}"),
        10.0..100.0 => format!("{value:.1}"),
        0.1..10.0 => format!("{value:.2}"),
        0.0 => "0".to_string(),
        _ => format!("{value:.3}"),
    }
}

/// "1623 ±31"; one trial has no interval.
pub fn mean(mean: Option<Mean>) -> String {
    match mean {
        None => "-".to_string(),
        Some(Mean { mean, plus_minus: None, .. }) => number(mean),
        Some(Mean { mean, plus_minus: Some(half), .. }) => format!("{} ±{}", number(mean), number(half)),
    }
}

/// Without the interval, where columns are narrow.
pub fn middle(mean: Option<Mean>) -> String {
    mean.map_or("-".to_string(), |mean| number(mean.mean))
}

pub fn median(spread: Option<Spread>) -> String {
    spread.map_or("-".to_string(), |spread| number(spread.median))
}

/// "12.1 (11.0 to 13.2)".
pub fn spread(spread: Option<Spread>) -> String {
    spread.map_or("-".to_string(), |Spread { median, min, max, .. }| {
        format!("{} ({} to {})", number(median), number(min), number(max))
    })
}

/// "66.5": the middle in MiB.
pub fn mib(spread: Option<Spread>) -> String {
    spread.map_or("-".to_string(), |spread| format!("{:.1}", spread.mib().median))
}

/// "66.5 (66.5 to 66.7) MiB".
pub fn mib_range(spread: Option<Spread>) -> String {
    match spread.map(Spread::mib) {
        None => "-".to_string(),
        Some(Spread { median, count: 1, .. }) => format!("{median:.1} MiB"),
        Some(Spread { median, min, max, .. }) => format!("{median:.1} ({min:.1} to {max:.1}) MiB"),
    }
}

/// "1.31 (1.20 to 1.43)", "1.31".
pub fn ratio(ratio: Option<Ratio>) -> String {
    interval(ratio, number)
}

/// "1.021 (1.004 to 1.038)": a cost of one percent is to be seen.
pub fn fine_ratio(ratio: Option<Ratio>) -> String {
    interval(ratio, |value| format!("{value:.3}"))
}

/// An interval wider than `WIDEST` is shown without its estimate: "0.30 to 2.45".
fn interval(ratio: Option<Ratio>, number: fn(f64) -> String) -> String {
    match ratio {
        None => "-".to_string(),
        Some(Ratio { low: Some(low), high: Some(high), .. }) if high > low * WIDEST => {
            format!("{} to {}", number(low), number(high))
        }
        Some(Ratio { ratio, low: Some(low), high: Some(high), .. }) => {
            format!("{} ({} to {})", number(ratio), number(low), number(high))
        }
        Some(Ratio { ratio, .. }) => number(ratio),
    }
}

/// "99.8 %".
pub fn percent(share: Option<f64>) -> String {
    share.map_or("-".to_string(), |share| match share * 100.0 {
        percent if percent >= 99.95 => "100 %".to_string(),
        // What is not all must not look so.
        percent => format!("{:.1} %", (percent * 10.0).floor() / 10.0),
    })
}

pub use crate::show::units::indented as lines;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_digits_that_count() {
        assert_eq!([1623.4, 16.24, 1.624, 0.0162, 0.0].map(number), ["1623", "16.2", "1.62", "0.016", "0"]);
        assert_eq!(mean(Mean::of([7.0])), "7.00");
        assert_eq!(mean(None), "-");
        assert_eq!(percent(Some(0.9999)), "100 %");
        assert_eq!(percent(Some(0.9991)), "99.9 %");
        let found = Ratio { ratio: 1.5, low: Some(1.25), high: Some(1.75), rounds: 3 };
        assert_eq!(ratio(Some(found)), "1.50 (1.25 to 1.75)");
        assert_eq!(ratio(Some(Ratio { low: Some(0.7), ..found })), "0.70 to 1.75");
        assert_eq!(ratio(Some(Ratio { low: None, high: None, ..found })), "1.50");
        assert_eq!(
            (fine_ratio(Some(found)).as_str(), fine_ratio(None).as_str()),
            ("1.500 (1.250 to 1.750)", "-")
        );
    }

    #[test]
    fn bytes_of_several_runs() {
        let found = Spread::of([1048576.0, 3145728.0].map(Some));
        assert_eq!((mib(found).as_str(), mib(None).as_str()), ("2.0", "-"));
        assert_eq!((mib_range(found).as_str(), mib_range(None).as_str()), ("2.0 (1.0 to 3.0) MiB", "-"));
    }
}
