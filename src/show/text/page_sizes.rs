//! `map --by page-size`: areas and their big parts against the page sizes that are in use, and how sure that is.

use super::{PART_SHOWN_PERCENT, is_big};
use crate::base::size;
use crate::map::Account;
use crate::map::model::{Amounts, AreaAccount, PageSizesAccount};
use crate::os::machine::{base_page, huge_page};
use crate::os::page_kind::{Backing, Contiguous, How, Look, PageKind};
use crate::show::table::Table;
use crate::show::units::{human, human_or_dash, paragraph, percent, shorten};
use crate::show::width::width;
use std::collections::BTreeSet;
use std::io::{self, Write};

const COLUMN: usize = 10;
/// A width that distinguishes any two parts, and the least acceptable one.
const NAME_GOOD: usize = 36;
const NAME_MIN: usize = 20;
/// The least width of names in a table with wide figures.
const NAME_COLUMNS_MIN: usize = 12;

/// What one column counts: bytes of the page sizes from the first to the last, hugetlb pages apart from transparent ones.
/// Several sizes share a column only where there is no room for one each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Column {
    first: u64,
    last: u64,
    is_hugetlb: bool,
}

/// Areas, and below each its biggest parts. The reasons, and what is not known, come after it.
pub fn by_page_size(out: &mut dyn Write, account: &Account) -> io::Result<()> {
    let total = &account.whole();
    let columns = fitted(columns(total), total);
    let titles = columns.iter().map(|column| format!(">{}", column.title()));
    let start = ["AREA", ">RESIDENT"].map(str::to_string);
    let mut table = Table::new(start.into_iter().chain(titles)).shortened(0, NAME_COLUMNS_MIN);
    let mut areas: Vec<&AreaAccount> =
        account.areas.iter().filter(|area| area.amounts.resident_bytes > 0).collect();
    areas.sort_by_key(|area| std::cmp::Reverse(area.amounts.resident_bytes));
    for area in &areas {
        table.row(cells(area.area.title(), &area.amounts, &columns));
        let parts = area.parts.iter().filter(|_| area.parts.len() > 1);
        for part in parts.filter(|part| is_big(part.amounts.resident_bytes, total.resident_bytes)) {
            table.row(cells(&format!("  {}", part.part), &part.amounts, &columns));
        }
    }
    table.total(cells("total", total, &columns));
    let share = |column: &Column| format!("{} %", percent(bytes(total, *column), total.resident_bytes));
    table.row([String::new(), "100 %".to_string()].into_iter().chain(columns.iter().map(share)));
    table.write(out)?;
    if let Some(sizes) = &account.page_sizes {
        writeln!(out)?;
        notes(out, sizes, total)?;
    }
    Ok(())
}

fn columns(total: &Amounts) -> Vec<Column> {
    let columns: BTreeSet<Column> = match &total.by_page_kind {
        Some(kinds) => {
            kinds.keys().map(|kind| Column::of(kind.page_bytes(), kind.backing == Backing::Hugetlb)).collect()
        }
        None => total.by_page_size.keys().map(|size| Column::of(*size, false)).collect(),
    };
    columns.into_iter().collect()
}

/// As many columns as fit: of neighbouring sizes between a base page and a huge one, the ones that have the least are
/// summed. Names are cut before sizes of some weight are.
fn fitted(mut columns: Vec<Column>, total: &Amounts) -> Vec<Column> {
    let little = total.resident_bytes.saturating_mul(PART_SHOWN_PERCENT) / 100;
    for (name, bytes_max) in [(NAME_GOOD, little), (NAME_MIN, u64::MAX)] {
        while (columns.len() + 1) * COLUMN + name > width() {
            let sum = |pair: &[Column]| pair.iter().map(|column| bytes(total, *column)).sum::<u64>();
            let may_join = |pair: &[Column]| pair.iter().all(|column| column.is_between());
            let pairs = columns.windows(2).enumerate().filter(|(_, pair)| may_join(pair));
            let least = pairs.map(|(index, pair)| (sum(pair), index)).min();
            let Some((_, index)) = least.filter(|(sum, _)| *sum <= bytes_max) else { break };
            let last = columns.remove(index + 1).last;
            columns[index].last = last;
        }
    }
    columns
}

impl Column {
    fn of(size: u64, is_hugetlb: bool) -> Column {
        Column { first: size, last: size, is_hugetlb }
    }

    /// Whether it is a folio above a base page and below a huge one.
    fn is_between(self) -> bool {
        !self.is_hugetlb && self.first > base_page() && self.last < huge_page()
    }

    fn has(self, size: u64) -> bool {
        (self.first..=self.last).contains(&size)
    }

    fn title(self) -> String {
        let kind = match self.first {
            _ if self.is_hugetlb => " HugeTLB",
            first if first >= huge_page() => " THP",
            _ => "",
        };
        let sizes = match self.first == self.last {
            true => size(self.first),
            false => format!("{}-{}", size(self.first), size(self.last)),
        };
        // The column has room for "2M HugeTLB" and a space before it only just.
        shorten(&format!("{sizes}{kind}"), COLUMN)
    }
}

