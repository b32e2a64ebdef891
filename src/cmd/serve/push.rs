//! Pushes the figures of this node to an OpenTelemetry back end. One thread writes a request at each interval, another sends what
//! waits; neither holds up the watch, and a back end that is down costs a bounded queue (`queue`).

mod queue;
mod settings;
mod tls;

use crate::cmd::web;
use crate::os::host;
use crate::os::identity::HostRoot;
use crate::serve::Node;
use crate::serve::otlp::{self, Context, Rejected};
use queue::Queue;
pub use settings::Settings;
use std::io;
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
/// The last push when the service ends: a process that is asked to end has some ten seconds.
const LAST: Duration = Duration::from_secs(3);
const OUTCOMES: [&str; 4] = ["accepted", "refused", "failed", "dropped"];

/// What came of an attempt.
#[derive(Debug, PartialEq)]
enum Outcome {
    /// Without the data points that the answer names.
    Accepted(Rejected),
    /// It will not be accepted later either.
    Refused(String),
    /// It may be accepted later: at the earliest then, if the back end said so.
    Failed(String, Option<Duration>),
}

/// Pushes until it is finished.
pub struct Push {
    writer: Arc<RequestWriter>,
}

impl Push {
    /// Requests that wait take up to `bytes_max`.
    pub fn start(settings: Settings, every: Duration, node: Arc<Node>, bytes_max: u64) -> io::Result<Push> {
        {
            let own = &mut node.state().own;
            own.otlp = OUTCOMES.map(|outcome| (outcome, 0)).to_vec();
            own.otlp_rejected = Some(0);
        }
        let queue = Arc::new(Queue::new(usize::try_from(bytes_max).unwrap_or(usize::MAX)));
        let writer = Arc::new(RequestWriter {
            queue: queue.clone(),
            node: node.clone(),
            is_gzip: settings.is_gzip,
            host_name: HostRoot::shared().node(),
        });
        let thread = |name: &str| std::thread::Builder::new().name(name.to_string());
        let of_thread = writer.clone();
        thread("otlp-write").spawn(move || of_thread.each(every))?;
        thread("otlp-send").spawn(move || send(&queue, &node, &settings))?;
        Ok(Push { writer })
    }

    /// Pushes the last figures, and what waits before them, as far as that is quick.
    pub fn finish(self) {
        self.writer.write();
        let left = self.writer.queue.close(LAST);
        if left > 0 {
            crate::say!(
                "marusa: {left} requests with metrics were not pushed: the back end does not take them"
            );
        }
    }
}

fn count(node: &Node, outcome: &str, by: u64) {
    let mut state = node.state();
    if let Some((_, count)) = state.own.otlp.iter_mut().find(|(name, _)| *name == outcome) {
        *count += by;
    }
}

/// Writes requests into the queue.
struct RequestWriter {
    queue: Arc<Queue>,
    node: Arc<Node>,
    is_gzip: bool,
    host_name: Option<String>,
}

impl RequestWriter {
    fn each(&self, every: Duration) {
        let mut next = Instant::now();
        loop {
            // An interval that was missed is not made up for.
            next = (next + every).max(Instant::now());
            std::thread::sleep(next.saturating_duration_since(Instant::now()));
            self.write();
        }
    }

    fn write(&self) {
        let nanos = |at: SystemTime| at.duration_since(UNIX_EPOCH).ok().map(|since| since.as_nanos() as u64);
        let context = Context {
            host_name: self.host_name.clone(),
            // By the clock as it is now: it may have been set.
            boot_nanos: host::started(0).and_then(nanos),
            now_nanos: nanos(SystemTime::now()).unwrap_or(0),
        };
        let state = self.node.state();
        if !state.is_ready() {
            return;
        }
        let request = otlp::request(&self.node, &state, &context);
        drop(state);
        add(&self.queue, &self.node, if self.is_gzip { web::gzip(&request) } else { request });
    }
}

fn add(queue: &Queue, node: &Node, request: Vec<u8>) {
    let dropped = queue.add(request);
    count(node, "dropped", dropped);
}

fn send(queue: &Queue, node: &Node, settings: &Settings) {
    let mut agent = web::agent(settings.timeout, settings.tls.clone());
    let mut said = Said::default();
    let mut failures = 0;
    while let Some((number, request)) = queue.first() {
        match attempt(&agent, settings, &request) {
            Outcome::Failed(why, after) => {
                count(node, "failed", 1);
                let shown = settings.shown();
                said.say(0, || {
                    format!("cannot push metrics to {shown}: {why}; they are kept and sent later")
                });
                if !queue.pause(pause(failures, after)) {
                    return queue.give_up();
                }
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
            Outcome::Accepted(rejected) => {
                count(node, "accepted", 1);
                if rejected != Rejected::default() {
                    *node.state().own.otlp_rejected.get_or_insert(0) += rejected.points;
                    let shown = settings.shown();
                    said.say(2, || {
                        format!("{shown} rejects {} data points: {}", rejected.points, rejected.why)
                    });
                }
            }
        }
        failures = 0;
        queue.settled(number);
    }
}

/// When each kind of message was last printed.
#[derive(Default)]
struct Said([Option<Instant>; 3]);

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
            let body = answer.body_mut().with_config().limit(ANSWER_BYTES_MAX).read_to_vec();
            judged(&answer, &body.unwrap_or_default())
        }
        Err(error) => Outcome::Failed(error.to_string(), None),
    }
}

/// Which answers are to be tried again: specification, protocol/otlp.md, "Retryable Response Codes".
fn judged<T>(answer: &Response<T>, body: &[u8]) -> Outcome {
    let status = answer.status();
    match status.as_u16() {
        200..300 => Outcome::Accepted(Rejected::of(body)),
        429 | 502..=504 => {
            let after =
                answer.headers().get("retry-after").and_then(|value| value.to_str().ok()?.parse().ok());
            Outcome::Failed(status.to_string(), after.map(Duration::from_secs))
        }
        _ => Outcome::Refused(status.to_string()),
    }
}

#[cfg(test)]
#[path = "push_tests.rs"]
mod tests;
