//! The table of `marusa tlb`, in the form of Solaris' trapstat -T: misses a second and the share of time, by side and page
//! size of the reload, user and kernel. Every share is of the CPU time of its own row's threads.

mod json;

use super::stalls::gaps;
use super::width::width;
use crate::base::{Bytes, Gap, Known, rfc3339, size};
use crate::measure::events::{Model, Side};
use crate::measure::interval::Count;
use crate::measure::tlb::{Report, Row, Walks, Who};
use crate::os::cpu::Cpu;
use crate::os::perf::Mode;
use crate::show::table::Table;
use crate::show::units::{counted, hanging, human, paragraph, pasted, prose, shorten};
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
    /// Walks and the time of them: of the instruction side, of the data side.
    fn push(&mut self, names: [&str; 3], sides: [Option<&Walks>; 2]) {
        let [name, mode, size] = names.map(str::to_string);
        let rate = |walks: &Walks| {
            walks.per_second.as_ref().map_or("?".to_string(), |per_second| format!("{per_second:.0}"))
        };
        let cells = |walks: &Walks| [rate(walks), percent(&walks.time)];
        let [[code_rate, code_time], [data_rate, data_time]] =
            sides.map(|side| side.map(cells).unwrap_or_default());
        let times = sides.into_iter().flatten().map(|walks| walks.time.clone());
        let both = percent(&times.sum::<Known<f64>>().map(|time| time.min(1.0)));
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
    let there = mapped.iter().filter(|(_, bytes)| **bytes > 0);
    let rows = there.map(|(size, bytes)| [human(*size).replace(".0 ", " "), human(*bytes)]);
    Table::new(["PAGE SIZE", ">RESIDENT"]).rows(rows).write_below(out)?;
    prose(out, "\nwhat 2 MiB pages gain is measured without counters, by a metric of the program:")?;
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
        let name = if by_thread { title(&row.who) } else { share_of_cpu(row, &report.total) };
        add(&mut lines, row, name, !by_thread);
    }
    let mut sum = Lines::default();
    add(&mut sum, &report.total, title(&Who::Total), true);
    sum.0.push(["", "", "ttl", "", "", "", "", &percent(&report.total.time)].map(str::to_string));
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

/// A line for each mode in which the threads ran, or for each of its page sizes that has misses.
fn add(lines: &mut Lines, row: &Row, mut name: String, by_size: bool) {
    const SIDES: [Side; 2] = [Side::Instruction, Side::Data];
    for mode in row.modes.iter().filter(|mode| mode.cycles != Ok(0.0)) {
        let pages = mode.sides.iter().filter(|_| by_size).flat_map(|side| &side.pages);
        let mut sizes: Vec<Option<u64>> =
            pages.filter(|page| page.walks.count != Ok(0.0)).map(|page| page.page_bytes).collect();
        sizes.sort_unstable();
        sizes.dedup();
        let letter = &mode_word(mode.mode)[..1];
        for page_bytes in &sizes {
            let page = |side| {
                let mut pages = mode.side(side)?.pages.iter();
                pages.find(|page| page.page_bytes == *page_bytes).map(|page| &page.walks)
            };
            let name_of_size = page_bytes.map_or("any".to_string(), |bytes| size(bytes).to_lowercase());
            lines.push([&name, letter, &name_of_size], SIDES.map(page));
            name.clear();
        }
        if sizes.is_empty() {
            let whole = |side| mode.side(side).map(|side| &side.walks);
            lines.push([&name, letter, "all"], SIDES.map(whole));
            name.clear();
        }
    }
}

/// "11.0", "?".
fn percent(time: &Known<f64>) -> String {
    time.as_ref().map_or("?".to_string(), |share| format!("{:.1}", share * 100.0))
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
        Who::Kind(kind) => kind.word(),
        Who::Thread { tid, name, .. } => {
            let tid = tid.to_string();
            format!("{} {tid}", shorten(name, Columns::fitting().name.saturating_sub(tid.len() + 1)))
        }
        Who::Total => "total".to_string(),
    }
}

/// The word of the JSON; the table has its first letter.
fn mode_word(mode: Mode) -> &'static str {
    match mode {
        Mode::User => "user",
        Mode::Kernel => "kernel",
        Mode::All => "all",
    }
}

#[cfg(test)]
#[path = "tlb/tests.rs"]
mod tests;
