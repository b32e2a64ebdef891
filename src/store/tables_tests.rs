use super::layout::{Place, files};
use super::read::Rows;
use super::tables::{Table, write};
use crate::map::Area;
use crate::map::rows::{Measure, Named, Subject};
use crate::os::identity::Identity;
use crate::record::writer::{Ending, JvmFacts, Scope, Session, Writer};
use crate::record::{Key, Moment, Recording, reader};
use parquet::basic::{Compression, Encoding};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use serde_json::Value;
use std::collections::BTreeMap;

fn moment(steady_ms: u64) -> Moment {
    Moment { steady_ms, wall_ms: 1_000_000 + steady_ms as i64 }
}

/// Two JVMs, the first one with an account, holders, findings and a full cgroup; it is OOM-killed.
fn recording() -> Recording {
    let mut writer = Writer::new(&Session { recording: "ab12".to_string(), ..Session::default() });
    let who = |pod: &str| Identity {
        namespace: Some("shop".to_string()),
        pod: Some(pod.to_string()),
        ..Identity::default()
    };
    let facts = |pid: i32, id: &str, pod: &str| JvmFacts {
        pid,
        jvm_id: Some(id.to_string()),
        main: Some("a.b.\"Main\",\n".to_string()),
        started_ms: Some(5),
        identity: who(pod),
        ..JvmFacts::default()
    };
    let named = |kind, name: &str| Subject::Named(kind, name.to_string());
    let later = writer.jvm(facts(8, "ff", "orders-1"));
    let first = writer.jvm(facts(7, "00", "orders-0"));
    let figures = vec![
        (Key::process(Measure::AccountAt), Some(0)),
        (Key::process(Measure::HoldersAt), Some(0)),
        (Key::process(Measure::KernelResident), Some(500)),
        (Key::of(&Subject::Area(Area::JavaHeap), Measure::Resident), Some(300)),
        (Key::of(&Subject::Area(Area::JavaHeap), Measure::Huge), Some(0)),
        (Key::of(&Subject::Area(Area::Gc), Measure::Resident), Some(20)),
        (Key::of(&Subject::Part(Area::Gc, "marks".to_string()), Measure::Resident), Some(20)),
        (Key::of(&named(Named::Holder, "a.B"), Measure::InUse), Some(9)),
        (Key::of(&named(Named::CgroupRow, "anon"), Measure::Resident), Some(400)),
        (Key::of(&named(Named::Finding, "swap-heap"), Measure::Level), Some(2)),
        (Key::of(&named(Named::Finding, "swap-heap"), Measure::Cost), None),
    ];
    writer.sample(first, moment(10), Scope::AccountWithHolders, &figures);
    writer.sample(later, moment(20), Scope::Glance, &[(Key::process(Measure::KernelResident), Some(1))]);
    writer.sample(first, moment(30), Scope::Glance, &[(Key::process(Measure::KernelResident), Some(510))]);
    writer.ended(first, moment(40), Ending::KilledForMemory);
    reader::read(&[&writer.take()]).expect("a recording")
}

/// The rows of a table, each with the columns that have a value.
fn rows(table: Table) -> Vec<BTreeMap<String, Value>> {
    rows_of(&recording(), table)
}

/// A table's file and the number of its rows.
fn file_of(recording: &Recording, table: Table) -> (Vec<u8>, u64) {
    let place = Place::new("eu1", "node-1");
    let file = files(recording, &place).into_iter().find(|file| file.table == table).expect("a file");
    let mut out = Vec::new();
    let count = write(&mut out, &file, recording, &place).expect("memory");
    (out, count)
}

fn rows_of(recording: &Recording, table: Table) -> Vec<BTreeMap<String, Value>> {
    let (out, count) = file_of(recording, table);
    let reader = SerializedFileReader::new(bytes::Bytes::from(out)).expect("a file");
    let facts = reader.metadata().file_metadata();
    let about = facts.key_value_metadata().expect("about it");
    assert_eq!(about[0].value.as_deref(), Some(format!("{}/1", table.name()).as_str()));
    for group in reader.metadata().row_groups() {
        assert!(group.sorting_columns().is_some_and(|by| !by.is_empty()));
        assert!(group.columns().iter().all(|column| matches!(column.compression(), Compression::ZSTD(_))));
        assert!(group.columns().iter().all(|column| column.statistics().is_some()));
    }
    let rows: Vec<BTreeMap<String, Value>> = reader.get_row_iter(None).expect("rows").map(cells).collect();
    assert_eq!(rows.len() as u64, count);
    rows
}

