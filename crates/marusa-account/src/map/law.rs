//! The laws of the account, checked after every join in tests and, cheaply, at run time: spans are sorted, disjoint and
//! cover every mapping; the shares of a span sum to its bytes; the areas sum exactly to the total.

use super::account::by_area;
use super::types::MemoryMap;
use crate::base::{Addr, Refused, refuse};
use crate::snapshot::Snapshot;

/// The first law that is broken, in words.
pub fn check(map: &MemoryMap, snapshot: &Snapshot) -> Result<(), Refused> {
    let mut end = Addr::NULL;
    for span in &map.spans {
        if span.range.is_empty() || span.range.start < end {
            refuse!("span {} is empty or overlaps the one before", span.range);
        }
        if !snapshot.os.mappings[span.mapping].range.covers(span.range) {
            refuse!("span {} leaves its mapping", span.range);
        }
        let shared: u64 = span.shares.iter().map(|share| share.figures.reserved).sum();
        if shared != span.range.bytes() {
            refuse!("the shares of {} sum to {shared} bytes", span.range);
        }
        end = span.range.end;
    }
    let mapped: u64 = snapshot.os.mappings.iter().map(|mapping| mapping.range.bytes()).sum();
    let spanned: u64 = map.spans.iter().map(|span| span.range.bytes()).sum();
    if mapped != spanned {
        refuse!("spans cover {spanned} bytes of {mapped} mapped");
    }
    let areas = by_area(map);
    let resident: u64 = areas.iter().map(|area| area.figures.resident).sum();
    if resident != map.balance.total.resident {
        refuse!("areas sum to {resident} resident bytes, the total is {}", map.balance.total.resident);
    }
    for area in &areas {
        let parts: u64 = area.parts.iter().map(|part| part.figures.resident).sum();
        let sizes: u64 = area.figures.by_page_size.values().sum();
        if parts != area.figures.resident || sizes != area.figures.resident {
            refuse!("{}: parts {parts}, page sizes {sizes}", area.area.name());
        }
        let kinds: u64 = area.figures.by_page_kind.values().sum();
        if matches!(snapshot.os.page_sizes, Some(Ok(_))) && kinds != area.figures.resident {
            refuse!("{}: page kinds {kinds}", area.area.name());
        }
    }
    Ok(())
}
