//! One look at a JVM for programs: a line of JSON, schema marusa/top/1.

use crate::measure::look::{Figure, Look};
use crate::show::json::gap;
use serde_json::{Value, json};

pub fn json(look: &Look) -> Value {
    let account = look.account.as_ref().ok();
    let figures = |figures: &[Figure], key: &str| -> Vec<Value> {
        figures
            .iter()
            .map(|figure| json!({key: figure.name, "resident_bytes": figure.resident_bytes}))
            .collect()
    };
    let areas = account.map(|account| {
        let area = |area: &crate::measure::look::AreaLook| {
            json!({
                "area": area.area.name(),
                "resident_bytes": area.resident_bytes,
                "in_use_bytes": area.in_use_bytes,
                "parts": figures(&area.parts, "part"),
            })
        };
        account.areas.iter().map(area).collect::<Vec<_>>()
    });
    let page_sizes = account.map(|account| {
        let size = |size: &crate::measure::look::SizeLook| {
            let areas: serde_json::Map<String, Value> =
                size.areas.iter().map(|area| (area.key.clone(), area.resident_bytes.into())).collect();
            json!({
                "page_bytes": size.page_bytes,
                "resident_bytes": size.figure.resident_bytes,
                "resident_bytes_by_area": areas,
            })
        };
        account.page_sizes.iter().map(size).collect::<Vec<_>>()
    });
    json!({
        "schema": "marusa/top/1",
        "pid": look.pid,
        "name": look.name,
        "runtime": look.runtime,
        "at_seconds": look.at,
        "took_ms": look.took_ms,
        "kernel_resident_bytes": look.kernel_resident_bytes,
        "resident_bytes": account.map(|account| account.resident_bytes),
        "swapped_bytes": account.map(|account| account.swapped_bytes),
        "areas": areas,
        "page_sizes": page_sizes,
        "threads": account.map(|account| account.threads.len()),
        "arenas": account.map(|account| figures(&account.arenas, "arena")),
        "gaps": look.account.as_ref().err().map(gap).into_iter().collect::<Vec<_>>(),
    })
}
