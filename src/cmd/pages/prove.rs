//! `marusa pages prove TARGET`: what 2 MiB pages gain on the running program. They are given and undone, period by
//! period, while the processor or the program itself says how fast it is; then the memory is left as it was found.

use super::metric::{Better, Metric, MetricArgs};
use super::target::{self, Areas};
use crate::act::promote::{Block, Change, Done, Pace, Stopped};
use crate::act::signals::{Waiting, Woken};
use crate::base::printable::escaped_lines;
use crate::base::{Bytes, Gap, Refused, Why, redact};
use crate::cmd::{self, Failure, amount, answer};
use crate::experiment::abab::{self, End, Measured, Outcome, Period, World};
use crate::experiment::design::Arm;
use crate::experiment::verdict::Rule;
use crate::os::cpu_time::ProcessTime;
use crate::os::file_mode;
use crate::os::look::look;
use crate::os::machine::base_page;
use crate::os::place::Place;
use crate::os::process::{self, Process};
use crate::os::terminal::stdout;
use crate::show::pages::prove::{self as show, Aftermath, ProveDocument, Subject};

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant};

#[derive(clap::Args, Debug)]
pub struct ProveArgs {
    /// A pid, or a part of the main class, jar or container name
    target: String,
    #[command(flatten)]
    areas: Areas,
    #[command(flatten)]
    metric: MetricArgs,
    /// Length of one measured period
    #[arg(long, value_name = "TIME", value_parser = amount::duration, default_value = "2s")]
    period: Duration,
    /// Time to settle after each change; longer while it faults in again what a split left out, up to 30s
    #[arg(long, value_name = "TIME", value_parser = amount::duration, default_value = "500ms")]
    settle: Duration,
    /// Maximum number of blocks of four periods
    #[arg(long, value_name = "COUNT", default_value_t = Rule::default().blocks_max, value_parser = blocks_max)]
    blocks: usize,
    /// A gain or loss below this is not worth a change
    #[arg(long, value_name = "PERCENT", default_value_t = Rule::default().margin_percent, value_parser = amount::percent)]
    margin: f64,
    /// CPU budget of the page changes, of one CPU
    #[arg(long, value_name = "PERCENT", default_value = "100%", value_parser = target::cpu_share)]
    cpu_budget: f64,
    /// Seed that repeats the order of the arms
    #[arg(long)]
    seed: Option<u64>,
    /// Append each period to this file as it ends, a line of JSON each
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
    /// Show what would be measured on which memory, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Machine-readable, schema marusa/pages-prove/2
    #[arg(long)]
    json: bool,
}

/// The longest wait for a program to fault in what a split left out. It is measured then, but periods count only when that is over.
const SETTLE_MAX: Duration = Duration::from_secs(30);

fn blocks_max(text: &str) -> Result<usize, Refused> {
    text.parse().ok().filter(|count| (2..=1000).contains(count)).ok_or("from 2 to 1000".into())
}

pub fn run(args: &ProveArgs) -> anyhow::Result<u8> {
    let process = cmd::target::open(&args.target)?;
    let chosen = target::choose(&process, &args.areas)?;
    if chosen.bytes() == 0 {
        return Err(Failure::target(format!(
            "pid {} has no block of 2 MiB in {} whose pages can change; `marusa pages collapse {} --dry-run` says why",
            process.pid,
            args.areas.names().join(", "),
            process.pid
        )));
    }
    let (metric, better) = args.metric.open(&process)?;
    let rule = Rule { margin_percent: args.margin, blocks_max: args.blocks, ..Rule::default() };
    let seed = args.seed.unwrap_or_else(|| fastrand::u64(..));
    let subject = Subject {
        pid: process.pid,
        command: redact::command(&process.arguments().unwrap_or_default()),
        measure: metric.name(),
        lower_is_better: better == Better::Lower,
        areas: args.areas.names().iter().map(|name| name.to_string()).collect(),
        bytes: chosen.bytes(),
        blocks: chosen.small.len() + chosen.huge.len(),
        found_huge: chosen.huge.len(),
        design: show::Design {
            confidence_percent: (1.0 - rule.alpha) * 100.0,
            rule,
            looks: rule.looks(),
            period_seconds: args.period.as_secs_f64(),
            settle_seconds: args.settle.as_secs_f64(),
            seed,
        },
    };
    if !args.json {
        show::head(&mut stdout().lock(), &subject)?;
    }
    if args.dry_run {
        let text = |out: &mut dyn Write| writeln!(out, "dry run: nothing was measured or changed");
        answer(args.json, || ProveDocument::dry_run(&subject), text)?;
        return Ok(0);
    }
    Change::Collapse.is_allowed(&process).map_err(target::refused)?;
    let mut live = Live::new(args, &process, metric, chosen.small, chosen.huge)?;
    if !args.json {
        show::table_head(&mut stdout().lock())?;
    }
    let mut coins = fastrand::Rng::with_seed(seed);
    let outcome = abab::run(&mut live, &rule, subject.lower_is_better, || coins.bool());
    let after = live.put_back();
    finish(args, &subject, &outcome, &after)
}

