//! The longer tables of `map --by ...`.

use super::{gaps, head, row, table_head};
use crate::map::MemoryMap;
use crate::map::account::{self, by_area};
use crate::show::units::{human, shorten};
use crate::snapshot::Snapshot;
use std::collections::HashMap;
use std::io::{self, Write};

/// Every part of every area.
pub fn by_part(out: &mut dyn Write, snapshot: &Snapshot, map: &MemoryMap) -> io::Result<()> {
    head(out, snapshot, map)?;
    let total = map.balance.total.resident;
    table_head(out, "AREA / PART")?;
    for area in by_area(map) {
        row(out, area.area.title(), &area.figures, area.in_use, total)?;
        for part in &area.parts {
            row(out, &format!("  {}", part.part), &part.figures, part.in_use, total)?;
        }
    }
    gaps(out, &map.gaps)
}

/// Every span, in the order of addresses.
pub fn by_mapping(out: &mut dyn Write, snapshot: &Snapshot, map: &MemoryMap) -> io::Result<()> {
    head(out, snapshot, map)?;
    let [address, mode, reserved, resident, area] = ["ADDRESS", "MODE", "RESERVED", "RESIDENT", "AREA"];
    writeln!(out, "{address:<25} {mode:<4} {reserved:>9} {resident:>9}  {area:<15} PART")?;
    for span in &map.spans {
        let (owner, mapping) = (&map.owners[span.owner], &snapshot.os.mappings[span.mapping]);
        writeln!(
            out,
            "{:<25} {:<4} {:>9} {:>9}  {:<15} {}",
            span.range.to_string(),
            mapping.rights.text(),
            human(span.figures.reserved),
            human(span.figures.resident),
            owner.area.name(),
            shorten(&owner.part, 33)
        )?;
    }
    gaps(out, &map.gaps)
}

/// The stack of each thread.
pub fn by_thread(out: &mut dyn Write, snapshot: &Snapshot, map: &MemoryMap) -> io::Result<()> {
    head(out, snapshot, map)?;
    let names: HashMap<i32, (&str, String)> = snapshot
        .jvm
        .iter()
        .flat_map(|jvm| &jvm.threads)
        .map(|thread| (thread.tid, (thread.name.as_str(), format!("{:?}", thread.kind).to_lowercase())))
        .collect();
    let total = map.balance.total.resident;
    table_head(out, &format!("{:<7} {:<10} {}", "THREAD", "KIND", "NAME (its stack)"))?;
    for (tid, _, figures) in account::by_thread(map) {
        let (name, kind) = names.get(&tid).map_or(("?", "?"), |(name, kind)| (name, kind));
        row(out, &format!("{tid:<7} {kind:<10} {name}"), &figures, None, total)?;
    }
    gaps(out, &map.gaps)
}

/// Text, data and mapped memory of each library.
pub fn by_library(out: &mut dyn Write, snapshot: &Snapshot, map: &MemoryMap) -> io::Result<()> {
    head(out, snapshot, map)?;
    let total = map.balance.total.resident;
    table_head(out, "LIBRARY OR FILE")?;
    for (path, _, figures) in account::by_library(map) {
        row(out, path, &figures, None, total)?;
    }
    gaps(out, &map.gaps)
}

/// The arenas of malloc.
pub fn by_arena(out: &mut dyn Write, snapshot: &Snapshot, map: &MemoryMap) -> io::Result<()> {
    head(out, snapshot, map)?;
    let total = map.balance.total.resident;
    table_head(out, "ARENA")?;
    let sums = account::by_instance(map, |owner| match owner.instance {
        crate::map::Instance::Arena(number) => Some(number),
        _ => None,
    });
    for (number, _, figures) in sums {
        let name = if number == 0 { "main arena".to_string() } else { format!("arena {number}") };
        row(out, &name, &figures, None, total)?;
    }
    gaps(out, &map.gaps)
}
