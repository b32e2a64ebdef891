//! The same JVM from a recording, from a store and from Prometheus gets the same advice.

use super::*;
use crate::advise::Workload;
use crate::cmd::store::Store;
use crate::map::Area;
use crate::record::Recording;
use crate::record::key::{Key, Measure, Subject};
use crate::record::moment::Moment;
use crate::record::reader;
use crate::record::writer::{JvmFacts, Scope, Session, Writer};
use crate::store::layout::Place;
use std::collections::HashMap;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::time::{SystemTime, UNIX_EPOCH};

const MIB: u64 = 1 << 20;
const WANTED: Wanted = Wanted { until: Duration::from_secs(86_400), gc_ratio: 0.02 };

/// An hour that ended a moment ago, with an account each minute.
fn recording() -> Recording {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_millis() as i64;
    let first = (now / 60_000 - 70) * 60_000;
    let mut writer = Writer::new(&Session { started_ms: first, ..Session::default() });
    let mut facts = JvmFacts {
        main: Some("Orders".to_string()),
        version: Some("21.0.8".to_string()),
        gc: Some("parallel".to_string()),
        max_heap_bytes: Some(1 << 30),
        jvm_id: Some("0123".to_string()),
        ..JvmFacts::default()
    };
    facts.identity.namespace = Some("shop".to_string());
    facts.identity.workload = Some("orders".to_string());
    let jvm = writer.jvm(facts);
    for minute in 0..60_u64 {
        let process = |measure, value| (Key::process(measure), Some(value));
        let area = |area, bytes| (Key::of(&Subject::Area(area), Measure::Resident), Some(bytes));
        let figures = [
            process(Measure::AccountAt, minute * 60_000),
            process(Measure::KernelResident, 500 * MIB),
            process(Measure::PageTables, MIB),
            process(Measure::Tasks, 40),
            process(Measure::HeapUsed, 200 * MIB + minute % 5 * 100 * MIB),
            process(Measure::HeapCapacity, 1 << 30),
            process(Measure::Collections, minute),
            process(Measure::OldCollections, minute / 5),
            process(Measure::CollectionTime, minute * 400_000),
            area(Area::JavaHeap, 300 * MIB),
            area(Area::ClassMetadata, (50 + minute % 7) * MIB),
        ];
        let at = Moment { steady_ms: minute * 60_000, wall_ms: first + minute as i64 * 60_000 };
        writer.sample(jvm, at, Scope::Account, &figures);
    }
    reader::read(&[&writer.take()]).expect("a recording")
}

fn judged(histories: &[History]) -> Workload {
    let mut all = advise::workloads(&histories.iter().collect::<Vec<_>>(), WANTED);
    assert_eq!(all.len(), 1);
    all.remove(0)
}

#[test]
fn a_store_is_read_back() {
    let directory = tempfile::tempdir().expect("a directory");
    let recording = recording();
    let root = directory.path().to_string_lossy().into_owned();
    Store::open(&root).expect("a store").put(&recording, &Place::new("eu1", "node")).expect("written");
    let read = parquet::read(directory.path(), Duration::from_secs(86_400)).expect("read");
    let (from_store, own) = (judged(&read), judged(&recording.jvms));
    assert_eq!((&from_store.limit, &from_store.heap, &from_store.key), (&own.limit, &own.heap, &own.key));
    assert!(own.heap.is_some() && own.observed.replicas == from_store.observed.replicas);
    let early =
        parquet::read(directory.path(), Duration::from_secs(60)).expect("a file of today, or of yesterday");
    assert!(early.is_empty(), "no row is so young");
}

#[test]
fn what_is_not_a_store_is_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    let refused = |since| parquet::read(directory.path(), since).expect_err("refused").to_string();
    assert!(refused(Duration::from_secs(1)).contains("it is not a store"));
    let today = crate::base::rfc3339(SystemTime::now());
    let place = directory.path().join(format!("v1/jvm/date={}/cluster=a", &today[..10]));
    std::fs::create_dir_all(&place).expect("made");
    for bytes in [&b"PAR1 and nothing else"[..], b"", &[0xff; 4096]] {
        std::fs::write(place.join("x.parquet"), bytes).expect("written");
        assert!(refused(Duration::from_secs(86_400)).contains("x.parquet: "));
    }
}

/// A Prometheus with the series of a recording, or one that answers nothing of use.
fn server(answer: impl Fn(&str) -> (u16, String) + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut reader = BufReader::new(stream.try_clone().expect("a copy"));
            let mut line = String::new();
            reader.read_line(&mut line).expect("a request");
            let mut rest = String::new();
            while reader.read_line(&mut rest).is_ok_and(|bytes| bytes > 2) {}
            let (status, body) = answer(&line);
            let head =
                format!("HTTP/1.1 {status} X\r\nConnection: close\r\nContent-Length: {}\r\n\r\n", body.len());
            let _ = stream.write_all([head, body].concat().as_bytes());
        }
    });
    url
}

