//! `marusa heap`: the largest classes first, then what lies between the objects.

use super::text::{gap_rows, who};
use super::units::{human, percent};
use crate::jvm::Duplicates;
use crate::map::heap::{HeapObjects, HeapTotals};
use crate::show::table::Table;
use std::io::{self, Write};

const CLASSES_SHOWN_MAX: usize = 40;
const CLASS_COLUMNS_MIN: usize = 40;

pub fn text(out: &mut dyn Write, heap: &HeapObjects) -> io::Result<()> {
    who(out, &heap.process, heap.jvm.as_ref(), &heap.taken)?;
    let Some(totals) = &heap.totals else {
        writeln!(out, "the objects of the heap are not known")?;
        return gap_rows(out, &heap.gaps);
    };
    writeln!(out, "{}\n", sums(totals))?;
    let all = totals.bytes.object_bytes;
    let mut table = Table::new(["CLASS", ">INSTANCES", ">BYTES", ">SHARE"]).ends_kept(0, CLASS_COLUMNS_MIN);
    let shown = if heap.more_classes > 0 { heap.classes.len() } else { CLASSES_SHOWN_MAX };
    for row in heap.classes.iter().take(shown) {
        table.row([row.class.clone(), row.instances.to_string(), human(row.bytes), percent(row.bytes, all)]);
    }
    table.write(out)?;
    let rest = heap.classes.len().saturating_sub(shown) as u64 + heap.more_classes;
    if rest > 0 {
        writeln!(out, "and {rest} more classes (--json lists them)")?;
    }
    writeln!(out)?;
    let mut table = Table::new(["SPACE", ">REGIONS", ">IN USE", ">OBJECTS", ">UNUSED", ">NOT KNOWN"]);
    for space in &heap.spaces {
        let bytes = &space.bytes;
        table.row([
            space.space.clone(),
            space.regions.to_string(),
            human(bytes.used_bytes),
            human(bytes.object_bytes),
            human(bytes.idle_bytes()),
            human(bytes.not_known_bytes()),
        ]);
    }
    table.write(out)?;
    heap.duplicates.iter().try_for_each(|found| duplicates(out, found))?;
    gap_rows(out, &heap.gaps)
}

fn duplicates(out: &mut dyn Write, found: &Duplicates) -> io::Result<()> {
    let (arrays, all) = (found.arrays, human(found.array_bytes));
    let whose = if found.has_all_arrays { "of bytes, Strings' and others" } else { "of Strings" };
    writeln!(out, "\n{arrays} arrays {whose}, {all}; {} of them are duplicates", found.duplicate_arrays)?;
    writeln!(out, "{} are wasted\n", human(found.wasted_bytes))?;
    let mut table = Table::new(["CONTENT", ">ARRAYS", ">EACH", ">WASTED"]).shortened(0, CLASS_COLUMNS_MIN);
    for row in &found.top {
        let content = row.value.clone().unwrap_or_else(|| format!("hash {}", row.hash));
        table.row([content, row.arrays.to_string(), human(row.array_bytes), human(row.wasted_bytes)]);
    }
    table.write(out)
}

fn sums(totals: &HeapTotals) -> String {
    let exact = totals.exact_ratio.map_or("unknown".to_string(), |ratio| format!("{:.2} %", ratio * 100.0));
    format!(
        "{} objects of {} classes, {} of {} in use; exact: {exact}",
        totals.instances,
        totals.classes,
        human(totals.bytes.object_bytes),
        human(totals.bytes.used_bytes),
    )
}
