//! `map --by page-size --zeros` in JSON: pages of zeros within larger pages, by area and part.

use crate::map::Area;
use crate::map::bloat::{Bloat, Sums, ZeroSum};
use serde_json::{Map, Value, json};

pub fn zeros(bloat: &Bloat) -> Value {
    let area = |(area, sums): (&Area, &Sums)| {
        let mut value = sums_of(bloat, sums);
        value.insert("area".to_string(), json!(area.name()));
        let parts = bloat.parts.iter().filter(|((of, _), _)| of == area);
        let parts = parts.map(|((_, part), sums)| {
            let mut value = sums_of(bloat, sums);
            value.insert("part".to_string(), json!(part));
            Value::Object(value)
        });
        value.insert("parts".to_string(), parts.collect());
        Value::Object(value)
    };
    json!({
        "sampled": bloat.is_sampled,
        "read_bytes": bloat.read_bytes,
        "read_ms": (bloat.read_ms * 100.0).round() / 100.0,
        "split_gives_back": bloat.split_gives_back,
        "shrinker": {
            "enabled": bloat.shrinker.is_on,
            "max_ptes_none": bloat.shrinker.max_ptes_none,
        },
        "threads_on_large_pages": bloat.threads_on_large,
        "total": sums_of(bloat, &bloat.total),
        "malloc": sums_of(bloat, &bloat.malloc),
        "areas": bloat.areas.iter().map(area).collect::<Vec<Value>>(),
    })
}

fn sums_of(bloat: &Bloat, sums: &Sums) -> Map<String, Value> {
    let zero = sums.large_zero();
    let back = bloat.split_returns(sums);
    let shrinker: u64 = sums.0.values().map(|sum| sum.shrinker_bytes).sum();
    let by_sort = sums.0.iter().map(|(sort, sum)| (sort.name().to_string(), sum_of(sum)));
    let value = json!({
        "large_bytes": sums.large_bytes(),
        "zero_bytes": zero.bytes,
        "zero_bytes_low": zero.low,
        "zero_bytes_high": zero.high,
        "split_gives_back_bytes": back.bytes,
        "shrinker_gives_back_bytes": shrinker,
        "by_sort": by_sort.collect::<Map<String, Value>>(),
    });
    match value {
        Value::Object(value) => value,
        _ => Map::new(),
    }
}

fn sum_of(sum: &ZeroSum) -> Value {
    json!({
        "resident_bytes": sum.resident_bytes,
        "read_bytes": sum.read_bytes,
        "zero_bytes": sum.zero.bytes,
        "zero_bytes_low": sum.zero.low,
        "zero_bytes_high": sum.zero.high,
        "mostly_zero_bytes": sum.mostly_zero_bytes,
        "all_zero_bytes": sum.all_zero_bytes,
    })
}
