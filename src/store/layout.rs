//! Where a file of the store lies: `v1/TABLE/date=2026-11-26/cluster=eu1/NODE-RECORDING-FIRST.parquet`. The directories have few
//! values, which is what engines want of partitions; the name is the same whenever the same samples are written again, so a file
//! that was put twice is there once.

use super::tables::Table;
use crate::record::{Moment, Recording};
use std::collections::BTreeMap;
use std::ops::Range;

/// Raised when a table changes in a way that a reader of the older ones cannot read. Columns are only added.
const VERSION: &str = "v1";
const DAY_MS: i64 = 86_400_000;
const NAME_LETTERS_MAX: usize = 120;
/// Days of one recording: more are the work of a clock that jumped.
const DAYS_MAX: usize = 4000;

/// One file that a recording gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Below the root of the store.
    pub path: String,
    pub table: Table,
    /// The samples that are in it, by milliseconds since 1970.
    pub span: Range<i64>,
}

/// Which node and cluster a recording is of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    pub cluster: String,
    /// The name of the host.
    pub node: String,
}

impl Place {
    /// Names as the store's paths and columns have them: letters, digits, '.', '_' and '-'.
    pub fn new(cluster: &str, node: &str) -> Place {
        Place { cluster: name(cluster, "default"), node: name(node, "unknown") }
    }
}

fn name(text: &str, otherwise: &str) -> String {
    let is_kept = |letter: char| letter.is_ascii_alphanumeric() || "._-".contains(letter);
    let kept = text.chars().map(|letter| if is_kept(letter) { letter } else { '_' });
    let kept: String = kept.take(NAME_LETTERS_MAX).collect();
    // Neither hidden nor another directory.
    if kept.starts_with('.') || kept.is_empty() { otherwise.to_string() } else { kept }
}

/// The files of a recording: one for each table and day.
pub fn files(recording: &Recording, place: &Place) -> Vec<File> {
    let Some(session) = recording.sessions.first() else { return Vec::new() };
    let mut days: BTreeMap<i64, i64> = BTreeMap::new();
    for moment in recording.jvms.iter().flat_map(|jvm| &jvm.moments) {
        let first = days.entry(moment.wall_ms.div_euclid(DAY_MS)).or_insert(moment.wall_ms);
        *first = moment.wall_ms.min(*first);
    }
    let of_day = |(day, first): (i64, i64)| {
        let date = Moment { steady_ms: 0, wall_ms: first }.wall();
        let date = date.split('T').next().unwrap_or_default().to_string();
        let span = day.saturating_mul(DAY_MS)..(day.saturating_add(1)).saturating_mul(DAY_MS);
        Table::ALL.iter().map(move |table| {
            let directory = format!("{VERSION}/{}/date={date}/cluster={}", table.name(), place.cluster);
            let path =
                format!("{directory}/{}-{}-{first}.parquet", place.node, name(&session.recording, "0"));
            File { path, table: *table, span: span.clone() }
        })
    };
    days.into_iter().take(DAYS_MAX).flat_map(of_day).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::rows::tests::small;

    #[test]
    fn a_file_for_each_table_and_day_with_a_name_that_is_the_same_again() {
        let mut recording = small();
        recording.sessions[0].recording = "0123".to_string();
        let place = Place::new("eu1", "node-1.example");
        let all = files(&recording, &place);
        assert_eq!(all.len(), Table::ALL.len());
        assert_eq!(all[0].path, "v1/process/date=1970-01-01/cluster=eu1/node-1.example-0123-1000.parquet");
        assert_eq!(all, files(&recording, &place));
        recording.jvms[0].moments[1].wall_ms = 3 * DAY_MS;
        let two = files(&recording, &place);
        assert_eq!(two.len(), 2 * Table::ALL.len());
        assert_eq!((two[0].span.clone(), two[6].span.clone()), (0..DAY_MS, 3 * DAY_MS..4 * DAY_MS));
    }

    #[test]
    fn names_stay_within_their_directory() {
        let place = Place::new("../x", "a/b\n=c");
        assert_eq!((place.cluster.as_str(), place.node.as_str()), ("default", "a_b__c"));
        assert_eq!(Place::new("", ".hidden"), Place { cluster: "default".into(), node: "unknown".into() });
    }
}
