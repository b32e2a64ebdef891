//! The tables of who holds malloc's blocks, of what class loaders have of the metaspace, and of the objects of each class, then and
//! now. Bytes are those in use, of loaders those committed; in memory or not.

use super::{ROWS_MAX, Taken};
use crate::map::diff::{Diff, HolderRow};
use crate::show::table::Table;
use crate::show::units::{human, human_signed, more, paragraph};
use std::io::{self, Write};

pub fn holders(out: &mut dyn Write, before: &Taken, now: &Taken, diff: &Diff) -> io::Result<()> {
    let Some(rows) = &diff.holders else {
        let text = "one of the two has no holders; marusa map --by holder --json, marusa record --holders-every 60s and \
                    a running JVM have them";
        return paragraph(out, "", "", text);
    };
    let titles = ["HOLDER OF MALLOC'S BLOCKS", ">GREW", ">BEFORE", ">NOW", ">BLOCKS", ">BLOCKS NOW"];
    if let (Some(before), Some(now)) = (&before.holders_at, &now.holders_at) {
        paragraph(out, "", "", &format!("holders as read at {before} and {now}"))?;
    }
    table(out, titles, rows)
}

pub fn loaders(out: &mut dyn Write, diff: &Diff) -> io::Result<()> {
    let Some(rows) = &diff.loaders else {
        let text = "one of the two has no class loaders; marusa map --by loader --json, a recording, and a running JVM have \
                    them";
        return paragraph(out, "", "", text);
    };
    table(out, ["CLASS LOADER", ">COMMITTED GREW", ">BEFORE", ">NOW", ">LOADERS", ">LOADERS NOW"], rows)
}

pub fn classes(out: &mut dyn Write, before: &Taken, now: &Taken, diff: &Diff) -> io::Result<()> {
    let Some(rows) = &diff.classes else {
        let text = "one of the two has no classes; marusa heap --json, marusa record --heap-every 5m and a running JVM have them";
        return paragraph(out, "", "", text);
    };
    if let (Some(before), Some(now)) = (&before.classes_at, &now.classes_at) {
        paragraph(out, "", "", &format!("classes as counted at {before} and {now}"))?;
    }
    table(out, ["CLASS", ">GREW", ">BEFORE", ">NOW", ">INSTANCES", ">INSTANCES NOW"], rows)
}

fn table(out: &mut dyn Write, titles: [&str; 6], rows: &[HolderRow]) -> io::Result<()> {
    if rows.is_empty() {
        return writeln!(out, "nothing of this kind changed");
    }
    let mut table = Table::new(titles).without_room(&[5, 2, 3]).shortened(0, 30);
    rows.iter().take(ROWS_MAX).for_each(|row| {
        table.row(cells(row));
        table.paint_cell(1, super::grown(row.grown()));
    });
    table.write(out)?;
    more(out, rows.len(), ROWS_MAX, 0)
}

fn cells(row: &HolderRow) -> [String; 6] {
    let unknown = || "-".to_string();
    [
        row.holder.clone(),
        row.grown().map_or_else(unknown, human_signed),
        row.before.map_or_else(unknown, human),
        row.now.map_or_else(unknown, human),
        row.count_grown().map_or_else(unknown, |more| format!("{more:+}")),
        row.count_now.map_or_else(unknown, |count| count.to_string()),
    ]
}