fn cells(row: parquet::errors::Result<parquet::record::Row>) -> BTreeMap<String, Value> {
    let value = |field: &Field| match field {
        Field::Int(number) => Some((*number).into()),
        Field::Long(number) | Field::TimestampMillis(number) => Some((*number).into()),
        Field::Str(text) => Some(text.as_str().into()),
        _ => None,
    };
    let row = row.expect("a row");
    row.get_column_iter().filter_map(|(name, field)| Some((name.clone(), value(field)?))).collect()
}

fn texts(rows: &[BTreeMap<String, Value>], column: &str) -> Vec<String> {
    rows.iter().map(|row| row.get(column).and_then(Value::as_str).unwrap_or("-").to_string()).collect()
}

#[test]
fn samples_are_sorted_by_jvm_and_time_and_say_who_it_is() {
    let rows = rows(Table::Process);
    assert_eq!(texts(&rows, "jvm_id"), ["00", "00", "ff"]);
    assert_eq!(texts(&rows, "pod"), ["orders-0", "orders-0", "orders-1"]);
    assert_eq!(rows[0]["kernel_resident_bytes"], 500);
    assert_eq!(rows[1]["kernel_resident_bytes"], 510);
    assert_eq!((&rows[0]["node"], &rows[0]["main"]), (&"node-1".into(), &"\"Main\",\n".into()));
    assert_eq!(rows[1]["account_age_ms"], 30);
    assert_eq!(rows[0]["outside_heap_bytes"], 0, "its heap and its collector are all it has");
    assert!(!rows[1].contains_key("outside_heap_bytes"), "no account of that moment");
    assert!(!rows[2].contains_key("account_age_ms") && !rows[0].contains_key("heap_used_bytes"));
    assert!(!rows[0].contains_key("account_at_ms") && !rows[0].contains_key("pid"));
}

#[test]
fn an_account_has_a_row_for_each_area_and_part_and_none_where_it_was_not_read() {
    let rows = rows(Table::Account);
    assert_eq!(texts(&rows, "subject"), ["area", "area", "part"]);
    assert_eq!(texts(&rows, "area"), ["gc", "java_heap", "gc"]);
    assert_eq!(texts(&rows, "name"), ["-", "-", "marks"]);
    assert_eq!((&rows[1]["resident_bytes"], &rows[1]["huge_bytes"]), (&300.into(), &0.into()));
    assert!(!rows[0].contains_key("huge_bytes"), "not known is not 0");
    assert!(rows.iter().all(|row| row["account_age_ms"] == 10));
}

#[test]
fn holders_ledger_findings_and_jvms() {
    let of = |table| rows(table).remove(0);
    let holder = of(Table::Holders);
    assert_eq!((&holder["holder"], &holder["in_use_bytes"]), (&"a.B".into(), &9.into()));
    let ledger = of(Table::Ledger);
    assert_eq!((&ledger["item"], &ledger["resident_bytes"]), (&"anon".into(), &400.into()));
    let finding = of(Table::Finding);
    assert_eq!((&finding["id"], &finding["level"]), (&"swap-heap".into(), &"warn".into()));
    assert!(!finding.contains_key("cost_bytes"));
    let jvms = rows(Table::Jvm);
    assert_eq!(texts(&jvms, "ending"), ["oom_killed", "-"]);
    assert!(jvms[0].contains_key("ended") && !jvms[1].contains_key("ended"));
    assert_eq!((&jvms[0]["pid"], &jvms[1]["namespace"]), (&7.into(), &"shop".into()));
}

/// Columns are only added: engines read files of several versions together.
#[test]
fn no_column_is_gone() {
    let now = Table::ALL.map(|table| {
        let columns: Vec<&str> = table.columns().iter().map(|column| column.name).collect();
        format!("{}: {}", table.name(), columns.join(" "))
    });
    let known = include_str!("../../tests/data/store-columns.txt");
    for (line, now) in known.lines().zip(&now) {
        let now: Vec<&str> = now.split(' ').collect();
        assert!(line.split(' ').all(|column| now.contains(&column)), "{line}\n{now:?}");
    }
    assert_eq!(known.lines().count(), now.len(), "{}", now.join("\n"));
}

