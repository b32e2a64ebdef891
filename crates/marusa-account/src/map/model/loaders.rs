//! What all class loaders hold together, against the area class metadata.

use super::AreaAccount;
use crate::base::Bytes;
use crate::jvm::{LoaderGroup, Loaders};
use crate::map::Area;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The sums of all groups of loaders; `None`: not known of one of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct LoaderTotals {
    pub loaders: u64,
    pub metaspace_bytes: Option<Bytes>,
    pub class_space_bytes: Option<Bytes>,
    pub metaspace_committed_bytes: Option<Bytes>,
    pub metaspace_resident_bytes: Option<Bytes>,
    pub classes: Option<u64>,
    pub hidden_classes: Option<u64>,
    pub malloc_bytes: Option<Bytes>,
    pub code_bytes: Option<Bytes>,
    /// Resident in the area class metadata, and in no chunk of a loader: free chunks, and the ends of nodes.
    pub not_attributed_bytes: Option<Bytes>,
}

impl LoaderTotals {
    pub(super) fn of(loaders: &Loaders, areas: &[AreaAccount]) -> Option<LoaderTotals> {
        let rows = &loaders.rows;
        let sum = |of: fn(&LoaderGroup) -> Option<u64>| {
            rows.iter().map(of).try_fold(0_u64, |sum, more| Some(sum.saturating_add(more?)))
        };
        let metaspace_resident_bytes = sum(|row| row.metaspace_resident_bytes);
        let area = areas.iter().find(|area| area.area == Area::ClassMetadata);
        let resident = area.map_or(0, |area| area.amounts.resident_bytes);
        (!rows.is_empty()).then(|| LoaderTotals {
            loaders: rows.iter().fold(0, |sum, row| sum.saturating_add(row.loaders)),
            metaspace_bytes: sum(|row| row.metaspace_bytes),
            class_space_bytes: sum(|row| row.class_space_bytes),
            metaspace_committed_bytes: sum(|row| row.metaspace_committed_bytes),
            metaspace_resident_bytes,
            classes: sum(|row| row.classes),
            hidden_classes: sum(|row| row.hidden_classes),
            malloc_bytes: sum(|row| row.malloc_bytes),
            code_bytes: sum(|row| row.code_bytes),
            // Chunks of two loaders in one place make no sense.
            not_attributed_bytes: metaspace_resident_bytes.and_then(|held| resident.checked_sub(held)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::map::Account;

    fn group(metaspace_bytes: Option<Bytes>, resident: Option<Bytes>) -> LoaderGroup {
        LoaderGroup {
            loaders: 3,
            metaspace_bytes,
            metaspace_resident_bytes: resident,
            ..LoaderGroup::default()
        }
    }

    #[test]
    fn a_sum_is_known_where_all_of_it_is_and_what_is_left_of_the_area_is_said() {
        let areas = Account::made_up(&[(Area::ClassMetadata, 100)]).areas;
        let totals = |rows: Vec<LoaderGroup>| {
            LoaderTotals::of(&Loaders { rows, gaps: Vec::new() }, &areas).expect("rows")
        };
        let two = totals(vec![group(Some(20), Some(30)), group(Some(40), Some(50))]);
        assert_eq!((two.loaders, two.metaspace_bytes, two.not_attributed_bytes), (6, Some(60), Some(20)));
        let torn = totals(vec![group(Some(20), Some(30)), group(None, None)]);
        assert_eq!((torn.loaders, torn.metaspace_bytes, torn.not_attributed_bytes), (6, None, None));
        assert_eq!(totals(vec![group(Some(1), Some(101))]).not_attributed_bytes, None);
        assert_eq!(LoaderTotals::of(&Loaders::default(), &areas), None);
    }
}
