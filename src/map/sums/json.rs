//! The sums of an account out of its JSON, `marusa/map/1`: what `marusa map --json` said once can be compared with what is now.
//! The text may be anybody's, so every key may be missing.

use super::{ArenaSum, Sum, Sums, ThreadSum, group_of, old};
use crate::base::Bytes;
use crate::map::Area;
use serde_json::Value;

const SCHEMA: &str = "marusa/map/1";

/// Why a text is no account.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JsonError {
    #[error("its schema is {0}, not {SCHEMA}: it is no output of `marusa map --json`, or of a newer marusa")]
    Schema(String),
    #[error("it has no areas: it is damaged")]
    NoAreas,
}

pub fn sums(value: &Value) -> Result<Sums, JsonError> {
    match value["schema"].as_str() {
        Some(SCHEMA) => {}
        other => return Err(JsonError::Schema(other.unwrap_or("not told").to_string())),
    }
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let areas = value["areas"].as_array().ok_or(JsonError::NoAreas)?;
    let mut sums = Sums {
        kernel_resident: value["totals"]["kernel_resident_bytes"].as_u64(),
        page_tables: value["totals"]["page_table_bytes"].as_u64(),
        ..Sums::default()
    };
    for area in areas {
        // An area that a later version has is what this one does not know.
        let name = area["area"].as_str().unwrap_or_default();
        let of = Area::ALL.iter().copied().find(|area| area.name() == name).unwrap_or(Area::Unattributed);
        add(
            sums.areas.entry(of).or_insert(Sum { in_use: Some(0), swapped: Some(0), ..Sum::default() }),
            area,
        );
        for part in list(&area["parts"]) {
            let name = part["part"].as_str().unwrap_or_default().to_string();
            sums.parts.insert((of, name), sum(&part));
        }
    }
    for library in list(&value["libraries"]) {
        sums.libraries.insert(library["path"].as_str().unwrap_or_default().to_string(), sum(&library));
    }
    for arena in list(&value["malloc"]["arenas"]) {
        if let Some((at, arena)) = self::arena(&arena) {
            sums.arenas.insert(at, arena);
        }
    }
    for thread in list(&value["threads"]) {
        let group: &mut ThreadSum =
            sums.threads.entry(group_of(thread["name"].as_str().unwrap_or_default())).or_default();
        group.threads += 1;
        let stack = sum(&thread["stack"]);
        group.reserved = group.reserved.saturating_add(stack.reserved);
        group.resident = group.resident.saturating_add(stack.resident);
    }
    old::renew(&mut sums);
    Ok(sums)
}

fn sum(value: &Value) -> Sum {
    let bytes = |key: &str| value[key].as_u64();
    Sum {
        reserved: bytes("reserved_bytes").unwrap_or(0),
        committed: bytes("committed_bytes").unwrap_or(0),
        resident: bytes("resident_bytes").unwrap_or(0),
        in_use: bytes("in_use_bytes"),
        swapped: bytes("swapped_bytes"),
    }
}

fn add(to: &mut Sum, value: &Value) {
    let more = sum(value);
    let both = |one: Option<Bytes>, other: Option<Bytes>| Some(one?.saturating_add(other?));
    to.reserved = to.reserved.saturating_add(more.reserved);
    to.committed = to.committed.saturating_add(more.committed);
    to.resident = to.resident.saturating_add(more.resident);
    to.in_use = both(to.in_use, more.in_use);
    to.swapped = both(to.swapped, more.swapped);
}

/// Its address, and the resident bytes: the JSON has those of an arena as a whole, of what is in use and of what is free.
fn arena(value: &Value) -> Option<(u64, ArenaSum)> {
    let at = u64::from_str_radix(value["address"].as_str()?.trim_start_matches("0x"), 16).ok()?;
    let arena = ArenaSum {
        number: value["arena"].as_u64()?,
        resident: value["resident_bytes"].as_u64().unwrap_or(0),
        freed: value["free_resident_bytes"].as_u64(),
        in_use: value["in_use_resident_bytes"].as_u64(),
    };
    Some((at, arena))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_keys_of_an_account() {
        let value = json!({
            "schema": "marusa/map/1",
            "totals": {"kernel_resident_bytes": 700, "page_table_bytes": null},
            "areas": [
                {"area": "malloc_freed", "resident_bytes": 400, "in_use_bytes": 0, "swapped_bytes": null, "parts": [
                    {"part": "unsorted", "resident_bytes": 300},
                ]},
                {"area": "of_a_later_version", "resident_bytes": 8},
            ],
            "malloc": {"arenas": [
                {"arena": 7, "address": "0x7f0000000030", "resident_bytes": 500, "free_resident_bytes": 400},
                {"arena": 8},
            ]},
            "threads": [{"name": "pool-1-thread-1", "stack": {"resident_bytes": 12}}, {"name": "pool-1-thread-2", "stack": null}],
        });
        let sums = sums(&value).expect("an account");
        assert_eq!((sums.kernel_resident, sums.page_tables), (Some(700), None));
        assert_eq!(sums.areas[&Area::MallocFreed].resident, 400);
        assert_eq!(
            (sums.areas[&Area::MallocFreed].in_use, sums.areas[&Area::MallocFreed].swapped),
            (Some(0), None)
        );
        assert_eq!(sums.areas[&Area::Unattributed].resident, 8);
        assert_eq!(sums.parts[&(Area::MallocFreed, "unsorted".to_string())].resident, 300);
        assert_eq!(sums.arenas.len(), 1);
        assert_eq!(sums.arenas[&0x7f0000000030].freed, Some(400));
        assert_eq!(sums.threads["pool-#-thread-#"], ThreadSum { threads: 2, reserved: 0, resident: 12 });
    }

    #[test]
    fn another_json_is_refused_with_its_schema() {
        assert_eq!(
            sums(&json!({"schema": "marusa/list/1"})),
            Err(JsonError::Schema("marusa/list/1".to_string()))
        );
        assert_eq!(sums(&json!([1, 2])), Err(JsonError::Schema("not told".to_string())));
        assert_eq!(sums(&json!({"schema": SCHEMA})), Err(JsonError::NoAreas));
    }
}
