//! malloc for people: one line of sums for the head of every table, and the table of arenas.

use super::{gaps, head};
use crate::map::MemoryMap;
use crate::map::malloc::{self, ArenaSum, Divided, MallocSum};
use crate::show::units::{fitted, human, shorten, wrapped};
use crate::show::width::width;
use crate::snapshot::Snapshot;
use std::collections::HashMap;
use std::io::{self, Write};

/// Arenas with unresolved memory that are named below the table.
const UNRESOLVED_SHOWN_MAX: usize = 4;

/// "malloc: 61 MiB in use, 38 MiB freed yet resident (31 MiB trimmable), 2 MiB overhead". Nothing where the chunks are not
/// known.
pub fn summary(out: &mut dyn Write, snapshot: &Snapshot, map: &MemoryMap) -> io::Result<()> {
    let Some(sum) = malloc::sum(snapshot, map) else { return Ok(()) };
    let other = snapshot.alloc.as_ref().ok().and_then(|alloc| alloc.other.as_ref());
    if let Some(other) = other.filter(|_| sum.other.whole.reserved > 0) {
        write!(out, "{}: {} not walked", other.title(), human(sum.other.unwalked.resident))?;
        match sum.other.in_use.resident {
            0 => writeln!(out)?,
            bytes => writeln!(out, ", beside {} in blocks of the VM", human(bytes))?,
        }
    }
    let MallocSum { total, figures: Ok(figures), .. } = sum else { return Ok(()) };
    let mut text = format!(
        "malloc: {} in use, {} freed yet resident ({} trimmable), {} overhead",
        human(total.in_use.resident),
        human(total.held_bytes()),
        human(figures.trimmable_bytes),
        human(total.overhead.resident)
    );
    if total.unresolved.reserved > 0 {
        text.push_str(&format!(", {} unresolved", human(total.unresolved.reserved)));
    }
    if total.unwalked.resident > 0 {
        text.push_str(&format!(", {} not walked", human(total.unwalked.resident)));
    }
    wrapped(&text, width()).iter().try_for_each(|line| writeln!(out, "{line}"))
}

/// Resident bytes that malloc_trim(0) would give back now.
pub fn trimmable_bytes(snapshot: &Snapshot, map: &MemoryMap) -> Option<u64> {
    Some(malloc::sum(snapshot, map)?.figures.ok()?.trimmable_bytes)
}

/// The arenas of malloc, the biggest first. Every figure is of resident bytes.
pub fn by_arena(out: &mut dyn Write, snapshot: &Snapshot, map: &MemoryMap) -> io::Result<()> {
    head(out, snapshot, map)?;
    let Some(sum) = malloc::sum(snapshot, map) else { return gaps(out, &map.gaps) };
    let titles = ["RESIDENT", "IN USE", "FREED", "TRIMMABLE", "TOP KEPT", "OVERHEAD"];
    line(out, "ARENA", ["THREADS", "HEAPS"], titles)?;
    let mut arenas: Vec<&ArenaSum> = sum.arenas.iter().collect();
    arenas.sort_by_key(|arena| (std::cmp::Reverse(arena.divided.whole.resident), arena.arena.number));
    for arena in &arenas {
        let counts = [count(arena.arena.attached_threads), arena.arena.heaps.len().to_string()];
        row(out, &name(arena.arena.number), counts, &arena.divided, trim_of(arena))?;
    }
    if sum.mmapped.whole.reserved > 0 {
        let walked = sum.mmapped.unwalked.reserved == 0;
        row(out, "mapped chunks", [String::new(), String::new()], &sum.mmapped, walked.then_some((0, 0)))?;
    }
    let threads: Option<u64> = arenas.iter().map(|arena| arena.arena.attached_threads).sum();
    let heaps: usize = arenas.iter().map(|arena| arena.arena.heaps.len()).sum();
    let trim = sum.figures.as_ref().ok().map(|totals| (totals.trimmable_bytes, totals.top_kept_bytes));
    row(out, "total", [count(threads), heaps.to_string()], &sum.total, trim)?;
    notes(out, &arenas)?;
    users(out, snapshot, &arenas)?;
    gaps(out, &map.gaps)
}

fn name(number: usize) -> String {
    if number == 0 { "main arena".to_string() } else { format!("arena {number}") }
}

fn count(count: Option<u64>) -> String {
    count.map_or("-".to_string(), |count| count.to_string())
}

/// What a trim would give back and what it would leave; `None` where the chunks were not read.
fn trim_of(arena: &ArenaSum) -> Option<(u64, u64)> {
    let figures = arena.arena.figures.as_ref().ok()?;
    Some((figures.trimmable_bytes, figures.top_kept_bytes))
}

fn notes(out: &mut dyn Write, arenas: &[&ArenaSum]) -> io::Result<()> {
    let unresolved: Vec<_> = arenas.iter().filter(|arena| arena.divided.unresolved.reserved > 0).collect();
    for arena in unresolved.iter().take(UNRESOLVED_SHOWN_MAX) {
        let bytes = human(arena.divided.unresolved.reserved);
        writeln!(out, "{}: {bytes} unresolved: not walked to the end", name(arena.arena.number))?;
    }
    if unresolved.len() > UNRESOLVED_SHOWN_MAX {
        writeln!(out, "and {} arenas more (--json lists all)", unresolved.len() - UNRESOLVED_SHOWN_MAX)?;
    }
    let text = "All in memory. FREED: in thread caches and bins, at the ends of arenas. TRIMMABLE: what malloc_trim(0) would give \
                back. TOP KEPT: whole pages at thread arenas' ends, which it leaves.";
    writeln!(out)?;
    wrapped(text, width()).iter().try_for_each(|line| writeln!(out, "{line}"))
}

