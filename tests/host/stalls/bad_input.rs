//! No tracefs, no rights, a container's view, targets that are not there or end, Ctrl-C.

use super::*;
use std::path::PathBuf;

/// The binary where every user can start it.
struct Copy(PathBuf);

impl Copy {
    fn new() -> Copy {
        use std::os::unix::fs::PermissionsExt;
        let copy = std::env::temp_dir().join(format!("marusa-stalls-{}", std::process::id()));
        std::fs::copy(env!("CARGO_BIN_EXE_marusa"), &copy).expect("a copy");
        std::fs::set_permissions(&copy, std::fs::Permissions::from_mode(0o755)).expect("may be run");
        Copy(copy)
    }
}

impl Drop for Copy {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// In namespaces and with rights that `words` set up. `None`: this machine has not got what that needs.
fn within(words: &[&str], arguments: &[&str]) -> Option<(Output, Vec<Value>)> {
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).arg(env!("CARGO_BIN_EXE_marusa")).arg("stalls").args(arguments);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().ok()?;
    Some(end(child))
}

/// A mount namespace in which an empty directory hides tracefs.
const WITHOUT_TRACEFS: [&str; 5] = [
    "unshare",
    "-m",
    "sh",
    "-c",
    "for d in /sys/kernel/tracing /sys/kernel/debug; do mount -t tmpfs none $d || exit 99; done; exec \"$0\" \"$@\"",
];

#[test]
fn without_tracefs_the_counters_are_there_and_say_so() {
    if !is_root() {
        return skip("only root may hide tracefs");
    }
    let Some((output, tables)) = within(&WITHOUT_TRACEFS, &["200ms", "2", "--json"]) else {
        return skip("no unshare");
    };
    if output.status.code() == Some(99) {
        return skip("nothing may be mounted here");
    }
    assert!(matches!(output.status.code(), Some(1 | 4)), "{:?}: {}", output.status, text(&output.stderr));
    assert!(text(&output.stderr).contains("cannot be traced"), "{}", text(&output.stderr));
    assert_eq!(tables.len(), 2);
    for table in &tables {
        check_schema(table);
        assert_eq!((&table["taken"]["source"], &table["rows"]), (&"counters".into(), &Value::Null));
        let delays = &table["delays"];
        assert!(
            !delays.is_null() || has_gap(table, "task_delayacct") || has_gap(table, "DELAY_ACCT"),
            "{table}"
        );
    }
}

#[test]
fn without_rights_the_counters_are_there_and_the_status_is_4() {
    if !is_root() || !may_trace() {
        return;
    }
    let copy = Copy::new();
    let user = ["--reuid=65534", "--regid=65534", "--clear-groups"];
    let run = |arguments: &[&str]| {
        Command::new("setpriv").args(user).arg(&copy.0).arg("stalls").args(arguments).output()
    };
    let Ok(output) = run(&["200ms", "1", "--json"]) else { return skip("no setpriv") };
    assert_eq!(output.status.code(), Some(4), "{}", text(&output.stderr));
    let table: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    check_schema(&table);
    assert_eq!(table["taken"]["source"], "counters");
    let printed = text(&run(&["200ms", "1"]).expect("as before").stdout);
    for words in
        ["not traced", "which processes stalled, and for how long, is unknown", "the whole host", "free now"]
    {
        assert!(printed.contains(words), "{words} is not in\n{printed}");
    }
}

#[test]
fn from_a_pid_namespace_it_says_which_figures_are_the_hosts() {
    if !is_root() {
        return skip("only root may make a pid namespace");
    }
    let words = ["unshare", "--pid", "--fork", "--mount-proc"];
    let Some((output, tables)) = within(&words, &["200ms", "1", "--json"]) else { return skip("no unshare") };
    if tables.is_empty() {
        return skip(&format!("no pid namespace here: {}", text(&output.stderr)));
    }
    check_schema(&tables[0]);
    let host = &tables[0]["host"];
    assert_eq!((&host["is_seen_from_container"], &host["daemon_cpu_ms"]), (&true.into(), &Value::Null));
    assert!(host["note"].as_str().is_some_and(|note| note.contains("of the whole host")), "{host}");
}

#[test]
fn targets_that_are_not_there_and_words_that_make_no_sense() {
    for (arguments, status) in [
        (&["no-such-jvm-anywhere"][..], 3),
        (&["999999999"], 3),
        (&["2"], 3),
        (&["5s", "0"], 2),
        (&["5s", "1", "2"], 2),
        (&["1", "soon"], 2),
        (&["1", "1s", "1", "more"], 2),
        (&["--by", "nonsense"], 2),
    ] {
        let (output, tables) = end(begin(arguments));
        assert_eq!((output.status.code(), tables.len()), (Some(status), 0), "{arguments:?}");
        assert!(!output.stderr.is_empty(), "{arguments:?} without a word");
    }
}

#[test]
fn a_target_that_ends_ends_the_table() {
    if !may_trace() {
        return;
    }
    let Some(java) = java("21") else { return };
    let jvm = Jvm::start(&java, &["-Xmx16m", "-XX:+UseSerialGC"], &["marusa.Idle"]);
    let child = begin(&[&jvm.pid.to_string(), "60s", "--json"]);
    until_traced(child.id());
    std::thread::sleep(Duration::from_millis(1500));
    drop(jvm);
    let (output, tables) = end(child);
    assert_eq!((output.status.code(), tables.len()), (Some(0), 1), "{}", text(&output.stderr));
    assert_eq!(tables[0]["taken"]["target_ended"], true);
    assert!(
        tables[0]["taken"]["interval_seconds"].as_f64().is_some_and(|it| it < 20.0)
            && has_gap(&tables[0], "ended")
    );
    check_schema(&tables[0]);
}

#[test]
fn ctrl_c_ends_with_the_table_of_what_was_watched() {
    if !may_trace() {
        return;
    }
    let child = begin(&["60s", "--json"]);
    until_traced(child.id());
    std::thread::sleep(Duration::from_millis(1500));
    signal(child.id() as i32, libc::SIGINT);
    let (output, tables) = end(child);
    assert_eq!((output.status.code(), tables.len()), (Some(0), 1), "{}", text(&output.stderr));
    assert!(tables[0]["taken"]["interval_seconds"].as_f64().is_some_and(|it| (0.2..20.0).contains(&it)));
}
