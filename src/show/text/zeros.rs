//! The section below `map --by page-size --zeros`: pages of zeros within larger pages, and what gives them back.

use super::PART_SHOWN_PERCENT;
use crate::map::Area;
use crate::map::bloat::{Bloat, Estimate, Sums};
use crate::os::zero_ranges::Sort;
use crate::show::table::Table;
use crate::show::units::{human, paragraph, percent};
use std::io::{self, Write};

/// A statement about the zeros that a split leaves.
const LEFT: [(Sort, &str); 4] = [
    (Sort::ThpKept, "locked in memory, or shared with a forked process"),
    (Sort::Folio, "parts of larger folios that are mapped 4 KiB at a time"),
    (Sort::Shared, "shared memory: a split leaves them in the file"),
    (Sort::Hugetlb, "pages of hugetlb: never split"),
];

pub fn zeros_in_large_pages(out: &mut dyn Write, bloat: &Bloat) -> io::Result<()> {
    let titles = ["ZEROS IN LARGE PAGES", ">ON LARGE", ">ZEROS", ">%", ">SPLIT FREES"];
    let mut table = Table::new(titles).shortened(0, 20);
    let total = bloat.total.large_bytes();
    let mut areas: Vec<(&Area, &Sums)> =
        bloat.areas.iter().filter(|(_, sums)| sums.large_bytes() > 0).collect();
    areas.sort_by_key(|(_, sums)| std::cmp::Reverse(sums.large_bytes()));
    for (area, sums) in areas {
        table.row(cells(bloat, area.title(), sums));
        let mut parts: Vec<(&str, &Sums)> = bloat
            .parts
            .iter()
            .filter(|((of, _), sums)| of == area && is_big(sums.large_bytes(), total))
            .map(|((_, part), sums)| (part.as_str(), sums))
            .collect();
        parts.sort_by_key(|(_, sums)| std::cmp::Reverse(sums.large_bytes()));
        let is_alone = bloat.parts.keys().filter(|(of, _)| of == area).count() == 1;
        for (part, sums) in parts.iter().filter(|_| !is_alone) {
            table.row(cells(bloat, &format!("  {part}"), sums));
        }
    }
    table.total(cells(bloat, "total", &bloat.total));
    table.write_below(out)?;
    notes(out, bloat)
}

fn is_big(bytes: u64, total: u64) -> bool {
    bytes.saturating_mul(100) >= total.saturating_mul(PART_SHOWN_PERCENT)
}

fn cells(bloat: &Bloat, name: &str, sums: &Sums) -> [String; 5] {
    let (large, zero) = (sums.large_bytes(), sums.large_zero());
    let back = human(bloat.split_returns(sums).bytes);
    [name.to_string(), human(large), human(zero.bytes), percent(zero.bytes, large), back]
}

fn notes(out: &mut dyn Write, bloat: &Bloat) -> io::Result<()> {
    let mut notes = vec![how(bloat)];
    for (sort, why) in LEFT {
        let zero = bloat.total.of(sort).zero.bytes;
        if zero > 0 {
            notes.push(format!("{} of the zeros are {why}", human(zero)));
        }
    }
    let stacks = bloat.area(Area::Stack).of(Sort::StackSmall);
    if stacks.zero.bytes > 0 {
        notes.push(format!("besides, {} of the stacks' 4 KiB pages are zeros", human(stacks.zero.bytes)));
    }
    if !bloat.split_gives_back && bloat.total.of(Sort::Thp).zero.bytes > 0 {
        notes.push("a split gives pages of zeros back since Linux 6.12".to_string());
    }
    if bloat.total.of(Sort::Thp).resident_bytes > 0 {
        let shrinker: u64 = bloat.total.0.values().map(|sum| sum.shrinker_bytes).sum();
        let frees = if shrinker > 0 { format!(", {} of zeros", human(shrinker)) } else { String::new() };
        notes.push(format!("the kernel by itself: {}{frees}", bloat.shrinker.text()));
    }
    notes.iter().try_for_each(|note| paragraph(out, "", "  ", note))
}

fn how(bloat: &Bloat) -> String {
    let read = format!("{} read in {:.0} ms", human(bloat.read_bytes), bloat.read_ms);
    match bloat.is_sampled {
        false => format!("every page was looked at: {read}"),
        true => {
            let Estimate { low, high, .. } = bloat.total.large_zero();
            format!("a sample, {read}: zeros are {} to {} (95 %)", human(low), human(high))
        }
    }
}
