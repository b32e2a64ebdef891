//! `marusa pages verify` as text of at most 100 columns, and as JSON `marusa/pages-verify/2`: what was promised, what was
//! found, and where they differ, why and what to do.

use crate::base::{Bytes, Gap, size};
use crate::map::model::{GapRow, PageUseAccount};
use crate::map::page_use::{PageUse, Provider};
use crate::map::{Account, Area, MemoryMap};
use crate::pages::types::Mode;
use crate::pages::verify::{Cause, Promise, Report, Row, Said, Total, Verdict};
use crate::show::json::Start;
use crate::show::table::Table;
use crate::show::units::{counted, human, led, more, prose, shorten};
use crate::show::width::width;
use crate::snapshot::Snapshot;
use schemars::JsonSchema;
use serde::Serialize;
use std::io::{self, Write};

const SCHEMA: &str = "marusa/pages-verify/2";
const FOUND_COLUMNS_MIN: usize = 20;
/// Messages of logs that are shown.
const SAID_SHOWN_MAX: usize = 8;

/// All that is shown.
pub struct Shown<'a> {
    pub snapshot: &'a Snapshot,
    pub map: &'a MemoryMap,
    pub promise: &'a Promise,
    pub report: &'a Report,
    pub said: &'a [Said],
    pub gaps: &'a [Gap],
}

pub fn text(out: &mut dyn Write, shown: &Shown) -> io::Result<()> {
    head(out, shown)?;
    table(out, shown)?;
    prose(out, &format!("\n{}", verdict(shown.report)))?;
    causes(out, "why", &shown.report.causes)?;
    causes(out, "note", &shown.report.notes)?;
    said(out, shown)?;
    crate::show::text::gaps(out, shown.gaps)
}

/// For a JVM that asks for nothing, and without a plan.
pub fn nothing_promised(out: &mut dyn Write, snapshot: &Snapshot) -> io::Result<()> {
    who(out, snapshot)?;
    let text = "This JVM asks for no large pages, and no plan was named: nothing was promised. -XX:+UseLargePages asks for pages \
                of a pool, -XX:+UseTransparentHugePages for the ones that the kernel gives by itself.";
    led(out, "", text)
}

fn who(out: &mut dyn Write, snapshot: &Snapshot) -> io::Result<()> {
    let process = &snapshot.os.process;
    writeln!(out, "{}", shorten(&format!("pid {}  {}", process.pid, process.command), width()))?;
    if let Ok(jvm) = &snapshot.jvm {
        let version = jvm.version.as_deref().unwrap_or("version unknown");
        let gc = jvm.gc.as_ref().map_or("collector unknown", |gc| gc.name());
        let heap = jvm.flags.get("MaxHeapSize").and_then(|text| text.parse().ok());
        let heap = heap.map_or("unknown".to_string(), human);
        led(out, "", &format!("{} {version}, {gc}, -Xmx {heap}; {}", jvm.vm, snapshot.taken.at))?;
    }
    writeln!(out)
}

fn head(out: &mut dyn Write, shown: &Shown) -> io::Result<()> {
    who(out, shown.snapshot)?;
    let promise = shown.promise;
    let by = match &promise.plan {
        Some(plan) => format!("promised by {plan}"),
        None => "asked for by the JVM's own flags".to_string(),
    };
    led(out, "", &format!("{by}: {}", mode(promise.mode)))?;
    writeln!(out)
}

fn mode(mode: Mode) -> &'static str {
    match mode {
        Mode::HugeTlb => "HugeTLB pages",
        Mode::HugeTlb2M => "HugeTLB 2M pages",
        Mode::HugeTlb1G => "HugeTLB 1G pages and 2M",
        Mode::Thp => "transparent huge pages",
    }
}