fn finish(args: &ProveArgs, subject: &Subject, outcome: &Outcome, after: &Aftermath) -> anyhow::Result<u8> {
    use crate::experiment::verdict::Verdict;
    let document = || ProveDocument::of(subject, outcome, after);
    answer(args.json, document, |out| show::result(out, subject, outcome, after))?;
    match (&outcome.end, outcome.verdict) {
        (Some(End::TargetGone), verdict) if verdict != Verdict::Gain => Ok(3),
        (_, Verdict::Gain) => Ok(0),
        _ => Ok(1),
    }
}

/// The running program, as the loop sees it.
struct Live<'a> {
    args: &'a ProveArgs,
    process: &'a Process,
    metric: Metric<'a>,
    waiting: Waiting,
    pagemap: File,
    /// All blocks; the ones that were found on small pages come first.
    blocks: Vec<Block>,
    found_small: usize,
    arm: Option<Arm>,
    after: Aftermath,
    save: Option<File>,
    is_gone: bool,
}

impl<'a> Live<'a> {
    fn new(
        args: &'a ProveArgs,
        process: &'a Process,
        metric: Metric<'a>,
        small: Vec<Block>,
        huge: Vec<Block>,
    ) -> anyhow::Result<Live<'a>> {
        let failed = |error| Failure::target(format!("pid {} cannot be watched: {error}", process.pid));
        let waiting = Waiting::on(process).map_err(failed)?;
        let pagemap = process.open_file("pagemap").map_err(failed)?;
        let open = |path: &PathBuf| Place::of(path).and_then(|place| place.open_log(file_mode::wanted()));
        let save = args.save.as_ref().map(open).transpose();
        let save = save.map_err(|error| Failure::usage(format!("--save: {error}")))?;
        let after = Aftermath {
            saved: args.save.as_ref().map(|path| path.display().to_string()),
            ..Default::default()
        };
        let found_small = small.len();
        let blocks = small.into_iter().chain(huge).collect();
        let (arm, is_gone) = (None, false);
        Ok(Live { args, process, metric, waiting, pagemap, blocks, found_small, arm, after, save, is_gone })
    }

    fn change(&mut self, arm: Arm, blocks: &[Block]) -> Result<Done, End> {
        let started = Instant::now();
        let pace = Pace { cpu_share: self.args.cpu_budget, ..self.args.areas.pace() };
        let change = if arm == Arm::Huge { Change::Collapse } else { Change::Split };
        let done = change.make(self.process, blocks, pace, None, &mut ());
        self.after.switches += 1;
        self.after.switch_seconds += started.elapsed().as_secs_f64();
        match done {
            Ok(done) => Ok(done),
            Err(error) if error.is_gone() => Err(self.gone()),
            Err(error) => Err(End::Failed(Gap::new(error.to_string(), Why::Denied))),
        }
    }

    fn gone(&mut self) -> End {
        self.is_gone = true;
        End::TargetGone
    }

    fn woken(&mut self, woken: Woken) -> End {
        match woken {
            Woken::Ended => self.gone(),
            _ => End::Signal,
        }
    }

    /// The blocks' bytes that are on huge pages now, and in memory at all.
    fn pages(&mut self) -> Result<(Bytes, Bytes), End> {
        let (mut huge, mut resident) = (0, 0);
        for block in &self.blocks {
            match look(&self.pagemap, block.range) {
                Ok(now) => {
                    huge += now.huge.unwrap_or(0);
                    resident += now.resident;
                }
                Err(Gap { why: Why::Gone, .. }) => return Err(self.gone()),
                Err(gap) => return Err(End::Failed(gap)),
            }
        }
        Ok((huge, resident))
    }

    fn cpu_ms(&mut self) -> Result<f64, End> {
        ProcessTime::read(self.process.pid).map(|time| time.cpu_ms()).ok_or_else(|| self.gone())
    }

    /// Something that takes time, and the state of the memory before and after it. The value of a measure is the caller's.
    fn watched<T>(&mut self, wait: impl FnOnce(&mut Self) -> Result<T, Woken>) -> Result<(T, Measured), End> {
        let (before, cpu_ms, started) = (self.pages()?, self.cpu_ms()?, Instant::now());
        let result = wait(self).map_err(|woken| self.woken(woken))?;
        let seconds = started.elapsed().as_secs_f64();
        let cpu_seconds = ((self.cpu_ms()? - cpu_ms) / 1e3).max(seconds / 10.0);
        let after = self.pages()?;
        let share = |(huge, resident): (Bytes, Bytes)| huge as f64 / resident.max(1) as f64;
        let (first, last) = (share(before), share(after));
        let huge_share = if self.arm == Some(Arm::Huge) { first.min(last) } else { first.max(last) };
        let faulted_in = after.1.saturating_sub(before.1);
        Ok((result, Measured { huge_share, faulted_in, cpu_seconds, seconds, ..Measured::default() }))
    }

    /// Waits `--settle`, and on small pages until little is faulted in again of what the split left out.
    fn settle(&mut self, arm: Arm) -> Result<(), End> {
        let started = Instant::now();
        loop {
            let (_, seen) = self.watched(|live| live.metric.settle(&live.waiting, live.args.settle))?;
            self.after.faulted_in += if arm == Arm::Small { seen.faulted_in } else { 0 };
            if arm == Arm::Huge || seen.has_settled(self.args.margin) || started.elapsed() > SETTLE_MAX {
                return Ok(());
            }
        }
    }

    /// As it was found: what was huge is huge again, what was small is small.
    fn put_back(mut self) -> Aftermath {
        let (small, huge) = self.blocks.split_at(self.found_small);
        let (small, huge) = (small.to_vec(), huge.to_vec());
        let mut as_found = 0;
        for (arm, blocks) in [(Arm::Small, small), (Arm::Huge, huge)] {
            if blocks.is_empty() || self.is_gone {
                continue;
            }
            match self.change(arm, &blocks) {
                Ok(done) => as_found += blocks.len() - done.not_tried - done.refused.values().sum::<usize>(),
                Err(End::Failed(gap)) => self.after.gaps.push(gap),
                Err(_) => {}
            }
        }
        self.after.as_found = (!self.is_gone).then_some(as_found);
        self.after
    }
}

