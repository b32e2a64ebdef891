//! The section below `map --by page-size --zeros`: pages of zeros within larger pages, and what gives them back.

use super::PART_SHOWN_PERCENT;
use crate::map::Area;
use crate::map::bloat::{Bloat, Estimate, Sums};
use crate::os::zero_stretches::Sort;
use crate::show::units::{human, paragraph, percent, shorten};
use crate::show::width::width;
use std::io::{self, Write};

const NAME_MAX: usize = 42;
const FIGURES: usize = 40;

/// What may be said of zeros that a split leaves.
const LEFT: [(Sort, &str); 4] = [
    (Sort::ThpKept, "locked in memory, or shared with a forked process"),
    (Sort::Folio, "parts of larger folios that are mapped 4 KiB at a time"),
    (Sort::Shared, "shared memory: a split leaves them in the file"),
    (Sort::Hugetlb, "pages of hugetlb: never split"),
];

pub fn zeros_in_large_pages(out: &mut dyn Write, bloat: &Bloat) -> io::Result<()> {
    let name = width().saturating_sub(FIGURES).min(NAME_MAX);
    writeln!(
        out,
        "\n{:<name$} {:>10} {:>10} {:>5} {:>11}",
        "ZEROS IN LARGE PAGES", "ON LARGE", "ZEROS", "%", "SPLIT FREES"
    )?;
    let total = bloat.total.large_bytes();
    let mut areas: Vec<(&Area, &Sums)> =
        bloat.areas.iter().filter(|(_, sums)| sums.large_bytes() > 0).collect();
    areas.sort_by_key(|(_, sums)| std::cmp::Reverse(sums.large_bytes()));
    for (area, sums) in areas {
        row(out, bloat, name, area.title(), sums)?;
        let mut parts: Vec<(&str, &Sums)> = bloat
            .parts
            .iter()
            .filter(|((of, _), sums)| of == area && is_big(sums.large_bytes(), total))
            .map(|((_, part), sums)| (part.as_str(), sums))
            .collect();
        parts.sort_by_key(|(_, sums)| std::cmp::Reverse(sums.large_bytes()));
        let is_alone = bloat.parts.keys().filter(|(of, _)| of == area).count() == 1;
        for (part, sums) in parts.iter().filter(|_| !is_alone) {
            row(out, bloat, name, &format!("  {part}"), sums)?;
        }
    }
    row(out, bloat, name, "total", &bloat.total)?;
    notes(out, bloat)
}

fn is_big(bytes: u64, total: u64) -> bool {
    bytes.saturating_mul(100) >= total.saturating_mul(PART_SHOWN_PERCENT)
}

fn row(out: &mut dyn Write, bloat: &Bloat, width: usize, name: &str, sums: &Sums) -> io::Result<()> {
    let (large, zero) = (sums.large_bytes(), sums.large_zero());
    let (name, share) = (shorten(name, width), percent(zero.bytes, large));
    let back = human(bloat.split_returns(sums).bytes);
    writeln!(out, "{name:<width$} {:>10} {:>10} {share:>5} {back:>11}", human(large), human(zero.bytes))
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
