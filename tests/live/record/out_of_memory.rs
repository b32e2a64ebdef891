//! A JVM that the kernel OOM-kills: the last moments before are in the file, and why it ended.

use super::*;
use crate::common::small_group::Group;

const LIMIT: u64 = 160 << 20;

#[test]
fn the_last_account_before_the_kill_is_there() {
    if !is_root() {
        return skip("only root may make a cgroup");
    }
    let Some(java) = java("17") else { return };
    let Some(group) = Group::with_bytes(LIMIT) else { return skip("no cgroup can be made here") };
    let directory = Directory::new("oom");
    let path = directory.file("a.marusa");
    let mut command = group.command(&java.display().to_string());
    command.args(["-Xmx48m", "-XX:+UseSerialGC", "-XX:MaxDirectMemorySize=1g", "-cp"]);
    command.arg(root().join("java/build-out")).args(["marusa.Grow", "direct=10m/s"]);
    let jvm = Jvm::of(command);
    let output =
        Recorder::start(&[&jvm.pid.to_string(), "-o", &path, "--every", "1s", "--keep", "10m"]).wait();
    drop(jvm);
    drop(group);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("killed"), "{}", text(&output.stderr));
    let (lines, _) = exported(&path);
    let process = of(&lines, "process");
    let last = process.last().expect("a sample");
    let accounts = accounts(&process);
    let account = accounts.last().expect("an account");
    // Near a limit accounts may take a tenth of a core, so on a slow machine they come each ten times as long as one takes.
    let apart = 1500 + number(&account["account_took_us"]) / 100;
    assert!(
        number(&account["steady_ms"]) + apart >= number(&last["steady_ms"]),
        "it is of the end: {account} {last}"
    );
    let direct =
        of(&lines, "area").into_iter().rfind(|line| line["area"] == "direct_buffers").expect("an area");
    assert!(number(&direct["resident_bytes"]) > 50 << 20, "{direct}");
    // The last sample may be of a process that is ending, whose group is then unknown.
    let mut last_two = process.iter().rev().take(2);
    let in_group = last_two.find(|line| !line["group_limit_bytes"].is_null()).expect("a known limit");
    assert!(number(&in_group["group_limit_bytes"]) == LIMIT, "{in_group}");
    // Near the limit it was looked at more often than each second.
    let apart: Vec<u64> = process
        .windows(2)
        .map(|pair| number(&pair[1]["steady_ms"]) - number(&pair[0]["steady_ms"]))
        .collect();
    assert!(apart.iter().any(|apart| *apart < 500), "{apart:?}");
    what_filled_the_group_is_in_every_face(&path, &lines);
    let diff = marusa(&["diff", &path, "--json"]);
    let diff: Value = serde_json::from_slice(&diff.stdout).expect("JSON");
    assert_eq!(diff["causes"][0]["area"], "direct_buffers", "{}", diff["answer"]);
}

/// The rows of memory.stat, by their names in either version of cgroups.
fn what_filled_the_group_is_in_every_face(path: &str, lines: &[Value]) {
    let is_anonymous = |row: &Value| row["name"] == "anon" || row["name"] == "rss";
    let rows: Vec<&Value> = of(lines, "cgroup").into_iter().filter(|row| is_anonymous(row)).collect();
    let bytes = |row: Option<&&Value>| number(&row.expect("a row")["resident_bytes"]);
    assert!(bytes(rows.last()) > bytes(rows.first()) + (50 << 20), "{rows:?}");
    // Near the limit also who it is.
    let is_jvm =
        |row: &&Value| row["name"].as_str().is_some_and(|name| name.starts_with("anonymous memory: java"));
    let of_jvm: Vec<&Value> = of(lines, "cgroup").into_iter().filter(is_jvm).collect();
    assert!(bytes(of_jvm.last()) > 50 << 20, "{of_jvm:?}");
    let diff = marusa(&["diff", path, "--json"]);
    let diff: Value = serde_json::from_slice(&diff.stdout).expect("JSON");
    let named = diff["named"].as_array().expect("rows");
    let grown = named.iter().find(|row| row["subject"] == "cgroup" && is_anonymous(row)).expect("a row");
    assert!(grown["resident_grown_bytes"].as_i64().is_some_and(|bytes| bytes > 50 << 20), "{grown}");
    let table = text(&marusa(&["diff", path, "--by", "cgroup"]).stdout);
    assert!(table.contains("MEMORY.STAT OF THE CGROUP"), "{table}");
    let leak = marusa(&["leak", path, "--parts", "--json"]);
    let leak: Value = serde_json::from_slice(&leak.stdout).expect("JSON");
    let rows = leak["jvms"][0]["rows"].as_array().expect("rows");
    assert!(rows.iter().any(|row| row["kind"] == "cgroup"), "{rows:#?}");
    let page = marusa(&["report", path, "-o", "-"]);
    assert!(text(&page.stdout).contains("<option value=\"cgroup\">by cgroup</option>"));
}
