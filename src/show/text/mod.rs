//! The account as text of at most 100 columns: the sum first, then the biggest owners, then what is not known.

mod malloc;
mod mappings;
mod page_sizes;
mod tables;
mod why;

use super::units::{human, human_signed, percent, shorten};
use crate::base::Gap;
use crate::map::account::{AreaSum, PartSum, by_area, by_paper_area};
use crate::map::{Area, Figures, MemoryMap, PaperArea};
use crate::snapshot::Snapshot;
use std::io::{self, Write};

pub use malloc::by_arena;
pub use mappings::by_mapping;
pub use page_sizes::by_page_size;
pub use tables::{by_library, by_part, by_thread};
pub use why::{page_claims, requirements, why_not_larger};

/// The width of every text form, in columns.
pub const WIDTH: usize = 100;
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
            writeln!(
                out,
                "{:<42} {:>10} {:>5}",
                "  of it trimmable now",
                human(bytes),
                percent(bytes, total)
            )?;
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
    area.parts.len() > 1 && (is_big(part.figures.resident, total) || in_full && !is_crumb)
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
                writeln!(out, "{:<42} {:>10}        (within JVM work area)", area.title(), "-")?;
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
    writeln!(out, "{}", shorten(&who, WIDTH))?;
    if let Ok(jvm) = &snapshot.jvm {
        let version = jvm.version.as_deref().unwrap_or("version unknown");
        let gc = jvm.gc.as_ref().map_or("collector unknown", |gc| gc.name());
        let nmt = jvm.nmt.as_deref().unwrap_or("unknown");
        let threads = snapshot.os.tasks.len();
        writeln!(out, "{} {version}, {gc}, NMT {nmt}, {threads} threads", jvm.vm)?;
    }
    writeln!(out, "{}, read in {:.1} ms, target not stopped", taken.at, taken.took_ms)?;
    writeln!(out)?;
    let balance = &map.balance;
    let kernel = balance.kernel_resident.map_or("unknown".to_string(), human);
    let difference = balance.difference().map_or("unknown".to_string(), human_signed);
    write!(out, "resident {}", human(balance.total.resident))?;
    if balance.total.aliased > 0 {
        write!(out, " (and {} mapped twice)", human(balance.total.aliased))?;
    }
    write!(out, "   kernel {kernel} ({difference})")?;
    write!(out, "   unattributed {} %", percent(balance.unattributed, balance.total.resident))?;
    if balance.total.swapped > 0 {
        write!(out, "   swapped {}", human(balance.total.swapped))?;
    }
    writeln!(out, "   page tables {}", balance.page_tables.map_or("unknown".to_string(), human))?;
    malloc::summary(out, snapshot, map)?;
    writeln!(out)
}

fn table_head(out: &mut dyn Write, first: &str) -> io::Result<()> {
    writeln!(
        out,
        "{first:<42} {:>10} {:>5}  {:>10} {:>10} {:>10}",
        "RESIDENT", "%", "COMMITTED", "RESERVED", "IN USE"
    )
}

fn row(out: &mut dyn Write, name: &str, sum: &Figures, in_use: Option<u64>, total: u64) -> io::Result<()> {
    writeln!(
        out,
        "{:<42} {:>10} {:>5}  {:>10} {:>10} {:>10}",
        shorten(name, 42),
        human(sum.resident),
        percent(sum.resident, total),
        human(sum.committed),
        human(sum.reserved),
        in_use.map_or("-".to_string(), human)
    )
}

/// What could not be read, and what would help.
pub fn gaps(out: &mut dyn Write, gaps: &[Gap]) -> io::Result<()> {
    if gaps.is_empty() {
        return Ok(());
    }
    writeln!(out, "\nnot known:")?;
    for gap in gaps.iter().take(GAPS_SHOWN_MAX) {
        writeln!(out, "  {}", shorten(&format!("{}: {}", gap.what, gap.why), WIDTH - 2))?;
        if let Some(hint) = &gap.hint {
            writeln!(out, "    {}", shorten(hint, WIDTH - 4))?;
        }
    }
    if gaps.len() > GAPS_SHOWN_MAX {
        writeln!(out, "  and {} more (--json lists all)", gaps.len() - GAPS_SHOWN_MAX)?;
    }
    Ok(())
}
