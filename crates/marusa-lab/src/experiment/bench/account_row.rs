//! An account as the trials of experiments have it.

use crate::base::Bytes;
use crate::map::model::GapRow;
use crate::map::{Account, Area};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct AccountRow {
    pub resident_bytes: Bytes,
    pub kernel_resident_bytes: Option<Bytes>,
    pub swapped_bytes: Option<Bytes>,
    pub trimmable_bytes: Option<Bytes>,
    pub classes: Option<u64>,
    /// By "jit_code_resident_bytes".
    areas: BTreeMap<String, Option<Bytes>>,
    gaps: Vec<GapRow>,
}

fn key(area: Area) -> String {
    format!("{}_resident_bytes", area.name())
}

impl AccountRow {
    pub fn of(account: Account) -> AccountRow {
        let area = |area: &Area| (key(*area), account.known_resident_bytes_of(*area));
        AccountRow {
            resident_bytes: account.totals.resident_bytes,
            kernel_resident_bytes: account.totals.kernel_resident_bytes,
            swapped_bytes: account.totals.swapped_bytes,
            trimmable_bytes: account.trimmable_bytes(),
            classes: account.classes(),
            areas: Area::ALL.iter().map(area).collect(),
            gaps: account.gaps,
        }
    }

    pub fn resident_bytes_of(&self, area: Area) -> Option<Bytes> {
        self.areas.get(&key(area)).copied().flatten()
    }

    /// The sum of these areas; `None`: one of them is not known.
    pub fn known_sum(&self, areas: &[Area]) -> Option<Bytes> {
        areas.iter().map(|area| self.resident_bytes_of(*area)).sum()
    }

    /// The kernel's figure where it is known, else ours.
    pub fn kernel_or_resident_bytes(&self) -> Bytes {
        self.kernel_resident_bytes.unwrap_or(self.resident_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_area_that_is_not_known_is_null() {
        let row = AccountRow::of(Account::made_up(&[(Area::JitCode, 5)]));
        let value = serde_json::to_value(row).expect("JSON");
        assert_eq!(value["areas"]["jit_code_resident_bytes"], 5);
        assert!(value["areas"]["malloc_freed_resident_bytes"].is_null());
    }
}
