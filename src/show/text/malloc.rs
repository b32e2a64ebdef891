//! malloc for people: one line of sums for the head of every table, and the table of arenas.

use crate::map::Account;
use crate::map::model::{ArenaAccount, MallocAccount, MallocSums};
use crate::show::table::Table;
use crate::show::units::{counted, human, indented, or_dash, paragraph, prose, shorten};
use crate::show::width::width;
use std::collections::HashMap;
use std::io::{self, Write};

/// Arenas with unresolved memory that are named below the table.
const UNRESOLVED_SHOWN_MAX: usize = 4;

/// "malloc: 61 MiB in use, 38 MiB freed yet resident (31 MiB trimmable), 2 MiB overhead". Nothing where the chunks are not
/// known.
pub fn summary(out: &mut dyn Write, account: &Account) -> io::Result<()> {
    let Some(malloc) = &account.malloc else { return Ok(()) };
    if let Some(other) = malloc.other.as_ref().filter(|other| other.reserved_bytes > 0) {
        write!(out, "{}: {} not walked", other.title(), human(other.not_walked_resident_bytes))?;
        match other.in_use_by_vm_resident_bytes {
            0 => writeln!(out)?,
            bytes => writeln!(out, ", and {} in blocks of the VM", human(bytes))?,
        }
    }
    let MallocSums {
        in_use_resident_bytes: Some(in_use),
        held_resident_bytes: Some(held),
        trimmable_bytes: Some(trimmable),
        overhead_resident_bytes: Some(overhead),
        unresolved_bytes: Some(unresolved),
        ..
    } = malloc.sums
    else {
        return Ok(());
    };
    let mut text = format!(
        "malloc: {} in use, {} freed yet resident ({} trimmable), {} overhead",
        human(in_use),
        human(held),
        human(trimmable),
        human(overhead)
    );
    for (bytes, what) in [(unresolved, "unresolved"), (malloc.not_walked_resident_bytes, "not walked")] {
        if bytes > 0 {
            text.push_str(&format!(", {} {what}", human(bytes)));
        }
    }
    paragraph(out, "", "", &text)
}

/// The arenas of malloc, the biggest first. Every figure is of resident bytes.
pub fn by_arena(out: &mut dyn Write, account: &Account) -> io::Result<()> {
    let Some(malloc) = &account.malloc else { return Ok(()) };
    let mut table = Table::new([
        "ARENA",
        ">THREADS",
        ">HEAPS",
        ">RESIDENT",
        ">IN USE",
        ">FREED",
        ">TRIMMABLE",
        ">TOP KEPT",
        ">OVERHEAD",
    ])
    .without_room(&[8, 7, 2, 5, 1, 6]);
    let mut row = |name: &str, [threads, heaps]: [String; 2], cells: Cells| {
        let cells = cells.map(|bytes| or_dash(bytes.map(human)));
        table.row([name.to_string(), threads, heaps].into_iter().chain(cells));
    };
    let mut arenas: Vec<&ArenaAccount> = malloc.arenas.iter().collect();
    arenas.sort_by_key(|arena| (std::cmp::Reverse(arena.resident_bytes), arena.arena));
    for arena in &arenas {
        let counts = [or_dash(arena.attached_threads), arena.heaps.to_string()];
        row(&arena.title(), counts, cells(arena.resident_bytes, &arena.sums));
    }
    if malloc.mmapped_resident_bytes > 0 {
        row("mapped chunks", [String::new(), String::new()], mapped_chunks(malloc));
    }
    let threads: Option<u64> = arenas.iter().map(|arena| arena.attached_threads).sum();
    let heaps: usize = arenas.iter().map(|arena| arena.heaps).sum();
    row("total", [or_dash(threads), heaps.to_string()], cells(malloc.resident_bytes, &malloc.sums));
    table.write(out)?;
    notes(out, &arenas)?;
    users(out, account, &arenas)
}