fn table(out: &mut dyn Write, shown: &Shown) -> io::Result<()> {
    let titles = ["AREA", "PROMISED", ">BYTES", "FOUND", ">VERDICT"];
    let mut table = Table::new(titles).without_room(&[2, 1, 3]).shortened(3, FOUND_COLUMNS_MIN);
    let (small, rows): (Vec<&Row>, Vec<&Row>) =
        shown.report.rows.iter().partition(|row| row.verdict == Verdict::Small);
    for row in rows {
        let name = match row.need.part.to_lowercase() == row.need.area.title().to_lowercase() {
            true => row.need.area.title().to_string(),
            false => row.need.part.clone(),
        };
        let promised = format!("{} x {}", row.need.pages, size(row.need.page_bytes));
        table.row([
            shorten(&name, 25),
            promised,
            human(row.need.bytes),
            found(shown.promise.mode, row),
            row.verdict.word().to_string(),
        ]);
    }
    for total in &shown.report.totals {
        let promised = total.promised_pages.saturating_mul(total.page_bytes);
        let pages = |pages: u64| format!("{pages} x {}", size(total.page_bytes));
        let promise = pages(total.promised_pages);
        let found = match shown.promise.mode {
            Mode::Thp => format!("{} of {} in memory", pages(total.found_pages), human(total.resident_bytes)),
            _ => pages(total.found_pages),
        };
        table.row(["all".to_string(), promise, human(promised), found, String::new()]);
    }
    table.write(out)?;
    match small.len() {
        0 => Ok(()),
        many => {
            let bytes = small.iter().fold(0, |sum: Bytes, row| sum.saturating_add(row.need.bytes));
            let reservations = counted(many, "reservation");
            let text = format!("and {reservations} too small for large pages, {} in all", human(bytes));
            led(out, "", &text)
        }
    }
}

/// "24 x 2M, 2.0 MiB touched"; "4K 98.2 %, 2M 1.8 %".
fn found(mode: Mode, row: &Row) -> String {
    if mode == Mode::Thp {
        return match row.used.resident_bytes {
            0 => "not in memory".to_string(),
            bytes => format!("{} of {}", shares(&row.used), human(bytes)),
        };
    }
    let taken: Vec<String> =
        row.taken.pages.iter().rev().map(|(bytes, pages)| format!("{pages} x {}", size(*bytes))).collect();
    let resident = row.used.resident_bytes;
    match (taken.is_empty(), resident) {
        (true, 0) => "none".to_string(),
        (true, _) => format!("{} of {}", shares(&row.used), human(resident)),
        (false, _) => format!("{}, {} touched", taken.join(" + "), human(resident)),
    }
}

/// The two largest shares, short enough for a column.
fn shares(used: &PageUse) -> String {
    let mut by: Vec<_> = used.by.iter().filter(|(_, bytes)| **bytes > 0).collect();
    by.sort_by_key(|(_, bytes)| std::cmp::Reverse(**bytes));
    let share = |((provider, page), bytes): &(&(Provider, Bytes), &Bytes)| {
        let name = if *provider == Provider::Hugetlb { " pool" } else { "" };
        let share = **bytes as f64 * 100.0 / used.resident_bytes.max(1) as f64;
        format!("{}{name} {share:.0}%", size(*page))
    };
    by.iter().take(2).map(share).collect::<Vec<_>>().join(", ")
}

fn verdict(report: &Report) -> String {
    let missing = |total: &Total| {
        (total.missing_pages > 0).then(|| {
            format!("{} of {} pages of {}", total.missing_pages, total.promised_pages, size(total.page_bytes))
        })
    };
    let all: Vec<String> = report.totals.iter().filter_map(missing).collect();
    match (report.met, all.is_empty()) {
        (true, _) if report.rows.iter().any(|row| row.verdict == Verdict::NotTouched) => {
            "MET, as far as memory was touched".to_string()
        }
        (true, _) => "MET: everything that was promised is there".to_string(),
        (false, false) => format!("NOT MET: {} are missing", all.join(" and ")),
        (false, true) => "NOT MET: this is not the JVM that the promise was made to".to_string(),
    }
}

fn causes(out: &mut dyn Write, title: &str, causes: &[Cause]) -> io::Result<()> {
    for cause in causes {
        led(out, &format!("{title}: "), &cause.what)?;
        if !cause.next.is_empty() {
            led(out, "  -> ", &cause.next)?;
        }
    }
    Ok(())
}

