//! `marusa tlb TARGET [INTERVAL [COUNT]]`: how much CPU time the threads of a JVM lose in address translation, an interval a
//! table. `--calibrate` measures what one walk costs on this machine, where the processor does not count that.

use super::{Failure, amount, calibrate, map as map_command};
use crate::act::signals::{Waiting, Woken};
use crate::base::{Bytes, Gap, Known, Why};
use crate::map;
use crate::measure::WalkCosts;
use crate::measure::counters::Counters;
use crate::measure::events::{self, EventSet, Model};
use crate::measure::kinds::Kinds;
use crate::measure::predict::{self, Layout};
use crate::measure::tlb::{self as model, By, Context, Report};
use crate::os::cpu::{self, Cpu};
use crate::os::host;
use crate::os::perf::Mode;
use crate::os::process::Process;
use crate::show::predict as larger_pages;
use crate::show::tlb::{self as show, Subject};
use crate::snapshot::{self, Want};
use std::collections::BTreeMap;
use std::io::{BufWriter, Write, stdout};
use std::time::{Duration, Instant, SystemTime};

#[derive(clap::Args, Debug)]
pub struct TlbArgs {
    /// A pid, or a part of the main class, jar or container name
    #[arg(required_unless_present = "calibrate", conflicts_with = "calibrate")]
    target: Option<String>,
    /// How long one table counts, as 5s, 500ms, 1m; without it one table of 5 s
    #[arg(value_parser = amount::duration)]
    interval: Option<Duration>,
    /// How many tables; without it until Ctrl-C or the end of the target
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// What the rows are
    #[arg(long, value_enum, default_value_t = Rows::Kind)]
    by: Rows,
    /// Counts what needs no counters of the processor (time, faults, switches): to see whether counting works at all
    #[arg(long, hide = true, conflicts_with = "calibrate")]
    software: bool,
    /// Measure what one walk costs on this machine, in memory of our own, and keep it; takes some 10 seconds
    #[arg(long)]
    calibrate: bool,
    /// Bytes of pages that are visited with --calibrate, as 64M; several are given one by one
    #[arg(long, value_name = "SIZE", value_parser = amount::bytes, requires = "calibrate", conflicts_with = "target")]
    footprint: Vec<Bytes>,
    /// Machine-readable, schema marusa/tlb/1; one line a table where there are several
    #[arg(long)]
    json: bool,
}

#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
enum Rows {
    Kind,
    Thread,
}

const INTERVAL: Duration = Duration::from_secs(5);

pub fn run(args: &TlbArgs) -> anyhow::Result<u8> {
    match &args.target {
        Some(target) => watch(target, args),
        None => calibrate::run(&args.footprint, args.json),
    }
}

fn watch(target: &str, args: &TlbArgs) -> anyhow::Result<u8> {
    let process = map_command::open(target)?;
    let cpu = cpu::read();
    // Before anything is counted: it reads a lot, and the caches are the target's, too.
    let Look { kinds, mapped, layout } = look(&process);
    let set = match args.software {
        true => events::software(),
        false => events::choose(&cpu).map_err(|gap| refused(args, &layout, gap))?,
    };
    let context = Context { costs: walk_costs(&set, &mapped), mapped, has_hypervisor: cpu.has_hypervisor };
    let waiting = Waiting::on(&process)
        .map_err(|error| Failure::target(format!("pid {} can not be watched: {error}", process.pid)))?;
    let counters = Counters::open(&process, set.clone(), &[Mode::User, Mode::Kernel])
        .map_err(|gap| refused(args, &layout, gap))?;
    Watch { args, process: &process, cpu: &cpu, set: &set, kinds, context, layout }.run(&waiting, counters)
}

/// Without any right to count, or anything that counts, there is no table: a table of zeros would be a lie. What larger pages
/// would take in memory is known all the same, and is said before.
fn refused(args: &TlbArgs, layout: &Known<Layout>, gap: Gap) -> anyhow::Error {
    let message = format!("misses of the TLB can not be counted: {gap}");
    let why = gap.why;
    if let Ok(layout) = layout {
        let predictions = predict::predict(layout, &Err(gap.clone()), &calibrate::cached());
        let mut out = stdout().lock();
        // That it can not be printed is nothing beside what is told next.
        let _ = match args.json {
            false => larger_pages::text(&mut out, &predictions),
            true => writeln!(out, "{:#}", larger_pages::alone(&predictions, &gap)),
        };
    }
    if why == Why::Denied { Failure::rights(message) } else { Failure::target(message) }
}

