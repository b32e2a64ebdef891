//! Where a file of the store lies: `v1/TABLE/date=2026-11-26/cluster=eu1/NODE-RECORDING-FIRST.parquet`. The directories have few
//! values, which is what engines want of partitions; the name is the same whenever the same samples are written again, so a file
//! that was put twice is there once.

use super::tables::Table;
use crate::record::{History, Moment, Recording};
use std::collections::BTreeMap;
use std::ops::Range;

/// Raised when a table changes in a way that a reader of the older ones cannot read. Columns are only added.
pub(super) const VERSION: &str = "v1";
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

    /// The directory below that of a day.
    pub fn partition(&self) -> String {
        format!("cluster={}", self.cluster)
    }

    /// Whether a file of this node has the name "NODE-RECORDING-FIRST.parquet".
    pub fn is_name_of(&self, name: &str) -> bool {
        let own = name.strip_prefix(self.node.as_str()).and_then(|rest| rest.strip_prefix('-'));
        let own = own.and_then(|rest| rest.strip_suffix(".parquet")?.split_once('-'));
        // Another node's name may begin with this one's.
        own.is_some_and(|(_, first)| first.parse::<u64>().is_ok())
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
    // A sample that the file before has, too, would give this file the name of that one.
    let is_own = |moment: &&Moment| session.repeated_ms.is_none_or(|until| moment.steady_ms > until);
    let moments = |jvm: &'_ History| -> Vec<Moment> {
        let ending = jvm.ending.iter().map(|(at, _)| at);
        jvm.moments.iter().chain(ending).filter(is_own).copied().collect()
    };
    let mut days: BTreeMap<i64, i64> = BTreeMap::new();
    for moment in recording.jvms.iter().flat_map(moments) {
        let first = days.entry(moment.wall_ms.div_euclid(DAY_MS)).or_insert(moment.wall_ms);
        *first = moment.wall_ms.min(*first);
    }
    let of_day = |(day, first): (i64, i64)| {
        let date = Moment { steady_ms: 0, wall_ms: first }.wall();
        let date = date.split('T').next().unwrap_or_default().to_string();
        let span = day.saturating_mul(DAY_MS)..(day.saturating_add(1)).saturating_mul(DAY_MS);
        Table::ALL.iter().map(move |table| {
            let directory = format!("{}/date={date}/{}", table.directory(), place.partition());
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
    use crate::record::made_up::small;

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
    fn what_a_file_repeats_does_not_name_it() {
        let mut recording = small();
        let place = Place::new("eu1", "n");
        let name = |recording: &Recording| files(recording, &place).first().map(|file| file.path.clone());
        let before = name(&recording);
        recording.sessions[0].repeated_ms = Some(recording.jvms[0].moments[0].steady_ms);
        let after = name(&recording);
        assert!(before.is_some() && after.is_some() && before != after, "{before:?} {after:?}");
        recording.sessions[0].repeated_ms = Some(u64::MAX);
        assert_eq!(name(&recording), None, "nothing of its own");
    }

    #[test]
    fn names_stay_within_their_directory() {
        let place = Place::new("../x", "a/b\n=c");
        assert_eq!((place.cluster.as_str(), place.node.as_str()), ("default", "a_b__c"));
        assert_eq!(Place::new("", ".hidden"), Place { cluster: "default".into(), node: "unknown".into() });
    }
}
