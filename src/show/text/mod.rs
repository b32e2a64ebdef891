//! The account as text of at most 100 columns (`show::width`): the sum first, then the biggest owners, then what is not known.

mod buffers;
mod holders;
mod loaders;
mod malloc;
mod mappings;
mod netty;
mod page_sizes;
mod tables;
mod why;
mod zeros;

use super::width::width;
use crate::base::Gap;
use crate::base::style::Style;
use crate::map::model::{Amounts, AreaAccount, GapRow, Jvm, PartAccount, Process, Taken};
use crate::map::{Account, Area, PaperArea};
use crate::show::paint;
use crate::show::table::Table;
use crate::show::units::{columns, counted, faint, human, human_signed, indented, or_dash, percent, shorten};
use crate::snapshot::Source;
use std::io::{self, Write};

pub use buffers::by_buffer;
pub use holders::by_holder;
pub use loaders::by_loader;
pub use malloc::by_arena;
pub use mappings::by_mapping;
pub use page_sizes::by_page_size;
pub use tables::{by_library, by_part, by_thread};
pub use why::{page_claims, requirements, why_not_larger};
pub use zeros::zeros_in_large_pages;

/// Names are cut down to this before a figure is left out.
const NAME_COLUMNS_MIN: usize = 36;
/// Parts smaller than this share of all resident bytes are not shown below their area.
const PART_SHOWN_PERCENT: u64 = 1;
const GAPS_SHOWN_MAX: usize = 12;

/// `marusa map`: areas, and below each its biggest parts.
pub fn by_area_and_part(out: &mut dyn Write, account: &Account) -> io::Result<()> {
    let total = account.totals.resident_bytes;
    let is_there = |area: &&AreaAccount| {
        area.amounts.resident_bytes > 0
            || area.amounts.swapped_bytes.is_some_and(|bytes| bytes > 0)
            || area.area == Area::JavaHeap
    };
    let mut areas: Vec<&AreaAccount> = account.areas.iter().filter(is_there).collect();
    areas.sort_by_key(|area| {
        (area.area == Area::Unattributed, std::cmp::Reverse(area.amounts.resident_bytes))
    });
    let mut table = amounts_table("AREA");
    for area in &areas {
        table.row(barred(area.area.title(), &area.amounts, total));
        for part in area.parts.iter().filter(|part| is_shown(area, part, total)) {
            table.row(cells(&format!("  {}", part.part), &part.amounts, total));
        }
        if let (Area::MallocFreed, Some(bytes)) = (area.area, account.trimmable_bytes())
            && is_big(bytes, total)
        {
            table.row(["  of it trimmable now", &human(bytes), &percent(bytes, total)]);
        }
    }
    table.total(total_cells(account));
    table.write(out)
}

/// Without a figure for what is in use: the sum would be that of the areas that know theirs.
fn total_cells(account: &Account) -> [String; 7] {
    let whole = Amounts { in_use_bytes: None, ..account.whole() };
    cells("total", &whole, account.totals.resident_bytes)
}

fn is_big(bytes: u64, total: u64) -> bool {
    bytes.saturating_mul(100) >= total.saturating_mul(PART_SHOWN_PERCENT)
}

/// Where much was freed and is still held, all of it is listed except for crumbs below a thousandth of the process.
fn is_shown(area: &AreaAccount, part: &PartAccount, total: u64) -> bool {
    let in_full = area.area == Area::MallocFreed && is_big(area.amounts.resident_bytes, total);
    let is_crumb = part.amounts.resident_bytes < total / 1000;
    // The only part of these areas may be something else than the name of the area says.
    let has_own_name = matches!(area.area, Area::DirectBuffers | Area::MallocUnknown);
    let is_listed = area.parts.len() > 1 || has_own_name && part.part != area.area.title();
    is_listed && (is_big(part.amounts.resident_bytes, total) || in_full && !is_crumb)
}

/// `--taxonomy paper`: the eight areas of the 2010 paper and the Java heap.
pub fn by_paper(out: &mut dyn Write, account: &Account) -> io::Result<()> {
    let total = account.totals.resident_bytes;
    let walked = account.trimmable_bytes().is_some();
    let mut table = amounts_table("AREA (OOPSLA 2010)");
    let row = |name: &str, sum: Amounts| barred(name, &sum, total);
    table.row(row("Java heap", account.sum_of(|area| area == Area::JavaHeap)));
    for area in PaperArea::ALL {
        let sum = account.sum_of(|of| of.paper() == Some(area));
        match area {
            // Where malloc's chunks were not read, these are not known, not 0.
            PaperArea::MallocFreed | PaperArea::Overhead if !walked && sum.resident_bytes == 0 => {
                table.row([&format!("{} (within JVM work area)", area.title()), "-"]);
            }
            _ => table.row(row(area.title(), sum)),
        }
    }
    let is_left = |area: Area| area != Area::JavaHeap && area.paper().is_none();
    table.row(row("unattributed", account.sum_of(is_left)));
    table.total(total_cells(account));
    table.write(out)
}