fn answered(recording: &Recording, request: &str) -> String {
    let history = &recording.jvms[0];
    let key = match request.split("query=").nth(1).and_then(|query| query.split("%7B").next()) {
        Some("marusa_jvm_kernel_resident_bytes") => Key::process(Measure::KernelResident),
        Some("marusa_jvm_kernel_page_table_bytes") => Key::process(Measure::PageTables),
        Some("marusa_jvm_threads") => Key::process(Measure::Tasks),
        Some("marusa_jvm_heap_used_bytes") => Key::process(Measure::HeapUsed),
        Some("marusa_jvm_heap_capacity_bytes") => Key::process(Measure::HeapCapacity),
        Some("marusa_jvm_gc_collections_total") => Key::process(Measure::Collections),
        Some("marusa_jvm_gc_old_collections_total") => Key::process(Measure::OldCollections),
        Some("marusa_jvm_gc_duration_seconds_total") => Key::process(Measure::CollectionTime),
        _ => Key::process(Measure::AccountAt),
    };
    let bounds = |name: &str| -> f64 {
        let after = request.split(&format!("{name}=")).nth(1).expect("a bound");
        after.split(['&', ' ']).next().and_then(|number| number.parse().ok()).expect("a number")
    };
    let (from, to) = (bounds("start"), bounds("end"));
    let values = |value: &dyn Fn(usize) -> Option<f64>| -> Vec<(f64, String)> {
        let at = |at: usize| Some((history.moments[at].wall_ms as f64 / 1e3, value(at)?.to_string()));
        (0..history.len()).filter_map(at).filter(|(at, _)| (from..=to).contains(at)).collect()
    };
    let labels = [
        ("namespace", "shop"),
        ("workload", "orders"),
        ("jvm", "Orders"),
        ("instance", "n:1"),
        ("jvm_id", "0123"),
    ];
    let labels = labels.into_iter().chain([("java_version", "21.0.8"), ("gc", "parallel")]);
    let mut labels: HashMap<&str, &str> = labels.collect();
    let mut series = Vec::new();
    let mut add = |labels: &HashMap<&str, &str>, values: Vec<(f64, String)>| {
        series.push(serde_json::json!({"metric": labels, "values": values}));
    };
    if request.contains("marusa_jvm_memory_resident_bytes") {
        for area in [Area::JavaHeap, Area::ClassMetadata] {
            labels.insert("area", area.name());
            let key = Key::of(&Subject::Area(area), Measure::Resident);
            add(&labels, values(&|at| history.value(&key, at).map(|value| value as f64)));
        }
    } else if request.contains("marusa_jvm_info") {
        add(&labels, values(&|_| Some(1.0)));
    } else if request.contains("marusa_jvm_heap_max_bytes") {
        add(&labels, values(&|_| Some((1_u64 << 30) as f64)));
    } else if key.measure != Measure::AccountAt {
        let scale = if key.measure == Measure::CollectionTime { 1e6 } else { 1.0 };
        add(&labels, values(&|at| history.value(&key, at).map(|value| value as f64 / scale)));
    }
    serde_json::json!({"status": "success", "data": {"resultType": "matrix", "result": series}}).to_string()
}

#[test]
fn prometheus_is_asked_day_by_day() {
    let recording = recording();
    let own = judged(&recording.jvms);
    let url = server(move |request| (200, answered(&recording, request)));
    let read = prometheus::read(&url, "namespace=\"shop\"", Duration::from_secs(3 * 86_400)).expect("read");
    let from_prometheus = judged(&read);
    assert_eq!((&from_prometheus.limit, &from_prometheus.heap), (&own.limit, &own.heap));
    assert_eq!(from_prometheus.name, own.name);
}

#[test]
fn what_is_not_prometheus_is_said_with_what_it_answered() {
    let refused = |status, body: &'static str| {
        let url = server(move |_| (status, body.to_string()));
        prometheus::read(&url, "", Duration::from_secs(60)).expect_err("refused").to_string()
    };
    assert!(refused(200, "<html>hello").contains("its answer (200 OK) is not that of Prometheus"));
    assert!(refused(400, r#"{"status":"error","error":"parse error"}"#).contains("parse error"));
    assert!(
        refused(200, r#"{"status":"success","data":{"result":[]}}"#).contains("does it scrape marusa serve?")
    );
    assert!(
        refused(200, r#"{"status":"success","data":{"result":[{"metric":{},"values":[["x",1]]}]}}"#)
            .contains("not that of")
    );
    let nobody =
        prometheus::read("http://127.0.0.1:1", "", Duration::from_secs(60)).expect_err("refused").to_string();
    assert!(nobody.starts_with("cannot read http://127.0.0.1:1: "), "{nobody}");
}
