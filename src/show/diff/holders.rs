//! The table of who holds malloc's blocks, then and now. Bytes are those of blocks in use, in memory or not.

use super::{ROWS_MAX, Taken};
use crate::map::diff::{Diff, HolderRow};
use crate::show::table::Table;
use crate::show::units::{human, human_signed, paragraph};
use std::io::{self, Write};

pub fn holders(out: &mut dyn Write, before: &Taken, now: &Taken, diff: &Diff) -> io::Result<()> {
    let Some(rows) = &diff.holders else {
        let text = "one of the two has no holders; marusa map --by holder --json, marusa record --holders-every 60s and \
                    a running JVM have them";
        return paragraph(out, "", "", text);
    };
    if let (Some(before), Some(now)) = (&before.holders_at, &now.holders_at) {
        paragraph(out, "", "", &format!("holders as read at {before} and {now}"))?;
    }
    if rows.is_empty() {
        return writeln!(out, "nothing of this kind changed");
    }
    let titles = ["HOLDER OF MALLOC'S BLOCKS", ">GREW", ">BEFORE", ">NOW", ">BLOCKS", ">BLOCKS NOW"];
    let mut table = Table::new(titles).without_room(&[5, 2, 3]).shortened(0, 30);
    rows.iter().take(ROWS_MAX).for_each(|row| {
        table.row(cells(row));
    });
    table.write(out)?;
    match rows.len().saturating_sub(ROWS_MAX) {
        0 => Ok(()),
        more => writeln!(out, "and {more} more (--json lists all)"),
    }
}

fn cells(row: &HolderRow) -> [String; 6] {
    let unknown = || "-".to_string();
    [
        row.holder.clone(),
        row.grown().map_or_else(unknown, human_signed),
        row.before.map_or_else(unknown, human),
        row.now.map_or_else(unknown, human),
        row.blocks_grown().map_or_else(unknown, |more| format!("{more:+}")),
        row.blocks_now.map_or_else(unknown, |blocks| blocks.to_string()),
    ]
}
