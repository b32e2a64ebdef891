//! The account as text of at most 100 columns (`show::width`): the sum first, then the biggest owners, then what is not known.

mod malloc;
mod mappings;
mod page_sizes;
mod tables;
mod why;
mod zeros;

use super::units::{fitted, human, human_signed, percent, shorten, wrapped};
use super::width::width;
use crate::base::Gap;
use crate::map::account::{AreaSum, PartSum, by_area, by_paper_area};
use crate::map::{Area, Figures, MemoryMap, PaperArea};
use crate::snapshot::{Snapshot, Source, Taken};
use std::io::{self, Write};

pub use malloc::by_arena;
pub use mappings::by_mapping;
pub use page_sizes::by_page_size;
pub use tables::{by_library, by_part, by_thread};
pub use why::{page_claims, requirements, why_not_larger};
pub use zeros::zeros_in_large_pages;

/// What a name gets at most; fewer columns for all take from it first.
const NAME_MAX: usize = 42;
/// Columns of a figure, and of a share.
const FIGURE: usize = 11;
const SHARE: usize = 7;
/// Below these widths a table has no room for shares, and for what is committed and reserved.
const SHARES_MIN: usize = 93;
const ALL_FIGURES_MIN: usize = 75;
/// Parts smaller than this share of all resident bytes are not shown below their area.
const PART_SHOWN_PERCENT: u64 = 1;
const GAPS_SHOWN_MAX: usize = 12;

/// `marusa map`: areas, and below each its biggest parts.
pub fn by_area_and_part(out: &mut dyn Write, snapshot: &Snapshot, map: &MemoryMap) -> io::Result<()> {
    head(out, snapshot, map)?;
    let total = map.balance.total.resident;
    let mut areas = by_area(map);
    areas.retain(|area| area.figures.resident > 0 || area.figures.swapped > 0 || area.area == Area::JavaHeap);
    areas.sort_by(|a, b| {
        (a.area == Area::Unattributed, b.figures.resident)
            .cmp(&(b.area == Area::Unattributed, a.figures.resident))
    });
    table_head(out, "AREA")?;
    for area in &areas {
        row(out, area.area.title(), &area.figures, in_use(area, snapshot), total)?;
        for part in area.parts.iter().filter(|part| is_shown(area, part, total)) {
            row(out, &format!("  {}", part.part), &part.figures, part.in_use, total)?;
        }
        if let (Area::MallocFreed, Some(bytes)) = (area.area, malloc::trimmable_bytes(snapshot, map))
            && is_big(bytes, total)
        {
            let (name, share) = (name_width(), percent(bytes, total));
            let share = if width() < SHARES_MIN { String::new() } else { format!(" {share:>5}") };
            writeln!(out, "{:<name$} {:>10}{share}", "  of it trimmable now", human(bytes))?;
        }
    }
    row(out, "total", &map.balance.total, None, total)?;
    gaps(out, &map.gaps)
}

fn is_big(bytes: u64, total: u64) -> bool {
    bytes.saturating_mul(100) >= total.saturating_mul(PART_SHOWN_PERCENT)
}

/// Where much was freed and is still held, all of it is told but for crumbs below a thousandth of the process.
fn is_shown(area: &AreaSum, part: &PartSum, total: u64) -> bool {
    let in_full = area.area == Area::MallocFreed && is_big(area.figures.resident, total);
    let is_crumb = part.figures.resident < total / 1000;
    // The only part of these areas may be something else than the name of the area says.
    let has_own_name = matches!(area.area, Area::DirectBuffers | Area::MallocUnknown);
    let is_told = area.parts.len() > 1 || has_own_name && part.part != area.area.title();
    is_told && (is_big(part.figures.resident, total) || in_full && !is_crumb)
}

/// `--taxonomy paper`: the eight areas of the 2010 paper and the Java heap.
pub fn by_paper(out: &mut dyn Write, snapshot: &Snapshot, map: &MemoryMap) -> io::Result<()> {
    head(out, snapshot, map)?;
    let total = map.balance.total.resident;
    let account = by_paper_area(map);
    let walked = malloc::trimmable_bytes(snapshot, map).is_some();
    table_head(out, "AREA (OOPSLA 2010)")?;
    row(out, "Java heap", &account.java_heap, None, total)?;
    for (area, figures) in &account.areas {
        match area {
            // Where malloc's chunks were not read, these are not known, not 0.
            PaperArea::MallocFreed | PaperArea::Overhead if !walked && figures.resident == 0 => {
                let name = name_width();
                writeln!(out, "{:<name$} {:>10}        (within JVM work area)", area.title(), "-")?;
            }
            _ => row(out, area.title(), figures, None, total)?,
        }
    }
    row(out, "unattributed", &account.unattributed, None, total)?;
    row(out, "total", &map.balance.total, None, total)?;
    gaps(out, &map.gaps)
}

fn in_use(area: &AreaSum, snapshot: &Snapshot) -> Option<u64> {
    let heap_used = || snapshot.jvm.as_ref().ok()?.heap.as_ref().ok()?.used_bytes.clone().ok();
    if area.area == Area::JavaHeap { heap_used().or(area.in_use) } else { area.in_use }
}

