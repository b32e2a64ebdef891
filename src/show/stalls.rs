//! The text of `marusa stalls`: a table an interval, what the whole host did in the meantime, and at the end how long the stalls of
//! all intervals took.

mod histogram;
mod host;
mod json;

use super::width::width;
use crate::base::{Gap, rfc3339, size};
use crate::measure::stalls::interval::{Figures, Missing};
use crate::measure::stalls::table::{By, Row, Traced, Who, share};
use crate::measure::stalls::{Report, Stall};
use crate::os::thp::Thp;
use crate::show::units::{counted, hanging, more, prose, shorten};
use std::io::{self, Write};
use std::time::SystemTime;

pub use histogram::histogram;
pub use json::StallsDocument;

const ROWS_SHOWN_MAX: usize = 25;
/// From how many columns on a table has all of its columns, and from how many the shares of time.
const WIDE_MIN: usize = 97;
const MIDDLE_MIN: usize = 72;

/// What stays the same in all intervals.
pub struct Subject<'a> {
    /// Pid and command; `None`: all processes.
    pub target: Option<(i32, &'a str)>,
    pub kernel: &'a str,
    pub thp: Option<&'a Thp>,
    pub by: By,
    /// Whether we see the host itself, and not from within a container.
    pub is_host: bool,
    /// Memory of the kernel's that the trace takes; `None`: nothing is traced.
    pub trace_bytes: Option<u64>,
}

/// Once, before the tables.
pub fn head(out: &mut dyn Write, subject: &Subject) -> io::Result<()> {
    let who = match subject.target {
        Some((pid, command)) => format!("pid {pid}  {command}"),
        None => "all processes of this host".to_string(),
    };
    writeln!(out, "{}", shorten(&who, width()))?;
    let thp = subject.thp.map_or("no transparent huge pages".to_string(), |thp| {
        let defrag = thp.defrag.as_deref().unwrap_or("?");
        format!("transparent_hugepage/enabled {}, defrag {defrag}", thp.enabled)
    });
    writeln!(out, "{}", shorten(&format!("Linux {}, {thp}", subject.kernel), width()))?;
    if !subject.is_host {
        hanging(out, CONTAINER, 0)?;
    }
    Ok(())
}

/// What is the host's, seen from a container.
pub const CONTAINER: &str = "\
marusa runs in a container: counters of vmstat, allocations by page size, pressure of all, CPU time of the kernel's threads and \
free memory are those of the whole host, not of the container.";

/// One interval.
pub fn table(out: &mut dyn Write, report: &Report, subject: &Subject, at: SystemTime) -> io::Result<()> {
    writeln!(out)?;
    let title = match &report.traced {
        Ok(traced) => {
            format!("{}: {:.2} s, {}", rfc3339(at), report.seconds, counted(traced.events, "event"))
        }
        Err(_) => format!("{}: {:.2} s, not traced", rfc3339(at), report.seconds),
    };
    hanging(out, &title, 0)?;
    match &report.traced {
        Ok(traced) => rows(out, traced, subject)?,
        Err(gap) => untraced(out, report, gap)?,
    }
    host::host(out, report)?;
    gaps(out, &report.gaps)
}

fn rows(out: &mut dyn Write, traced: &Traced, subject: &Subject) -> io::Result<()> {
    writeln!(out)?;
    let own = if subject.target.is_some() { "the target" } else { "any process" };
    match traced.rows.is_empty() {
        true => hanging(out, &format!("no thread of {own} waited for memory or worked on a huge page"), 0)?,
        false => {
            titles(out)?;
            traced.rows.iter().take(ROWS_SHOWN_MAX).try_for_each(|it| row(out, it, traced.seconds))?;
        }
    }
    more(out, traced.rows.len(), ROWS_SHOWN_MAX, 0)?;
    if traced.rows.len() > 1 {
        row(out, &traced.total, traced.seconds)?;
    }
    if !traced.rows.is_empty() {
        hanging(out, LEGEND, 0)?;
    }
    if let Some(elsewhere) = traced.elsewhere.as_ref().filter(|figures| !figures.is_empty()) {
        let (times, ms) = (counted(elsewhere.count, "time"), milliseconds(elsewhere.ns));
        hanging(out, &format!("other processes of the host waited {ms} ms for memory, {times}"), 0)?;
    }
    causes(out, &traced.total)?;
    missing_text(&traced.missing).iter().try_for_each(|text| hanging(out, text, 0))
}

const LEGEND: &str = "\
waited: compaction and reclaim by the thread itself, in per cent of the interval (threads add up) and of its CPU time; work on \
huge pages is not in it";

