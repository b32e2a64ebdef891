//! Pushes the figures of this node to an OpenTelemetry back end. One thread writes a request at each interval, another sends what
//! waits; neither holds up the watch, and a back end that is down costs a bounded queue (`queue`).

mod queue;
mod settings;
mod tls;

use crate::cmd::web;
use crate::os::host;
use crate::os::identity::HostRoot;
use crate::serve::Node;
use crate::serve::otlp::{self, Context};
use flate2::Compression;
use flate2::write::GzEncoder;
use queue::Queue;
pub use settings::Settings;
use std::io::Write;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use ureq::Agent;
use ureq::http::Response;

/// Between two attempts while the back end is down, at the least and at the most.
const BACK_OFF: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));
/// A back end may ask for a longer wait, up to this.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(600);
/// How often the same failure is reported.
const SAY_EVERY: Duration = Duration::from_secs(3600);
const ANSWER_BYTES_MAX: u64 = 64 << 10;
const OUTCOMES: [&str; 4] = ["accepted", "refused", "failed", "dropped"];

/// What came of an attempt.
#[derive(Debug, PartialEq)]
enum Outcome {
    Accepted,
    /// It will not be accepted later either.
    Refused(String),
    /// It may be accepted later: at the earliest then, if the back end said so.
    Failed(String, Option<Duration>),
}

/// Pushes until the process ends.
pub fn start(settings: Settings, every: Duration, node: Arc<Node>) -> std::io::Result<()> {
    node.state().own.otlp = OUTCOMES.map(|outcome| (outcome, 0)).to_vec();
    let queue = Arc::new(Queue::default());
    let (is_gzip, filled, counted) = (settings.is_gzip, queue.clone(), node.clone());
    let thread = |name: &str| std::thread::Builder::new().name(name.to_string());
    thread("otlp-write").spawn(move || write(&filled, &counted, every, is_gzip))?;
    thread("otlp-send").spawn(move || send(&queue, &node, &settings)).map(drop)
}

fn count(node: &Node, outcome: &str, by: u64) {
    let mut state = node.state();
    if let Some((_, count)) = state.own.otlp.iter_mut().find(|(name, _)| *name == outcome) {
        *count += by;
    }
}

fn write(queue: &Queue, node: &Node, every: Duration, is_gzip: bool) {
    let nanos = |at: SystemTime| at.duration_since(UNIX_EPOCH).ok().map(|since| since.as_nanos() as u64);
    let host_name = HostRoot::shared().node();
    let mut next = Instant::now();
    loop {
        // An interval that was missed is not made up for.
        next = (next + every).max(Instant::now());
        std::thread::sleep(next.saturating_duration_since(Instant::now()));
        let context = Context {
            host_name: host_name.clone(),
            // By the clock as it is now: it may have been set.
            boot_nanos: host::started(0).and_then(nanos),
            now_nanos: nanos(SystemTime::now()).unwrap_or(0),
        };
        let state = node.state();
        if !state.is_ready() {
            continue;
        }
        let request = otlp::request(node, &state, &context);
        drop(state);
        let dropped = queue.add(if is_gzip { packed(&request) } else { request });
        count(node, "dropped", dropped);
    }
}

fn packed(bytes: &[u8]) -> Vec<u8> {
    let mut packed = GzEncoder::new(Vec::with_capacity(bytes.len() / 8), Compression::fast());
    // Writing to memory does not fail.
    let _ = packed.write_all(bytes);
    packed.finish().unwrap_or_default()
}

