//! How fast the target is, in one period: by the processor's counters, or by what the user says is his measure.

use crate::act::command;
use crate::act::signals::{Waiting, Woken};
use crate::base::{Gap, Known, Why, redact};
use crate::cmd::{Failure, amount};
pub use crate::experiment::metrics::Better;
use crate::experiment::metrics::lines::mean;
use crate::experiment::metrics::series::{Series, grown};
use crate::measure::counters::Counters;
use crate::measure::events::{self, Meaning};
use crate::os::http;
use crate::os::log_tail::LogTail;
use crate::os::perf::Mode;
use crate::os::process::Process;
use regex_lite::Regex;
use std::path::PathBuf;
use std::time::{Duration, Instant};

#[derive(clap::Args, Debug)]
#[group(skip)]
pub struct MetricArgs {
    /// Measure by the lines of this file: see --pattern
    #[arg(long, value_name = "FILE", requires = "pattern", group = "metric")]
    metric_log: Option<PathBuf>,
    /// A regular expression: the mean of its first group over the lines of a period, or lines a second if it has none
    #[arg(long, value_name = "REGEX", requires = "metric_log")]
    pattern: Option<Regex>,
    /// Measure by a page of Prometheus metrics: see --series
    #[arg(long, value_name = "URL", requires = "series", group = "metric")]
    metric_url: Option<String>,
    /// A series, as 'requests_total{uri="/a"}': a counter's rate, a gauge's mean; or the ratio of what two counters
    /// grew by, as 'seconds_sum / seconds_count'
    #[arg(long, value_name = "SERIES", requires = "metric_url", value_parser = Series::parse)]
    series: Option<Series>,
    /// Measure by the last number that this command prints; it runs as the period, and at least once more
    /// after each change, unmeasured
    #[arg(long, value_name = "COMMAND", group = "metric")]
    metric_command: Option<String>,
    /// Direction in which the measure is better; needed except with the processor's counters
    #[arg(long, value_enum, requires = "metric")]
    better: Option<Better>,
    /// Time limit of the command, as 60s
    #[arg(long, value_name = "TIME", value_parser = amount::duration, requires = "metric_command")]
    command_limit: Option<Duration>,
}

const COMMAND_LIMIT: Duration = Duration::from_secs(600);
/// How often a gauge is asked within a period.
const GAUGE_LOOKS: u32 = 8;

/// Where figures come from.
pub enum Metric<'a> {
    Counters(Counters<'a>),
    Log { tail: LogTail, pattern: Regex },
    Page { url: String, series: Series },
    Command { command: String, limit: Duration },
}

/// One period's figure, or why there is none; a wait that was cut short says by what.
pub type Figure = Result<Known<f64>, Woken>;

impl MetricArgs {
    /// Opens the source, and says which way it is better.
    pub fn open<'a>(&self, process: &'a Process) -> anyhow::Result<(Metric<'a>, Better)> {
        let metric = match self {
            MetricArgs { metric_log: Some(path), pattern: Some(pattern), .. } => {
                let tail =
                    LogTail::open(path).map_err(|gap| Failure::usage(format!("--metric-log: {gap}")))?;
                Metric::Log { tail, pattern: pattern.clone() }
            }
            MetricArgs { metric_url: Some(url), series: Some(series), .. } => {
                let page = http::get(url).map_err(|gap| Failure::usage(format!("--metric-url: {gap}")))?;
                series.sums(&page).map_err(|gap| Failure::usage(format!("--series: {gap}")))?;
                Metric::Page { url: url.clone(), series: series.clone() }
            }
            MetricArgs { metric_command: Some(command), .. } => {
                let limit = self.command_limit.unwrap_or(COMMAND_LIMIT);
                Metric::Command { command: command.clone(), limit }
            }
            _ => return Ok((counters(process)?, Better::Lower)),
        };
        let better = self.better.ok_or_else(|| {
            Failure::usage("--better higher or --better lower must say which way this measure is better")
        })?;
        Ok((metric, better))
    }
}

fn counters(process: &Process) -> anyhow::Result<Metric<'_>> {
    let opened = Counters::open(process, events::cycles_per_instruction(), &[Mode::User]);
    opened.map(Metric::Counters).map_err(|gap| {
        let message = format!(
            "cycles per instruction cannot be counted: {gap}; name a measure of the program itself: --metric-log, \
             --metric-url or --metric-command"
        );
        Failure::unread(gap.why, message)
    })
}

