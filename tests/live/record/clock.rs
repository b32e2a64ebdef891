//! The clock on the wall is set while a recorder is at work: by a library before libc's, since the host's clock is everybody's.

use super::*;

/// Adds to the wall's clock what a file says, in seconds.
const SET: &str = r#"
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t clock, struct timespec *at) {
    int failed = syscall(SYS_clock_gettime, clock, at);
    if (failed || clock != CLOCK_REALTIME) return failed;
    long seconds = 0;
    FILE *file = fopen(getenv("CLOCK_SET_BY"), "r");
    if (file) {
        if (fscanf(file, "%ld", &seconds) != 1) seconds = 0;
        fclose(file);
    }
    at->tv_sec += seconds;
    return 0;
}
"#;

#[test]
fn a_clock_that_is_set_changes_neither_the_order_nor_the_distances() {
    let Some(jvm) = grow(&[], &[]) else { return };
    let directory = Directory::new("clock");
    let (source, library, set_by) =
        (directory.file("set.c"), directory.file("set.so"), directory.file("seconds"));
    std::fs::write(&source, SET).expect("ours");
    let built = Command::new("cc").args(["-shared", "-fPIC", "-o", &library, &source]).output();
    if !built.is_ok_and(|built| built.status.success()) {
        return skip("no C compiler");
    }
    let path = directory.file("a.marusa");
    let mut command = Command::new(env!("CARGO_BIN_EXE_marusa"));
    command.args([
        "record",
        &jvm.pid.to_string(),
        "-o",
        &path,
        "--every",
        "50ms",
        "--account-every",
        "500ms",
    ]);
    command.args(["--cpu", "100"]).env("LD_PRELOAD", &library).env("CLOCK_SET_BY", &set_by);
    let recorder =
        Recorder(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("marusa runs"));
    // An hour back, then to a year in which there was no JVM.
    for seconds in ["0", "-3600", "-1700000000"] {
        let (new, bytes) = (directory.file("new"), std::fs::metadata(&path).map_or(0, |facts| facts.len()));
        std::fs::write(&new, seconds).expect("ours");
        std::fs::rename(&new, &set_by).expect("ours");
        wait_for_bytes(&path, bytes + 400);
    }
    let output = recorder.stop();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let (lines, said) = exported(&path);
    let process = of(&lines, "process");
    let wall = |line: &Value| line["time"].as_str().expect("a time").to_string();
    let hours = |line: &Value| wall(line)[..13].to_string();
    assert!(said.is_empty() && hours(process[0]) > hours(process[process.len() - 1]), "it was set back");
    assert!(wall(process[process.len() - 1]).starts_with("19"), "{:?}", process.last());
    assert!(process.windows(2).all(|pair| number(&pair[0]["steady_ms"]) <= number(&pair[1]["steady_ms"])));
    let last = number(&process[process.len() - 1]["steady_ms"]);
    assert!(last < 600_000, "{last}");
    for command in [
        &["leak", &path][..],
        &["diff", &path],
        &["diff", &format!("{path}@+1s"), &format!("{path}@1975-01-01T00:00:00Z")],
    ] {
        let output = marusa(command);
        assert!(output.status.success(), "{command:?}: {}", text(&output.stderr));
    }
}
