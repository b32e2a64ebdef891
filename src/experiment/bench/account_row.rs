//! An account as the results of experiments have it: for fields with `serialize_with`.

use crate::base::Bytes;
use crate::map::{Account, Area};
use schemars::JsonSchema;
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;

#[derive(JsonSchema, Serialize)]
pub struct AccountRow {
    resident_bytes: Bytes,
    kernel_resident_bytes: Option<Bytes>,
    swapped_bytes: Option<Bytes>,
    trimmable_bytes: Option<Bytes>,
    classes: Option<u64>,
    /// By "jit_code_resident_bytes".
    areas: BTreeMap<String, Option<Bytes>>,
}

pub fn serialize<S: Serializer>(account: &Account, into: S) -> Result<S::Ok, S::Error> {
    let area =
        |area: &Area| (format!("{}_resident_bytes", area.name()), account.known_resident_bytes_of(*area));
    let row = AccountRow {
        resident_bytes: account.totals.resident_bytes,
        kernel_resident_bytes: account.totals.kernel_resident_bytes,
        swapped_bytes: account.totals.swapped_bytes,
        trimmable_bytes: account.trimmable_bytes(),
        classes: account.classes(),
        areas: Area::ALL.iter().map(area).collect(),
    };
    row.serialize(into)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_area_that_is_not_known_is_null() {
        let account = Account::made_up(&[(Area::JitCode, 5)]);
        let value = serialize(&account, serde_json::value::Serializer).expect("JSON");
        assert_eq!(value["areas"]["jit_code_resident_bytes"], 5);
        assert!(value["areas"]["malloc_freed_resident_bytes"].is_null());
    }
}
