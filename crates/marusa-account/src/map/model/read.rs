//! An account out of its JSON, `marusa/map/2` or `/1`: what `marusa map --json` printed once can be compared with a later account.
//! The text may come from anywhere: keys that are missing are unknown or empty, others are passed over without memory for them, and
//! an entry of a list is made of more letters than it takes bytes, up to a small factor (`limits::INPUT_FACTOR`).

use super::malloc::OtherAccount;
use super::{Account, ArenaAccount, MallocAccount, MallocSums, OwnerAccount, SCHEMA, TagAccount};
use crate::alloc::Chunks;
use crate::base::{Addr, Bytes};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serializer};

/// Has every key of today but `host` and `anonymous_bytes`.
const OLDER: &str = "marusa/map/1";

/// Why a text is not an account.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    #[error(
        "its schema is {0}, not {SCHEMA} or {OLDER}: it is not from `marusa map --json`, or from a newer marusa"
    )]
    Schema(String),
    #[error("not an account, or a damaged one: {0}")]
    Damaged(String),
}

pub fn parse(text: &[u8]) -> Result<Account, ReadError> {
    #[derive(Deserialize)]
    struct Format {
        schema: Option<String>,
    }
    let damaged = |error: serde_json::Error| ReadError::Damaged(error.to_string());
    let format: Format = serde_json::from_slice(text).map_err(damaged)?;
    match format.schema {
        Some(schema) if [SCHEMA, OLDER].contains(&schema.as_str()) => {}
        other => return Err(ReadError::Schema(other.unwrap_or("missing".to_string()))),
    }
    serde_json::from_slice(text).map_err(damaged)
}

