//! A store read back: the tables process, account and jvm of the last days, for advice on the JVMs of a few nodes. A whole fleet is
//! an engine's to reduce first (`marusa fleet sql`).

use super::Failure;
use super::samples::Samples;
use crate::map::Area;
use crate::os::input_file;
use crate::record::history::History;
use crate::record::key::{Key, Measure, Subject};
use crate::record::writer::Ending;
use crate::store::read::{Columns, Rows};
use crate::store::tables::Table;
use anyhow::Context;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Rows of a store that are read: an area each minute of 30 JVMs for a month, and some.
const ROWS_MAX: u64 = 100_000_000;
const FILES_MAX: usize = 100_000;

struct Store {
    jvms: BTreeMap<String, Samples>,
    since_ms: i64,
    rows_left: u64,
}

pub fn read(root: &Path, since: Duration) -> anyhow::Result<Vec<History>> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let since_ms = i64::try_from(now.saturating_sub(since).as_millis()).unwrap_or(0);
    let mut store = Store { jvms: BTreeMap::new(), since_ms, rows_left: ROWS_MAX };
    for table in [Table::Jvm, Table::Process, Table::Account] {
        let files = files(root, table, since_ms)?;
        if files.is_empty() {
            let why = "it is not a store with files of that time; --since reads further back";
            return Err(Failure::target(format!(
                "cannot read {}: no table {}: {why}",
                root.display(),
                table.name()
            )));
        }
        for path in files {
            let added = input_file::open(&path)
                .map_err(anyhow::Error::from)
                .and_then(|file| Rows::of(file, table, &wanted(table)))
                .and_then(|rows| rows.each(|columns| store.add(table, columns)));
            added.map_err(|error| Failure::unreadable(&path, error))?;
        }
    }
    Ok(store.jvms.into_values().filter_map(Samples::history).collect())
}

/// The Parquet files of a table, of the days since then.
fn files(root: &Path, table: Table, since_ms: i64) -> anyhow::Result<Vec<PathBuf>> {
    let of = root.join("v1").join(table.name());
    let first = crate::base::rfc3339(UNIX_EPOCH + Duration::from_millis(since_ms.max(0) as u64));
    let below = |path: &Path| {
        let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
        let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
        paths.sort();
        paths
    };
    let name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let is_of_time =
        |path: &PathBuf| name(path).strip_prefix("date=").is_some_and(|date| date >= &first[..10]);
    let dates = below(&of).into_iter().filter(is_of_time);
    let files = dates.flat_map(|date| below(&date)).flat_map(|cluster| below(&cluster));
    let files: Vec<PathBuf> = files
        .filter(|path| path.extension().is_some_and(|extension| extension == "parquet"))
        .take(FILES_MAX + 1)
        .collect();
    match files.len() > FILES_MAX {
        true => Err(Failure::target(format!(
            "cannot read {}: it has more than {FILES_MAX} files; merge its days first (marusa fleet sql)",
            of.display()
        ))),
        false => Ok(files),
    }
}

fn wanted(table: Table) -> Vec<&'static str> {
    match table {
        Table::Jvm => vec![
            "time",
            "jvm_id",
            "namespace",
            "pod",
            "container",
            "workload",
            "unit",
            "main",
            "java_version",
            "gc",
            "container_id",
            "ending",
            "pid",
            "max_heap_bytes",
            "ended",
        ],
        Table::Account => {
            vec!["time", "jvm_id", "subject", "area", "account_age_ms", "resident_bytes", "reserved_bytes"]
        }
        _ => ["time", "jvm_id"].into_iter().chain(MEASURES.map(Measure::name)).collect(),
    }
}

/// Of the process table: the measures that advice needs.
const MEASURES: [Measure; 17] = [
    Measure::KernelResident,
    Measure::KernelHugetlb,
    Measure::KernelSwapped,
    Measure::PageTables,
    Measure::Tasks,
    Measure::HeapUsed,
    Measure::HeapCapacity,
    Measure::Collections,
    Measure::OldCollections,
    Measure::CollectionTime,
    Measure::JavaThreads,
    Measure::GroupLimit,
    Measure::GroupCurrent,
    Measure::GroupReclaimable,
    Measure::GroupOomKills,
    Measure::Trimmable,
    Measure::Arenas,
];

impl Store {
    fn add(&mut self, table: Table, columns: &Columns) -> anyhow::Result<()> {
        let rows = columns.len();
        self.rows_left = self
            .rows_left
            .checked_sub(rows as u64)
            .context("the store has too many rows: a shorter --since, or an engine (marusa fleet sql)")?;
        for row in 0..rows {
            let (Some(time), Some(id)) = (columns.long("time", row), columns.text("jvm_id", row)) else {
                continue;
            };
            if time < self.since_ms {
                continue;
            }
            let samples = match self.jvms.get_mut(&*id) {
                Some(samples) => samples,
                None => self.jvms.entry(id.to_string()).or_default(),
            };
            match table {
                Table::Jvm => facts(samples, columns, row, &id),
                Table::Account => area(samples, columns, row, time),
                _ => process(samples, columns, row, time),
            }
        }
        Ok(())
    }
}

fn facts(samples: &mut Samples, columns: &Columns, row: usize, id: &str) {
    let text = |name| columns.text(name, row).map(Cow::into_owned);
    let facts = &mut samples.facts;
    let who = &mut facts.identity;
    (who.namespace, who.pod, who.container) = (text("namespace"), text("pod"), text("container"));
    (who.workload, who.unit, who.container_id) = (text("workload"), text("unit"), text("container_id"));
    (facts.main, facts.version, facts.gc) = (text("main"), text("java_version"), text("gc"));
    facts.jvm_id = Some(id.to_string());
    facts.max_heap_bytes = columns.long("max_heap_bytes", row).and_then(|bytes| u64::try_from(bytes).ok());
    facts.pid = columns.long("pid", row).and_then(|pid| i32::try_from(pid).ok()).unwrap_or(0);
    let ending = match text("ending").as_deref() {
        Some("ended" | "exited" | "killed") => Some(Ending::Ended),
        Some("oom_killed") => Some(Ending::KilledForMemory),
        _ => None,
    };
    samples.ending = columns.long("ended", row).zip(ending).or(samples.ending);
}

fn area(samples: &mut Samples, columns: &Columns, row: usize, time: i64) {
    if columns.text("subject", row).as_deref() != Some("area") {
        return;
    }
    let name = columns.text("area", row);
    let Some(area) = Area::ALL.iter().find(|area| Some(area.name()) == name.as_deref()) else { return };
    let long = |name| columns.long(name, row).and_then(|value| u64::try_from(value).ok());
    samples.has_account(time, long("account_age_ms").unwrap_or(0));
    for measure in [Measure::Resident, Measure::Reserved] {
        if let Some(value) = long(measure.name()) {
            samples.add(time, Key::of(&Subject::Area(*area), measure), value);
        }
    }
}

fn process(samples: &mut Samples, columns: &Columns, row: usize, time: i64) {
    for measure in MEASURES {
        if let Some(value) = columns.long(measure.name(), row).and_then(|value| u64::try_from(value).ok()) {
            samples.add(time, Key::process(measure), value);
        }
    }
}
