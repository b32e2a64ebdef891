//! Recorded JVMs of every JDK and collector, read again and compared with the accounts that were found good
//! (`tests/data/frozen/NAME.json`), and some of them with what every table of `map` prints (`NAME.txt`).
//! `scripts/record-frozen` records them; `MARUSA_BLESS=1` writes the accounts and the tables anew.

use marusa::map::{self, Account, MemoryMap};
use marusa::show::text;
use marusa::snapshot::Snapshot;
use marusa::snapshot::file::Frozen;
use serde_json::{Map, Value};
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

const FILE_BYTES_MAX: u64 = 512 << 10;
/// The largest per-mille share of all resident bytes that may have no owner.
const UNATTRIBUTED_PER_MILLE_MAX: u64 = 5;
/// Differences that are shown of one recording.
const DIFFERENCES_SHOWN_MAX: usize = 10;
/// Recordings whose tables are compared: malloc with NMT headers, regions of G1, and a heap that is mapped several times.
const PRINTED: [&str; 3] = ["jdk8-parallel", "jdk17-g1", "jdk25-z-generational"];

fn recordings() -> Vec<PathBuf> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/frozen");
    let entries = fs::read_dir(&directory).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut files: Vec<PathBuf> =
        entries.filter(|path| path.extension().is_some_and(|extension| extension == "frozen")).collect();
    files.sort();
    assert!(!files.is_empty(), "no recordings in {}: run scripts/record-frozen", directory.display());
    files
}

fn name(path: &Path) -> String {
    path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default()
}

