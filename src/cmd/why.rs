//! `marusa why TARGET [30s]`: what fills the memory of a JVM. A few samples, each an account; what is read of the Java heap is only
//! read where native memory grows or is large, and once where the heap is large.

use super::deadline::DeadlineArgs;
use super::record::file;
use super::{amount, answer, progress, target};
use crate::base::limits::TARGET_ALONE;
use crate::base::printable::escaped;
use crate::base::{Bytes, Gap, Known, Refused, Why, human, refuse};
use crate::doctor::{self, Facts, HostFacts, JvmFacts};
use crate::jvm::ClassObjects;
use crate::jvm::hotspot::histogram::HeapWant;
use crate::ledger::{self, Item};
use crate::map::Area;
use crate::map::heap::HeapObjects;
use crate::os::group::Group;
use crate::os::process::Process;
use crate::os::{budget, group_memory};
use crate::show::why as show;
use crate::snapshot::{self, LoaderDetail, Snapshot, Want};
use crate::why::{self, Answer, Details, Look, Seen};
use indicatif::ProgressBar;
use std::path::Path;
use std::time::{Duration, Instant};

/// Samples after the first, at equal intervals.
const INTERVALS: u32 = 4;
/// The resident bytes are read this often, and a sample is taken when they jumped by this much since the last sample.
const POLL: Duration = Duration::from_millis(200);
const JUMP_BYTES: Bytes = 24 << 20;
const EXTRA_LOOKS_MAX: usize = 6;
/// Reading the holders takes a second for 2 GB of heap: of a larger one they are read at the end alone.
const EARLY_HEAP_BYTES_MAX: Bytes = 1 << 30;
/// As long as a sample may be waited for: an hour of five samples says what `record` says better.
const TIME_MAX: Duration = Duration::from_secs(24 * 3600);

#[derive(clap::Args, Debug)]
pub struct WhyArgs {
    /// A pid, or a part of the main class, jar or container name
    target: String,
    /// How long it is watched: 30s, 5m; 0s for one sample, which shows what is large but not what grows
    #[arg(value_name = "TIME", value_parser = time, default_value = "30s")]
    time: Duration,
    /// Exit with 1 on answers of this level or worse
    #[arg(long, value_enum, value_name = "LEVEL")]
    fail_on: Option<doctor::Level>,
    /// Machine-readable, schema marusa/why/1
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    deadline: DeadlineArgs,
}

fn time(text: &str) -> Result<Duration, Refused> {
    let time = amount::duration_or_none(text)?;
    if time > TIME_MAX {
        refuse!("it must be a day at most; `marusa record` watches longer");
    } else {
        Ok(time)
    }
}

pub fn run(args: &WhyArgs) -> anyhow::Result<u8> {
    args.deadline.set(TARGET_ALONE);
    if file::is_one(Path::new(&args.target)) {
        refuse!(
            "cannot watch {}: it is a recording; `marusa leak {}` says what grows in it",
            args.target,
            args.target
        );
    }
    let process = target::open(&args.target)?;
    let mut watch = Watch::start(&process)?;
    watch.over(args.time);
    let jvm = JvmFacts::of(process.pid, watch.snapshot, Some(&process));
    let facts = Facts { host: HostFacts::default(), jvms: vec![jvm] };
    let findings = doctor::examine(&facts, &[]);
    let seen =
        Seen { looks: &watch.looks, jvm: facts.jvms.first(), findings: &findings, classes: &watch.classes };
    let mut answers = why::answers(&seen);
    name_files(&process, &mut answers);
    let name = snapshot::discover::one(process.pid).and_then(|jvm| jvm.name().map(str::to_string));
    let shown = show::Shown {
        name,
        looks: &watch.looks,
        answers: &answers,
        seconds: watch.started.elapsed().as_secs_f64().min(args.time.as_secs_f64()),
        read_ms: watch.read.as_secs_f64() * 1e3,
        ended: watch.ended.as_ref(),
        findings_gaps: &facts.jvms[0].gaps,
    };
    answer(args.json, || show::WhyDocument::of(&shown), |out| show::text(out, &shown))?;
    let is_bad = |level: doctor::Level| args.fail_on.is_some_and(|least| level >= least);
    Ok(u8::from(answers.iter().any(|answer| is_bad(answer.level))))
}

/// The readings of one process.
struct Watch<'a> {
    process: &'a Process,
    started: Instant,
    looks: Vec<Look>,
    /// The snapshot of the last sample.
    snapshot: Snapshot,
    resident: Bytes,
    /// What reading took.
    read: Duration,
    /// The classes of the Java heap, where it is full.
    classes: Vec<ClassObjects>,
    /// Why there was no other sample.
    ended: Option<Gap>,
}