/// Other events of the same threads: got and did not get huge pages, spoiled them.
fn causes(out: &mut dyn Write, total: &Row) -> io::Result<()> {
    let mut parts = Vec::new();
    for (order, (got, failed)) in total.counts.allocations.iter().filter(|(_, (_, failed))| *failed > 0) {
        parts.push(format!(
            "{failed} of {} pages of {} were unavailable",
            got + failed,
            size_of(Some(*order))
        ));
    }
    if total.counts.spoiled > 0 {
        parts.push(format!("{} broken for small ones", counted(total.counts.spoiled, "huge page")));
    }
    if total.counts.deferred > 0 {
        parts.push(format!(
            "compaction was deferred {} after it had failed",
            counted(total.counts.deferred, "time")
        ));
    }
    if parts.is_empty() { Ok(()) } else { hanging(out, &parts.join("; "), 0) }
}

/// `None`: all is there.
pub fn missing_text(missing: &Missing) -> Option<String> {
    let mut parts = Vec::new();
    if missing.lost > 0 || !missing.holes.is_empty() {
        let cpus: Vec<String> = missing.holes.keys().map(u32::to_string).collect();
        let cpus = if cpus.is_empty() { "unknown".to_string() } else { cpus.join(", ") };
        parts.push(format!("lost events: {} (CPU {cpus}); all times are lower bounds", missing.lost));
    }
    if missing.undecoded > 0 {
        parts.push(format!("events that could not be read: {}", missing.undecoded));
    }
    if missing.begins > 0 || missing.ends > 0 {
        let (begins, ends) = (missing.begins, missing.ends);
        parts.push(format!(
            "{begins} begins without an end and {ends} ends without a begin have no time here"
        ));
    }
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// The columns that there is room for.
struct Columns {
    who: usize,
    stall: usize,
    has_shares: bool,
    has_p99: bool,
}

impl Columns {
    fn fitting() -> Columns {
        let (is_wide, has_shares) = (width() >= WIDE_MIN, width() >= MIDDLE_MIN);
        let stall = if is_wide { 17 } else { 13 };
        // A space, the size, the count, total and worst.
        let numbers = 1 + 5 + 8 + 11 + 10;
        let shares = if has_shares { 8 } else { 0 } + if is_wide { 10 + 8 } else { 0 };
        let who = width().saturating_sub(stall + numbers + shares).max(8);
        Columns { who, stall, has_shares, has_p99: is_wide }
    }

    fn line(&self, out: &mut dyn Write, cells: [String; 9]) -> io::Result<()> {
        let Columns { who: room, stall: stall_room, .. } = *self;
        let [who, stall, size, count, total, worst, p99, time, cpu] = cells;
        let who = shorten(&who, room);
        let mut text = format!("{who:<room$} {stall:<stall_room$}{size:>5}{count:>8}{total:>11}{worst:>10}");
        let more = [(self.has_p99, 10, p99), (self.has_shares, 8, time), (self.has_p99, 8, cpu)];
        for (_, room, cell) in more.iter().filter(|(has_room, ..)| *has_room) {
            text += &format!("{cell:>room$}");
        }
        writeln!(out, "{}", text.trim_end())
    }
}

const TITLES: [&str; 9] =
    ["who", "stall", "size", "count", "total ms", "worst ms", "p99 ms", "% time", "% cpu"];

fn titles(out: &mut dyn Write) -> io::Result<()> {
    Columns::fitting().line(out, TITLES.map(str::to_string))?;
    writeln!(out, "{}", "-".repeat(width()))
}

/// A line for each kind of stall and size; and the sum of waiting, where it is of several.
fn row(out: &mut dyn Write, row: &Row, seconds: f64) -> io::Result<()> {
    let columns = Columns::fitting();
    let mut who = title(&row.who);
    let cpu_ms = row.cpu_ms.as_ref().ok().copied().unwrap_or(0.0);
    let waits = row.lines.iter().filter(|line| line.stall.is_wait()).count();
    for line in &row.lines {
        let names = [std::mem::take(&mut who), stall_word(line.stall, columns.has_p99), size_of(line.order)];
        columns.line(out, cells(names, &line.figures, seconds, cpu_ms))?;
    }
    if waits != 1 || row.who == Who::Total {
        let names = [who, "waited".to_string(), String::new()];
        columns.line(out, cells(names, &row.waited, seconds, cpu_ms))?;
    }
    Ok(())
}

/// In the order of `TITLES`.
fn cells([who, stall, size]: [String; 3], figures: &Figures, seconds: f64, cpu_ms: f64) -> [String; 9] {
    let percent = |of_ms: f64| share(figures.ns, of_ms).map_or(String::new(), |share| format!("{share:.1}"));
    let is_only_begun = figures.count == 0 && figures.going_on > 0;
    [
        who,
        stall,
        size,
        // It has not ended yet.
        if is_only_begun { "..".to_string() } else { figures.count.to_string() },
        milliseconds(figures.ns),
        if figures.worst_ns > 0 { milliseconds(figures.worst_ns) } else { String::new() },
        figures.histogram.p99_ns().map_or(String::new(), milliseconds),
        percent(seconds * 1e3),
        percent(cpu_ms),
    ]
}

fn title(who: &Who) -> String {
    match who {
        Who::Process { pid, name, is_jvm } => {
            let mark = if *is_jvm { "jvm " } else { "" };
            format!("{pid} {mark}{}", last_part(name))
        }
        Who::Thread { pid, tid, name, kind } => {
            let of = pid
                .filter(|pid| pid != tid && kind.is_none())
                .map_or(String::new(), |pid| format!(" ({pid})"));
            let kind = kind.map_or(String::new(), |kind| format!("{} ", kind.word()));
            format!("{tid} {kind}{name}{of}")
        }
        Who::Kind(kind) => kind.word(),
        Who::Others => "no JVM".to_string(),
        Who::Ended => "ended, unknown".to_string(),
        Who::Total => "total".to_string(),
    }
}

/// "org.example.Main" and "/opt/app.jar" are known by their ends.
fn last_part(name: &str) -> &str {
    let name = name.rsplit('/').next().unwrap_or(name);
    if name.ends_with(".jar") { name } else { name.rsplit('.').next().unwrap_or(name) }
}

/// The full name where there is room.
fn stall_word(stall: Stall, is_wide: bool) -> String {
    let [full, short] = match stall {
        Stall::DirectCompaction => ["direct compaction", "compaction"],
        Stall::DirectReclaim => ["direct reclaim", "reclaim"],
        Stall::GroupReclaim => ["cgroup reclaim", "group reclaim"],
        Stall::HugeFault => ["huge page zeroed", "zeroed"],
        Stall::Collapse => ["collapse asked for", "collapse"],
        Stall::Khugepaged => ["khugepaged", "khugepaged"],
        Stall::Kcompactd => ["kcompactd", "kcompactd"],
        Stall::Kswapd => ["kswapd awake", "kswapd awake"],
    };
    shorten(if is_wide { full } else { short }, if is_wide { 17 } else { 13 })
}

/// "2m", "64k"; empty where there is no order.
fn size_of(order: Option<u32>) -> String {
    let bytes = order.and_then(|order| 4096_u64.checked_shl(order));
    bytes.map_or(String::new(), |bytes| size(bytes).to_lowercase())
}

/// "0.04", "12.3", "4567": three digits say enough.
fn milliseconds(ns: u64) -> String {
    three_digits(ns as f64 / 1e6)
}

fn three_digits(value: f64) -> String {
    match value {
        _ if value >= 99.95 => format!("{value:.0}"),
        _ if value >= 9.995 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

/// Without a trace there are no rows: only what the kernel counts of each process, where it does.
fn untraced(out: &mut dyn Write, report: &Report, gap: &Gap) -> io::Result<()> {
    writeln!(out)?;
    hanging(out, &format!("which processes stalled, and for how long, is unknown: {gap}"), 0)?;
    match &report.delayed {
        Some(Ok(delayed)) if delayed.is_empty() => {
            hanging(out, "by the kernel's own accounting (taskstats) no process waited for memory", 0)
        }
        Some(Ok(delayed)) => {
            prose(out, "waited by the kernel's own accounting (taskstats), without sizes or lengths:")?;
            for process in delayed.iter().take(ROWS_SHOWN_MAX) {
                let who =
                    Who::Process { pid: process.pid, name: process.name.clone(), is_jvm: process.is_jvm };
                let delays = process.delays;
                let text = format!(
                    "{}: compaction {} ms in {}, reclaim {} ms in {}",
                    title(&who),
                    milliseconds(delays.compact_ns),
                    delays.compact_count,
                    milliseconds(delays.reclaim_ns),
                    delays.reclaim_count
                );
                hanging(out, &text, 2)?;
            }
            Ok(())
        }
        Some(Err(gap)) => hanging(out, &format!("nor by the kernel's own accounting: {gap}"), 0),
        None => Ok(()),
    }
}

pub(super) fn gaps(out: &mut dyn Write, gaps: &[Gap]) -> io::Result<()> {
    if gaps.is_empty() {
        return Ok(());
    }
    writeln!(out, "\nnot known:")?;
    gaps.iter().try_for_each(|gap| hanging(out, &gap.to_string(), 2))
}

#[cfg(test)]
#[path = "stalls/tests.rs"]
mod tests;