fn bytes(amounts: &Amounts, column: Column) -> u64 {
    let Some(kinds) = &amounts.by_page_kind else {
        let sizes = amounts.by_page_size.iter().filter(|(size, _)| column.has(**size));
        return sizes.map(|(_, bytes)| bytes).sum();
    };
    let counts = |kind: &PageKind| {
        column.has(kind.page_bytes()) && (kind.backing == Backing::Hugetlb) == column.is_hugetlb
    };
    kinds.iter().filter(|(kind, _)| counts(kind)).map(|(_, bytes)| bytes).sum()
}

fn cells(name: &str, sum: &Amounts, columns: &[Column]) -> Vec<String> {
    let of_columns = columns.iter().map(|column| human_or_dash(bytes(sum, *column)));
    [name.to_string(), human(sum.resident_bytes)].into_iter().chain(of_columns).collect()
}

/// Pieces of huge folios, contiguity, and how all is known.
fn notes(out: &mut dyn Write, sizes: &PageSizesAccount, total: &Amounts) -> io::Result<()> {
    let in_pieces =
        |(kind, _): &(&PageKind, &u64)| kind.folio_bytes >= huge_page() && kind.entry_bytes < huge_page();
    let pieces: u64 = total.by_page_kind.iter().flatten().filter(in_pieces).map(|(_, bytes)| bytes).sum();
    if pieces > 0 {
        line(
            out,
            &format!(
                "{} of the {} are parts of {} folios that are mapped page by page",
                human(pieces),
                size(base_page()),
                human(huge_page())
            ),
        )?;
    }
    if let Some(found) = &sizes.contiguous {
        line(out, &contiguity(found))?;
    }
    let mut looks = sizes.looks.iter().filter(|look| look.resident_bytes > 0);
    looks.try_for_each(|look| line(out, &how(look)))
}

fn line(out: &mut dyn Write, text: &str) -> io::Result<()> {
    paragraph(out, "", "  ", text)
}

fn contiguity(found: &Contiguous) -> String {
    let part = |bytes: u64, error: u64| {
        let error =
            if error > 0 { format!(" ± {}", percent(error, found.resident_bytes)) } else { String::new() };
        format!("{}{error} %", percent(bytes, found.resident_bytes))
    };
    let sampled = match found.looked_at_bytes < found.resident_bytes {
        true => format!(" (sample of {})", human(found.looked_at_bytes)),
        false => String::new(),
    };
    format!(
        "contiguous in memory, of {} mapped 4 KiB at a time: {} in runs of 16 KiB, {} in runs of 64 KiB{sampled}",
        human(found.resident_bytes),
        part(found.in_16k_bytes, found.in_16k_error_bytes),
        part(found.in_64k_bytes, found.in_64k_error_bytes)
    )
}

fn how(look: &Look) -> String {
    let backing = match look.backing {
        Backing::Anonymous => "anonymous memory",
        Backing::File => "files",
        Backing::Shmem => "shared memory",
        Backing::Hugetlb => "hugetlb",
    };
    let of = format!("{backing}, {} in 4 KiB entries", human(look.resident_bytes));
    match look.how {
        How::NoneOnHost => format!("{of}: exact, the host has no larger folios of it"),
        How::Read => format!("{of}: exact, every page was looked at"),
        How::Hidden => format!("{of}: the kernel hides the folios, all count as 4K"),
        How::Sampled => {
            let errors: Vec<String> = look
                .error_bytes
                .iter()
                .map(|(bytes, error)| format!("{} ± {}", size(*bytes), human(*error)))
                .collect();
            let error = if errors.is_empty() {
                "page sizes exact".to_string()
            } else {
                format!("95 % intervals: {}", errors.join(", "))
            };
            format!("{of}: sample of {} blocks, {}; {error}", look.blocks, human(look.looked_at_bytes))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::show::width::within;

    #[test]
    fn sizes_that_have_no_room_share_a_column() {
        let sizes = [(4, 900), (16, 5), (32, 3), (64, 40), (128, 2), (256, 1), (2048, 300)];
        let by_page_size = sizes.into_iter().map(|(kib, mib)| (kib << 10, mib << 20)).collect();
        let total = Amounts { by_page_size, resident_bytes: 1251 << 20, ..Amounts::default() };
        let titles = |width| {
            let columns = within(width, || fitted(columns(&total), &total));
            assert_eq!(columns.iter().map(|column| bytes(&total, *column)).sum::<u64>(), 1251 << 20);
            columns.into_iter().map(Column::title).collect::<Vec<String>>()
        };
        assert_eq!(titles(100), ["4K", "16K-32K", "64K", "128K-256K", "2M THP"]);
        assert_eq!(titles(80), ["4K", "16K-32K", "64K", "128K-256K", "2M THP"]);
        assert_eq!(titles(70), ["4K", "16K-32K", "64K-256K", "2M THP"]);
        assert_eq!(titles(60), ["4K", "16K-256K", "2M THP"]);
    }
}
