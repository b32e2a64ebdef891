//! The user's own figures of one run (`--metric`): what the program printed, what JMH wrote, what its page of metrics said
//! while it ran.

use crate::base::{Gap, Known, Why};
use crate::experiment::metrics::series::{self, Series};
use crate::experiment::metrics::{Better, Source, Spec, jmh, lines};
use crate::experiment::trial_record::{Figure, Trial};
use crate::experiment::warm_up;
use crate::os::{http, input_file};
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

/// More is not read of an output.
const OUTPUT_BYTES_MAX: u64 = 256 << 20;
/// Between two readings of a page of metrics.
const PAGE_EVERY: Duration = Duration::from_secs(1);

/// How long is waited for one: nothing else is looked at in the meantime.
const ANSWER_MAX: Duration = Duration::from_secs(2);

/// The pages that are looked at while the program runs.
pub struct Pages<'a> {
    pages: Vec<(&'a Spec, &'a str, &'a Series, series::Watch)>,
    started: Instant,
    next: Instant,
}

impl<'a> Pages<'a> {
    pub fn new(specs: &'a [Spec]) -> Pages<'a> {
        let page = |spec: &'a Spec| match &spec.source {
            Source::Prometheus { url, series } => {
                Some((spec, url.as_str(), series, series::Watch::new(series)))
            }
            _ => None,
        };
        let now = Instant::now();
        Pages { pages: specs.iter().filter_map(page).collect(), started: now, next: now }
    }

    /// A page that does not answer yet, or no more, is asked again.
    pub fn look(&mut self) {
        if self.pages.is_empty() || Instant::now() < self.next {
            return;
        }
        // Series of one page are of one moment.
        let mut answers: Vec<(&str, f64, Known<String>)> = Vec::new();
        for (_, url, series, watch) in &mut self.pages {
            if !answers.iter().any(|(known, ..)| known == url) {
                let answer = http::get_within(url, ANSWER_MAX);
                answers.push((url, self.started.elapsed().as_secs_f64(), answer));
            }
            let Some((_, at, Ok(page))) = answers.iter().find(|(known, ..)| known == url) else { continue };
            if let Ok(sums) = series.sums(page) {
                watch.take(*at, sums);
            }
        }
        self.next = Instant::now() + PAGE_EVERY;
    }

    fn value(&self, spec: &Spec, trial: &mut Trial) -> Known<f64> {
        let page = self.pages.iter().find(|(other, ..)| std::ptr::eq(*other, spec));
        let Some((_, url, _, watch)) = page else { return Err(Gap::new("a page of metrics", Why::NotRead)) };
        let unanswered =
            || Gap::new(*url, Why::NotMeasured).hint("it did not answer twice while the program ran");
        let whole = watch.since(0.0).map_err(|_| unanswered())?;
        let lower = spec.better.is_some_and(Better::is_lower);
        Ok(steady(&watch.series(), lower, trial).unwrap_or(whole))
    }
}

/// All figures of a run that has ended; one that is missing leaves the run out.
pub fn take(specs: &[Spec], pages: &Pages, out: &Path, err: &Path, started: SystemTime, trial: &mut Trial) {
    for spec in specs {
        let name = spec.name.clone().unwrap_or_default();
        let lower = spec.better.is_some_and(Better::is_lower);
        let value = match &spec.source {
            Source::Output { pattern, all } => {
                let text = text(out) + &text(err);
                match all {
                    false => lines::last(&text, pattern),
                    true => lines::all(&text, pattern).map(|values| {
                        let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
                        steady(&values, lower, trial).unwrap_or(mean)
                    }),
                }
            }
            Source::Prometheus { .. } => pages.value(spec, trial),
            Source::Jmh { file } => {
                if let Err(gap) = of_jmh(file, started, trial) {
                    trial.leave_out(gap.to_string());
                }
                continue;
            }
        };
        match value {
            Ok(value) => trial.own_figure(Figure::own(&name, spec.unit.as_deref(), lower), value),
            Err(gap) => trial.leave_out(format!("metric {name}: {gap}")),
        }
    }
}

/// The mean of the steady state of figures over time; `None`: there are too few, or none was reached, which is noted.
fn steady(values: &[f64], lower_is_better: bool, trial: &mut Trial) -> Option<f64> {
    let found = warm_up::find(values, lower_is_better).ok()?;
    let mean = found.mean(values);
    match found.steady_from {
        Some(from) if from > 0 => {
            trial.notes.push(format!("warm-up: the first {from} of {} figures", values.len()))
        }
        Some(_) => {}
        None => trial.notes.push(format!("no steady state: {}; all figures count", found.shape.words())),
    }
    mean
}

fn of_jmh(file: &Path, started: SystemTime, trial: &mut Trial) -> Known<()> {
    let gap = |hint: String| Gap::new(format!("JMH's {}", file.display()), Why::NotMeasured).hint(hint);
    let facts = std::fs::metadata(file).map_err(|error| gap(error.to_string()))?;
    // Of an earlier run: a clock of files may lag a little behind.
    if facts.modified().is_ok_and(|at| at + Duration::from_secs(2) < started) {
        return Err(gap("this run has not written it; JMH needs -rf json -rff FILE".to_string()));
    }
    for found in jmh::parse(&text(file))? {
        let figure = Figure::own(&found.name, found.unit.as_deref(), found.better.is_lower());
        trial.own_figure(figure, found.value);
    }
    Ok(())
}

pub fn text(path: &Path) -> String {
    let bytes = input_file::start(path, OUTPUT_BYTES_MAX).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}
