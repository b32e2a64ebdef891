//! HTTP load on the program of a run (`--load`): waits until the server answers, then has the generator ask it, round
//! after round until a round is about as fast as the one before, and takes the last one. So the warm-up is found, and it
//! is all rounds but the last.

use crate::act::trial::{self, Running, Start, Turn};
use crate::base::redact;
use crate::experiment::http_load::{self, Load, Served, WRK_SCRIPT};
use crate::experiment::trial_record::{Figure, Trial};
use crate::os::{file_mode, http, output_file};
use anyhow::{Context, anyhow, bail};
use std::path::Path;
use std::time::{Duration, Instant};

/// A round within this of the one before is as fast.
const STEADY_SHARE: f64 = 0.05;
const ROUNDS_MAX: usize = 6;
/// How long a server may take until it answers.
const READY_MAX: Duration = Duration::from_secs(300);
const ASK_EVERY: Duration = Duration::from_millis(200);
/// How long one round of a generator may take.
const ROUND_MAX: Duration = Duration::from_secs(3600);
/// More requests that fail than this: the server does not serve.
const ERRORS_SHARE_MAX: f64 = 0.01;

/// What the last round came to, and how many there were.
pub struct Loaded {
    pub served: Served,
    pub rounds: usize,
    pub is_steady: bool,
}

/// `look` samples the program, and returns when to sample it again.
pub fn run(
    load: &Load,
    running: &mut Running,
    output: &Path,
    mut look: impl FnMut(&mut Running) -> Instant,
) -> anyhow::Result<Loaded> {
    ready(load, running, &mut look)?;
    let script = output.with_extension("lua");
    if load.takes_script() {
        output_file::replace(&script, file_mode::wanted(), WRK_SCRIPT.as_bytes())
            .with_context(|| script.display().to_string())?;
    }
    let script = script.to_str().filter(|_| load.takes_script());
    let mut before: Option<f64> = None;
    for rounds in 1..=ROUNDS_MAX {
        let served = round(load, running, output, script, &mut look)?;
        if served.error_share().is_some_and(|share| share > ERRORS_SHARE_MAX) {
            bail!("{} of {} requests failed", served.errors, served.requests.unwrap_or(0));
        }
        let rate = served.requests_per_second;
        let is_steady = before.is_some_and(|before| rate <= before * (1.0 + STEADY_SHARE));
        if is_steady || rounds == ROUNDS_MAX {
            return Ok(Loaded { served, rounds, is_steady });
        }
        before = Some(rate);
    }
    bail!("no round of load was run")
}

fn gone(turn: Turn) -> anyhow::Error {
    match turn {
        Turn::Ended => anyhow!("the server ended before its load was done"),
        Turn::Limit => anyhow!("the server was asked for longer than --time-limit"),
        _ => anyhow!("it was ended before its load was done"),
    }
}

fn ready(
    load: &Load,
    running: &mut Running,
    look: &mut impl FnMut(&mut Running) -> Instant,
) -> anyhow::Result<()> {
    let started = Instant::now();
    loop {
        let answer = http::get(&load.url);
        let Err(gap) = answer else { return Ok(()) };
        if started.elapsed() > READY_MAX {
            let url = redact::url(&load.url);
            bail!("{url} did not answer within {} s: {gap}", READY_MAX.as_secs());
        }
        match running.until(Instant::now() + ASK_EVERY) {
            Turn::Time => look(running),
            turn => return Err(gone(turn)),
        };
    }
}

fn round(
    load: &Load,
    running: &mut Running,
    output: &Path,
    script: Option<&str>,
    look: &mut impl FnMut(&mut Running) -> Instant,
) -> anyhow::Result<Served> {
    let errors = output.with_extension("load-err");
    let start = Start::new(load.command(script), output.to_path_buf(), errors.clone(), ROUND_MAX);
    let failed = |why: String| anyhow!("{}: {why}; {}", load.generator.name(), load.generator.install());
    let mut generator = trial::start(&start).map_err(|error| failed(error.to_string()))?;
    let mut next = Instant::now();
    loop {
        match generator.until(next) {
            Turn::Time => {}
            Turn::Signal => {
                running.interrupted();
                return Err(gone(Turn::Signal));
            }
            _ => break,
        }
        match running.until(Instant::now()) {
            Turn::Time => next = look(running),
            turn => return Err(gone(turn)),
        }
    }
    let ended = generator.end();
    let text = super::metric::text(output);
    if !ended.is_good() {
        let said = super::metric::text(&errors);
        return Err(failed(format!("{}: {}", ended.words(), said.lines().next().unwrap_or_default())));
    }
    http_load::parse(load.generator, &text).map_err(|gap| anyhow!(gap.to_string()))
}

/// Into the record of the run; the first is what the comparison is about, if nothing else is.
pub fn figures(loaded: &Loaded, trial: &mut Trial) {
    let Served { requests_per_second, p50_ms, p99_ms, p999_ms, max_ms, errors, .. } = loaded.served;
    trial.own_figure(Figure::own("requests", Some("/s"), false), requests_per_second);
    let rows = [("p50", p50_ms), ("p99", p99_ms), ("p99.9", p999_ms), ("slowest", max_ms)];
    for (name, value) in rows {
        if let Some(value) = value {
            trial.own_figure(Figure::own(name, Some("ms"), true), value);
        }
    }
    trial.own_figure(Figure::own("failed", None, true), errors as f64);
    trial.notes.push(match loaded.is_steady {
        true => format!(
            "warm-up: {} of load before the one that counts",
            crate::base::counted(loaded.rounds - 1, "round")
        ),
        false => format!(
            "no steady state after {} of load; the last one counts",
            crate::base::counted(loaded.rounds, "round")
        ),
    });
}