type Cells = [Option<u64>; 6];

fn cells(resident_bytes: u64, sums: &MallocSums) -> Cells {
    [
        Some(resident_bytes),
        sums.in_use_resident_bytes,
        sums.held_resident_bytes,
        sums.trimmable_bytes,
        sums.top_kept_bytes,
        sums.overhead_resident_bytes,
    ]
}

/// They are unmapped when they are freed, so nothing of them is held.
fn mapped_chunks(malloc: &MallocAccount) -> Cells {
    let (in_use, overhead) = (malloc.mmapped_in_use_resident_bytes, malloc.mmapped_overhead_resident_bytes);
    let none = in_use.map(|_| 0);
    [Some(malloc.mmapped_resident_bytes), in_use, none, none, none, overhead]
}

fn notes(out: &mut dyn Write, arenas: &[&ArenaAccount]) -> io::Result<()> {
    let of = |arena: &&ArenaAccount| arena.sums.unresolved_bytes.filter(|bytes| *bytes > 0);
    let unresolved: Vec<(String, u64)> =
        arenas.iter().filter_map(|arena| Some((arena.title(), of(arena)?))).collect();
    for (title, bytes) in unresolved.iter().take(UNRESOLVED_SHOWN_MAX) {
        indented(out, &format!("{title}: {} unresolved: not walked to the end", human(*bytes)), 0)?;
    }
    if unresolved.len() > UNRESOLVED_SHOWN_MAX {
        let more = counted(unresolved.len() - UNRESOLVED_SHOWN_MAX, "more arena");
        indented(out, &format!("and {more} (--json lists all)"), 0)?;
    }
    let text = "\nAll in memory. FREED: in thread caches and bins, at the ends of arenas. TRIMMABLE: what malloc_trim(0) would \
                give back. TOP KEPT: whole pages at thread arenas' ends, which it leaves.";
    prose(out, text)
}

/// Who allocates from which arena, as many names as a line holds.
fn users(out: &mut dyn Write, account: &Account, arenas: &[&ArenaAccount]) -> io::Result<()> {
    let names: HashMap<i32, &str> =
        account.threads.iter().map(|thread| (thread.tid, thread.name.as_str())).collect();
    if account.jvm.is_none() || arenas.iter().all(|arena| arena.threads.is_empty()) {
        return Ok(());
    }
    writeln!(out, "\nTHREADS THAT ALLOCATE FROM EACH")?;
    for arena in arenas.iter().filter(|arena| !arena.threads.is_empty()) {
        let mut text = format!("{:<14} ", arena.title());
        for (index, tid) in arena.threads.iter().enumerate() {
            let next = match names.get(tid) {
                Some(name) if !name.is_empty() => shorten(name, 32),
                _ => tid.to_string(),
            };
            let rest = format!(" and {} more", arena.threads.len() - index);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::map::MemoryMap;
    use crate::map::join;
    use crate::map::made_up::everything;
    use crate::show::text::{by_area_and_part, by_mapping, by_paper, head};
    use crate::show::width::within;
    use crate::snapshot::Snapshot;

    fn text(table: fn(&mut dyn Write, &Account) -> io::Result<()>) -> String {
        text_of(|out, account, _, _| table(out, account))
    }

    fn text_of(table: impl Fn(&mut dyn Write, &Account, &Snapshot, &MemoryMap) -> io::Result<()>) -> String {
        let snapshot = everything(vec![
            crate::map::made_up::run(0x10_0000, 0x11_0000, 1),
            crate::map::made_up::run(0x20_0000, 0x20_4000, 1),
        ]);
        let map = join(&snapshot);
        let account = Account::of(&snapshot, &map);
        let written = || {
            let mut out = Vec::new();
            head(&mut out, &account).expect("written");
            table(&mut out, &account, &snapshot, &map).expect("written");
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
        let text = text_of(|out, _, snapshot, map| by_mapping(out, snapshot, map));
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
