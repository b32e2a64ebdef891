//! The page sizes in JSON: how they are known and how sure they are, for the whole process; kinds of pages for each sum.

use crate::map::{Figures, MemoryMap};
use crate::os::maps::Mapping;
use crate::os::page_kind::{Look, PageSizes};
use crate::os::smaps::Smap;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// `page_sizes`: what was looked at, and the error of what was not.
pub fn page_sizes(sizes: &PageSizes, map: &MemoryMap) -> Value {
    let total = &map.balance.total;
    let contiguous = sizes.contiguous.as_ref().ok().map(|found| {
        json!({
            "resident_bytes": found.resident_bytes,
            "looked_at_bytes": found.looked_at_bytes,
            "in_16k_bytes": found.in_16k_bytes,
            "in_16k_error_bytes": found.in_16k_error_bytes,
            "in_64k_bytes": found.in_64k_bytes,
            "in_64k_error_bytes": found.in_64k_error_bytes,
        })
    });
    json!({
        "by_page_size": bytes_by_size(&total.by_page_size),
        "by_page_kind": kinds(total),
        "estimated": sizes.is_estimated(),
        "error_bytes": bytes_by_size(&sizes.error_bytes()),
        "looks": sizes.looks.iter().map(look).collect::<Vec<Value>>(),
        "contiguous": contiguous,
        "seed": sizes.seed,
    })
}

fn look(look: &Look) -> Value {
    json!({
        "backing": look.backing,
        "how": look.how,
        "resident_bytes": look.resident_bytes,
        "looked_at_bytes": look.looked_at_bytes,
        "blocks": look.blocks,
        "error_bytes": bytes_by_size(&look.error_bytes),
    })
}

fn bytes_by_size(bytes: &BTreeMap<u64, u64>) -> Value {
    bytes
        .iter()
        .map(|(size, bytes)| (size.to_string(), json!(bytes)))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

/// `by_page_kind`: "4k", "mthp_64k", "thp_2m_pmd" and so on.
pub fn kinds(figures: &Figures) -> Value {
    let kinds = figures.by_page_kind.iter().filter(|(_, bytes)| **bytes > 0);
    kinds.map(|(kind, bytes)| (kind.name(), json!(bytes))).collect::<serde_json::Map<_, _>>().into()
}

/// What the kernel says of the whole mapping that a span lies in.
pub fn mapping(mapping: &Mapping, smap: Option<&Smap>) -> Value {
    let Some(smap) = smap else { return Value::Null };
    json!({
        "start": mapping.range.start.to_string(),
        "end": mapping.range.end.to_string(),
        "locked_bytes": smap.locked_bytes,
        "thp_eligible": smap.thp_eligible,
        "flags": smap.flags.split_ascii_whitespace().collect::<Vec<_>>(),
    })
}
