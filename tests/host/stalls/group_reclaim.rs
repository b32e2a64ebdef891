//! Processes that read more than their cgroup may hold: each page that they get, they first have to free.

use super::*;
use crate::common::small_group::Group;
use std::fs::File;
use std::path::PathBuf;

/// A file without content, removed when dropped: its pages are made when they are read, without a disk.
pub struct Sparse(pub PathBuf);

impl Sparse {
    pub fn of(bytes: u64) -> Sparse {
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("stalls-{}", std::process::id()));
        File::create(&path).and_then(|file| file.set_len(bytes)).expect("a sparse file");
        Sparse(path)
    }
}

impl Drop for Sparse {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

pub struct Ended(pub Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_process_in_a_full_group_is_found_among_all_of_the_host() {
    if !may_trace() {
        return;
    }
    let Some(group) = Group::with_bytes(32 << 20) else { return skip("no cgroup can be made") };
    let file = Sparse::of(1 << 40);
    let mut command = group.command("dd");
    command.arg(format!("if={}", file.0.display())).args(["of=/dev/null", "bs=1M"]).stderr(Stdio::null());
    let reader = Ended(command.spawn().expect("dd"));
    std::thread::sleep(Duration::from_millis(300));
    let (output, tables) = end(begin(&["500ms", "3", "--json"]));
    assert_eq!((output.status.code(), tables.len()), (Some(0), 3), "{}", text(&output.stderr));
    let mut reclaimed = 0.0;
    for table in &tables {
        check_schema(table);
        assert_eq!((&table["taken"]["source"], &table["by"]), (&"tracepoints".into(), &"process".into()));
        let seconds = table["taken"]["interval_seconds"].as_f64().expect("seconds");
        let pid = Value::from(reader.0.id());
        let rows = table["rows"].as_array().expect("rows");
        let Some(row) = rows.iter().find(|row| row["pid"] == pid) else { continue };
        assert_eq!((&row["name"], &row["is_jvm"]), (&"dd".into(), &false.into()));
        // One thread: it cannot have waited longer than the clock went.
        let waited = row["waited"]["total_ms"].as_f64().expect("ms");
        assert!(
            waited <= seconds * 1e3 * 1.01 && waited <= row["cpu_ms"].as_f64().unwrap_or(f64::MAX) * 3.0,
            "{row}"
        );
        reclaimed += ms(row, "cgroup_reclaim");
    }
    assert!(reclaimed > 1.0, "no reclaim of the group was seen: {tables:#?}");
}

#[test]
fn the_threads_of_a_jvm_by_kind_and_by_name() {
    if !may_trace() {
        return;
    }
    let Some(java) = java("21") else { return };
    let Some(group) = Group::with_bytes(96 << 20) else { return skip("no cgroup can be made") };
    let file = Sparse::of(1 << 40);
    let mut command = group.command(&java.display().to_string());
    command
        .args(["-Xmx16m", "-XX:+UseSerialGC", "-XX:-UsePerfData", "-cp"])
        .arg(root().join("java/build-out"));
    let jvm = Jvm::of({
        command.arg("marusa.ReadAgain").arg(&file.0);
        command
    });
    std::thread::sleep(Duration::from_millis(500));
    let pid = jvm.pid.to_string();
    let (output, tables) = end(begin(&[&pid, "1s", "2", "--json"]));
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let of_kind = |kind: &str| -> f64 {
        let rows = tables.iter().flat_map(|table| table["rows"].as_array().expect("rows"));
        rows.filter(|row| row["kind"] == kind).map(|row| ms(row, "cgroup_reclaim")).sum()
    };
    assert!(of_kind("application") > 1.0, "{tables:#?}");
    assert!(of_kind("application") > of_kind("compiler") + of_kind("gc") + of_kind("vm"), "{tables:#?}");
    tables.iter().for_each(check_schema);
    assert!(tables[0]["elsewhere"].is_object() && tables[0]["process"]["pid"] == jvm.pid);
    let (_, tables) = end(begin(&[&pid, "1s", "1", "--by", "thread", "--json"]));
    let row = &tables[0]["rows"][0];
    assert_eq!((&row["name"], &row["pid"]), (&"reader of much".into(), &jvm.pid.into()), "{tables:#?}");
    let printed = marusa(&["stalls", &pid, "500ms", "1"]);
    let printed = text(&printed.stdout);
    for words in ["cgroup reclaim", "application", "the whole host", "how long each of"] {
        assert!(printed.contains(words), "{words} is not in\n{printed}");
    }
}
