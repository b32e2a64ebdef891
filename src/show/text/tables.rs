//! The longer tables of `map --by ...`.

use super::{NAME_COLUMNS_MIN, amounts_table, barred, cells};
use crate::base::Bytes;
use crate::jvm::types::ThreadKind;
use crate::map::Account;
use crate::map::model::Amounts;
use crate::show::table::Table;
use crate::show::units::{human, or_dash};
use std::io::{self, Write};

/// Every part of every area.
pub fn by_part(out: &mut dyn Write, account: &Account) -> io::Result<()> {
    let total = account.totals.resident_bytes;
    let mut table = amounts_table("AREA / PART");
    for area in &account.areas {
        table.row(barred(area.area.title(), &area.amounts, total));
        for part in &area.parts {
            table.row(cells(&format!("  {}", part.part), &part.amounts, total));
        }
    }
    table.write(out)
}

/// The stacks, a row for each pool of threads or, with `each`, for each thread; the largest first.
pub fn by_thread(out: &mut dyn Write, account: &Account, each: bool) -> io::Result<()> {
    let total = account.totals.resident_bytes;
    let first = if each { "THREAD" } else { ">THREADS" };
    let titles = [first, "KIND", "NAME (its stack)", ">RESIDENT", ">%", ">COMMITTED", ">RESERVED"];
    let mut table = Table::new(titles).without_room(&[5, 6, 4, 1]).shortened(2, 24);
    let mut row = |first: String, kind: ThreadKind, name: &str, stack: &Amounts| {
        let [name, resident, share, _, committed, reserved, _] = cells(name, stack, total);
        table.row([first, kind.name().to_string(), name, resident, share, committed, reserved]);
    };
    if each {
        let stacks = account.stacks().into_iter();
        stacks.for_each(|(thread, stack)| row(thread.tid.to_string(), thread.kind, &thread.name, stack));
    } else {
        let groups = account.stack_groups().into_iter();
        groups.for_each(|one| row(one.tids.len().to_string(), one.kind, &one.name, &one.amounts));
    }
    table.write(out)?;
    compiling(out, account)
}

/// What compiler threads compile, where any does.
fn compiling(out: &mut dyn Write, account: &Account) -> io::Result<()> {
    let mut table = Table::new(["THREAD", "COMPILES", "LEVEL", ">ITS ARENAS"]).shortened(1, NAME_COLUMNS_MIN);
    for (thread, compiling) in account.compilations() {
        let level = or_dash(compiling.level);
        let osr = if compiling.is_osr == Some(true) { ", a loop that runs" } else { "" };
        let arenas = or_dash(compiling.arena_bytes.map(human));
        table.row([thread.tid.to_string(), compiling.method.clone(), format!("{level}{osr}"), arenas]);
    }
    if account.compilations().next().is_none() {
        return Ok(());
    }
    table.write_below(out)
}

/// Text, data and mapped memory of each library, the small files of a directory in one row unless `each`; and the blocks of malloc
/// that it keeps, which are not in its other figures.
pub fn by_library(out: &mut dyn Write, account: &Account, each: bool) -> io::Result<()> {
    let total = account.totals.resident_bytes;
    let titles = ["LIBRARY OR FILE", ">FILES", ">RESIDENT", ">%", ">COMMITTED", ">RESERVED", ">OF MALLOC"];
    let mut table = Table::new(titles).without_room(&[4, 5, 3, 1, 6]).shortened(0, NAME_COLUMNS_MIN);
    let mut row = |path: &str, files: usize, amounts: &Amounts, of_malloc: Option<Bytes>| {
        let files = if files > 1 { files.to_string() } else { String::new() };
        let [path, resident, share, _, committed, reserved, _] = cells(path, amounts, total);
        table.row([path, files, resident, share, committed, reserved, or_dash(of_malloc.map(human))]);
    };
    if each {
        let libraries = account.libraries.iter();
        libraries.for_each(|one| row(&one.path, 1, &one.amounts, one.malloc_bytes));
    } else {
        let groups = account.file_groups().into_iter();
        groups.for_each(|one| row(&one.name, one.files, &one.amounts, one.malloc_bytes));
    }
    table.write(out)
}
