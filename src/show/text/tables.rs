//! The longer tables of `map --by ...`.

use super::{gaps, head, row, table_head};
use crate::map::account::{self, by_area};
use crate::map::{MemoryMap, Share};
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

/// What `--by mapping` leaves for the part.
const PART_WIDTH: usize = 32;
/// An owner of this much of a span gives it its area: the rest are headers mostly.
const NEARLY_ALL_PERCENT: u128 = 90;

/// Every span, in the order of addresses.
pub fn by_mapping(out: &mut dyn Write, snapshot: &Snapshot, map: &MemoryMap) -> io::Result<()> {
    head(out, snapshot, map)?;
    let [address, mode, reserved, resident, area] = ["ADDRESS", "MODE", "RESERVED", "RESIDENT", "AREA"];
    writeln!(out, "{address:<25} {mode:<4} {reserved:>9} {resident:>9}  {area:<15} PART")?;
    for span in &map.spans {
        let (figures, mapping) = (span.figures(), &snapshot.os.mappings[span.mapping]);
        let (area, part) = owners(map, &span.shares);
        writeln!(
            out,
            "{:<25} {:<4} {:>9} {:>9}  {area:<15} {}",
            span.range.to_string(),
            mapping.rights.text(),
            human(figures.reserved),
            human(figures.resident),
            shorten(&part, PART_WIDTH)
        )?;
    }
    gaps(out, &map.gaps)
}

/// The area and part; of several owners the biggest with its share.
fn owners(map: &MemoryMap, shares: &[Share]) -> (&'static str, String) {
    let Some(biggest) = shares.iter().max_by_key(|share| share.figures.reserved) else {
        return ("", String::new());
    };
    let owner = &map.owners[biggest.owner];
    if shares.len() == 1 {
        return (owner.area.name(), owner.part.clone());
    }
    let whole: u64 = shares.iter().map(|share| share.figures.reserved).sum();
    let percent = u128::from(biggest.figures.reserved) * 100 / u128::from(whole.max(1));
    let more = format!(" +{}", shares.len() - 1);
    let part = shorten(&owner.part, PART_WIDTH.saturating_sub(more.len() + 5));
    let area = if percent >= NEARLY_ALL_PERCENT { owner.area.name() } else { "several" };
    (area, format!("{percent} % {part}{more}"))
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
