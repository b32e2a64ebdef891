//! The file that JMH writes with `-rf json -rff FILE`: each benchmark is a metric of its own, with unit, direction, and the
//! figures of its iterations. Format: org.openjdk.jmh.results.format.JSONResultFormat, JMH 1.37.

use super::{Better, Figure};
use crate::base::{Gap, Known, Why};
use serde_json::Value;

/// Benchmarks of one file.
const BENCHMARKS_MAX: usize = 1000;

pub fn parse(text: &str) -> Known<Vec<Figure>> {
    let gap = |hint: String| Gap::new("JMH's results", Why::NotMeasured).hint(hint);
    let json: Value = serde_json::from_str(text).map_err(|error| gap(format!("{error}; was it cut?")))?;
    let all = json
        .as_array()
        .ok_or_else(|| gap("it is not a list of benchmarks: run JMH with -rf json".to_string()))?;
    let mut figures = Vec::new();
    for benchmark in all.iter().take(BENCHMARKS_MAX) {
        let one =
            figure(benchmark).ok_or_else(|| gap(format!("'{}' has no score", benchmark["benchmark"])))?;
        figures.push(one);
    }
    if figures.is_empty() { Err(gap("it has no benchmark".to_string())) } else { Ok(figures) }
}

fn figure(benchmark: &Value) -> Option<Figure> {
    let metric = &benchmark["primaryMetric"];
    let unit = metric["scoreUnit"].as_str()?;
    let value = number(&metric["score"])?;
    let mut name = benchmark["benchmark"].as_str()?.to_string();
    let params = benchmark["params"].as_object().into_iter().flatten();
    let params: Vec<String> =
        params.map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default())).collect();
    if !params.is_empty() {
        name = format!("{name} ({})", params.join(", "));
    }
    let better = if benchmark["mode"].as_str()? == "thrpt" { Better::Higher } else { Better::Lower };
    // One list a fork. Forks are programs of their own: only of one is it a series over time.
    let forks = metric["rawData"].as_array();
    let first = forks.filter(|forks| forks.len() == 1).and_then(|forks| forks[0].as_array());
    let series = first.map(|values| values.iter().filter_map(number).collect()).unwrap_or_default();
    Some(Figure { name, unit: Some(unit.to_string()), better, value, series })
}

/// JMH writes "NaN" as a text.
fn number(value: &Value) -> Option<f64> {
    value.as_f64().filter(|number| number.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    const RESULTS: &str = r#"[
    {"jmhVersion": "1.37", "benchmark": "org.sample.Sort.run", "mode": "thrpt", "threads": 1, "forks": 1,
     "params": {"size": "1000", "kind": "random"},
     "primaryMetric": {"score": 25.5, "scoreError": "NaN", "scoreConfidence": ["NaN", "NaN"], "scoreUnit": "ops/ms",
       "scorePercentiles": {"0.0": 25.0}, "rawData": [[25.0, 26.0, 25.5]]}, "secondaryMetrics": {}},
    {"benchmark": "org.sample.Sort.other", "mode": "avgt", "forks": 2,
     "primaryMetric": {"score": 3.25, "scoreUnit": "us/op", "rawData": [[3.0], [3.5]]}}]"#;

    #[test]
    fn each_benchmark_is_a_metric() {
        let figures = parse(RESULTS).expect("two");
        assert_eq!(figures[0].name, "org.sample.Sort.run (size=1000, kind=random)");
        assert_eq!(
            (figures[0].value, figures[0].better, figures[0].unit.as_deref()),
            (25.5, Better::Higher, Some("ops/ms"))
        );
        assert_eq!(figures[0].series, [25.0, 26.0, 25.5]);
        assert_eq!(
            (figures[1].better, figures[1].series.len()),
            (Better::Lower, 0),
            "two forks are not a series"
        );
    }

    #[test]
    fn what_is_no_result_is_a_gap() {
        for text in [
            "",
            "{}",
            "[]",
            "[{}]",
            "[{\"benchmark\": \"a\", \"mode\": \"thrpt\", \"primaryMetric\": {\"score\": \"NaN\", \"scoreUnit\": \"ops/s\"}}]",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
        assert!(parse(&RESULTS[..200]).is_err_and(|gap| gap.to_string().contains("was it cut?")));
    }
}