/// A file of a ring begins with all figures as they were: those are rows of the file before.
#[test]
fn samples_that_a_file_repeats_are_left_out() {
    let mut writer = Writer::new(&Session::default());
    let jvm = writer.jvm(JvmFacts { jvm_id: Some("00".to_string()), ..JvmFacts::default() });
    let sample = |bytes| [(Key::process(Measure::KernelResident), Some(bytes))];
    writer.sample(jvm, moment(10), Scope::Glance, &sample(1));
    writer.take();
    writer.next_segment(&Session { segment: 1, ..Session::default() });
    let alone = reader::read(&[&writer.take()]).expect("a recording");
    let place = Place::new("", "");
    let rows = |recording: &Recording, table| {
        let file = files(recording, &place).into_iter().find(|file| file.table == table).expect("a file");
        write(Vec::new(), &file, recording, &place).expect("memory")
    };
    assert_eq!(files(&alone, &place), []);
    writer.next_segment(&Session { segment: 1, ..Session::default() });
    writer.sample(jvm, moment(20), Scope::Glance, &sample(2));
    writer.ended(jvm, moment(30), Ending::Ended);
    let more = reader::read(&[&writer.take()]).expect("a recording");
    assert_eq!((rows(&more, Table::Process), rows(&more, Table::Jvm)), (1, 1));
}

#[test]
fn what_does_not_change_has_one_row_and_what_is_gone_has_one_without_figures() {
    let mut writer = Writer::new(&Session::default());
    let jvm = writer.jvm(JvmFacts { jvm_id: Some("00".to_string()), ..JvmFacts::default() });
    // Not by more than 16 KiB, then by as much and a 64th.
    let (small, more, large) = (Some(1), Some(16 << 10), Some(20 << 10));
    for (at, bytes) in [(10, small), (20, more), (30, large), (40, None), (50, None), (60, large)] {
        let mut figures = vec![
            (Key::process(Measure::AccountAt), Some(at)),
            (Key::of(&Subject::Area(Area::Gc), Measure::Resident), Some(9)),
        ];
        let part = Key::of(&Subject::Part(Area::Gc, "marks".to_string()), Measure::Resident);
        figures.extend(bytes.map(|bytes| (part, Some(bytes))));
        writer.sample(jvm, moment(at), Scope::Account, &figures);
    }
    let recording = reader::read(&[&writer.take()]).expect("a recording");
    let rows = rows_of(&recording, Table::Account);
    let of = |subject: &str| -> Vec<Option<i64>> {
        let rows = rows.iter().filter(|row| row["subject"] == subject);
        rows.map(|row| row.get("resident_bytes").and_then(Value::as_i64)).collect()
    };
    assert_eq!((of("area").len(), of("part")), (6, vec![Some(1), Some(20 << 10), None, Some(20 << 10)]));
}

#[test]
fn numbers_that_come_again_are_plain_and_ones_that_do_not_are_differences() {
    let mut writer = Writer::new(&Session::default());
    let jvm = writer.jvm(JvmFacts { jvm_id: Some("00".to_string()), ..JvmFacts::default() });
    for at in 1..200 {
        let figures = [(Key::process(Measure::KernelResident), Some(500 + at / 50))];
        writer.sample(jvm, moment(at), Scope::Glance, &figures);
    }
    let recording = reader::read(&[&writer.take()]).expect("a recording");
    let (file, _) = file_of(&recording, Table::Process);
    let reader = SerializedFileReader::new(bytes::Bytes::from(file)).expect("a file");
    let group = reader.metadata().row_group(0);
    let encodings = |name: &str| {
        let column = group.columns().iter().find(|column| column.column_path().string() == name);
        column.expect("a column").encodings().collect::<Vec<_>>()
    };
    assert!(encodings("time").contains(&Encoding::DELTA_BINARY_PACKED));
    let resident = encodings("kernel_resident_bytes");
    assert!(
        resident.contains(&Encoding::PLAIN) && !resident.contains(&Encoding::RLE_DICTIONARY),
        "{resident:?}"
    );
    assert!(encodings("jvm_id").contains(&Encoding::RLE_DICTIONARY));
}

#[test]
fn a_damaged_file_is_an_error_or_has_other_figures_but_no_panic() {
    let (whole, count) = file_of(&recording(), Table::Account);
    let read = |bytes: &[u8]| {
        let file = bytes::Bytes::copy_from_slice(bytes);
        let mut rows = 0;
        Rows::of(file, Table::Account, &["time", "jvm_id", "area", "resident_bytes"])?.each(|columns| {
            rows += columns.len() as u64;
            Ok(())
        })?;
        anyhow::Ok::<u64>(rows)
    };
    assert_eq!(read(&whole).expect("a file"), count);
    assert!(read(&whole[..whole.len() / 2]).is_err());
    let is_refused = |at: usize| {
        let mut damaged = whole.clone();
        damaged[at] ^= 0xff;
        read(&damaged).is_err()
    };
    assert!((0..whole.len()).filter(|at| is_refused(*at)).count() > whole.len() / 10);
}