/// Structs that have malloc's sums among their keys. Written out: `serde(flatten)` would keep every key that it does not know.
macro_rules! read_with_sums {
    ($($of:ident, $wire:ident { $($(#[$attribute:meta])* $key:ident: $type:ty),* $(,)? })*) => { $(
        #[derive(schemars::JsonSchema, Deserialize)]
        pub(super) struct $wire {
            in_use_bytes: Option<Bytes>,
            in_use_resident_bytes: Option<Bytes>,
            free_bytes: Option<Bytes>,
            free_resident_bytes: Option<Bytes>,
            free_whole_page_bytes: Option<Bytes>,
            overhead_bytes: Option<Bytes>,
            trimmable_bytes: Option<Bytes>,
            top_kept_bytes: Option<Bytes>,
            unresolved_bytes: Option<Bytes>,
            held_resident_bytes: Option<Bytes>,
            overhead_resident_bytes: Option<Bytes>,
            $($(#[$attribute])* $key: $type,)*
        }

        impl From<$wire> for $of {
            fn from(read: $wire) -> $of {
                let sums = MallocSums {
                    in_use_bytes: read.in_use_bytes,
                    in_use_resident_bytes: read.in_use_resident_bytes,
                    free_bytes: read.free_bytes,
                    free_resident_bytes: read.free_resident_bytes,
                    free_whole_page_bytes: read.free_whole_page_bytes,
                    overhead_bytes: read.overhead_bytes,
                    trimmable_bytes: read.trimmable_bytes,
                    top_kept_bytes: read.top_kept_bytes,
                    unresolved_bytes: read.unresolved_bytes,
                    // Accounts of marusa 0.1 have what the walk counted only.
                    held_resident_bytes: read.held_resident_bytes.or(read.free_resident_bytes),
                    overhead_resident_bytes: read.overhead_resident_bytes,
                };
                $of { sums, $($key: read.$key),* }
            }
        }
    )* };
}

read_with_sums! {
    MallocAccount, MallocWire {
        #[serde(default)] allocator: String,
        #[serde(default)] arenas: Vec<ArenaAccount>,
        other: Option<OtherAccount>,
        nmt_tags: Option<Vec<TagAccount>>,
        owners: Option<Vec<OwnerAccount>>,
        #[serde(default)] mmapped_chunks: usize,
        #[serde(default)] mmapped_bytes: Bytes,
        #[serde(default)] mmapped_resident_bytes: Bytes,
        mmapped_in_use_resident_bytes: Option<Bytes>,
        mmapped_overhead_resident_bytes: Option<Bytes>,
        #[serde(default)] resident_bytes: Bytes,
        #[serde(default)] not_walked_bytes: Bytes,
        #[serde(default)] not_walked_resident_bytes: Bytes,
    }
    ArenaAccount, ArenaWire {
        arena: usize,
        #[serde(default, deserialize_with = "of_text")] #[schemars(with = "String")] address: Addr,
        #[serde(default)] heaps: usize,
        attached_threads: Option<u64>,
        #[serde(default)] threads: Vec<i32>,
        #[serde(default)] system_bytes: Bytes,
        #[serde(default)] reserved_bytes: Bytes,
        #[serde(default)] resident_bytes: Bytes,
        chunks: Option<Chunks>,
        retries: Option<u64>,
    }
}

/// "0x7f0000000030".
pub(super) fn as_text<S: Serializer>(at: &Addr, out: S) -> Result<S::Ok, S::Error> {
    out.collect_str(at)
}

fn of_text<'de, D: Deserializer<'de>>(from: D) -> Result<Addr, D::Error> {
    let text = String::deserialize(from)?;
    u64::from_str_radix(text.trim_start_matches("0x"), 16).map(Addr).map_err(D::Error::custom)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::map::Area;
    use crate::map::join::join;
    use crate::map::made_up::everything;
    use crate::map::sums::{Sum, Sums};
    use serde_json::{Value, json};

    fn read(value: &Value) -> Result<Account, ReadError> {
        parse(value.to_string().as_bytes())
    }

    #[test]
    fn what_was_written_is_read_and_what_is_unknown_stays_unknown() {
        let mut snapshot = everything(Vec::new());
        for is_swap_known in [true, false] {
            snapshot.os.status.swapped_bytes = is_swap_known.then_some(0);
            let account = Account::of(&snapshot, &join(&snapshot));
            let text = serde_json::to_vec(&account).expect("JSON");
            assert_eq!(parse(&text), Ok(account));
        }
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
                {"area": "unattributed", "resident_bytes": 2},
            ],
            "malloc": {"arenas": [
                {"arena": 7, "address": "0x7f0000000030", "resident_bytes": 500, "free_resident_bytes": 400},
                {"arena": 8},
            ]},
            "threads": [
                {"tid": 1, "name": "pool-1-thread-1", "kind": "java", "stack": {"resident_bytes": 12}},
                {"tid": 2, "name": "pool-1-thread-2", "kind": "java", "stack": null},
            ],
        });
        let sums = Sums::of(&read(&value).expect("an account"));
        assert_eq!((sums.kernel_resident, sums.page_tables), (Some(700), None));
        let freed = sums.areas[&Area::MallocFreed];
        assert_eq!((freed.resident, freed.in_use, freed.swapped), (400, Some(0), None));
        assert_eq!(sums.areas[&Area::Unattributed].resident, 10);
        assert_eq!(sums.parts[&(Area::MallocFreed, "unsorted".to_string())].resident, 300);
        assert_eq!(sums.arenas.len(), 1);
        assert_eq!(sums.arenas[&0x7f0000000030].freed, Some(400));
        assert_eq!(sums.threads["pool-#-thread-#"], Sum { threads: 2, resident: 12, ..Sum::default() });
    }

    #[test]
    fn another_json_is_refused_with_its_schema() {
        let other = Err(ReadError::Schema("marusa/list/2".to_string()));
        assert_eq!(read(&json!({"schema": "marusa/list/2"})), other);
        assert_eq!(read(&json!({})), Err(ReadError::Schema("missing".to_string())));
        assert!(matches!(read(&json!([1, 2])), Err(ReadError::Damaged(_))));
    }

    #[test]
    fn a_damaged_one_is_refused_with_the_path_of_what_is_wrong() {
        let value =
            json!({"schema": SCHEMA, "areas": [{"area": "gc"}, {"area": "code", "resident_bytes": "x"}]});
        let Err(ReadError::Damaged(why)) = read(&value) else { panic!("it is damaged") };
        assert!(
            why.starts_with("areas[1]") && why.contains("resident_bytes") || why.contains("string"),
            "{why}"
        );
        let deep = format!("{{\"schema\":\"{SCHEMA}\",\"areas\":[],\"x\":{}", "[".repeat(100_000));
        assert!(matches!(parse(deep.as_bytes()), Err(ReadError::Damaged(_))));
        let twice = format!("{{\"schema\":\"{SCHEMA}\",\"areas\":[],\"areas\":[]}}");
        assert!(matches!(parse(twice.as_bytes()), Err(ReadError::Damaged(_))));
    }
}