impl Metric<'_> {
    /// "cycles per instruction", "mean of '...' in the log", ...
    pub fn name(&self) -> String {
        match self {
            Metric::Counters(_) => "cycles per instruction, user mode, all threads".to_string(),
            Metric::Log { pattern, .. } if pattern.captures_len() > 1 => {
                format!("mean of `{pattern}` in the log")
            }
            Metric::Log { pattern, .. } => format!("lines a second with `{pattern}`"),
            Metric::Page { series, .. } => match &series.by {
                Some(by) => format!("growth of {} by that of {}", series.of.name, by.name),
                None => series.of.name.clone(),
            },
            Metric::Command { command, .. } => {
                let words = shlex::split(command).unwrap_or_else(|| vec![command.clone()]);
                format!("last number of `{}`", redact::command(&words))
            }
        }
    }

    /// Lets the target work for a while, unmeasured. What a command measures may have no other load than the command's own.
    pub fn settle(&mut self, waiting: &Waiting, length: Duration) -> Result<(), Woken> {
        let until = Instant::now() + length;
        if let Metric::Command { command, limit } = self {
            // Why it gives no number is said by the period.
            let _ = command::number(command, *limit);
        }
        wait(waiting, until)
    }

    /// Watches for one period.
    pub fn period(&mut self, waiting: &Waiting, length: Duration) -> Figure {
        let started = Instant::now();
        match self {
            Metric::Counters(counters) => {
                counters.turn();
                wait(waiting, started + length)?;
                Ok(cycles_per_instruction(counters))
            }
            Metric::Log { tail, pattern } => {
                if let Err(gap) = tail.lines() {
                    return Ok(Err(gap));
                }
                wait(waiting, started + length)?;
                Ok(tail.lines().and_then(|lines| mean(&lines, pattern, started.elapsed().as_secs_f64())))
            }
            Metric::Page { url, series } => page(url, series, waiting, length),
            Metric::Command { command, limit } => {
                let figure = command::number(command, *limit);
                wait(waiting, Instant::now())?;
                Ok(figure)
            }
        }
    }
}

fn wait(waiting: &Waiting, until: Instant) -> Result<(), Woken> {
    match waiting.until(until) {
        Woken::Time => Ok(()),
        woken => Err(woken),
    }
}

fn cycles_per_instruction(counters: &mut Counters) -> Known<f64> {
    let interval = counters.turn();
    let slots = counters.slots();
    let sum = |meaning: Meaning| -> f64 {
        let counts = interval.threads.iter().flat_map(|thread| slots.iter().zip(&thread.counts));
        let wanted = counts.filter(|(slot, _)| slot.event.meaning == meaning);
        wanted.filter_map(|(_, count)| count.as_ref()?.scaled()).sum()
    };
    let (cycles, instructions) = (sum(Meaning::Cycles), sum(Meaning::Instructions));
    if instructions < 1.0 {
        return Err(Gap::new("cycles per instruction", Why::NotMeasured)
            .hint("the target executed nothing in this period, or the counters were taken"));
    }
    Ok(cycles / instructions)
}

fn page(url: &str, series: &Series, waiting: &Waiting, length: Duration) -> Figure {
    let ask = || http::get(url).and_then(|page| series.sums(&page));
    let (started, first) = (Instant::now(), ask());
    let (first, by) = match first {
        Ok(sums) => sums,
        Err(gap) => return Ok(Err(gap)),
    };
    if first.is_counter || by.is_some() {
        wait(waiting, started + length)?;
        let seconds = started.elapsed().as_secs_f64();
        return Ok(ask().and_then(|last| grown(&series.of.name, (first, by), last, seconds)));
    }
    let mut sum = first.value;
    for look in 1..GAUGE_LOOKS {
        wait(waiting, started + length * look / (GAUGE_LOOKS - 1))?;
        match ask() {
            Ok((now, _)) => sum += now.value,
            Err(gap) => return Ok(Err(gap)),
        }
    }
    Ok(Ok(sum / f64::from(GAUGE_LOOKS)))
}
