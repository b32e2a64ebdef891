//! One run of one arm: the host is made ready and restored, the program runs once and is looked at, and what came of it is a record
//! with its figures, or with why it does not count.

use super::gc::GcLog;
use super::load;
use super::metric::{self, Pages};
use super::ready::{Ready, tool_options};
use super::store::Store;
use super::translation::Translation;
use crate::act::signals;
use crate::act::trial::{self, Ended, Running, Start, Stop, Turn};
use crate::base::printable::escaped;
use crate::base::{Gap, Known, Why, rfc3339};
use crate::cmd::Failure;
use crate::experiment::arm_pages::{self, PageMode, Pool};
use crate::experiment::http_load::Load;
use crate::experiment::metrics::Spec;
use crate::experiment::trial_record::{self as record, Trial};
use crate::experiment::trial_watch::{Watch, Watched};
use crate::os::process::Process;
use anyhow::Context;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// What holds for every run.
pub struct Setup<'a> {
    pub command: &'a [String],
    pub pool: Pool,
    /// Where the journals of changes of the host are.
    pub state: PathBuf,
    pub limit: Duration,
    pub metrics: &'a [Spec],
    pub load: Option<&'a Load>,
}

pub enum Done {
    Trial(Box<Trial>),
    /// Marusa was interrupted; the run does not count, and the host is as it was.
    Interrupted,
}

/// The place of this run in the comparison.
#[derive(Clone, Copy)]
pub struct Place<'a> {
    pub number: usize,
    pub block: usize,
    pub arm: &'a Ready,
    /// Release of the arm's JVM, as far as it is known.
    pub feature: Option<u32>,
}

pub fn run(setup: &Setup, store: &Store, place: Place) -> anyhow::Result<(Done, Option<u32>)> {
    let name = &place.arm.arm.name;
    let mut trial = Trial::new(place.number, place.block, name, rfc3339(SystemTime::now()));
    let made =
        place.arm.steps_now(setup.pool).and_then(|steps| arm_pages::prepare(steps, &setup.state, name));
    let prepared = match made {
        Ok(prepared) => prepared,
        Err(_) if signals::pending() => return Ok((Done::Interrupted, None)),
        Err(error) => {
            trial.leave_out(format!("the pages are not available: {error}"));
            return Ok((Done::Trial(Box::new(trial)), None));
        }
    };
    let measured = measure(setup, store, place, &mut trial);
    prepared.undo().context("the host could not be restored")?;
    let (stop, feature) = measured?;
    match stop {
        Some(Stop::Signal) => Ok((Done::Interrupted, feature)),
        _ => Ok((Done::Trial(Box::new(trial)), feature)),
    }
}

fn measure(
    setup: &Setup,
    store: &Store,
    place: Place,
    trial: &mut Trial,
) -> anyhow::Result<(Option<Stop>, Option<u32>)> {
    let Place { number, arm, feature, .. } = place;
    let path = |kind: &str| store.output(number, &arm.arm.name, kind);
    let (out, err) = (path("out"), path("err"));
    let gc = GcLog::new(arm, feature, path("gc.log"));
    let launch = arm.arm.launch(setup.command, &tool_options(), &gc.options);
    let start = Start {
        environment: launch.environment,
        ..Start::new(launch.command, out.clone(), err.clone(), setup.limit)
    };
    trial.output = out.strip_prefix(&store.directory).ok().map(|path| path.display().to_string());
    let started = SystemTime::now();
    let mut running = match trial::start(&start) {
        Ok(running) => running,
        Err(error) if error.is_full() => return Err(Failure::target(error.to_string())),
        Err(error) => {
            trial.leave_out(error.to_string());
            return Ok((None, None));
        }
    };
    let mut eyes = Eyes { watch: Watch::new(arm.mode), pages: Pages::new(setup.metrics) };
    let translation = eyes.follow(&mut running, setup.load.map(|load| (load, path("load"))), trial);
    let ended = running.end();
    let seen = eyes.watch.seen;
    let feature = seen.feature;
    let stop = ended.stop;
    judge(&ended, setup.load.is_some(), &err, trial);
    figures(&ended, &seen, translation, setup.load.is_some(), trial);
    gc.take(trial);
    pages(arm.mode, seen, trial);
    metric::take(setup.metrics, &eyes.pages, &out, &err, started, trial);
    trial.ended = Some(ended);
    Ok((Some(stop), feature))
}

/// All that looks at a run.
struct Eyes<'a> {
    watch: Watch,
    pages: Pages<'a>,
}

