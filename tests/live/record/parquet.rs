//! What is exported is read by others: DuckDB and pandas (`scripts/readers` installs them) find the same lines, figures, gaps and
//! types
//! as we do.

use super::*;

/// Prints what each of both finds as JSON, in the same form.
const READ: &str = r#"
import json, sys
import duckdb, pandas

path = sys.argv[1]

def by_duckdb():
    ask = lambda query: duckdb.sql(query.replace("FILE", f"'{path}'")).fetchall()
    return {
        "types": {name: kind for name, kind, *_ in ask("DESCRIBE SELECT * FROM FILE")},
        "lines": dict(ask("SELECT subject, count(*) FROM FILE GROUP BY subject")),
        "areas": {area: int(bytes) for area, bytes in
            ask("SELECT area, sum(resident_bytes) FROM FILE WHERE subject = 'area' GROUP BY area")},
        "gaps": ask("SELECT count(*) FROM FILE WHERE kernel_resident_bytes IS NULL")[0][0],
        "first": ask("SELECT min(epoch_ms(time)) FROM FILE")[0][0],
        "mains": sorted(main or "" for main, in ask("SELECT DISTINCT main FROM FILE")),
        "threads": sorted(name for name, in ask("SELECT DISTINCT name FROM FILE WHERE subject = 'threads'")),
    }

def by_pandas():
    table = pandas.read_parquet(path)
    areas = table[table.subject == "area"].groupby("area").resident_bytes.sum()
    return {
        "types": {name: str(kind) for name, kind in table.dtypes.items()},
        "lines": {subject: int(count) for subject, count in table.subject.value_counts().items()},
        "areas": {area: int(bytes) for area, bytes in areas.items()},
        "gaps": int(table.kernel_resident_bytes.isna().sum()),
        "first": int(table.time.min().timestamp() * 1000 + 0.5),
        "mains": sorted(table.main.fillna("").unique()),
        "threads": sorted(table[table.subject == "threads"].name.unique()),
    }

print(json.dumps([by_duckdb(), by_pandas()]))
"#;

/// The Python that `scripts/readers` makes. `None` prints why the test is skipped.
pub fn python() -> Option<PathBuf> {
    let home = std::env::var("MARUSA_READERS").map(PathBuf::from).unwrap_or_else(|_| {
        PathBuf::from(std::env::var("HOME").unwrap_or_default()).join(".cache/marusa/readers")
    });
    let python = home.join("bin/python");
    let has = |python: &Path| {
        Command::new(python)
            .args(["-c", "import duckdb, pandas, pyarrow"])
            .output()
            .is_ok_and(|run| run.status.success())
    };
    if has(&python) {
        return Some(python);
    }
    skip(&format!("no DuckDB and pandas at {}; scripts/readers installs them", python.display()));
    None
}

#[test]
fn duckdb_and_pandas_find_what_was_recorded() {
    let Some(python) = python() else { return };
    let Some(jvm) = grow(&[], &["direct=4m/s", "until=16m", "threads=3"]) else { return };
    let directory = Directory::new("parquet");
    let (path, parquet) = (directory.file("a.marusa"), directory.file("a.parquet"));
    let options = ["--every", "200ms", "--account-every", "1s", "--cpu", "50", "--for", "5s"];
    Recorder::start(&[&[jvm.pid.to_string().as_str(), "-o", &path][..], &options[..]].concat()).wait();
    let output = marusa(&["export", &path, "--parquet", &parquet]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let output = Command::new(python).args(["-c", READ, &parquet]).output().expect("python runs");
    assert!(output.status.success(), "{}", text(&output.stderr));
    let read: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let (lines, _) = exported(&path);
    for reader in read.as_array().expect("two readers") {
        for subject in ["process", "area", "part", "arena", "library", "threads"] {
            assert_eq!(number(&reader["lines"][subject]), of(&lines, subject).len() as u64, "{subject}");
        }
        for (area, bytes) in reader["areas"].as_object().expect("areas") {
            let ours = of(&lines, "area").into_iter().filter(|line| line["area"] == area.as_str());
            let sum: u64 = ours.map(|line| number(&line["resident_bytes"])).sum();
            assert_eq!(number(bytes), sum, "{area}");
        }
        // Only the process has the kernel's sum: elsewhere it is unknown, and not 0.
        let others = lines.iter().filter(|line| line["subject"] != "process").count();
        assert_eq!(number(&reader["gaps"]), others as u64);
        assert_eq!(reader["mains"], serde_json::json!(["marusa.Grow"]));
        let threads = reader["threads"].as_array().expect("names");
        assert!(threads.iter().any(|name| name == "grow"), "{threads:?}");
    }
    let (duckdb, pandas) = (&read[0], &read[1]);
    assert_eq!(duckdb["first"], pandas["first"]);
    assert_eq!(duckdb["types"]["time"], "TIMESTAMP WITH TIME ZONE");
    assert_eq!(pandas["types"]["time"], "datetime64[ms, UTC]");
    assert_eq!(
        (&duckdb["types"]["pid"], &duckdb["types"]["resident_bytes"]),
        (&"INTEGER".into(), &"BIGINT".into())
    );
}
