//! The user's own figures: what his program prints, what JMH wrote, a series of a Prometheus page. How `--metric` names
//! one, and what comes out of the text that is then read; nothing here reads anything.
//!
//! ```text
//! NAME[unit,better,all]=REGEX                 in the output: the last match, or with `all` every match, as a series over time
//! jmh:FILE.json                               every benchmark of JMH's -rf json -rff FILE.json
//! NAME[unit,better]=prometheus:URL:SERIES     a counter's rate, a gauge's mean, or 'a_sum / a_count'
//! ```
//!
//! `better` is `higher` or `lower`. It may be left out where the unit says it: op/s, MB/s are better higher; ms, ns/op, B
//! better lower.

pub mod jmh;
pub mod lines;
pub mod series;

use crate::base::{Refused, refuse};
use regex_lite::Regex;
use serde::Serialize;
use series::Series;
use std::path::PathBuf;
use std::str::FromStr;

/// Which way a figure is better.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Better {
    Higher,
    Lower,
}

impl Better {
    /// By the unit; `None`: it does not say.
    pub fn of_unit(unit: &str) -> Option<Better> {
        let unit = unit.to_lowercase();
        let rates = ["/s", "/sec", "/ms", "/us", "/ns", "/min", "rps", "tps", "qps"];
        if rates.iter().any(|rate| unit.ends_with(rate)) {
            return Some(Better::Higher);
        }
        let amount = unit.split('/').next().unwrap_or_default();
        let amounts =
            ["s", "ms", "us", "µs", "μs", "ns", "min", "b", "kb", "mb", "gb", "kib", "mib", "gib", "bytes"];
        amounts.contains(&amount).then_some(Better::Lower)
    }

    pub fn is_lower(self) -> bool {
        self == Better::Lower
    }
}

/// Where a figure comes from.
#[derive(Clone, Debug)]
pub enum Source {
    /// The program's standard output and errors.
    Output {
        pattern: Regex,
        /// Every match counts, over time; else the last one.
        all: bool,
    },
    /// JMH's own file; it has names, units and directions for each benchmark.
    Jmh {
        file: PathBuf,
    },
    Prometheus {
        url: String,
        series: Series,
    },
}

/// One `--metric`.
#[derive(Clone, Debug)]
pub struct Spec {
    /// `None` for JMH, which names its figures.
    pub name: Option<String>,
    pub unit: Option<String>,
    pub better: Option<Better>,
    pub source: Source,
}

/// What came of one metric in one trial.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figure {
    pub name: String,
    pub unit: Option<String>,
    pub better: Better,
    pub value: f64,
    /// The figures over time that `value` is the mean of, for the steady state; empty: there is one only.
    pub series: Vec<f64>,
}

impl FromStr for Spec {
    type Err = Refused;

    fn from_str(text: &str) -> Result<Spec, Refused> {
        if let Some(file) = text.strip_prefix("jmh:") {
            if file.is_empty() {
                refuse!("jmh: needs the file that JMH writes with -rf json -rff FILE");
            }
            return Ok(Spec {
                name: None,
                unit: None,
                better: None,
                source: Source::Jmh { file: file.into() },
            });
        }
        let (head, rest) = match head(text) {
            Some((head, rest)) => (head?, rest),
            None => (Head::default(), text),
        };
        let Some(address) = rest.strip_prefix("prometheus:") else { return head.output(rest, text) };
        let (url, series) = split_url(address).ok_or_else(|| {
            format!("'{address}' is not URL:SERIES, as http://localhost:8080/metrics:requests_total")
        })?;
        let series = Series::parse(series)?;
        let name = head.name.unwrap_or_else(|| series.name());
        let better = head.better.ok_or_else(|| {
            format!("write {name}[higher]=... or {name}[lower]=...: which way is it better?")
        })?;
        let source = Source::Prometheus { url: url.to_string(), series };
        Ok(Spec { name: Some(name), unit: head.unit, better: Some(better), source })
    }
}

#[derive(Default)]
struct Head {
    name: Option<String>,
    unit: Option<String>,
    better: Option<Better>,
    all: bool,
}

impl Head {
    fn output(self, pattern: &str, text: &str) -> Result<Spec, Refused> {
        let name = self.name.ok_or_else(|| {
            format!("'{text}' is none of NAME=REGEX, jmh:FILE and prometheus:URL:SERIES; as --metric 'rate[op/s]=rate: ([0-9.]+)'")
        })?;
        let pattern = Regex::new(pattern).map_err(|error| format!("{name}: {error}"))?;
        let better = self.better.ok_or_else(|| {
            format!("write {name}[higher]=... or {name}[lower]=..., or a unit that says it: {name}[op/s]=...")
        })?;
        let source = Source::Output { pattern, all: self.all };
        Ok(Spec { name: Some(name), unit: self.unit, better: Some(better), source })
    }
}

