//! What generators of HTTP load print: wrk 4 (and the line of our script), hey 0.1 (its CSV of every request), oha (JSON, by its
//! schema), ApacheBench 2.3. The others' formats were taken from what they printed; tests/data/http-load has it.

use super::{Generator, Served};
use crate::base::{Gap, Known, Why};
use serde_json::Value;

pub fn parse(generator: Generator, text: &str) -> Known<Served> {
    let served = match generator {
        Generator::Wrk => wrk(text),
        Generator::Hey => hey(text),
        Generator::Oha => oha(text),
        Generator::Ab => ab(text),
    };
    let is_number =
        |served: &Served| served.requests_per_second.is_finite() && served.requests_per_second >= 0.0;
    served.filter(is_number).ok_or_else(|| {
        let last = text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("nothing");
        let last: String = last.chars().take(80).collect();
        Gap::new(format!("what {} printed", generator.name()), Why::NotMeasured)
            .hint(format!("no throughput in it; its last line: {last}"))
    })
}

/// The first number behind a word that begins a line.
fn after<'a>(text: &'a str, start: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.trim_start().strip_prefix(start))?.split_whitespace().next()
}

fn number(text: Option<&str>) -> Option<f64> {
    text?.trim_end_matches([',', ';']).parse().ok().filter(|value: &f64| value.is_finite())
}

/// "250.00us", "5.80ms", "1.20s", "1.50m" in ms.
fn span_ms(text: &str) -> Option<f64> {
    let at = text.find(|letter: char| !(letter.is_ascii_digit() || letter == '.'))?;
    let unit = match &text[at..] {
        "us" => 1e-3,
        "ms" => 1.0,
        "s" => 1e3,
        "m" => 6e4,
        "h" => 3.6e6,
        _ => return None,
    };
    Some(text[..at].parse::<f64>().ok()? * unit)
}

fn wrk(text: &str) -> Option<Served> {
    let requests_per_second = number(after(text, "Requests/sec:"))?;
    let mut served = Served { requests_per_second, ..Served::default() };
    let quantile = |name: &str| span_ms(after(text, name)?);
    (served.p50_ms, served.p99_ms) = (quantile("50%"), quantile("99%"));
    let total = text.lines().find_map(|line| line.trim_start().split_once(" requests in "));
    served.requests = total.and_then(|(count, _)| count.trim().parse().ok());
    let sockets = text.lines().find_map(|line| line.trim_start().strip_prefix("Socket errors:"));
    let of_sockets = sockets
        .into_iter()
        .flat_map(|line| line.split([',', ' ']))
        .filter_map(|word| word.parse::<u64>().ok());
    served.errors =
        of_sockets.sum::<u64>() + number(after(text, "Non-2xx or 3xx responses:")).unwrap_or(0.0) as u64;
    // Our script has the same, not rounded, and one quantile more.
    if let Some(line) = text.lines().find_map(|line| line.strip_prefix("marusa ")) {
        let of = |name: &str| {
            let word = line.split_whitespace().find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
            number(word)
        };
        let ms = |name: &str| of(name).map(|us| us / 1e3);
        (served.p50_ms, served.p99_ms) = (ms("p50").or(served.p50_ms), ms("p99").or(served.p99_ms));
        (served.p999_ms, served.max_ms) = (ms("p999"), ms("max"));
        served.errors = of("errors").map_or(served.errors, |errors| errors as u64);
    }
    Some(served)
}

/// "response-time,DNS+dialup,DNS,Request-write,Response-delay,Response-read,status-code,offset", times in seconds. Requests
/// that had no answer are not in it.
fn hey(text: &str) -> Option<Served> {
    let mut lines = text.lines().skip_while(|line| !line.starts_with("response-time,"));
    lines.next()?;
    let (mut times, mut seconds, mut errors) = (Vec::new(), 0.0_f64, 0);
    for line in lines {
        let mut columns = line.split(',');
        let (time, status, offset) = (number(columns.next()), columns.nth(5), number(columns.next()));
        let (Some(time), Some(offset)) = (time, offset) else { continue };
        times.push(time * 1e3);
        seconds = seconds.max(time + offset);
        errors += u64::from(!status.is_some_and(|status| status.starts_with(['2', '3'])));
    }
    times.sort_by(f64::total_cmp);
    let rank = |share: f64| times.get(((share * times.len() as f64).ceil() as usize).max(1) - 1).copied();
    (seconds > 0.0).then(|| Served {
        requests_per_second: times.len() as f64 / seconds,
        requests: Some(times.len() as u64),
        p50_ms: rank(0.5),
        p99_ms: rank(0.99),
        p999_ms: rank(0.999),
        max_ms: times.last().copied(),
        errors,
    })
}

fn oha(text: &str) -> Option<Served> {
    let json: Value = serde_json::from_str(text.get(text.find('{')?..)?.trim()).ok()?;
    let summary = &json["summary"];
    let quantile = |name: &str| json["latencyPercentiles"][name].as_f64().map(|seconds| seconds * 1e3);
    let counts = |key: &str, failed: fn(&str) -> bool| -> (u64, u64) {
        let all = json[key].as_object().into_iter().flatten();
        let all = all.map(|(name, count)| (name, count.as_u64().unwrap_or(0)));
        all.fold((0, 0), |sum, (name, count)| (sum.0 + count, sum.1 + if failed(name) { count } else { 0 }))
    };
    let answers =
        counts("statusCodeDistribution", |code| !code.trim_start_matches('[').starts_with(['2', '3']));
    // What was under way when the time was over is not a failure.
    let broken = counts("errorDistribution", |text| !text.contains("deadline"));
    // Its "requestsPerSec" counts requests without an answer too.
    let seconds = summary["total"].as_f64().filter(|seconds| *seconds > 0.0 && answers.0 > 0)?;
    Some(Served {
        requests_per_second: answers.0 as f64 / seconds,
        requests: Some(answers.0 + broken.1),
        p50_ms: quantile("p50"),
        p99_ms: quantile("p99"),
        p999_ms: quantile("p99.9"),
        max_ms: summary["slowest"].as_f64().map(|seconds| seconds * 1e3),
        errors: answers.1 + broken.1,
    })
}

