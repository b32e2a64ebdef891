//! `marusa heap`: the largest classes first, then the space between the objects.

use super::text::{gap_rows, who};
use super::units::{counted, human, human_or_dash, indented, percent};
use crate::base::{Bytes, size};
use crate::jvm::{ClassObjects, Duplicates};
use crate::map::heap::{HeapObjects, HeapTotals};
use crate::os::machine::{base_page, huge_page};
use crate::show::table::Table;
use std::collections::BTreeSet;
use std::io::{self, Write};

const CLASSES_SHOWN_MAX: usize = 40;
const CLASS_COLUMNS_MIN: usize = 40;

/// `by_page_size`: the pages that each class is on, in place of its share.
pub fn text(out: &mut dyn Write, heap: &HeapObjects, by_page_size: bool) -> io::Result<()> {
    who(out, &heap.process, heap.jvm.as_ref(), &heap.taken)?;
    let Some(totals) = &heap.totals else {
        indented(out, "the objects of the heap are not known", 0)?;
        return gap_rows(out, &heap.gaps);
    };
    indented(out, &sums(totals), 0)?;
    writeln!(out)?;
    let shown = if heap.more_classes > 0 { heap.classes.len() } else { CLASSES_SHOWN_MAX };
    classes(out, &heap.classes[..shown.min(heap.classes.len())], totals.bytes.object_bytes, by_page_size)?;
    let rest = heap.classes.len().saturating_sub(shown) as u64 + heap.more_classes;
    if rest > 0 {
        indented(out, &format!("and {} (--json lists them)", counted(rest, "more class")), 0)?;
    }
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
    table.write_below(out)?;
    heap.duplicates.iter().try_for_each(|found| duplicates(out, found))?;
    gap_rows(out, &heap.gaps)
}

fn classes(out: &mut dyn Write, classes: &[ClassObjects], all: Bytes, by_page_size: bool) -> io::Result<()> {
    let columns = if by_page_size { page_columns(classes) } else { Vec::new() };
    let is_exact = classes.iter().all(|row| may_differ(row) == 0);
    let mut titles: Vec<String> = ["CLASS", ">INSTANCES", ">BYTES"].map(str::to_string).to_vec();
    titles.extend((!is_exact).then(|| ">±".to_string()));
    match by_page_size {
        true => titles.extend(columns.iter().map(|(first, last)| title(*first, *last))),
        false => titles.push(">SHARE".to_string()),
    }
    let mut table = Table::new(&titles).ends_kept(0, CLASS_COLUMNS_MIN);
    for row in classes {
        let mut cells = vec![row.class.clone(), row.instances.to_string(), human(row.bytes)];
        cells.extend((!is_exact).then(|| human_or_dash(may_differ(row))));
        match by_page_size {
            true => {
                cells.extend(columns.iter().map(|(first, last)| human_or_dash(on_pages(row, *first, *last))))
            }
            false => cells.push(percent(row.bytes, all)),
        }
        table.row(cells);
    }
    table.write(out)
}

/// The largest distance of the bounds from `bytes`.
fn may_differ(row: &ClassObjects) -> Bytes {
    row.bytes.saturating_sub(row.bytes_low).max(row.bytes_high.saturating_sub(row.bytes))
}

/// Each page size in use; those between a base page and a huge one together.
fn page_columns(classes: &[ClassObjects]) -> Vec<(Bytes, Bytes)> {
    let sizes: BTreeSet<Bytes> =
        classes.iter().flat_map(|row| row.by_page_size.iter().flatten().map(|(size, _)| *size)).collect();
    let mut columns: Vec<(Bytes, Bytes)> = Vec::new();
    for size in sizes {
        match columns.last_mut() {
            Some((first, _)) if *first == base_page() => columns.push((size, size)),
            None => columns.push((size, size)),
            Some((_, last)) if size < huge_page() => *last = size,
            Some(_) => columns.push((size, size)),
        }
    }
    columns
}

fn title(first: Bytes, last: Bytes) -> String {
    if first == last { format!(">{}", size(first)) } else { format!(">{}-{}", size(first), size(last)) }
}

fn on_pages(row: &ClassObjects, first: Bytes, last: Bytes) -> Bytes {
    row.by_page_size.as_ref().map_or(0, |sizes| sizes.range(first..=last).map(|(_, bytes)| bytes).sum())
}

fn duplicates(out: &mut dyn Write, found: &Duplicates) -> io::Result<()> {
    let (arrays, all) = (found.arrays, human(found.array_bytes));
    let whose = if found.has_all_arrays { "of bytes, Strings' and others" } else { "of Strings" };
    writeln!(out)?;
    let text = format!(
        "{} {whose}, {all}; duplicates among them: {}",
        counted(arrays, "array"),
        found.duplicate_arrays
    );
    indented(out, &text, 0)?;
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
        "{} of {}, {} of {} in use; exact: {exact}",
        counted(totals.instances, "object"),
        counted(totals.classes, "class"),
        human(totals.bytes.object_bytes),
        human(totals.bytes.used_bytes),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_of_pages_between_small_and_huge_share_a_column() {
        let row = |sizes: &[(u64, u64)]| ClassObjects {
            class: "[B".to_string(),
            bytes: 100 << 20,
            bytes_low: 90 << 20,
            bytes_high: 101 << 20,
            by_page_size: Some(sizes.iter().copied().collect()),
            ..ClassObjects::default()
        };
        let rows = [
            row(&[(4096, 1 << 20), (16 << 10, 2 << 20), (64 << 10, 3 << 20), (2 << 20, 90 << 20)]),
            row(&[(1 << 30, 1)]),
        ];
        assert_eq!(may_differ(&rows[0]), 10 << 20);
        let mut text = Vec::new();
        classes(&mut text, &rows, 200 << 20, true).expect("memory takes all");
        let text = String::from_utf8(text).expect("text");
        let words: Vec<&str> = text.split_whitespace().collect();
        assert_eq!(words[..8], ["CLASS", "INSTANCES", "BYTES", "±", "4K", "16K-64K", "2M", "1G"], "{text}");
        assert!(text.contains("5.0 MiB") && text.contains("90.0 MiB"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
        let mut text = Vec::new();
        let still = ClassObjects { bytes_low: 1, bytes_high: 1, bytes: 1, ..ClassObjects::default() };
        classes(&mut text, &[still], 1, false).expect("memory takes all");
        assert!(!String::from_utf8(text).expect("text").contains('±'), "exact");
    }
}
