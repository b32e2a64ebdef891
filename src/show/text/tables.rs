//! The longer tables of `map --by ...`.

use super::{gap_rows, head, row, table_head};
use crate::map::Account;
use crate::map::model::ThreadAccount;
use std::io::{self, Write};

/// Every part of every area.
pub fn by_part(out: &mut dyn Write, account: &Account) -> io::Result<()> {
    head(out, account)?;
    let total = account.totals.resident_bytes;
    table_head(out, "AREA / PART")?;
    for area in &account.areas {
        row(out, area.area.title(), &area.amounts, total)?;
        for part in &area.parts {
            row(out, &format!("  {}", part.part), &part.amounts, total)?;
        }
    }
    gap_rows(out, &account.gaps)
}

/// The stack of each thread, the largest first.
pub fn by_thread(out: &mut dyn Write, account: &Account) -> io::Result<()> {
    head(out, account)?;
    let total = account.totals.resident_bytes;
    table_head(out, &format!("{:<7} {:<10} {}", "THREAD", "KIND", "NAME (its stack)"))?;
    for (thread, stack) in account.stacks() {
        let ThreadAccount { tid, name, kind, .. } = thread;
        row(out, &format!("{tid:<7} {:<10} {name}", kind.name()), stack, total)?;
    }
    gap_rows(out, &account.gaps)
}

/// Text, data and mapped memory of each library.
pub fn by_library(out: &mut dyn Write, account: &Account) -> io::Result<()> {
    head(out, account)?;
    let total = account.totals.resident_bytes;
    table_head(out, "LIBRARY OR FILE")?;
    for library in &account.libraries {
        row(out, &library.path, &library.amounts, total)?;
    }
    gap_rows(out, &account.gaps)
}