/// Who, when, and the sum against the kernel's.
pub fn head(out: &mut dyn Write, snapshot: &Snapshot, map: &MemoryMap) -> io::Result<()> {
    let (process, taken) = (&snapshot.os.process, &snapshot.taken);
    let who = format!("pid {}  {}", process.pid, process.command);
    writeln!(out, "{}", shorten(&who, width()))?;
    if let Ok(jvm) = &snapshot.jvm {
        let version = jvm.version.as_deref().unwrap_or("version unknown");
        let gc = jvm.gc.as_ref().map_or("collector unknown", |gc| gc.name());
        let nmt = jvm.nmt.as_deref().unwrap_or("unknown");
        let threads = snapshot.os.tasks.len();
        indented(out, &format!("{} {version}, {gc}, NMT {nmt}, {threads} threads", jvm.vm), 0)?;
    }
    indented(out, &when(taken), 0)?;
    writeln!(out)?;
    let balance = &map.balance;
    let kernel = balance.kernel_resident.map_or("unknown".to_string(), human);
    let difference = balance.difference().map_or("unknown".to_string(), human_signed);
    let mut sums = vec![match balance.total.aliased {
        0 => format!("resident {}", human(balance.total.resident)),
        more => format!("resident {} (and {} mapped again)", human(balance.total.resident), human(more)),
    }];
    sums.push(format!("kernel {kernel} ({difference})"));
    sums.push(format!("unattributed {} %", percent(balance.unattributed, balance.total.resident)));
    if balance.total.swapped > 0 {
        sums.push(format!("swapped {}", human(balance.total.swapped)));
    }
    sums.push(format!("page tables {}", balance.page_tables.map_or("unknown".to_string(), human)));
    side_by_side(out, &sums)?;
    malloc::summary(out, snapshot, map)?;
    writeln!(out)
}

/// When, and of what; a file says that it is one, since what it tells may be long past.
fn when(taken: &Taken) -> String {
    let at = if taken.at.is_empty() { "at an unknown time" } else { &taken.at };
    match taken.source {
        Source::Live => format!("{at}, read in {:.1} ms, target not stopped", taken.took_ms),
        Source::Frozen => format!("from a frozen file, taken {at}"),
        Source::Core => format!("from a core dump, written {at}"),
    }
}

/// Sentences with three spaces between them, as many to a line as it has room for.
fn side_by_side(out: &mut dyn Write, sentences: &[String]) -> io::Result<()> {
    let mut line = String::new();
    for sentence in sentences {
        if !line.is_empty() && line.chars().count() + 3 + sentence.chars().count() > width() {
            writeln!(out, "{line}")?;
            line.clear();
        }
        line.push_str(if line.is_empty() { "" } else { "   " });
        line.push_str(sentence);
    }
    writeln!(out, "{line}")
}

fn name_width() -> usize {
    let figures = if width() < ALL_FIGURES_MIN { 2 } else { 4 };
    let shares = if width() < SHARES_MIN { 0 } else { SHARE };
    width().saturating_sub(figures * FIGURE + shares).min(NAME_MAX)
}

fn table_head(out: &mut dyn Write, first: &str) -> io::Result<()> {
    cells(out, first, "RESIDENT", "%", ["COMMITTED", "RESERVED", "IN USE"].map(str::to_string))
}

fn row(out: &mut dyn Write, name: &str, sum: &Figures, in_use: Option<u64>, total: u64) -> io::Result<()> {
    let in_use = in_use.map_or("-".to_string(), human);
    let figures = [human(sum.committed), human(sum.reserved), in_use];
    cells(out, name, &human(sum.resident), &percent(sum.resident, total), figures)
}

/// A line of a table; where there is no room, without its share, then without what is committed and reserved.
fn cells(
    out: &mut dyn Write,
    name: &str,
    resident: &str,
    share: &str,
    [committed, reserved, in_use]: [String; 3],
) -> io::Result<()> {
    let room = name_width();
    write!(out, "{} {resident:>10}", fitted(name, room))?;
    if width() >= SHARES_MIN {
        write!(out, " {share:>5} ")?;
    }
    if width() >= ALL_FIGURES_MIN {
        write!(out, " {committed:>10} {reserved:>10}")?;
    }
    writeln!(out, " {in_use:>10}")
}

/// What could not be read, and what would help.
pub fn gaps(out: &mut dyn Write, gaps: &[Gap]) -> io::Result<()> {
    if gaps.is_empty() {
        return Ok(());
    }
    writeln!(out, "\nnot known:")?;
    for gap in gaps.iter().take(GAPS_SHOWN_MAX) {
        indented(out, &format!("{}: {}", gap.what, gap.why), 2)?;
        gap.hint.iter().try_for_each(|hint| indented(out, hint, 4))?;
    }
    if gaps.len() > GAPS_SHOWN_MAX {
        writeln!(out, "  and {} more (--json lists all)", gaps.len() - GAPS_SHOWN_MAX)?;
    }
    Ok(())
}

fn indented(out: &mut dyn Write, text: &str, indent: usize) -> io::Result<()> {
    let lines = wrapped(text, width() - indent);
    lines.iter().try_for_each(|line| writeln!(out, "{:indent$}{line}", ""))
}