impl Eyes<'_> {
    fn look(&mut self, running: &mut Running) {
        self.watch.look(running);
        self.pages.look();
    }

    /// Until the program ends, or until its load is done.
    fn follow(
        &mut self,
        running: &mut Running,
        load: Option<(&Load, PathBuf)>,
        trial: &mut Trial,
    ) -> Known<f64> {
        let none = || Gap::new("time in address translation", Why::NotMeasured);
        while self.watch.jvm().is_none() {
            if running.until(self.watch.next()) != Turn::Time {
                return Err(none().hint("no JVM was seen before the program ended"));
            }
            self.look(running);
        }
        let jvm = self.watch.jvm().and_then(|jvm| Process::open(jvm.pid).ok());
        let Some(jvm) = jvm else { return Err(none().hint("the JVM ended at once")) };
        let translation = Translation::open(&jvm);
        match load {
            Some((load, output)) => {
                let served = load::run(load, running, &output, |running| {
                    self.look(running);
                    self.watch.next()
                });
                match served {
                    Ok(served) => load::figures(&served, trial),
                    Err(error) => trial.leave_out(format!("{error:#}")),
                }
            }
            None => {
                while running.until(self.watch.next()) == Turn::Time {
                    self.look(running);
                }
            }
        }
        translation?.percent()
    }
}

fn judge(ended: &Ended, is_under_load: bool, errors: &Path, trial: &mut Trial) {
    let was_asked = is_under_load && ended.stop == Stop::Asked;
    if !ended.is_good() && !was_asked {
        let said = last_line(&metric::text(errors));
        let said = said.map(|line| format!("; its last output: {line}")).unwrap_or_default();
        trial.leave_out(format!("{}{said}", ended.words()));
    }
    if !ended.left.is_empty() {
        let names: Vec<String> =
            ended.left.iter().map(|left| format!("{} (pid {})", left.name, left.pid)).collect();
        let names = names.join(", ");
        trial.notes.push(format!("it left running, and we ended: {names}"));
        if !was_asked {
            trial.leave_out(
                "what it started lived on after it, so its figures are not whole; run it in the foreground",
            );
        }
    }
}

/// The last line that says something; a JVM's last words are always the same.
fn last_line(text: &str) -> Option<String> {
    const ALWAYS: [&str; 3] =
        ["Error: Could not create", "Error: A fatal exception", "Picked up JAVA_TOOL_OPTIONS"];
    let says = |line: &&str| !line.trim().is_empty() && !ALWAYS.iter().any(|start| line.starts_with(start));
    let line = text.lines().rev().find(says)?.trim();
    Some(escaped(&line.chars().take(200).collect::<String>()).into_owned())
}

fn figures(ended: &Ended, seen: &Watched, translation: Known<f64>, is_under_load: bool, trial: &mut Trial) {
    let peak = seen.peak_resident_bytes.unwrap_or(0).max(ended.usage.peak_resident_bytes);
    let mut rows = vec![
        (record::CPU, ended.usage.user_seconds + ended.usage.system_seconds),
        (record::USER, ended.usage.user_seconds),
        (record::SYSTEM, ended.usage.system_seconds),
        (record::MINOR_FAULTS, ended.usage.minor_faults as f64),
        (record::MAJOR_FAULTS, ended.usage.major_faults as f64),
        (record::PEAK_RESIDENT, peak as f64),
    ];
    // How long a server was asked says nothing of it.
    if !is_under_load {
        rows.push((record::WALL, ended.wall_seconds));
    }
    rows.into_iter().for_each(|(key, value)| {
        trial.figures.insert(key.to_string(), value);
    });
    match translation {
        Ok(percent) => {
            trial.figures.insert(record::TRANSLATION.to_string(), percent);
        }
        Err(gap) => trial.gaps.push(gap),
    }
}

fn pages(mode: PageMode, seen: Watched, trial: &mut Trial) {
    if mode != PageMode::AsIs {
        match &seen.pages {
            Some(pages) if pages.met => {}
            Some(pages) => {
                trial.leave_out(pages.why.clone().unwrap_or_else(|| format!("not on {mode} pages")))
            }
            None => {
                let why = seen.gap.as_ref().map_or("it ended too soon".to_string(), Gap::to_string);
                trial.leave_out(format!("on which pages its heap lay could not be seen: {why}"));
            }
        }
    }
    if seen.end.is_none() {
        let gap = seen.gap.unwrap_or_else(|| {
            Gap::new("account of the run", Why::NotMeasured)
                .hint("it ended before one was taken, or no JVM was seen")
        });
        trial.gaps.push(gap);
    }
    (trial.heap_pages, trial.account_end, trial.account_peak) = (seen.pages, seen.end, seen.peak);
}
