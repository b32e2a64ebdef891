//! The longer tables of `map --by ...`.

use super::{NAME_COLUMNS_MIN, amounts_table, cells, gap_rows, head};
use crate::map::Account;
use crate::map::model::ThreadAccount;
use crate::show::table::Table;
use crate::show::units::human;
use std::io::{self, Write};

/// Every part of every area.
pub fn by_part(out: &mut dyn Write, account: &Account) -> io::Result<()> {
    head(out, account)?;
    let total = account.totals.resident_bytes;
    let mut table = amounts_table("AREA / PART");
    for area in &account.areas {
        table.row(cells(area.area.title(), &area.amounts, total));
        for part in &area.parts {
            table.row(cells(&format!("  {}", part.part), &part.amounts, total));
        }
    }
    table.write(out)?;
    gap_rows(out, &account.gaps)
}

/// The stack of each thread, the largest first.
pub fn by_thread(out: &mut dyn Write, account: &Account) -> io::Result<()> {
    head(out, account)?;
    let total = account.totals.resident_bytes;
    let titles = ["THREAD", "KIND", "NAME (its stack)", ">RESIDENT", ">%", ">COMMITTED", ">RESERVED"];
    let mut table = Table::new(titles).without_room(&[5, 6, 4]).shortened(2, 24);
    for (thread, stack) in account.stacks() {
        let ThreadAccount { tid, name, kind, .. } = thread;
        let [name, resident, share, committed, reserved, _] = cells(name, stack, total);
        table.row([tid.to_string(), kind.name().to_string(), name, resident, share, committed, reserved]);
    }
    table.write(out)?;
    compiling(out, account)?;
    gap_rows(out, &account.gaps)
}

/// What compiler threads compile, where any does.
fn compiling(out: &mut dyn Write, account: &Account) -> io::Result<()> {
    let mut table = Table::new(["THREAD", "COMPILES", "LEVEL", ">ITS ARENAS"]).shortened(1, NAME_COLUMNS_MIN);
    for (thread, compiling) in account.compilations() {
        let level = compiling.level.map_or("-".to_string(), |level| level.to_string());
        let osr = if compiling.is_osr == Some(true) { ", a loop that runs" } else { "" };
        let arenas = compiling.arena_bytes.map_or("-".to_string(), human);
        table.row([thread.tid.to_string(), compiling.method.clone(), format!("{level}{osr}"), arenas]);
    }
    if account.compilations().next().is_none() {
        return Ok(());
    }
    writeln!(out)?;
    table.write(out)
}

/// Text, data and mapped memory of each library; and the blocks of malloc that it keeps, which are not in its other figures.
pub fn by_library(out: &mut dyn Write, account: &Account) -> io::Result<()> {
    head(out, account)?;
    let total = account.totals.resident_bytes;
    let titles = ["LIBRARY OR FILE", ">RESIDENT", ">%", ">COMMITTED", ">RESERVED", ">OF MALLOC"];
    let mut table = Table::new(titles).without_room(&[3, 4, 2]).shortened(0, NAME_COLUMNS_MIN);
    for library in &account.libraries {
        let [path, resident, share, committed, reserved, _] = cells(&library.path, &library.amounts, total);
        let of_malloc = library.malloc_bytes.map_or("-".to_string(), human);
        table.row([path, resident, share, committed, reserved, of_malloc]);
    }
    table.write(out)?;
    gap_rows(out, &account.gaps)
}