fn load(path: &Path) -> Frozen {
    let mut file = fs::File::open(path).expect("a recording");
    Frozen::load(&mut file).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// One recording, joined; the laws hold.
fn joined(path: &Path) -> (Snapshot, MemoryMap) {
    let snapshot: Snapshot = load(path).snapshot();
    let joined = map::join(&snapshot);
    if let Err(broken) = map::law::check(&joined, &snapshot) {
        panic!("{}: {broken}", path.display());
    }
    (snapshot, joined)
}

/// The whole account, which is read back as it was. Flags depend on the machine that recorded (CPUs, memory), but are recorded, so
/// they are compared too.
fn account(path: &Path) -> Value {
    let (snapshot, joined) = joined(path);
    let account = Account::of(&snapshot, &joined);
    let text = serde_json::to_vec(&account).expect("JSON");
    assert!(
        map::model::parse(&text).as_ref() == Ok(&account),
        "{}: what was written is read",
        path.display()
    );
    serde_json::from_slice(&text).expect("JSON")
}

/// Every table of `map`, each behind its name.
fn tables(path: &Path) -> String {
    type Table = fn(&mut dyn Write, &Account) -> io::Result<()>;
    let (snapshot, joined) = joined(path);
    let account = Account::of(&snapshot, &joined);
    let tables: [(&str, Table); 7] = [
        ("area", text::by_area_and_part),
        ("paper", text::by_paper),
        ("part", text::by_part),
        ("page-size", text::by_page_size),
        ("thread", |out, account| text::by_thread(out, account, false)),
        ("library", |out, account| text::by_library(out, account, false)),
        ("arena", text::by_arena),
    ];
    let mut out = Vec::new();
    let mut write = |name: &str, table: &dyn Fn(&mut dyn Write) -> io::Result<()>| {
        writeln!(out, "==== {name}")?;
        text::head(&mut out, &account)?;
        table(&mut out)?;
        // What is not known comes after the reasons, which are not here.
        if name == "page-size" { Ok(()) } else { text::gap_rows(&mut out, &account.gaps) }
    };
    for (name, table) in tables {
        write(name, &|out| table(out, &account)).expect("a vector takes all");
    }
    write("mapping", &|out| text::by_mapping(out, &snapshot, &joined)).expect("a vector takes all");
    String::from_utf8(out).expect("UTF-8")
}

/// What lists are made of, by name: a difference names the part, not its number.
fn key_of(value: &Value) -> Option<String> {
    let number = || ["arena", "tid"].iter().find_map(|key| value[*key].as_u64()).map(|key| key.to_string());
    // One part of malloc's blocks may be identified in several ways.
    let owner = || Some(format!("{} by {}", value["part"].as_str()?, value["how"].as_str()?));
    let name = || {
        ["area", "part", "name", "path", "what"]
            .iter()
            .find_map(|key| value[*key].as_str())
            .map(str::to_string)
    };
    number().or_else(owner).or_else(name)
}

/// Every place at which the two differ: "areas.java_heap.parts.eden.resident_bytes: 4096 was 8192".
fn differences(path: &str, now: &Value, golden: &Value, found: &mut Vec<String>) {
    match (now, golden) {
        (Value::Object(now), Value::Object(golden)) => {
            for key in golden.keys().chain(now.keys().filter(|key| !golden.contains_key(*key))) {
                let of = |object: &Map<String, Value>| object.get(key).cloned().unwrap_or(Value::Null);
                differences(&format!("{path}.{key}"), &of(now), &of(golden), found);
            }
        }
        (Value::Array(now), Value::Array(golden))
            if now.iter().chain(golden).all(|v| key_of(v).is_some()) =>
        {
            let of = |list: &[Value], key: &Option<String>| {
                list.iter().find(|value| key_of(value) == *key).cloned()
            };
            for key in golden
                .iter()
                .map(key_of)
                .chain(now.iter().map(key_of).filter(|key| of(golden, key).is_none()))
            {
                let path = format!("{path}.{}", key.as_deref().unwrap_or_default());
                let (now, golden) = (of(now, &key), of(golden, &key));
                differences(&path, &now.unwrap_or_default(), &golden.unwrap_or_default(), found);
            }
        }
        _ if now != golden => found.push(format!("{}: {now} was {golden}", path.trim_start_matches('.'))),
        _ => {}
    }
}

#[test]
fn every_recorded_jvm_has_its_golden_account() {
    let bless = std::env::var_os("MARUSA_BLESS").is_some();
    let mut broken = Vec::new();
    for path in recordings() {
        let account = account(&path);
        let golden_path = path.with_extension("json");
        if bless {
            let text = serde_json::to_string_pretty(&account).expect("JSON");
            fs::write(&golden_path, text + "\n").expect("written");
            continue;
        }
        let Ok(text) = fs::read_to_string(&golden_path) else {
            broken.push(format!("{}: no golden account; MARUSA_BLESS=1 writes it", name(&path)));
            continue;
        };
        let golden: Value = serde_json::from_str(&text).expect("a golden account is JSON");
        let mut found = Vec::new();
        differences("", &account, &golden, &mut found);
        let more = found.len().saturating_sub(DIFFERENCES_SHOWN_MAX);
        found.truncate(DIFFERENCES_SHOWN_MAX);
        broken.extend(found.into_iter().map(|difference| format!("{}: {difference}", name(&path))));
        if more > 0 {
            broken.push(format!("{}: and {more} more", name(&path)));
        }
    }
    assert!(
        broken.is_empty(),
        "{}\nIf this is meant: MARUSA_BLESS=1, and read the difference",
        broken.join("\n")
    );
}

#[test]
fn every_table_of_a_recorded_jvm_is_as_it_was() {
    let bless = std::env::var_os("MARUSA_BLESS").is_some();
    for path in recordings().into_iter().filter(|path| PRINTED.contains(&name(path).as_str())) {
        let (now, golden_path) = (tables(&path), path.with_extension("txt"));
        if bless {
            fs::write(&golden_path, &now).expect("written");
        }
        let golden = fs::read_to_string(&golden_path).expect("MARUSA_BLESS=1 writes it");
        let lines = now.lines().map(Some).chain(std::iter::repeat(None));
        let differs = lines.zip(golden.lines().map(Some).chain([None])).find(|(now, golden)| now != golden);
        assert_eq!(differs, None, "{}, now and before: MARUSA_BLESS=1 if it is meant", name(&path));
    }
}

#[test]
fn every_recorded_byte_has_an_owner() {
    for path in recordings() {
        let account = account(&path);
        let gaps = &account["gaps"];
        let number = |key: &str| account["totals"][key].as_u64().expect("bytes");
        let (resident, unattributed) = (number("resident_bytes"), number("unattributed_bytes"));
        let name = name(&path);
        assert!(resident > 40 << 20, "{name}: {resident} bytes is not a real load");
        assert!(
            unattributed * 1000 <= resident * UNATTRIBUTED_PER_MILLE_MAX,
            "{name}: {unattributed} of {resident} bytes unattributed; {gaps}"
        );
        for key in ["heap", "code_heaps", "classes", "major", "gc", "nmt"] {
            assert!(!account["jvm"][key].is_null(), "{name}: jvm.{key} is unknown; {gaps}");
        }
    }
}

#[test]
fn recordings_are_small_and_anonymous_and_of_every_row() {
    let table = include_str!("../data/jdk-gc.tsv").lines().skip(1).filter(|line| !line.starts_with('#'));
    let mut wanted: Vec<String> = table
        .filter_map(|line| {
            let mut columns = line.split('\t');
            Some(format!("jdk{}-{}", columns.next()?, columns.next()?))
        })
        .collect();
    for path in recordings() {
        wanted.retain(|row| *row != name(&path));
        let bytes = fs::metadata(&path).expect("a recording").len();
        assert!(bytes < FILE_BYTES_MAX, "{} has {bytes} bytes", path.display());
        let process = load(&path).os.process;
        assert_eq!((process.command.as_str(), process.user.as_str()), ("", ""), "{}", path.display());
        assert_eq!(process.container, None, "{}", path.display());
    }
    assert!(wanted.is_empty(), "no recording of {wanted:?}: run scripts/record-frozen");
}

#[test]
fn a_difference_names_the_part_and_both_values() {
    let text = |bytes| {
        format!(r#"{{"areas": [{{"area": "code", "parts": [{{"part": "libc", "bytes": {bytes}}}]}}]}}"#)
    };
    let value = |bytes| -> Value { serde_json::from_str(&text(bytes)).expect("JSON") };
    let mut found = Vec::new();
    differences("", &value(1), &value(2), &mut found);
    assert_eq!(found, ["areas.code.parts.libc.bytes: 1 was 2"]);
}
