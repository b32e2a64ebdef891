//! The longer tables of `map --by ...`.

use super::{gaps, head, row, table_head};
use crate::map::MemoryMap;
use crate::map::account::{self, by_area};
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
