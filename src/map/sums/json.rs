//! The sums of an account out of its JSON, `marusa/map/1`: what `marusa map --json` said once can be compared with what is now.
//! The text may be anybody's, so most keys may be missing. Only the keys that are looked at become values: whatever else a text
//! holds is passed over without memory for it, and an entry of a list needs a name that is longer than what is made of it.

use super::{ArenaSum, Sum, Sums, ThreadSum, group_of, old};
use crate::base::Bytes;
use crate::map::Area;
use serde::Deserialize;

const SCHEMA: &str = "marusa/map/1";

/// Why a text is no account.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JsonError {
    #[error("its schema is {0}, not {SCHEMA}: it is no output of `marusa map --json`, or of a newer marusa")]
    Schema(String),
    #[error("it has no areas: it is damaged")]
    NoAreas,
    #[error("not an account, or a damaged one: {0}")]
    Damaged(String),
}

/// What a text says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Account {
    /// RFC 3339, UTC.
    pub at: Option<String>,
    pub pid: Option<i32>,
    pub command: Option<String>,
    pub sums: Sums,
}

#[derive(Deserialize)]
struct Format {
    schema: Option<String>,
}

#[derive(Deserialize)]
struct Document {
    taken: Option<Taken>,
    process: Option<Process>,
    totals: Option<Totals>,
    areas: Option<Vec<AreaRow>>,
    libraries: Option<Vec<LibraryRow>>,
    malloc: Option<Malloc>,
    threads: Option<Vec<ThreadRow>>,
}

#[derive(Deserialize)]
struct Taken {
    at: Option<String>,
}

#[derive(Deserialize)]
struct Process {
    pid: Option<i32>,
    command: Option<String>,
}

#[derive(Default, Deserialize)]
struct Totals {
    kernel_resident_bytes: Option<u64>,
    page_table_bytes: Option<u64>,
}

/// Structs with the figures that areas, parts, threads and libraries share. Written out: `serde(flatten)` would keep every key that
/// it does not know.
macro_rules! with_figures {
    ($($name:ident { $($key:ident: $type:ty),* })*) => { $(
        #[derive(Deserialize)]
        struct $name {
            $($key: $type,)*
            reserved_bytes: Option<u64>,
            committed_bytes: Option<u64>,
            resident_bytes: Option<u64>,
            in_use_bytes: Option<u64>,
            swapped_bytes: Option<u64>,
        }

        impl $name {
            fn sum(&self) -> Sum {
                Sum {
                    reserved: self.reserved_bytes.unwrap_or(0),
                    committed: self.committed_bytes.unwrap_or(0),
                    resident: self.resident_bytes.unwrap_or(0),
                    in_use: self.in_use_bytes,
                    swapped: self.swapped_bytes,
                }
            }
        }
    )* };
}

with_figures! {
    AreaRow { area: String, parts: Option<Vec<PartRow>> }
    PartRow { part: String }
    LibraryRow { path: String }
    Stack {}
}

#[derive(Deserialize)]
struct Malloc {
    arenas: Option<Vec<ArenaRow>>,
}

#[derive(Deserialize)]
struct ArenaRow {
    arena: u64,
    address: Option<String>,
    resident_bytes: Option<u64>,
    free_resident_bytes: Option<u64>,
    in_use_resident_bytes: Option<u64>,
}

#[derive(Deserialize)]
struct ThreadRow {
    name: String,
    stack: Option<Stack>,
}

pub fn parse(text: &[u8]) -> Result<Account, JsonError> {
    let damaged = |error: serde_json::Error| JsonError::Damaged(error.to_string());
    let format: Format = serde_json::from_slice(text).map_err(damaged)?;
    match format.schema {
        Some(schema) if schema == SCHEMA => {}
        other => return Err(JsonError::Schema(other.unwrap_or("not told".to_string()))),
    }
    let document: Document = serde_json::from_slice(text).map_err(damaged)?;
    let process = document.process.as_ref();
    Ok(Account {
        at: document.taken.as_ref().and_then(|taken| taken.at.clone()),
        pid: process.and_then(|process| process.pid),
        command: process.and_then(|process| process.command.clone()),
        sums: sums(document)?,
    })
}

