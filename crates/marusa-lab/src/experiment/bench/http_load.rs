//! The one line that the script of the load generator (crates/marusa-host/src/act/server/load.lua) has wrk print.

use crate::base::{Gap, Known, Why};

/// Clients that ask again as soon as they are answered.
#[derive(Clone, Debug, PartialEq, schemars::JsonSchema, serde::Serialize, serde::Deserialize)]
pub struct HttpLoad {
    pub requests: u64,
    pub seconds: f64,
    pub requests_per_second: f64,
    /// Answers that say that something failed (400 and above), broken connections, and answers that did not come in time.
    pub errors: u64,
    pub mean_ms: f64,
    pub p50_ms: f64,
    pub p90_ms: f64,
    pub p99_ms: f64,
    pub p999_ms: f64,
    pub max_ms: f64,
}

/// In the units of wrk.
#[derive(serde::Deserialize)]
struct Line {
    requests: u64,
    duration_us: f64,
    status_errors: u64,
    socket_errors: u64,
    timeouts: u64,
    mean_us: f64,
    p50_us: f64,
    p90_us: f64,
    p99_us: f64,
    p999_us: f64,
    max_us: f64,
}

const START: &str = "marusa ";

pub fn parse(printed: &str) -> Known<HttpLoad> {
    let gap = |hint: String| Gap::new("figures of the load", Why::NotMeasured).hint(hint);
    let line = printed.lines().rev().find_map(|line| line.strip_prefix(START));
    let line = line.ok_or_else(|| gap(format!("wrk did not print them: {}", printed.trim())))?;
    let line: Line = serde_json::from_str(line).map_err(|error| gap(format!("{error} in '{line}'")))?;
    if line.requests == 0 || line.duration_us <= 0.0 {
        return Err(gap("no request was answered".to_string()));
    }
    let seconds = line.duration_us / 1e6;
    Ok(HttpLoad {
        requests: line.requests,
        seconds,
        requests_per_second: line.requests as f64 / seconds,
        errors: line.status_errors + line.socket_errors + line.timeouts,
        mean_ms: line.mean_us / 1e3,
        p50_ms: line.p50_us / 1e3,
        p90_ms: line.p90_us / 1e3,
        p99_ms: line.p99_us / 1e3,
        p999_ms: line.p999_us / 1e3,
        max_ms: line.max_us / 1e3,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_of_our_script_among_what_wrk_prints() {
        let text = "Running 20s test @ http://127.0.0.1:1/daytrader/scenario\n  8 threads and 8 connections\n\
            Requests/sec:   1623.1\nmarusa {\"requests\":32462,\"duration_us\":20000000,\"status_errors\":1,\
            \"socket_errors\":2,\"timeouts\":3,\"mean_us\":4900.5,\"p50_us\":4100,\"p90_us\":9000,\"p99_us\":21000,\
            \"p999_us\":40000,\"max_us\":90000}\n";
        let found = parse(text).expect("its line");
        assert_eq!((found.requests, found.errors, found.p999_ms), (32462, 6, 40.0));
        assert!((found.requests_per_second - 1623.1).abs() < 1e-9);
        assert!(parse("unable to connect to 127.0.0.1").is_err_and(|gap| gap.to_string().contains("unable")));
        assert!(parse("marusa {}").is_err());
        let none = text.replace("32462", "0");
        assert!(parse(&none).is_err_and(|gap| gap.to_string().contains("no request")));
    }
}