/// What one look at the target gives.
struct Look {
    kinds: Kinds,
    /// Resident bytes by page size.
    mapped: Known<BTreeMap<u64, Bytes>>,
    layout: Known<Layout>,
}

fn look(process: &Process) -> Look {
    let named = |gap: &Gap| Gap { what: format!("mapped page sizes: {}", gap.what), ..gap.clone() };
    let snapshot = match snapshot::take(process, Want::default()) {
        Ok(snapshot) => snapshot,
        Err(gap) => return Look { kinds: Kinds::default(), mapped: Err(named(&gap)), layout: Err(gap) },
    };
    let kinds = snapshot.jvm.as_ref().map_or_else(|_| Kinds::default(), |jvm| Kinds::new(&jvm.threads));
    let map = map::join(&snapshot);
    let layout = Ok(predict::layout(&snapshot, &map));
    let mapped = snapshot.os.pages.as_ref().map(|_| map.balance.total.by_page_size).map_err(named);
    Look { kinds, mapped, layout }
}

/// For a footprint as large as what is resident.
fn walk_costs(set: &EventSet, mapped: &Known<BTreeMap<u64, Bytes>>) -> Known<WalkCosts> {
    if set.model != Model::Calibrated {
        return Err(
            Gap::new("cost of a walk", Why::NotRead).hint("not needed: this processor counts the time")
        );
    }
    let resident =
        mapped.as_ref().ok().map(|sizes| sizes.values().fold(0, |sum: u64, next| sum.saturating_add(*next)));
    Ok(calibrate::cached()?.walk_costs(resident))
}

struct Watch<'a> {
    args: &'a TlbArgs,
    process: &'a Process,
    cpu: &'a Cpu,
    set: &'a EventSet,
    kinds: Kinds,
    context: Context,
    layout: Known<Layout>,
}

impl Watch<'_> {
    fn run(&self, waiting: &Waiting, mut counters: Counters) -> anyhow::Result<u8> {
        let interval = self.args.interval.unwrap_or(INTERVAL);
        let tables = match (self.args.interval, self.args.count) {
            (None, _) => 1,
            (_, None) => u64::MAX,
            (_, Some(count)) => count,
        };
        let command = self.process.arguments().unwrap_or_default().join(" ");
        let kernel = host::kernel_release();
        let subject = Subject { pid: self.process.pid, command: &command, cpu: self.cpu, kernel: &kernel };
        if !self.args.json {
            show::head(&mut stdout().lock(), &subject)?;
        }
        let mut deadline = Instant::now();
        for shown in 0..tables {
            deadline = (deadline + interval).max(Instant::now());
            let woken = waiting.until(deadline);
            let slots = counters.slots().to_vec();
            let counted = counters.turn();
            if counted.is_last && shown == 0 && counted.threads.is_empty() {
                break;
            }
            let by = if self.args.by == Rows::Thread { By::Thread } else { By::Kind };
            let mut report = model::report(&counted, self.set, &slots, &self.kinds, by, &self.context);
            if counted.is_last {
                report.gaps.push(
                    Gap::new("the rest of the interval", Why::Gone)
                        .hint("the target ended; the table is of what it did"),
                );
            }
            let is_end = counted.is_last || woken == Woken::Signal || shown + 1 == tables;
            self.show(&report, &subject, tables > 1, is_end)?;
            if is_end {
                return Ok(0);
            }
        }
        Err(Failure::target(format!("pid {} ended before anything was counted", self.process.pid)))
    }

    /// With the last table, what larger pages would give; in JSON with each.
    fn show(
        &self,
        report: &Report,
        subject: &Subject,
        is_one_of_many: bool,
        is_end: bool,
    ) -> anyhow::Result<()> {
        let predictions = self
            .layout
            .as_ref()
            .map(|layout| predict::predict(layout, &Ok(predict::counted(report)), &calibrate::cached()));
        let mut out = BufWriter::new(stdout().lock());
        let at = SystemTime::now();
        if self.args.json {
            let mut json = show::json(report, subject, &self.context, at);
            json["larger_pages"] = predictions.ok().map(|all| larger_pages::json(&all)).into();
            match is_one_of_many {
                true => serde_json::to_writer(&mut out, &json)?,
                false => serde_json::to_writer_pretty(&mut out, &json)?,
            }
            writeln!(out)?;
        } else {
            show::table(&mut out, report, at)?;
            if let (true, Ok(predictions)) = (is_end, predictions) {
                writeln!(out)?;
                larger_pages::text(&mut out, &predictions)?;
            }
        }
        out.flush()?;
        Ok(())
    }
}