fn said(out: &mut dyn Write, shown: &Shown) -> io::Result<()> {
    if shown.said.is_empty() || shown.report.met {
        return Ok(());
    }
    writeln!(out, "\nthe JVM has reported:")?;
    for said in shown.said.iter().take(SAID_SHOWN_MAX) {
        let times = if said.found.times > 1 {
            format!(" ({})", counted(said.found.times, "time"))
        } else {
            String::new()
        };
        let older = if said.may_be_older { "; the file is older than the process" } else { "" };
        let place = format!("{}, line {}{times}{older}", said.log, said.found.line);
        writeln!(out, "  {}", shorten(&place, width() - 2))?;
        led(out, "    ", &said.found.text)?;
        let about = about(shown.report, said).map_or(String::new(), |row| format!("{}: ", row.need.part));
        led(out, "    = ", &format!("{about}{}", said.found.message.means))?;
    }
    more(out, shown.said.len(), SAID_SHOWN_MAX, 2)
}

/// The reservation that a message is about, by its bytes.
fn about<'a>(report: &'a Report, said: &Said) -> Option<&'a Row> {
    let bytes = said.found.bytes.filter(|_| said.found.is_reservation())?;
    let fits = |row: &&Row| {
        row.need.bytes == bytes || row.need.pages.checked_mul(row.need.page_bytes) == Some(bytes)
    };
    let lacking = report.rows.iter().filter(|row| row.verdict == Verdict::NotMet);
    lacking.chain(&report.rows).find(fits)
}

/// `marusa pages verify --json`.
#[derive(JsonSchema, Serialize)]
pub struct VerifyDocument<'a> {
    #[serde(flatten)]
    start: Start,
    /// `None`: nothing was promised.
    promise: Option<&'a Promise>,
    met: bool,
    rows: Vec<NeedRow<'a>>,
    totals: &'a [Total],
    causes: &'a [Cause],
    notes: &'a [Cause],
    messages: Vec<MessageRow<'a>>,
    gaps: Vec<GapRow>,
}

#[derive(JsonSchema, Serialize)]
struct NeedRow<'a> {
    area: Area,
    part: &'a str,
    bytes: Bytes,
    page_bytes: Bytes,
    pages: u64,
    rule: &'a str,
    hugetlb_mapped: Vec<PagesRow>,
    in_memory: PageUseAccount,
    missing_pages: u64,
    verdict: Verdict,
}

#[derive(JsonSchema, Serialize)]
struct PagesRow {
    page_bytes: Bytes,
    pages: u64,
}

#[derive(JsonSchema, Serialize)]
struct MessageRow<'a> {
    #[serde(flatten)]
    said: &'a Said,
    part: Option<&'a str>,
}

impl<'a> VerifyDocument<'a> {
    pub fn of(shown: &'a Shown) -> VerifyDocument<'a> {
        let Shown { promise, report, said, gaps, .. } = shown;
        let message = |said| MessageRow { said, part: about(report, said).map(|row| row.need.part.as_str()) };
        VerifyDocument {
            promise: Some(promise),
            met: report.met,
            rows: report.rows.iter().map(row).collect(),
            totals: &report.totals,
            causes: &report.causes,
            notes: &report.notes,
            messages: said.iter().map(message).collect(),
            gaps: gaps.iter().map(GapRow::from).collect(),
            ..VerifyDocument::nothing_promised(shown.snapshot, shown.map)
        }
    }

    pub fn nothing_promised(snapshot: &Snapshot, map: &MemoryMap) -> VerifyDocument<'a> {
        VerifyDocument {
            start: Start::of(SCHEMA, Account::of(snapshot, map)).0,
            promise: None,
            met: true,
            rows: Vec::new(),
            totals: &[],
            causes: &[],
            notes: &[],
            messages: Vec::new(),
            gaps: Vec::new(),
        }
    }
}

fn row(row: &Row) -> NeedRow<'_> {
    let taken =
        row.taken.pages.iter().map(|(page_bytes, pages)| PagesRow { page_bytes: *page_bytes, pages: *pages });
    NeedRow {
        area: row.need.area,
        part: &row.need.part,
        bytes: row.need.bytes,
        page_bytes: row.need.page_bytes,
        pages: row.need.pages,
        rule: &row.need.rule,
        hugetlb_mapped: taken.collect(),
        in_memory: PageUseAccount::from(&row.used),
        missing_pages: row.missing_pages,
        verdict: row.verdict,
    }
}
