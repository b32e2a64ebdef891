//! The table of `marusa tlb`, in the form of Solaris' trapstat -T: misses a second and the share of time, by side and page
//! size of the reload, user and kernel. Every share is of the CPU time of its own row's threads.

mod json;

use super::width::width;
use crate::base::{Bytes, Gap, Known, rfc3339};
use crate::measure::events::{Model, Side};
use crate::measure::interval::Count;
use crate::measure::tlb::{ModeFigures, Report, Row, SideFigures, Who};
use crate::os::cpu::Cpu;
use crate::os::perf::Mode;
use crate::show::table::Table;
use crate::show::units::{counted, hanging, human, paragraph, pasted, shorten};
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::time::SystemTime;

pub use json::{TlbDocument, UncountedDocument};

/// Columns of the wide table: names, rates, times.
const WIDE: Columns = Columns { name: 22, rate: 11, time: 11 };
/// The narrower one has 80 columns, and shorter titles.
const NARROW: Columns = Columns { name: 19, rate: 9, time: 9 };
const WIDE_MIN: usize = 93;
/// Narrower terminals get a table without rules, and without the columns that have no room: rates first, then times of one side.
const RULED_MIN: usize = 80;
const PLAIN_TITLES: [&str; 8] =
    ["THREADS, % OF CPU", "", ">SIZE", ">ITLB/S", ">ITLB %TIM", ">DTLB/S", ">DTLB %TIM", ">%TIM"];
const DISPENSABLE: [usize; 4] = [3, 5, 4, 6];
const NAME_COLUMNS_MIN: usize = 16;
const THREADS_SHOWN_MAX: usize = 40;

#[derive(Clone, Copy)]
struct Columns {
    name: usize,
    rate: usize,
    time: usize,
}

impl Columns {
    fn fitting() -> Columns {
        if is_wide() { WIDE } else { NARROW }
    }
}

fn is_wide() -> bool {
    width() >= WIDE_MIN
}

/// The lines of one table: name, mode, page size; rate and time of the instruction side, of the data side; time of both.
#[derive(Default)]
struct Lines(Vec<[String; 8]>);

impl Lines {
    /// Rates and times: of the instruction side, of the data side.
    fn push(
        &mut self,
        [name, mode, size]: [&str; 3],
        rates: [Option<&Known<f64>>; 2],
        times: [Option<&Known<f64>>; 2],
        both: Option<&Known<f64>>,
    ) {
        let [code_rate, data_rate] = rates.map(|rate| rate.map_or(String::new(), count));
        let [code_time, data_time] = times.map(|time| time.map_or(String::new(), percent));
        let both = both.map_or(String::new(), percent);
        let [name, mode, size] = [name, mode, size].map(str::to_string);
        self.0.push([name, mode, size, code_rate, code_time, data_rate, data_time, both]);
    }

    /// `sum`: of all rows.
    fn write(self, out: &mut dyn Write, sum: Lines) -> io::Result<()> {
        if width() < RULED_MIN {
            let table = Table::new(PLAIN_TITLES).without_room(&DISPENSABLE);
            let mut table = table.shortened(0, NAME_COLUMNS_MIN);
            self.0.into_iter().chain(sum.0).for_each(|cells| table.row(cells));
            return table.write(out);
        }
        titles(out)?;
        self.0.iter().try_for_each(|cells| ruled(out, cells))?;
        rule(out)?;
        sum.0.iter().try_for_each(|cells| ruled(out, cells))
    }
}

fn ruled(out: &mut dyn Write, cells: &[String; 8]) -> io::Result<()> {
    let [name, mode, size, code_rate, code_time, data_rate, data_time, both] = cells;
    let Columns { name: room, rate, time } = Columns::fitting();
    let name = shorten(name, room);
    let side = |count: &str, share: &str| format!("|{count:>rate$} {share:>time$} ");
    let (code, data) = (side(code_rate, code_time), side(data_rate, data_time));
    let text = format!("{name:<room$} {mode:<1} {size:>5} {code}{data}|{both:>time$}");
    writeln!(out, "{}", text.trim_end())
}

/// What stays the same in all intervals.
pub struct Subject<'a> {
    pub pid: i32,
    pub command: &'a str,
    pub cpu: &'a Cpu,
    pub kernel: &'a str,
}

/// Once, before the tables.
pub fn head(out: &mut dyn Write, subject: &Subject) -> io::Result<()> {
    writeln!(out, "{}", shorten(&format!("pid {}  {}", subject.pid, subject.command), width()))?;
    writeln!(out, "{}", shorten(&format!("{}, Linux {}", subject.cpu.describe(), subject.kernel), width()))
}

