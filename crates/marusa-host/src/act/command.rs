//! A command of the user's that measures his program: it is run, and the last number that it prints is the figure.

use super::{launched, signals};
use crate::base::{Gap, Known, Why};
use std::path::Path;
use std::time::Duration;

/// Most bytes of its output that are kept.
const OUTPUT_BYTES_MAX: u64 = 1 << 20;

/// What it printed last that is a number. It is ended, with all that it started, after `limit`, and when a signal to end arrives.
pub fn number(command: &str, limit: Duration) -> Known<f64> {
    let gap = |why: Why, hint: String| Gap::new(format!("the command `{command}`"), why).hint(hint);
    let mut shell = launched::command(Path::new("/bin/sh"));
    match launched::answer(shell.args(["-c", command]), limit, OUTPUT_BYTES_MAX) {
        Err(error) => Err(gap(Why::Gone, error.to_string())),
        Ok(None) if signals::pending() => Err(gap(Why::Interrupted, "it was ended".to_string())),
        Ok(None) => {
            Err(gap(Why::OverLimit, format!("it ran for more than {} s and was ended", limit.as_secs_f64())))
        }
        Ok(Some((status, ..))) if !status.success() => Err(gap(Why::Gone, format!("it failed: {status}"))),
        Ok(Some((_, output, _))) => last_number(&output)
            .ok_or_else(|| gap(Why::NotMeasured, "it printed no number on standard output".to_string())),
    }
}

/// "Requests/sec:  1234.5" is 1234.5; a number in the middle of a word ("p99") is none.
fn last_number(text: &str) -> Option<f64> {
    let words = text.split(|letter: char| letter.is_whitespace() || matches!(letter, ',' | '=' | ';' | '"'));
    words.filter_map(|word| word.parse::<f64>().ok()).rfind(|number| number.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(20);

    #[test]
    fn the_last_number_that_is_printed() {
        assert_eq!(last_number("run 1\nRequests/sec:  1234.5\n"), Some(1234.5));
        assert_eq!(last_number("{\"rate\": 7e3, \"p99\": x}"), Some(7000.0));
        assert_eq!(last_number("rate=7e3 p99"), Some(7000.0));
        assert_eq!(last_number("p99 NaN inf"), None);
        assert_eq!(number("echo 4; echo 5.5 >&2; echo 5", LIMIT), Ok(5.0));
    }

    #[test]
    fn a_command_that_fails_or_does_not_end_is_a_gap() {
        assert!(number("echo 4; exit 3", LIMIT).is_err_and(|gap| gap.to_string().contains("exit status: 3")));
        assert!(number("true", LIMIT).is_err_and(|gap| gap.why == Why::NotMeasured));
        let started = std::time::Instant::now();
        let endless = number("sleep 60 & sleep 60", Duration::from_millis(100));
        assert!(endless.is_err_and(|gap| gap.why == Why::OverLimit));
        assert!(started.elapsed() < Duration::from_secs(30));
    }

    #[test]
    fn a_signal_to_end_ends_it() {
        let ended = signals::with_one_pending(|| number("sleep 600; echo 1", Duration::from_secs(600)));
        assert!(ended.is_err_and(|gap| gap.why == Why::Interrupted));
    }
}
