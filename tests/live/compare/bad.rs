//! Programs and arms that cannot be compared: each is reported, none hangs, and nothing of theirs lives on.

use super::{Directory, assert_refused, classes, command, compare, json, left_out, runs};
use crate::common::{java, text};
use std::path::Path;

const ARMS: [&str; 6] = ["--arm", "base=", "--arm", "other=Y=1", "--runs", "3"];

#[test]
fn a_command_that_fails_is_given_up_with_its_last_words() {
    let directory = Directory::new("fails");
    let found = json(&directory, 1, &[&ARMS[..], &["--", "sh", "-c", "echo why not >&2; exit 3"]].concat());
    let why = left_out(&found);
    assert!(why.iter().all(|why| why.contains("exit status 3; its last output: why not")), "{why:?}");
    assert!(runs(&found).len() <= 4, "given up after two of an arm: {}", runs(&found).len());
    assert!(found["ended_early"].as_str().is_some_and(|text| text.contains("given up: arm")), "{found:#}");
    assert!(found["verdicts"][0]["verdict"].is_null());
    // Nobody asked to keep it, and nothing can go on with it.
    let temporary = directory.path("temporary");
    std::fs::create_dir(&temporary).expect("a directory");
    let arguments = [&ARMS[..], &["--", "false"]].concat();
    let output = command(&directory, &arguments).env("TMPDIR", &temporary).output().expect("marusa runs");
    // As it was before it was broken into lines.
    let said = text(&output.stdout).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(output.status.code() == Some(1) && said.contains("given up: arm"), "{said}");
    assert!(said.contains("--save DIRECTORY keeps what the runs print"), "{said}");
    let left: Vec<_> = std::fs::read_dir(&temporary).expect("the directory").collect();
    assert!(left.is_empty(), "{left:?}");
    // One arm alone that fails: the other two are still compared.
    let arms = ["--arm", "a=N=0", "--arm", "b=N=0", "--arm", "c=N=4", "--runs", "3"];
    let found = json(&directory, 0, &[&arms[..], &["--", "sh", "-c", "exit $N"]].concat());
    assert_eq!(found["given_up"][0]["arm"], "c");
    assert_eq!(found["arms"][1]["counted_runs"], 3);
    assert!(found["verdicts"][1]["verdict"].is_null(), "{found:#}");
    assert!(!found["verdicts"][0]["verdict"].is_null());
}

#[test]
fn a_command_that_prints_no_metric() {
    let directory = Directory::new("no-metric");
    let metric = ["--metric", r"rate[/s]=rate: (\d+)", "--", "echo", "nothing"];
    let found = json(&directory, 1, &[&ARMS[..], &metric].concat());
    assert!(left_out(&found).iter().all(|why| why.contains("metric rate")), "{:?}", left_out(&found));
}

#[test]
fn a_command_that_leaves_a_daemon_behind() {
    let directory = Directory::new("daemon");
    let script = "setsid sh -c 'echo $$; exec sleep 600' & sleep 0.3";
    let save = directory.path("save");
    let found = json(&directory, 1, &[&ARMS[..], &["--save", &save, "--", "sh", "-c", script]].concat());
    for run in runs(&found) {
        assert!(run["left_out"].as_str().is_some_and(|why| why.contains("in the foreground")), "{run:#}");
        assert!(run["notes"][0].as_str().is_some_and(|note| note.contains("we ended: sleep")), "{run:#}");
        let output = directory.0.join("save").join(run["output"].as_str().expect("a file"));
        let pid = std::fs::read_to_string(output).expect("its output");
        assert!(!Path::new("/proc").join(pid.trim()).exists(), "pid {pid} lives on");
    }
}

#[test]
fn a_command_that_outlives_its_time() {
    let directory = Directory::new("time");
    let limit = ["--time-limit", "300ms", "--", "sh", "-c", "sleep 600 & sleep 600"];
    let found = json(&directory, 1, &[&ARMS[..], &limit].concat());
    assert!(left_out(&found).iter().all(|why| why.contains("time limit")), "{:?}", left_out(&found));
}

#[test]
fn more_pages_than_the_host_has() {
    let directory = Directory::new("pages");
    let Some(java) = java("17") else { return };
    let java = java.display().to_string();
    let arms = ["--arm", "base=", "--arm", "huge=-XX:+UseLargePages"];
    let many = compare(
        &directory,
        &[&arms[..], &["--pages", "hugetlb-2m:9999999", "--", &java, "-Xmx64m", "-version"]].concat(),
    );
    assert_refused(&many, 1, &["arm 'huge'", "9999999", "available"]);
    let heap = compare(&directory, &[&arms[..], &["--", &java, "-Xmx900g", "-version"]].concat());
    assert_refused(&heap, 1, &["arm 'huge'"]);
    // A script's need cannot be planned.
    let script = compare(&directory, &[&arms[..], &["--", "sh", "-c", "true"]].concat());
    assert_refused(&script, 1, &["arm 'huge'", "--pages hugetlb-2m:COUNT"]);
}

#[test]
fn what_is_refused_before_the_first_run() {
    let directory = Directory::new("refused");
    let missing = compare(&directory, &[&ARMS[..], &["--", "/no/such/java", "-version"]].concat());
    assert_refused(&missing, 2, &["there is no /no/such/java", "install a JDK"]);
    assert_refused(&compare(&directory, &["--arm", "a=", "--", "true"]), 2, &["two arms"]);
    assert_refused(&compare(&directory, &["--arm", "a=", "--arm", "a=X=1", "--", "true"]), 2, &["'a'"]);
    assert_refused(&compare(&directory, &["--arm", "nonsense", "--", "true"]), 2, &["is not an arm"]);
    assert_refused(
        &compare(&directory, &[&ARMS[..], &["--pages", "4k:3", "--", "true"]].concat()),
        2,
        &["pools"],
    );
    let full = compare(&directory, &[&ARMS[..], &["--save", "/proc/nowhere", "--", "true"]].concat());
    assert!(
        !full.status.success() && text(&full.stderr).contains("cannot be written"),
        "{}",
        text(&full.stderr)
    );
    let Some(java) = java("17") else { return };
    let java = java.display().to_string();
    let arms = ["--arm", "base=", "--arm", "bad=-XX:+NoSuchOption"];
    let bad = compare(&directory, &[&arms[..], &["--", &java, "-cp", &classes(), "marusa.Work"]].concat());
    assert_refused(&bad, 2, &["arm 'bad'", "NoSuchOption"]);
}