/// Which process, which JVM, and when.
pub fn who(out: &mut dyn Write, process: &Process, jvm: Option<&Jvm>, taken: &Taken) -> io::Result<()> {
    let server = process.server.as_ref().map_or(String::new(), |server| format!("{server}  "));
    let start = shorten(&format!("pid {}  {server}", process.pid), width() - 1);
    let room = width().saturating_sub(columns(&start));
    writeln!(out, "{start}{}", shorten(&process.command, room))?;
    if let Some(jvm) = jvm {
        let version = jvm.version.as_deref().unwrap_or("version unknown");
        let gc = jvm.gc.as_deref().unwrap_or("collector unknown");
        let nmt = jvm.nmt.as_deref().unwrap_or("unknown");
        let threads = counted(process.threads, "thread");
        indented(out, &format!("{} {version}, {gc}, NMT {nmt}, {threads}", jvm.vm), 0)?;
    }
    indented(out, &when(taken), 0)?;
    writeln!(out)
}

/// Who, when, and the sum against the kernel's.
pub fn head(out: &mut dyn Write, account: &Account) -> io::Result<()> {
    who(out, &account.process, account.jvm.as_ref(), &account.taken)?;
    let totals = &account.totals;
    let or_unknown = |bytes: Option<u64>| bytes.map_or("unknown".to_string(), human);
    let kernel = or_unknown(totals.kernel_resident_bytes);
    let difference = totals.difference_bytes.map_or("unknown".to_string(), human_signed);
    let mut sums = vec![match totals.aliased_bytes {
        0 => format!("resident {}", human(totals.resident_bytes)),
        more => format!("resident {} (and {} mapped again)", human(totals.resident_bytes), human(more)),
    }];
    sums.push(format!("kernel {kernel} ({difference})"));
    sums.push(format!("unattributed {} %", percent(totals.unattributed_bytes, totals.resident_bytes)));
    if totals.swapped_bytes != Some(0) {
        sums.push(format!("swapped {}", or_unknown(totals.swapped_bytes)));
    }
    sums.push(format!("page tables {}", or_unknown(totals.page_table_bytes)));
    side_by_side(out, &sums)?;
    malloc::summary(out, account)?;
    writeln!(out)
}

/// When, and of what; a file says that it is one, since its contents may be old.
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

/// A table of amounts, whose first column names their owners; bars come next to their shares, where there are bars.
fn amounts_table(first: &str) -> Table {
    let titles = [first, ">RESIDENT", ">%", "", ">COMMITTED", ">RESERVED", ">IN USE"];
    Table::new(titles).without_room(&[4, 5, 3, 2, 6]).shortened(0, NAME_COLUMNS_MIN)
}

/// With a bar of the share.
fn barred(name: &str, sum: &Amounts, total: u64) -> [String; 7] {
    let mut cells = cells(name, sum, total);
    if paint::has_bars() {
        cells[3] = paint::bar(sum.resident_bytes, total);
    }
    cells
}

/// Without a bar.
fn cells(name: &str, sum: &Amounts, total: u64) -> [String; 7] {
    [
        name.to_string(),
        human(sum.resident_bytes),
        percent(sum.resident_bytes, total),
        String::new(),
        human(sum.committed_bytes),
        human(sum.reserved_bytes),
        or_dash(sum.in_use_bytes.map(human)),
    ]
}

/// What could not be read, and what would help.
pub fn gaps(out: &mut dyn Write, gaps: &[Gap]) -> io::Result<()> {
    gap_rows(out, &gaps.iter().map(GapRow::from).collect::<Vec<_>>())
}

pub fn gap_rows(out: &mut dyn Write, gaps: &[GapRow]) -> io::Result<()> {
    let gaps: Vec<&GapRow> = gaps.iter().filter(|gap| !gap.is_for_json()).collect();
    if gaps.is_empty() {
        return Ok(());
    }
    writeln!(out)?;
    paint::line(out, Style::Bold, "not known:")?;
    for gap in gaps.iter().take(GAPS_SHOWN_MAX) {
        faint(out, &format!("{}: {}", gap.what, gap.why), 2)?;
        gap.hint.iter().try_for_each(|hint| faint(out, hint, 4))?;
    }
    if gaps.len() > GAPS_SHOWN_MAX {
        faint(out, &format!("and {} more (--json lists all)", gaps.len() - GAPS_SHOWN_MAX), 2)?;
    }
    Ok(())
}