/// "NAME[unit,better]=" and what follows; `None`: it has no such head.
fn head(text: &str) -> Option<(Result<Head, Refused>, &str)> {
    let end = text
        .find(|letter: char| !(letter.is_alphanumeric() || matches!(letter, '_' | '-' | '.' | ' ' | '%')))?;
    let (name, rest) = text.split_at(end);
    let (notes, rest) = match rest.strip_prefix('[') {
        Some(rest) => rest.split_once("]=")?,
        None => ("", rest.strip_prefix('=')?),
    };
    (!name.trim().is_empty()).then(|| (read_notes(name.trim(), notes), rest))
}

fn read_notes(name: &str, notes: &str) -> Result<Head, Refused> {
    let mut head = Head { name: Some(name.to_string()), ..Head::default() };
    for note in notes.split(',').map(str::trim).filter(|note| !note.is_empty()) {
        match note {
            "higher" => head.better = Some(Better::Higher),
            "lower" => head.better = Some(Better::Lower),
            "all" => head.all = true,
            "last" => head.all = false,
            unit if head.unit.is_none() => head.unit = Some(unit.to_string()),
            other => {
                refuse!("{name}[{notes}]: what is '{other}'? One unit, higher or lower, all or last");
            }
        }
    }
    head.better = head.better.or_else(|| Better::of_unit(head.unit.as_deref()?));
    Ok(head)
}

/// The series begins behind the first colon of the path: a port has one before.
fn split_url(address: &str) -> Option<(&str, &str)> {
    let host = address.find("://")? + 3;
    let path = host + address[host..].find('/')?;
    let colon = path + address[path..].find(':')?;
    let (url, series) = (&address[..colon], &address[colon + 1..]);
    (!series.is_empty()).then_some((url, series))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(text: &str) -> Spec {
        text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn the_three_kinds() {
        let rate = spec(r"rate[op/s]=throughput: ([\d.]+)");
        assert_eq!(
            (rate.name.as_deref(), rate.unit.as_deref(), rate.better),
            (Some("rate"), Some("op/s"), Some(Better::Higher))
        );
        assert!(matches!(rate.source, Source::Output { all: false, .. }));
        let each = spec("time per run[lower,all]=took (\\d+)=");
        assert!(
            matches!(&each.source, Source::Output { all: true, pattern } if pattern.as_str() == "took (\\d+)=")
        );
        assert!(
            matches!(spec("jmh:out/r.json").source, Source::Jmh { file } if file.to_str() == Some("out/r.json"))
        );
        let page = spec(
            "p[lower]=prometheus:http://localhost:8080/metrics:latency_sum{uri=\"/a:b\"} / latency_count",
        );
        let Source::Prometheus { url, series } = page.source else { panic!("a page") };
        assert_eq!(
            (url.as_str(), series.name().as_str()),
            ("http://localhost:8080/metrics", "latency_sum / latency_count")
        );
    }

    #[test]
    fn units_say_which_way() {
        for (unit, better) in [
            ("op/s", Better::Higher),
            ("MB/sec", Better::Higher),
            ("ops/ms", Better::Higher),
            ("ns/op", Better::Lower),
            ("ms", Better::Lower),
            ("MiB", Better::Lower),
            ("s", Better::Lower),
        ] {
            assert_eq!(Better::of_unit(unit), Some(better), "{unit}");
        }
        assert_eq!((Better::of_unit("points"), Better::of_unit("")), (None, None));
    }

    #[test]
    fn what_makes_no_sense_is_reported() {
        for (text, why) in [
            ("", "none of NAME=REGEX"),
            ("(\\d+)", "none of NAME=REGEX"),
            ("x=(\\d+)", "x[higher]"),
            ("x[points]=(\\d+)", "x[higher]"),
            ("x[ms]=(\\d+", "open group without closing"),
            ("x[ms,s]=(\\d+)", "what is 's'"),
            ("jmh:", "-rff"),
            ("prometheus:http://h/m:a", "a[higher]"),
            ("a[lower]=prometheus:http://h/m", "URL:SERIES"),
            ("a[lower]=prometheus:http://h/m:a{b", "not closed"),
        ] {
            let error = text.parse::<Spec>().map(|_| ()).expect_err(text);
            assert!(error.0.contains(why), "{text}: {error}");
        }
    }
}