fn sums(document: Document) -> Result<Sums, JsonError> {
    let totals = document.totals.unwrap_or_default();
    let mut sums = Sums {
        kernel_resident: totals.kernel_resident_bytes,
        page_tables: totals.page_table_bytes,
        ..Sums::default()
    };
    for area in document.areas.ok_or(JsonError::NoAreas)? {
        // An area that a later version has is what this one does not know.
        let of = Area::ALL.iter().copied().find(|of| of.name() == area.area).unwrap_or(Area::Unattributed);
        let none = Sum { in_use: Some(0), swapped: Some(0), ..Sum::default() };
        add(sums.areas.entry(of).or_insert(none), area.sum());
        for part in area.parts.into_iter().flatten() {
            let sum = part.sum();
            sums.parts.insert((of, part.part), sum);
        }
    }
    for library in document.libraries.into_iter().flatten() {
        let sum = library.sum();
        sums.libraries.insert(library.path, sum);
    }
    let arenas = document.malloc.and_then(|malloc| malloc.arenas);
    sums.arenas = arenas.iter().flatten().filter_map(arena).collect();
    for thread in document.threads.into_iter().flatten() {
        let group: &mut ThreadSum = sums.threads.entry(group_of(&thread.name)).or_default();
        group.threads += 1;
        let stack = thread.stack.map(|stack| stack.sum()).unwrap_or_default();
        group.reserved = group.reserved.saturating_add(stack.reserved);
        group.resident = group.resident.saturating_add(stack.resident);
    }
    old::renew(&mut sums);
    Ok(sums)
}

fn add(to: &mut Sum, more: Sum) {
    let both = |one: Option<Bytes>, other: Option<Bytes>| Some(one?.saturating_add(other?));
    to.reserved = to.reserved.saturating_add(more.reserved);
    to.committed = to.committed.saturating_add(more.committed);
    to.resident = to.resident.saturating_add(more.resident);
    to.in_use = both(to.in_use, more.in_use);
    to.swapped = both(to.swapped, more.swapped);
}

/// Its address, and the resident bytes: the JSON has those of an arena as a whole, of what is in use and of what is free.
fn arena(row: &ArenaRow) -> Option<(u64, ArenaSum)> {
    let at = u64::from_str_radix(row.address.as_ref()?.trim_start_matches("0x"), 16).ok()?;
    let arena = ArenaSum {
        number: row.arena,
        resident: row.resident_bytes.unwrap_or(0),
        freed: row.free_resident_bytes,
        in_use: row.in_use_resident_bytes,
    };
    Some((at, arena))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn sums(value: &Value) -> Result<Sums, JsonError> {
        parse(value.to_string().as_bytes()).map(|account| account.sums)
    }

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
        assert_eq!(sums(&json!({})), Err(JsonError::Schema("not told".to_string())));
        assert!(matches!(sums(&json!([1, 2])), Err(JsonError::Damaged(_))));
        assert_eq!(sums(&json!({"schema": SCHEMA})), Err(JsonError::NoAreas));
    }

    #[test]
    fn what_is_nested_deeply_or_named_twice_is_refused() {
        let deep = format!("{{\"schema\":\"{SCHEMA}\",\"areas\":[],\"x\":{}", "[".repeat(100_000));
        assert!(matches!(parse(deep.as_bytes()), Err(JsonError::Damaged(_))));
        let twice = format!("{{\"schema\":\"{SCHEMA}\",\"areas\":[],\"areas\":[]}}");
        assert!(matches!(parse(twice.as_bytes()), Err(JsonError::Damaged(_))));
    }
}