impl World for Live<'_> {
    fn switch(&mut self, arm: Arm) -> Result<(), End> {
        if self.arm == Some(arm) {
            return Ok(());
        }
        let blocks = self.blocks.clone();
        let done = self.change(arm, &blocks)?;
        match done.stopped {
            Some(Stopped::Signal) => return Err(End::Signal),
            Some(Stopped::TargetEnded) => return Err(self.gone()),
            Some(Stopped::Refused(refusal)) => {
                return Err(End::Failed(Gap::new(refusal.words(), Why::Denied)));
            }
            // Pages that were not had are seen when the period is measured.
            _ => {}
        }
        if arm == Arm::Huge {
            // A split takes shared memory out of the page table until it is used again (docs/pages-collapse.md). What was a
            // huge page of ours once takes no more memory when it is one again.
            let is_ours = |block: &Block| done.reached.iter().any(|range| range.covers(block.range));
            self.blocks
                .iter_mut()
                .filter(|block| is_ours(block))
                .for_each(|block| block.resident_min = base_page());
        }
        self.arm = Some(arm);
        self.settle(arm)
    }

    fn measure(&mut self) -> Result<Measured, End> {
        let (figure, seen) = self.watched(|live| live.metric.period(&live.waiting, live.args.period))?;
        Ok(Measured { value: figure.as_ref().ok().copied(), gap: figure.err(), ..seen })
    }

    fn done(&mut self, period: &Period) {
        if !self.args.json {
            // That it cannot be printed is seen when the result is.
            let _ = show::period(&mut stdout().lock(), period);
        }
        let Some(file) = &mut self.save else { return };
        let line = serde_json::to_string(period).unwrap_or_default();
        if let Err(error) = writeln!(file, "{}", escaped_lines(&line)).and_then(|()| file.sync_data()) {
            self.after.gaps.push(process::gap("--save", &error));
            self.save = None;
        }
    }
}