fn ab(text: &str) -> Option<Served> {
    let of = |name: &str| number(after(text, name));
    // " 100%     45 (longest request)"
    let quantile = |name: &str| number(after(text, name));
    let failed = of("Failed requests:").unwrap_or(0.0) + of("Non-2xx responses:").unwrap_or(0.0);
    // Pages whose length differs count as failed, though dynamic pages may well: "(Connect: 0, Receive: 0, Length: 12,
    // Exceptions: 0)".
    let length =
        text.lines().find_map(|line| line.split_once("Length: ").filter(|_| line.contains("Receive: ")));
    let of_length = number(length.and_then(|(_, rest)| rest.split([',', ')']).next())).unwrap_or(0.0);
    Some(Served {
        requests_per_second: of("Requests per second:")?,
        requests: of("Complete requests:").map(|count| count as u64),
        p50_ms: quantile("50%"),
        p99_ms: quantile("99%"),
        p999_ms: None,
        max_ms: quantile("100%"),
        errors: (failed - of_length).max(0.0) as u64,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_output_is_a_gap_that_says_what_was_printed() {
        for generator in [Generator::Wrk, Generator::Hey, Generator::Oha, Generator::Ab] {
            let gap = parse(generator, "unable to connect to localhost:8080 Connection refused\n")
                .expect_err("no figures");
            assert!(gap.to_string().contains("Connection refused"), "{gap}");
            assert!(parse(generator, "").is_err() && parse(generator, "Requests/sec: NaN").is_err());
        }
    }

    fn recorded(generator: Generator, text: &str) -> Served {
        parse(generator, text).unwrap_or_else(|gap| panic!("{gap}"))
    }

    #[test]
    fn wrk_as_it_printed() {
        let served = recorded(Generator::Wrk, include_str!("../../../../../tests/data/http-load/wrk.txt"));
        assert_eq!((served.requests_per_second, served.requests, served.errors), (67.79, Some(205), 0));
        assert_eq!(
            (served.p50_ms, served.p99_ms),
            (Some(54.105), Some(131.937)),
            "of the script: not rounded"
        );
        assert_eq!((served.p999_ms, served.max_ms), (Some(132.019), Some(132.019)));
        let plain =
            recorded(Generator::Wrk, include_str!("../../../../../tests/data/http-load/wrk-errors.txt"));
        assert_eq!((plain.p50_ms, plain.p99_ms, plain.p999_ms), (Some(51.99), Some(338.69), None));
        assert_eq!((plain.requests, plain.errors), (Some(129), 10));
        assert!(plain.error_share().is_some_and(|share| (share - 10.0 / 129.0).abs() < 1e-12));
    }

    #[test]
    fn hey_as_it_printed_each_request() {
        let each = recorded(Generator::Hey, include_str!("../../../../../tests/data/http-load/hey-csv.txt"));
        // Counted with awk: 90 requests of which 9 were not of 2xx, the last ended after 3.1147 s.
        assert_eq!((each.requests, each.errors, each.p50_ms), (Some(90), 9, Some(47.4)));
        assert!(each.max_ms.is_some_and(|ms| (ms - 501.7).abs() < 1e-9));
        assert!((each.requests_per_second - 90.0 / 3.1147).abs() < 1e-9);
        // hey writes no line for a request that got no answer: a server that is down must not count as fast.
        assert!(
            parse(Generator::Hey, "response-time,DNS+dialup,DNS,Request-write,Response-delay\n").is_err()
        );
    }

    #[test]
    fn ab_as_it_printed() {
        let served = recorded(Generator::Ab, include_str!("../../../../../tests/data/http-load/ab.txt"));
        assert_eq!((served.requests_per_second, served.requests, served.errors), (269.22, Some(699), 59));
        assert_eq!((served.p50_ms, served.p99_ms, served.max_ms), (Some(3.0), Some(93.0), Some(1131.0)));
    }

    #[test]
    fn oha_by_its_schema() {
        // schema.json of oha 1.x: seconds, and counts by status and by error.
        let text = r#"{"summary": {"successRate": 0.99, "total": 2.0, "slowest": 0.05, "requestsPerSec": 60.0},
            "latencyPercentiles": {"p50": 0.002, "p99": 0.01, "p99.9": 0.04},
            "statusCodeDistribution": {"200": 90, "503": 10}, "errorDistribution": {"connection error": 5, "aborted due to deadline": 15}}"#;
        let served = recorded(Generator::Oha, text);
        assert_eq!((served.requests_per_second, served.requests, served.errors), (50.0, Some(105), 15));
        assert_eq!(
            (served.p50_ms, served.p99_ms, served.p999_ms, served.max_ms),
            (Some(2.0), Some(10.0), Some(40.0), Some(50.0))
        );
        assert!(parse(Generator::Oha, &text.replace("90", "0").replace("10}", "0}")).is_err(), "no answer");
    }

    #[test]
    fn spans_of_wrk() {
        assert_eq!(
            (span_ms("250.00us"), span_ms("5.80ms"), span_ms("1.20s"), span_ms("2.00m")),
            (Some(0.25), Some(5.8), Some(1200.0), Some(120_000.0))
        );
        assert_eq!((span_ms("12"), span_ms(""), span_ms("x")), (None, None, None));
    }
}