impl Watch<'_> {
    fn start(process: &Process) -> anyhow::Result<Watch<'_>> {
        let started = Instant::now();
        let snapshot = take(process, Details::default()).map_err(|gap| target::unreadable(process, &gap))?;
        let looks = vec![look_of(process, 0.0, &snapshot)];
        let resident = resident(process).unwrap_or(0);
        let read = started.elapsed();
        Ok(Watch { process, started, looks, snapshot, resident, read, classes: Vec::new(), ended: None })
    }

    fn over(&mut self, time: Duration) {
        let bar = ProgressBar::with_draw_target(Some(time.as_secs()), progress::target());
        let intervals = if time.is_zero() { 0 } else { INTERVALS };
        for interval in 1..=intervals {
            self.wait(time * interval / intervals, &bar);
            let is_last = interval == intervals;
            // What has grown until now is read with its owners at once.
            let wanted = if is_last { why::details(&self.looks, true) } else { Details::default() };
            self.look(wanted, false);
            if interval == 1 && self.heap_bytes() <= EARLY_HEAP_BYTES_MAX {
                let early = why::details(&self.looks, false);
                self.again(early);
            }
        }
        let wanted = why::details(&self.looks, true);
        let is_read = self.looks.last().is_some_and(|look| {
            (look.account.holders.is_some() || !wanted.holders)
                && (look.account.buffers.is_some() || !wanted.buffers)
        });
        if !is_read {
            self.again(wanted);
        }
        self.read_classes();
        bar.finish_and_clear();
    }

    fn read_classes(&mut self) {
        if !why::is_heap_full(&self.looks) || self.ended.is_some() {
            return;
        }
        let began = Instant::now();
        let heap = Some(HeapWant { duplicates: false, values: false });
        let want = Want { heap, is_shallow: true, ..Want::default() };
        let snapshot = snapshot::take_once(self.process, want);
        self.classes = snapshot.map_or(Vec::new(), |snapshot| HeapObjects::of(&snapshot, Some(1)).classes);
        self.read += began.elapsed();
    }

    fn heap_bytes(&self) -> Bytes {
        self.looks.last().map_or(0, |look| look.account.resident_bytes_of(Area::JavaHeap))
    }

    /// Until `due`, with a sample whenever the process has grown at once.
    fn wait(&mut self, due: Duration, bar: &ProgressBar) {
        while let Some(rest) = due.checked_sub(self.started.elapsed()).filter(|rest| !rest.is_zero()) {
            std::thread::sleep(rest.min(POLL));
            bar.set_position(self.started.elapsed().as_secs());
            if self.ended.is_some() {
                return;
            }
            let Some(now) = resident(self.process) else {
                self.ended = Some(Gap::new("later samples", Why::Gone));
                return;
            };
            let extra = self.looks.iter().filter(|look| look.is_extra).count();
            if now >= self.resident.saturating_add(JUMP_BYTES) && extra < EXTRA_LOOKS_MAX {
                self.look(Details::default(), true);
            }
        }
    }

    /// In the place of the last sample, where anything is wanted.
    fn again(&mut self, wanted: Details) {
        if wanted != Details::default() && self.ended.is_none() {
            let plain = self.looks.pop();
            let count = self.looks.len();
            self.look(wanted, false);
            if self.looks.len() == count {
                self.looks.extend(plain);
            }
        }
    }

    fn look(&mut self, wanted: Details, is_extra: bool) {
        if self.ended.is_some() {
            return;
        }
        let began = Instant::now();
        match take(self.process, wanted) {
            Ok(snapshot) => {
                let seconds = self.started.elapsed().as_secs_f64();
                self.looks.push(Look { is_extra, ..look_of(self.process, seconds, &snapshot) });
                self.snapshot = snapshot;
                self.resident = resident(self.process).unwrap_or(self.resident);
            }
            Err(gap) => self.ended = Some(gap),
        }
        self.read += began.elapsed();
    }
}

/// Names the largest file or mount that fills the cgroup, by its ledger.
fn name_files(process: &Process, answers: &mut [Answer]) {
    let is_groups =
        |answer: &Answer| answer.next.as_ref().is_some_and(|next| next.starts_with("marusa container"));
    if !answers.iter().any(is_groups) {
        return;
    }
    let want = ledger::Want { areas: false, ..ledger::Want::default() };
    let read = || ledger::read(&Group::of(process)?, want);
    let Ok(ledger) = budget::within(budget::limits(), read) else { return };
    for answer in answers.iter_mut().filter(|answer| is_groups(answer)) {
        let items: &[Item] = match answer.what.as_str() {
            what if what.contains("tmpfs") => &[Item::Tmpfs, Item::SharedMemory],
            what if what.contains("page cache") => &[Item::PageCache],
            what if what.contains("socket") => &[Item::Sockets],
            _ => continue,
        };
        let rows = ledger.rows.iter().filter(|row| items.contains(&row.item) && row.name.is_some());
        if let Some(row) = rows.max_by_key(|row| row.bytes) {
            let bytes = u64::try_from(row.bytes).unwrap_or(0);
            answer.who = row.name.as_deref().map(|name| format!("{} ({})", escaped(name), human(bytes)));
        }
    }
}

fn look_of(process: &Process, seconds: f64, snapshot: &Snapshot) -> Look {
    Look { group: group_memory::of(process).ok().flatten(), ..Look::of(seconds, snapshot) }
}

fn resident(process: &Process) -> Option<Bytes> {
    process.status().ok()?.resident_bytes
}

fn take(process: &Process, wanted: Details) -> Known<Snapshot> {
    let Details { holders, buffers } = wanted;
    let snapshot =
        snapshot::take(process, Want { holders, buffers, loaders: LoaderDetail::Brief, ..Want::default() })?;
    // A JVM that ends leaves an account of nothing.
    if !process.is_same() {
        return Err(Gap::new("later samples", Why::Gone));
    }
    budget::ended().map_or(Ok(snapshot), Err)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_time_is_one_look() {
        assert_eq!(
            (time("0s"), time("0"), time("5m")),
            (Ok(Duration::ZERO), Ok(Duration::ZERO), Ok(Duration::from_secs(300)))
        );
        assert!(time("-1s").is_err() && time("2d").is_err() && time("").is_err());
    }
}