/// Who allocates from which arena, as many names as a line holds.
fn users(out: &mut dyn Write, snapshot: &Snapshot, arenas: &[&ArenaSum]) -> io::Result<()> {
    let Ok(jvm) = &snapshot.jvm else { return Ok(()) };
    let names: HashMap<i32, &str> =
        jvm.threads.iter().map(|thread| (thread.tid, thread.name.as_str())).collect();
    if arenas.iter().all(|arena| arena.arena.threads.is_empty()) {
        return Ok(());
    }
    writeln!(out, "\nTHREADS THAT ALLOCATE FROM EACH")?;
    for arena in arenas.iter().filter(|arena| !arena.arena.threads.is_empty()) {
        let mut text = format!("{:<14} ", name(arena.arena.number));
        for (index, tid) in arena.arena.threads.iter().enumerate() {
            let next = match names.get(tid) {
                Some(name) if !name.is_empty() => shorten(name, 32),
                _ => tid.to_string(),
            };
            let rest = format!(" and {} more", arena.arena.threads.len() - index);
            if text.chars().count() + next.chars().count() + 2 + rest.len() > width() {
                text.push_str(&rest);
                break;
            }
            text.push_str(if index > 0 { ", " } else { "" });
            text.push_str(&next);
        }
        writeln!(out, "{}", text.trim_end())?;
    }
    Ok(())
}

fn row(
    out: &mut dyn Write,
    name: &str,
    counts: [String; 2],
    sum: &Divided,
    trim: Option<(u64, u64)>,
) -> io::Result<()> {
    let walked = |bytes: u64| trim.map_or("-".to_string(), |_| human(bytes));
    let (trimmable, kept) = trim.unwrap_or_default();
    let cells = [
        human(sum.whole.resident),
        walked(sum.in_use.resident),
        walked(sum.held_bytes()),
        walked(trimmable),
        walked(kept),
        walked(sum.overhead.resident),
    ];
    line(out, name, counts.each_ref().map(String::as_str), cells.each_ref().map(String::as_str))
}

fn line(out: &mut dyn Write, name: &str, counts: [&str; 2], cells: [&str; 6]) -> io::Result<()> {
    write!(out, "{} {:>8} {:>6}", fitted(name, 14), counts[0], counts[1])?;
    let room = width().saturating_sub(30) / 11;
    for cell in cells.into_iter().take(room) {
        write!(out, " {cell:>10}")?;
    }
    writeln!(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::map::join;
    use crate::map::malloc::tests::everything;
    use crate::show::text::{by_area_and_part, by_mapping, by_paper};
    use crate::show::width::within;

    type Table = fn(&mut dyn Write, &Snapshot, &MemoryMap) -> io::Result<()>;

    fn text(table: Table) -> String {
        let snapshot = everything(vec![
            crate::map::join::tests::run(0x10_0000, 0x11_0000, 1),
            crate::map::join::tests::run(0x20_0000, 0x20_4000, 1),
        ]);
        let map = join(&snapshot);
        let written = || {
            let mut out = Vec::new();
            table(&mut out, &snapshot, &map).expect("written");
            String::from_utf8(out).expect("UTF-8")
        };
        for columns in [60, 80, 100] {
            let text = within(columns, written);
            let wide = text.lines().find(|line| line.chars().count() > columns);
            assert_eq!(wide, None, "every table fits {columns} columns");
        }
        written()
    }

    #[test]
    fn the_head_says_what_malloc_holds() {
        let text = text(by_area_and_part);
        let line = "malloc: 28 KiB in use, 48 KiB freed yet resident (8 KiB trimmable), 4 KiB overhead, 1 B unresolved";
        assert!(text.lines().any(|written| written == line), "{text}");
        let trimmable = text.lines().find(|line| line.contains("of it trimmable now")).expect("the hint");
        assert!(trimmable.contains("8 KiB"), "{trimmable}");
    }

    #[test]
    fn the_arenas_sum_to_what_malloc_holds() {
        let text = text(by_arena);
        let cells = |name: &str| -> Vec<String> {
            let line = text.lines().find(|line| line.starts_with(name)).expect("the row");
            line[14..].split_whitespace().map(str::to_string).collect()
        };
        assert_eq!(cells("arena 1")[..4], ["2", "1", "64", "KiB"], "{text}");
        assert_eq!(cells("total")[..4], ["2", "1", "80", "KiB"], "{text}");
        assert!(text.contains("arena 1: 1 B unresolved"), "{text}");
    }

    #[test]
    fn a_span_of_several_owners_names_the_biggest() {
        let text = text(by_mapping);
        let line =
            text.lines().find(|line| line.contains(" 99 % freed: ")).unwrap_or_else(|| panic!("{text}"));
        assert!(line.ends_with(" +1"), "{text}");
    }

    #[test]
    fn the_papers_areas_have_figures_where_the_heap_was_walked() {
        let text = text(by_paper);
        assert!(!text.contains("within JVM work area"), "{text}");
    }
}
