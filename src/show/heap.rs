//! `marusa heap`: the largest classes first, then what lies between the objects.

use super::text::{gap_rows, who};
use super::units::{human, percent};
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
    gap_rows(out, &heap.gaps)
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
