//! `marusa tlb TARGET [INTERVAL [COUNT]]`: how much CPU time the threads of a JVM lose in address translation, an interval a
//! table. `--calibrate` measures what one walk costs on this machine, where the processor does not count that.

use super::predicted::{Look, look, walk_costs};
use super::{Failure, amount, calibrate, target};
use crate::act::signals::{Waiting, Woken};
use crate::act::watchdog;
use crate::base::redact;
use crate::base::{Bytes, Gap, Known, Why};
use crate::measure::counters::Counters;
use crate::measure::events::{self, EventSet};
use crate::measure::kinds::Kinds;
use crate::measure::predict::{self, Layout};
use crate::measure::tlb::{self as model, By, Context, Report};
use crate::os::cpu::{self, Cpu};
use crate::os::host;
use crate::os::perf::Mode;
use crate::os::process::Process;
use crate::os::terminal::stdout;
use crate::show::json::{print, print_line};
use crate::show::predict as larger_pages;
use crate::show::tlb::{self as show, Subject};
use std::io::{BufWriter, Write};
use std::time::{Duration, Instant, SystemTime};

const STATUS: &str = "\
Exit status: 0 counted, or calibrated; 1 this machine cannot count (no counters of the processor, or an unknown processor), or \
nothing could be calibrated; 2 usage; 3 the target cannot be read or is gone; 4 a right to count is missing. With 1 and 4 what \
larger pages would take in memory is printed anyway.";

#[derive(clap::Args, Debug)]
#[command(after_help = STATUS)]
pub struct TlbArgs {
    /// A pid, or a part of the main class, jar or container name
    #[arg(required_unless_present = "calibrate", conflicts_with = "calibrate")]
    target: Option<String>,
    /// Counting time of one table, as 5s, 500ms, 1m; without it one table of 5 s
    #[arg(value_parser = amount::duration)]
    interval: Option<Duration>,
    /// Number of tables; without it until Ctrl-C or the end of the target
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// What the rows are
    #[arg(long, value_enum, default_value_t = Rows::Kind)]
    by: Rows,
    /// Counts what needs no counters of the processor (time, faults, switches): to see whether counting works at all
    #[arg(long, hide = true, conflicts_with = "calibrate")]
    software: bool,
    /// Measure the cost of one walk on this machine, in memory of our own, and save it; takes some 10 seconds
    #[arg(long)]
    calibrate: bool,
    /// Bytes of pages that are visited with --calibrate, from 16M to 16G; several as --footprint 64M 256M
    #[arg(
        long,
        value_name = "SIZE",
        value_parser = amount::bytes,
        num_args = 1..,
        value_delimiter = ',',
        requires = "calibrate",
        conflicts_with = "target"
    )]
    footprint: Vec<Bytes>,
    /// Machine-readable, schema marusa/tlb/2; one line a table where there are several
    #[arg(long)]
    json: bool,
}

#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
enum Rows {
    Kind,
    Thread,
}

const INTERVAL: Duration = Duration::from_secs(5);

impl TlbArgs {
    /// How many are asked for.
    fn tables(&self) -> u64 {
        match (self.interval, self.count) {
            (None, _) => 1,
            (_, None) => u64::MAX,
            (_, Some(count)) => count,
        }
    }
}

pub fn run(args: &TlbArgs) -> anyhow::Result<u8> {
    match &args.target {
        Some(target) => watch(target, args),
        None => calibrate::run(&args.footprint, args.json),
    }
}

fn watch(target: &str, args: &TlbArgs) -> anyhow::Result<u8> {
    let process = target::open(target)?;
    let cpu = cpu::read();
    // Before anything is counted: it reads a lot, and the caches are the target's, too.
    let Look { kinds, mapped, layout } = look(&process);
    let uncounted = |gap: Gap| uncounted(args, &process, &cpu, &layout, &gap);
    let set = match if args.software { Ok(events::software()) } else { events::choose(&cpu) } {
        Ok(set) => set,
        Err(gap) => return uncounted(gap),
    };
    let context = Context { costs: walk_costs(&set, &mapped), mapped, has_hypervisor: cpu.has_hypervisor };
    let waiting = Waiting::on(&process)
        .map_err(|error| Failure::target(format!("pid {} cannot be watched: {error}", process.pid)))?;
    watchdog::start();
    let counters = match Counters::open(&process, set.clone(), &[Mode::User, Mode::Kernel]) {
        Ok(counters) => counters,
        Err(gap) => return uncounted(gap),
    };
    Watch { args, process: &process, cpu: &cpu, set: &set, kinds, context, layout }.run(&waiting, counters)
}

/// Without any right to count, or anything that counts, there is no table: a table of zeros would be a lie. What larger pages
/// would take in memory is known anyway, and is reported. The exit status tells a script: 4, a right is missing; 3, the target is
/// gone; 1, this machine cannot count.
fn uncounted(
    args: &TlbArgs,
    process: &Process,
    cpu: &Cpu,
    layout: &Known<Layout>,
    gap: &Gap,
) -> anyhow::Result<u8> {
    let message = format!("misses of the TLB cannot be counted: {gap}");
    let Some(layout) = layout.as_ref().ok().filter(|_| gap.why != Why::Gone) else {
        return Err(if gap.why == Why::Denied { Failure::rights(message) } else { Failure::target(message) });
    };
    let predictions = predict::predict(layout, &Err(gap.clone()), &calibrate::cached());
    let mut out = BufWriter::new(stdout().lock());
    if args.json {
        let json = larger_pages::alone(&predictions, gap);
        match args.tables() {
            1 => print(&mut out, &json)?,
            _ => print_line(&mut out, &json)?,
        }
        crate::say!("marusa: {message}");
    } else {
        let command = redact::command(&process.arguments().unwrap_or_default());
        let kernel = host::kernel_release();
        show::head(&mut out, &Subject { pid: process.pid, command: &command, cpu, kernel: &kernel })?;
        writeln!(out)?;
        larger_pages::alone_text(&mut out, &predictions, gap)?;
    }
    out.flush()?;
    Ok(if gap.why == Why::Denied { 4 } else { 1 })
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
        let tables = self.args.tables();
        let command = redact::command(&self.process.arguments().unwrap_or_default());
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
            let mut json = show::TlbDocument::of(report, subject, &self.context, at);
            json.larger_pages = predictions.as_ref().ok().map(|all| larger_pages::json(all));
            match is_one_of_many {
                true => print_line(&mut out, &json)?,
                false => print(&mut out, &json)?,
            }
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