/// Where nothing can be counted: why, and which page sizes the memory is on.
pub fn uncounted(out: &mut dyn Write, mapped: &BTreeMap<u64, Bytes>, why: &Gap, pid: i32) -> io::Result<()> {
    writeln!(out)?;
    paragraph(out, "", "", &format!("CPU time lost in address translation: not known. {why}"))?;
    writeln!(out)?;
    let mut table = Table::new(["PAGE SIZE", ">RESIDENT"]);
    for (size, bytes) in mapped.iter().filter(|(_, bytes)| **bytes > 0) {
        table.row([human(*size).replace(".0 ", " "), human(*bytes)]);
    }
    table.write(out)?;
    writeln!(out)?;
    let measured = "what 2 MiB pages gain is measured without counters, by a metric of the program:";
    paragraph(out, "", "", measured)?;
    pasted(out, "  ", &format!("marusa pages prove {pid} --metric-log FILE --pattern REGEX"))
}

/// One interval.
pub fn table(out: &mut dyn Write, report: &Report, at: SystemTime) -> io::Result<()> {
    let ran = match report.total.running_share {
        None => "no thread ran".to_string(),
        Some(share) if share > 0.999 => "the counters ran all of the time".to_string(),
        Some(share) => format!("each counter ran at least {:.0} % of the time, and is scaled", share * 100.0),
    };
    let threads = counted(report.total.threads, "thread");
    writeln!(out)?;
    hanging(out, &format!("{}: {:.2} s, {threads}, {ran}", rfc3339(at), report.seconds), 0)?;
    hanging(out, model(report), 0)?;
    writeln!(out)?;
    if report.model == Model::None {
        counts(out, report)?;
        return gaps(out, &report.gaps);
    }
    let by_thread = report.rows.iter().any(|row| matches!(row.who, Who::Thread { .. }));
    let shown = if by_thread { THREADS_SHOWN_MAX } else { usize::MAX };
    let busy = report.rows.iter().filter(|row| row.cycles != Ok(0.0));
    let rows: Vec<&Row> = busy.collect();
    let mut lines = Lines::default();
    for row in rows.iter().take(shown) {
        match by_thread {
            true => short_row(&mut lines, row, report.seconds),
            false => full_row(&mut lines, row, &share_of_cpu(row, &report.total), report.seconds),
        }
    }
    let mut sum = Lines::default();
    full_row(&mut sum, &report.total, &title(&Who::Total), report.seconds);
    sum.push(["", "", "ttl"], [None, None], [None, None], Some(&report.total.time));
    lines.write(out, sum)?;
    if rows.len() > shown {
        hanging(out, &format!("and {} (--json lists all)", counted(rows.len() - shown, "more thread")), 0)?;
    }
    after(out, report)
}

/// What was counted, of all threads, where the events do not measure address translation.
fn counts(out: &mut dyn Write, report: &Report) -> io::Result<()> {
    let mut table = Table::new(["EVENT", "MODE", ">COUNT"]).shortened(0, NAME_COLUMNS_MIN);
    for (slot, sum) in report.slots.iter().zip(&report.total.counts) {
        let scaled = sum.and_then(Count::scaled).map_or("?".to_string(), |value| format!("{value:.0}"));
        table.row([slot.event.name, mode_word(slot.mode), &scaled]);
    }
    table.write(out)
}

fn after(out: &mut dyn Write, report: &Report) -> io::Result<()> {
    for (mode, figures) in
        report.total.modes.iter().flat_map(|mode| mode.sides.iter().map(move |side| (mode.mode, side)))
    {
        if let Some(cycles) = figures.cycles_each {
            let word = figures.side.word();
            hanging(out, &format!("a walk takes {cycles:.0} cycles ({word}, {})", mode_word(mode)), 0)?;
        }
    }
    if let Some(effective) = &report.effective {
        writeln!(out)?;
        hanging(out, &effective.sentence(), 0)?;
    }
    report.notes.iter().try_for_each(|note| hanging(out, note, 0))?;
    gaps(out, &report.gaps)
}

fn gaps(out: &mut dyn Write, gaps: &[Gap]) -> io::Result<()> {
    if gaps.is_empty() {
        return Ok(());
    }
    writeln!(out, "\nnot known:")?;
    gaps.iter().try_for_each(|gap| hanging(out, &gap.to_string(), 2))
}

/// What %tim is.
fn model(report: &Report) -> &'static str {
    match report.model {
        Model::WalkActive => {
            "%tim of the row's own CPU time: cycles with a walk under way. An upper bound of the time lost: the core does \
             other work during a walk."
        }
        Model::Stall => "%tim of the row's own CPU time: cycles stalled by a miss in the TLB.",
        Model::Walks => "No time: this processor counts walks, not how long they take.",
        Model::None => "No time: these events do not measure address translation.",
    }
}

fn titles(out: &mut dyn Write) -> io::Result<()> {
    let Columns { name, rate, time } = Columns::fitting();
    let [threads, code, data] = match is_wide() {
        true => ["threads", "itlb-miss/s", "dtlb-miss/s"],
        false => ["threads, % of cpu", "itlb/s", "dtlb/s"],
    };
    writeln!(
        out,
        "{threads:<name$} m {:>5} |{code:>rate$} {:>time$} |{data:>rate$} {:>time$} |{:>time$}",
        "size", "%tim", "%tim", "%tim"
    )?;
    rule(out)
}

