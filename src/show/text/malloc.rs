//! malloc for people: one line of sums for the head of every table, and the table of arenas.

use super::{gaps, head};
use crate::map::MemoryMap;
use crate::map::malloc::{self, ArenaSum, Divided, MallocSum};
use crate::show::units::{human, shorten};
use crate::snapshot::Snapshot;
use std::io::{self, Write};

/// "malloc: 61 MiB in use, 38 MiB freed yet resident (31 MiB trimmable), 2 MiB overhead". Nothing where the chunks are not
/// known.
pub fn summary(out: &mut dyn Write, snapshot: &Snapshot, map: &MemoryMap) -> io::Result<()> {
    let Some(MallocSum { total, figures: Ok(figures), .. }) = malloc::sum(snapshot, map) else {
        return Ok(());
    };
    write!(
        out,
        "malloc: {} in use, {} freed yet resident ({} trimmable), {} overhead",
        human(total.in_use.resident),
        human(total.freed.resident),
        human(figures.trimmable_bytes),
        human(total.overhead.resident)
    )?;
    if total.unresolved.reserved > 0 {
        write!(out, ", {} unresolved", human(total.unresolved.reserved))?;
    }
    writeln!(out)
}

/// Resident bytes that malloc_trim(0) would give back now.
pub fn trimmable_bytes(snapshot: &Snapshot, map: &MemoryMap) -> Option<u64> {
    Some(malloc::sum(snapshot, map)?.figures.ok()?.trimmable_bytes)
}

/// The arenas of malloc, the biggest first. Every figure is of resident bytes.
pub fn by_arena(out: &mut dyn Write, snapshot: &Snapshot, map: &MemoryMap) -> io::Result<()> {
    head(out, snapshot, map)?;
    let Some(sum) = malloc::sum(snapshot, map) else { return gaps(out, &map.gaps) };
    line(
        out,
        "ARENA",
        ["THREADS", "HEAPS"],
        ["RESIDENT", "IN USE", "FREED", "TRIMMABLE", "TOP KEPT", "OVERHEAD", "UNRESOLVED"],
    )?;
    let mut arenas: Vec<&ArenaSum> = sum.arenas.iter().collect();
    arenas.sort_by_key(|arena| std::cmp::Reverse(arena.divided.whole.resident));
    for arena in arenas {
        let name = match arena.arena.number {
            0 => "main arena".to_string(),
            number => format!("arena {number}"),
        };
        let figures = arena.arena.figures.as_ref().ok();
        let threads = arena.arena.attached_threads.map_or("-".to_string(), |threads| threads.to_string());
        let heaps = arena.arena.heaps.len().to_string();
        let trim = figures.map(|figures| (figures.trimmable_bytes, figures.top_kept_bytes));
        line(out, &name, [&threads, &heaps], divided(&arena.divided, trim).each_ref().map(String::as_str))?;
    }
    if sum.mmapped.whole.reserved > 0 {
        let cells = divided(&sum.mmapped, Some((0, 0)));
        line(out, "mapped chunks", ["", ""], cells.each_ref().map(String::as_str))?;
    }
    let threads: Option<u64> = sum.arenas.iter().map(|arena| arena.arena.attached_threads).sum();
    let heaps: usize = sum.arenas.iter().map(|arena| arena.arena.heaps.len()).sum();
    let trim = sum.figures.as_ref().ok().map(|figures| (figures.trimmable_bytes, figures.top_kept_bytes));
    line(
        out,
        "total",
        [&threads.map_or("-".to_string(), |threads| threads.to_string()), &heaps.to_string()],
        divided(&sum.total, trim).each_ref().map(String::as_str),
    )?;
    writeln!(
        out,
        "\nresident bytes; FREED: in thread caches, bins and tops; TRIMMABLE: what malloc_trim(0) would give back;"
    )?;
    writeln!(out, "TOP KEPT: whole pages at the ends of thread arenas, which it leaves")?;
    gaps(out, &map.gaps)
}

/// The cells of one row; "-" where the chunks were not read.
fn divided(sum: &Divided, trim: Option<(u64, u64)>) -> [String; 7] {
    let walked = |bytes: u64| trim.map_or("-".to_string(), |_| human(bytes));
    [
        human(sum.whole.resident),
        walked(sum.in_use.resident),
        walked(sum.freed.resident),
        walked(trim.map_or(0, |(trimmable, _)| trimmable)),
        walked(trim.map_or(0, |(_, kept)| kept)),
        walked(sum.overhead.resident),
        walked(sum.unresolved.resident),
    ]
}

fn line(out: &mut dyn Write, name: &str, counts: [&str; 2], cells: [&str; 7]) -> io::Result<()> {
    write!(out, "{:<14}{:>8}{:>6}", shorten(name, 14), counts[0], counts[1])?;
    for cell in cells {
        write!(out, " {cell:>9}")?;
    }
    writeln!(out)
}
