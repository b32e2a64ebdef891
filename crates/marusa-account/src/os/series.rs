//! The text in which programs give their figures to Prometheus, and one series out of it: the program's own measure of how
//! fast it is.
//!
//! Format: prometheus.io/docs/instrumenting/exposition_formats, "text-based format" 0.0.4, and OpenMetrics, which is alike in
//! all that is read here. A selector is a name, or a name with some of the labels: `http_requests_total{uri="/a"}`. All series
//! that it fits are added.

use crate::base::{Gap, Known, Refused, Why, refuse};
use std::str::FromStr;

/// Labels of one series that are looked at.
const LABELS_MAX: usize = 64;

/// Which series are meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selector {
    pub name: String,
    pub labels: Vec<(String, String)>,
}

impl FromStr for Selector {
    type Err = Refused;

    fn from_str(text: &str) -> Result<Selector, Refused> {
        let text = text.trim();
        let (name, rest) = name(text).ok_or_else(|| format!("'{text}' begins with no name of a series"))?;
        let (labels, rest) = labels(rest).ok_or_else(|| format!("the labels of '{text}' are not closed"))?;
        match rest.trim() {
            "" => Ok(Selector { name: name.to_string(), labels }),
            rest => refuse!("'{rest}' is not expected after the series"),
        }
    }
}

/// What the program says of a series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sum {
    pub value: f64,
    pub series: usize,
    /// It only grows: by its `# TYPE`, or by its name where there is none.
    pub is_counter: bool,
}

/// The sum of the series that the selector fits.
pub fn sum(text: &str, selector: &Selector) -> Known<Sum> {
    let mut sum = Sum { value: 0.0, series: 0, is_counter: is_counter(text, &selector.name) };
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let Some((_, rest)) = name(line).filter(|(name, _)| *name == selector.name) else { continue };
        let Some((found, rest)) = labels(rest) else { continue };
        let value = rest.split_ascii_whitespace().next().and_then(|word| word.parse::<f64>().ok());
        if let Some(value) = value.filter(|value| value.is_finite())
            && selector.labels.iter().all(|label| found.contains(label))
        {
            sum.value += value;
            sum.series += 1;
        }
    }
    match sum.series {
        0 => Err(Gap::new(format!("series {}", selector.name), Why::NotInThisRuntime)
            .hint("the program's page has no number for it; check the labels")),
        _ => Ok(sum),
    }
}

/// Histograms and summaries have counters with other names than their own.
fn is_counter(text: &str, name: &str) -> bool {
    let base = ["_total", "_count", "_sum", "_bucket"].iter().find_map(|end| name.strip_suffix(end));
    let mut types = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '));
    let kind = types.find(|(named, _)| *named == name || Some(*named) == base).map(|(_, kind)| kind.trim());
    match kind {
        Some("gauge" | "untyped" | "unknown") => false,
        Some("counter") => true,
        // Of a summary, what has the summary's own name are quantiles.
        Some(_) => base.is_some(),
        None => base.is_some(),
    }
}

fn name(text: &str) -> Option<(&str, &str)> {
    let end = text
        .find(|letter: char| !(letter.is_ascii_alphanumeric() || matches!(letter, '_' | ':')))
        .unwrap_or(text.len());
    (end > 0).then(|| text.split_at(end))
}

/// `{a="b",c="d"}` and what follows; no braces are not labels.
fn labels(text: &str) -> Option<(Vec<(String, String)>, &str)> {
    let mut labels = Vec::new();
    let Some(mut rest) = text.strip_prefix('{') else { return Some((labels, text)) };
    while labels.len() < LABELS_MAX {
        rest = rest.trim_start_matches([',', ' ']);
        if let Some(rest) = rest.strip_prefix('}') {
            return Some((labels, rest));
        }
        let (key, value) = rest.split_once("=\"")?;
        let (text, after) = quoted(value)?;
        labels.push((key.trim().to_string(), text));
        rest = after;
    }
    None
}

/// The text up to the closing quote, without its escapes, and what follows.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut plain = String::new();
    let mut letters = text.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '"' => return Some((plain, &text[at + 1..])),
            '\\' => match letters.next()?.1 {
                'n' => plain.push('\n'),
                other => plain.push(other),
            },
            other => plain.push(other),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "# HELP http_requests_total all\n# TYPE http_requests_total counter\n\
        http_requests_total{uri=\"/a\",code=\"200\"} 10\nhttp_requests_total{code=\"500\",uri=\"/a\"} 2 1395066363000\n\
        http_requests_total{uri=\"/b \\\"x\\\"\",code=\"200\"} 5\n# TYPE load gauge\nload 0.25\n\
        # TYPE seconds histogram\nseconds_bucket{le=\"+Inf\"} 7\nseconds_sum 3.5\nseconds_count 7\nbroken{x=\"1 9\nnan NaN\n";

    fn of(selector: &str) -> Known<Sum> {
        sum(PAGE, &selector.parse().expect("a selector"))
    }

    #[test]
    fn series_are_added_and_labels_choose() {
        let all = of("http_requests_total").expect("three");
        assert_eq!((all.value, all.series, all.is_counter), (17.0, 3, true));
        assert_eq!(of("http_requests_total{uri=\"/a\"}").expect("two").value, 12.0);
        assert_eq!(of("http_requests_total{uri=\"/b \\\"x\\\"\"}").expect("one").value, 5.0);
        assert_eq!(of("load").map(|sum| (sum.value, sum.is_counter)), Ok((0.25, false)));
        assert_eq!(of("seconds_sum").map(|sum| (sum.value, sum.is_counter)), Ok((3.5, true)));
        for absent in ["http_requests", "broken", "nan", "load{a=\"b\"}"] {
            assert!(of(absent).is_err(), "{absent}");
        }
    }

    #[test]
    fn a_selector_that_makes_no_sense_is_an_error() {
        for bad in ["", "{a=\"b\"}", "a{b", "a{b=c}", "a b", "a{b=\"c\"} d"] {
            assert!(bad.parse::<Selector>().is_err(), "{bad}");
        }
    }
}