fn rule(out: &mut dyn Write) -> io::Result<()> {
    let Columns { name, rate, time } = Columns::fitting();
    let dash = |width: usize| "-".repeat(width);
    let side = dash(rate + time + 2);
    writeln!(out, "{}+{side}+{side}+{}", dash(name + 9), dash(time))
}

/// A line for each mode and page size that has misses, at least one for each mode in which the threads ran.
fn full_row(lines: &mut Lines, row: &Row, name: &str, seconds: f64) {
    let mut name = name.to_string();
    for mode in &row.modes {
        if mode.cycles == Ok(0.0) {
            continue;
        }
        let mut sizes: Vec<Option<u64>> = mode
            .sides
            .iter()
            .flat_map(|side| &side.pages)
            .filter(|page| page.walks != Ok(0.0))
            .map(|page| page.page_bytes)
            .collect();
        sizes.sort_unstable();
        sizes.dedup();
        for size in &sizes {
            let page =
                |side| mode.side(side).and_then(|it| it.pages.iter().find(|page| page.page_bytes == *size));
            let (code, data) = (page(Side::Instruction), page(Side::Data));
            let rate = |walks: &Known<f64>| walks.clone().map(|walks| walks / seconds);
            let (code_rate, data_rate) = (code.map(|it| rate(&it.walks)), data.map(|it| rate(&it.walks)));
            let both = sum([code.map(|it| &it.time), data.map(|it| &it.time)]);
            let head = [name.as_str(), mode_letter(mode.mode), &size_word(*size)];
            lines.push(
                head,
                [code_rate.as_ref(), data_rate.as_ref()],
                [code.map(|it| &it.time), data.map(|it| &it.time)],
                Some(&both),
            );
            name.clear();
        }
        if sizes.is_empty() {
            mode_line(lines, &name, mode, seconds);
            name.clear();
        }
    }
}

/// A line for each mode, all sizes.
fn short_row(lines: &mut Lines, row: &Row, seconds: f64) {
    let mut name = title(&row.who);
    for mode in row.modes.iter().filter(|mode| mode.cycles != Ok(0.0)) {
        mode_line(lines, &name, mode, seconds);
        name.clear();
    }
}

fn mode_line(lines: &mut Lines, name: &str, mode: &ModeFigures, seconds: f64) {
    let rate = |side: &SideFigures| side.walks.clone().map(|walks| walks / seconds);
    let (code, data) = (mode.side(Side::Instruction), mode.side(Side::Data));
    let both = sum([code.map(|it| &it.time), data.map(|it| &it.time)]);
    let (code_rate, data_rate) = (code.map(rate), data.map(rate));
    lines.push(
        [name, mode_letter(mode.mode), "all"],
        [code_rate.as_ref(), data_rate.as_ref()],
        [code.map(|it| &it.time), data.map(|it| &it.time)],
        Some(&both),
    );
}

fn sum(times: [Option<&Known<f64>>; 2]) -> Known<f64> {
    times.into_iter().flatten().cloned().sum::<Known<f64>>().map(|time| time.min(1.0))
}

/// "11.0", "?".
fn percent(time: &Known<f64>) -> String {
    time.as_ref().map_or("?".to_string(), |share| format!("{:.1}", share * 100.0))
}

fn count(rate: &Known<f64>) -> String {
    rate.as_ref().map_or("?".to_string(), |rate| format!("{rate:.0}"))
}

/// "gc 12 % cpu": without it a large %tim of few threads reads like a large loss.
fn share_of_cpu(row: &Row, total: &Row) -> String {
    match (&row.cycles, &total.cycles) {
        (Ok(own), Ok(all)) if *all > 0.0 => {
            let unit = if is_wide() { " cpu" } else { "" };
            format!("{} {:.0} %{unit}", title(&row.who), own * 100.0 / all)
        }
        _ => title(&row.who),
    }
}

fn title(who: &Who) -> String {
    match who {
        Who::Kind(kind) => kind.word().to_string(),
        Who::Thread { tid, name, .. } => {
            let tid = tid.to_string();
            format!("{} {tid}", shorten(name, Columns::fitting().name.saturating_sub(tid.len() + 1)))
        }
        Who::Total => "total".to_string(),
    }
}

fn mode_letter(mode: Mode) -> &'static str {
    match mode {
        Mode::User => "u",
        Mode::Kernel => "k",
        Mode::All => "a",
    }
}

/// The word of the JSON.
fn mode_word(mode: Mode) -> &'static str {
    match mode {
        Mode::User => "user",
        Mode::Kernel => "kernel",
        Mode::All => "all",
    }
}

/// "4k", "2m", "1g", as trapstat writes them; "any" where the processor does not distinguish sizes.
fn size_word(bytes: Option<u64>) -> String {
    match bytes {
        None => "any".to_string(),
        Some(bytes) if bytes >= 1 << 30 => format!("{}g", bytes >> 30),
        Some(bytes) if bytes >= 1 << 20 => format!("{}m", bytes >> 20),
        Some(bytes) => format!("{}k", bytes >> 10),
    }
}

#[cfg(test)]
#[path = "tlb/tests.rs"]
mod tests;
