//! `marusa tlb TARGET [INTERVAL [COUNT]]`: how much CPU time the threads of a JVM lose in address translation, an interval a
//! table. Where nothing can be counted, the page sizes that its memory is on.

use super::{Failure, amount, answer_one, target};
use crate::act::signals::{Waiting, Woken};
use crate::act::watchdog;
use crate::base::{Bytes, Gap, Known, Why, redact};
use crate::map;
use crate::measure::counters::Counters;
use crate::measure::events::{self, EventSet};
use crate::measure::kinds::Kinds;
use crate::measure::tlb::{self as model, By, Context, Report};
use crate::os::cpu::{self, Cpu};
use crate::os::host;
use crate::os::perf::Mode;
use crate::os::process::Process;
use crate::os::terminal::stdout;
use crate::show::tlb::{self as show, Subject, UncountedDocument};
use crate::snapshot::{self, Want};
use std::collections::BTreeMap;
use std::io;
use std::time::{Duration, Instant, SystemTime};

const STATUS: &str = "\
Exit status: 0 counted; 1 this machine cannot count (no counters of the processor, or an unknown processor); 2 usage; 3 the target \
cannot be read or is gone; 4 a right to count is missing. With 1 and 4 the page sizes of its memory are printed anyway.";

#[derive(clap::Args, Debug)]
#[command(after_help = STATUS)]
pub struct TlbArgs {
    /// A pid, or a part of the main class, jar or container name
    target: String,
    /// Counting time of one table, as 5s, 500ms, 1m; without it one table of 5 s
    #[arg(value_parser = amount::duration)]
    interval: Option<Duration>,
    /// Number of tables; without it until Ctrl-C or the end of the target
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// What the rows are
    #[arg(long, value_enum, default_value_t = By::Kind)]
    by: By,
    /// Counts what needs no counters of the processor (time, faults, switches): to see whether counting works at all
    #[arg(long, hide = true)]
    software: bool,
    /// Machine-readable, schema marusa/tlb/2; one line a table where there are several
    #[arg(long)]
    json: bool,
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
    let process = target::open(&args.target)?;
    let cpu = cpu::read();
    // Before anything is counted: it reads a lot, and the caches are the target's, too.
    let (kinds, mapped) = look(&process);
    let context = Context { mapped, has_hypervisor: cpu.has_hypervisor };
    let uncounted = |gap: Gap| uncounted(args, &process, &cpu, &context.mapped, &gap);
    let set = match if args.software { Ok(events::software()) } else { events::choose(&cpu) } {
        Ok(set) => set,
        Err(gap) => return uncounted(gap),
    };
    let waiting = target::waiting(&process)?;
    watchdog::start();
    let counters = match Counters::open(&process, set.clone(), &[Mode::User, Mode::Kernel]) {
        Ok(counters) => counters,
        Err(gap) => return uncounted(gap),
    };
    let context = context.clone();
    Watch { args, process: &process, cpu: &cpu, set: &set, kinds, context }.run(&waiting, counters)
}

/// Resident bytes by page size.
type Mapped = BTreeMap<u64, Bytes>;

/// What the threads are, and which page sizes the memory is on.
fn look(process: &Process) -> (Kinds, Known<Mapped>) {
    let named = |gap: &Gap| Gap { what: format!("mapped page sizes: {}", gap.what), ..gap.clone() };
    let snapshot = match snapshot::take(process, Want::default()) {
        Ok(snapshot) => snapshot,
        Err(gap) => return (Kinds::default(), Err(named(&gap))),
    };
    let kinds = snapshot.jvm.as_ref().map_or_else(|_| Kinds::default(), |jvm| Kinds::new(&jvm.threads));
    let mapped = snapshot.os.pages.as_ref().map_err(named);
    (kinds, mapped.map(|_| map::join(&snapshot).balance.total.by_page_size))
}

/// Without any right to count, or anything that counts, there is no table: a table of zeros would be a lie. The exit status tells a
/// script: 4, a right is missing; 3, the target is gone; 1, this machine cannot count.
fn uncounted(
    args: &TlbArgs,
    process: &Process,
    cpu: &Cpu,
    mapped: &Known<Mapped>,
    gap: &Gap,
) -> anyhow::Result<u8> {
    let message = format!("misses of the TLB cannot be counted: {gap}");
    let Some(mapped) = mapped.as_ref().ok().filter(|_| gap.why != Why::Gone) else {
        return Err(Failure::unread(gap.why, message));
    };
    let command = redact::command(&process.arguments().unwrap_or_default());
    let kernel = host::kernel_release();
    let subject = Subject { pid: process.pid, command: &command, cpu, kernel: &kernel };
    let document = || UncountedDocument::of(&subject, mapped, gap);
    answer_one(args.json, args.tables() > 1, document, |out| {
        show::head(out, &subject)?;
        show::uncounted(out, mapped, gap, process.pid)
    })?;
    if args.json {
        crate::say!("marusa: {message}");
    }
    Ok(if gap.why == Why::Denied { 4 } else { 1 })
}

struct Watch<'a> {
    args: &'a TlbArgs,
    process: &'a Process,
    cpu: &'a Cpu,
    set: &'a EventSet,
    kinds: Kinds,
    context: Context,
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
            let mut report =
                model::report(&counted, self.set, &slots, &self.kinds, self.args.by, &self.context);
            if counted.is_last {
                report.gaps.push(
                    Gap::new("the rest of the interval", Why::Gone)
                        .hint("the target ended; the table is of what it did"),
                );
            }
            let is_end = counted.is_last || woken == Woken::Signal || shown + 1 == tables;
            self.show(&report, &subject, tables > 1)?;
            if is_end {
                return Ok(0);
            }
        }
        Err(Failure::target(format!("pid {} ended before anything was counted", self.process.pid)))
    }

    fn show(&self, report: &Report, subject: &Subject, is_one_of_many: bool) -> io::Result<()> {
        let at = SystemTime::now();
        let document = || show::TlbDocument::of(report, subject, &self.context, at);
        answer_one(self.args.json, is_one_of_many, document, |out| show::table(out, report, at))
    }
}
