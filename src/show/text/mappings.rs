//! `map --by mapping`: every span in the order of addresses, in the form of Solaris `pmap -sx`, with owners.

use crate::base::size;
use crate::map::{Area, MemoryMap, Owner, Share, Span};
use crate::os::maps::Mapping;
use crate::os::smaps::{self, Smap};
use crate::show::table::Table;
use crate::show::units::{human_or_dash, prose};
use crate::snapshot::Snapshot;
use std::io::{self, Write};

/// All columns but the owner, and what an owner needs.
const OWNER_COLUMNS_MIN: usize = 24;

pub fn by_mapping(out: &mut dyn Write, snapshot: &Snapshot, map: &MemoryMap) -> io::Result<()> {
    let titles = ["ADDRESS", ">RESERVED", ">RESIDENT", ">ANON", ">LOCKED", "PGSZ", "MODE", "OWNER"];
    let table = Table::new(titles).without_room(&[4, 3, 6, 5, 1]).shortened(7, OWNER_COLUMNS_MIN);
    table.rows(map.spans.iter().map(|span| cells(snapshot, map, span))).write(out)?;
    let mode = "\nmode: rwx; s shared; hg asked for huge pages, nh asked for none; ht hugetlb; lo locked";
    prose(out, mode)
}

fn cells(snapshot: &Snapshot, map: &MemoryMap, span: &Span) -> [String; 8] {
    let (sums, mapping) = (span.figures(), &snapshot.os.mappings[span.mapping]);
    let smap = match &snapshot.os.smaps {
        Some(Ok(smaps)) => smaps::find(smaps, mapping.range.start),
        _ => None,
    };
    let locked = smap.map_or("?".to_string(), |smap| match smap.has_flag("lo") {
        true => human_or_dash(sums.resident),
        false => "-".to_string(),
    });
    let sizes: Vec<u64> =
        sums.by_page_size.iter().filter(|(_, bytes)| **bytes > 0).map(|(size, _)| *size).collect();
    [
        format!("{:012x}", span.range.start.0),
        human_or_dash(sums.reserved),
        human_or_dash(sums.resident),
        human_or_dash(sums.anonymous),
        locked,
        page_sizes(&sizes),
        mode(mapping, smap),
        owner(map, &span.shares),
    ]
}

/// "4K", "4K,2M", "4K..64K" where there are more.
fn page_sizes(sizes: &[u64]) -> String {
    let names: Vec<String> = sizes.iter().map(|bytes| size(*bytes)).collect();
    match &names[..] {
        [] => "-".to_string(),
        [first, .., last] if names.len() > 2 => format!("{first}..{last}"),
        few => few.join(","),
    }
}

/// "rw-", "rw-s", "rw- hg".
fn mode(mapping: &Mapping, smap: Option<&Smap>) -> String {
    let rights = mapping.rights.text();
    let mut mode = rights.strip_suffix('p').unwrap_or(&rights).to_string();
    for flag in ["hg", "nh", "ht", "lo"] {
        if smap.is_some_and(|smap| smap.has_flag(flag)) {
            mode.push(' ');
            mode.push_str(flag);
        }
    }
    mode
}

/// The area and part; of several owners the biggest with its share.
fn owner(map: &MemoryMap, shares: &[Share]) -> String {
    let Some(biggest) = shares.iter().max_by_key(|share| share.figures.reserved) else {
        return String::new();
    };
    let owner = &map.owners[biggest.owner];
    if shares.len() == 1 {
        return named(owner);
    }
    let whole: u64 = shares.iter().map(|share| share.figures.reserved).sum();
    let percent = u128::from(biggest.figures.reserved) * 100 / u128::from(whole.max(1));
    format!("{percent} % {} +{}", named(owner), shares.len() - 1)
}

/// The part names itself; except for lists of malloc, which are called "unsorted" or "fast bins".
fn named(owner: &Owner) -> String {
    if owner.area == Area::MallocFreed { format!("freed: {}", owner.part) } else { owner.part.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::os::maps::parse_line;

    #[test]
    fn sizes_and_modes_in_their_columns() {
        assert_eq!(page_sizes(&[4096, 2 << 20]), "4K,2M");
        assert_eq!(page_sizes(&[4096, 16 << 10, 64 << 10, 1 << 30]), "4K..1G");
        let mapping = parse_line("1000-3000 rw-p 0 00:00 0 ").expect("a line");
        let smap = Smap { flags: "rd wr mr mw me ac hg".to_string(), ..Smap::default() };
        assert_eq!(mode(&mapping, Some(&smap)), "rw- hg");
        let shared = parse_line("1000-3000 r-xs 0 00:01 5 /memfd:x").expect("a line");
        assert_eq!(mode(&shared, None), "r-xs");
    }
}