fn send(queue: &Queue, node: &Node, settings: &Settings) {
    let mut agent = web::agent(settings.timeout, settings.tls.clone());
    let mut said = Said::default();
    let mut failures = 0;
    loop {
        let (number, request) = queue.first();
        match attempt(&agent, settings, &request) {
            Outcome::Failed(why, after) => {
                count(node, "failed", 1);
                let shown = settings.shown();
                said.say(0, || {
                    format!("cannot push metrics to {shown}: {why}; they are kept and sent later")
                });
                std::thread::sleep(pause(failures, after));
                failures += 1;
                // A certificate may have been renewed. While one is being written, the one from before stays.
                if let Some(Ok(tls)) = settings.files.as_ref().map(tls::Files::read) {
                    agent = web::agent(settings.timeout, tls);
                }
                continue;
            }
            Outcome::Refused(why) => {
                count(node, "refused", 1);
                let shown = settings.shown();
                said.say(1, || {
                    format!(
                        "cannot push metrics: {shown} answers {why}; check the URL and OTEL_EXPORTER_OTLP_HEADERS"
                    )
                });
            }
            Outcome::Accepted => count(node, "accepted", 1),
        }
        failures = 0;
        queue.settled(number);
    }
}

/// When each kind of message was last printed.
#[derive(Default)]
struct Said([Option<Instant>; 2]);

impl Said {
    fn say(&mut self, what: usize, text: impl FnOnce() -> String) {
        if self.0[what].is_none_or(|at| at.elapsed() >= SAY_EVERY) {
            crate::say!("marusa: {}", text());
            self.0[what] = Some(Instant::now());
        }
    }
}

/// Twice as long after each failure, and not at the same moment on all nodes.
fn pause(failures: u32, after: Option<Duration>) -> Duration {
    let doubled = BACK_OFF.0.saturating_mul(1 << failures.min(16)).min(BACK_OFF.1);
    let spread = doubled.mul_f64(0.5 + fastrand::f64() / 2.0);
    after.map_or(spread, |after| after.min(RETRY_AFTER_MAX))
}

fn attempt(agent: &Agent, settings: &Settings, request: &[u8]) -> Outcome {
    let mut asked = agent.post(&settings.url).header("Content-Type", "application/x-protobuf");
    if settings.is_gzip {
        asked = asked.header("Content-Encoding", "gzip");
    }
    for (name, value) in &settings.headers {
        asked = asked.header(name, value);
    }
    match asked.send(request) {
        Ok(mut answer) => {
            // Read to its end, so that the connection serves the next one.
            let _ = answer.body_mut().with_config().limit(ANSWER_BYTES_MAX).read_to_vec();
            judged(&answer)
        }
        Err(error) => Outcome::Failed(error.to_string(), None),
    }
}

/// Which answers are to be tried again: specification, protocol/otlp.md, "Retryable Response Codes".
fn judged<T>(answer: &Response<T>) -> Outcome {
    let status = answer.status();
    match status.as_u16() {
        200..300 => Outcome::Accepted,
        429 | 502..=504 => {
            let after =
                answer.headers().get("retry-after").and_then(|value| value.to_str().ok()?.parse().ok());
            Outcome::Failed(status.to_string(), after.map(Duration::from_secs))
        }
        _ => Outcome::Refused(status.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn which_answers_are_tried_again() {
        let of = |status: u16, after: &str| {
            let answer = Response::builder().status(status).header("Retry-After", after);
            judged(&answer.body(()).expect("an answer"))
        };
        assert_eq!((of(200, ""), of(202, "")), (Outcome::Accepted, Outcome::Accepted));
        for status in [429, 502, 503, 504] {
            let Outcome::Failed(_, after) = of(status, "7") else { panic!("{status}") };
            assert_eq!(after, Some(Duration::from_secs(7)));
        }
        assert!(matches!(of(503, "Wed, 21 Oct 2026 07:28:00 GMT"), Outcome::Failed(_, None)));
        for status in [301, 400, 401, 404, 413, 500] {
            assert!(matches!(of(status, ""), Outcome::Refused(_)), "{status}");
        }
    }

    #[test]
    fn pauses_grow_to_an_end() {
        assert!(pause(0, None) <= BACK_OFF.0 && pause(0, None) >= BACK_OFF.0 / 2);
        assert!(pause(40, None) <= BACK_OFF.1 && pause(40, None) >= BACK_OFF.1 / 2);
        assert_eq!(pause(0, Some(Duration::from_secs(90))), Duration::from_secs(90));
        assert_eq!(pause(0, Some(Duration::from_secs(1 << 40))), RETRY_AFTER_MAX);
    }
}
