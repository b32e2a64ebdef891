//! A command of the user's that measures his program: it is run, and the last number that it prints is the figure.

use super::{signals, trial};
use crate::base::{Gap, Known, Why};
use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Most bytes of its output that are kept.
const OUTPUT_BYTES_MAX: u64 = 1 << 20;
/// How often it is looked whether it has ended.
const LOOK: Duration = Duration::from_millis(5);

/// What it printed last that is a number. It is ended, with all that it started, after `limit`, and when a signal to end arrives.
pub fn number(command: &str, limit: Duration) -> Known<f64> {
    let gap = |why: Why, hint: String| Gap::new(format!("the command `{command}`"), why).hint(hint);
    let failed = |error: io::Error| gap(Why::Gone, error.to_string());
    let mut child = start(command).map_err(failed)?;
    let output = child.stdout.take();
    let reading = thread::spawn(move || {
        let mut text = Vec::new();
        let read = output.map(|output| output.take(OUTPUT_BYTES_MAX).read_to_end(&mut text));
        read.transpose().map(|_| String::from_utf8_lossy(&text).into_owned())
    });
    let status = wait(&mut child, limit).map_err(failed)?;
    let Some(status) = status else {
        if signals::pending() {
            return Err(gap(Why::Interrupted, "it was ended".to_string()));
        }
        return Err(gap(
            Why::OverLimit,
            format!("it ran for more than {} s and was ended", limit.as_secs_f64()),
        ));
    };
    let text = reading.join().map_err(|_| gap(Why::Gone, "its output could not be read".into()))?;
    let text = text.map_err(failed)?;
    match last_number(&text) {
        _ if !status.success() => Err(gap(Why::Gone, format!("it failed: {status}"))),
        Some(number) => Ok(number),
        None => Err(gap(Why::NotMeasured, "it printed no number on standard output".into())),
    }
}

fn start(command: &str) -> io::Result<Child> {
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", command]).stdin(Stdio::null()).stdout(Stdio::piped()).process_group(0);
    trial::ends_with_us(&mut shell);
    shell.spawn()
}

/// `None`: it was ended, for it took too long.
fn wait(child: &mut Child, limit: Duration) -> io::Result<Option<std::process::ExitStatus>> {
    let started = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if started.elapsed() > limit || signals::pending() {
            trial::end(child);
            return Ok(None);
        }
        thread::sleep(LOOK);
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
        let started = Instant::now();
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
