//! SIGINT and SIGTERM end a command that is in the middle of a long reading.

use super::*;

/// Starts a command, waits until it has the target's memory or pages open, sends the signal, and waits for the end.
fn interrupted(arguments: &[&str], word: &str, signal_number: i32) -> Output {
    let child = Command::new(env!("CARGO_BIN_EXE_marusa"))
        .args(arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("marusa runs");
    let pid = child.id() as i32;
    until_open(pid, word);
    let started = Instant::now();
    signal(pid, signal_number);
    let output = child.wait_with_output().expect("it ends");
    println!("{arguments:?}, signal {signal_number}: {:?}, {}", started.elapsed(), output.status);
    assert!(started.elapsed() < SLACK, "{arguments:?}: {:?}", started.elapsed());
    output
}

#[test]
fn a_signal_ends_a_command_that_reads() {
    let Some(hostile) = Hostile::start(&MANY_RUNS) else { return };
    let pid = hostile.pid.to_string();
    let file = std::env::temp_dir().join(format!("marusa-signals-{}", std::process::id()));
    let path = file.display().to_string();
    let commands: &[&[&str]] = &[
        &["map", &pid],
        &["map", &pid, "--by", "page-size"],
        &["doctor", &pid],
        &["doctor"],
        &["freeze", &pid, "-o", &path],
        &["diff", &pid, &pid],
        &["top", &pid, "--json"],
        &["tlb", &pid],
        &["stalls", &pid],
        &["trim", &pid, "--dry-run"],
        &["pages", "verify", &pid],
        &["pages", "collapse", &pid, "--dry-run"],
    ];
    let pages = format!("/proc/{pid}/pagemap");
    for arguments in commands {
        for number in [libc::SIGINT, libc::SIGTERM] {
            let output = interrupted(arguments, &pages, number);
            let status = output.status;
            assert!(status.signal() == Some(number) || status.code().is_some(), "{arguments:?}: {status}");
            assert!(!file.exists(), "{arguments:?} leaves no half of a file");
        }
    }
}

#[test]
fn a_signal_ends_a_recorder_that_reads_and_its_file_is_whole() {
    let Some(hostile) = Hostile::start(&MANY_RUNS) else { return };
    let pid = hostile.pid.to_string();
    let file = std::env::temp_dir().join(format!("marusa-signals-{}.marusa", std::process::id()));
    let path = file.display().to_string();
    for whom in [pid.as_str(), "--all"] {
        for number in [libc::SIGINT, libc::SIGTERM] {
            let _ = std::fs::remove_file(&file);
            let output = interrupted(&["record", whom, "-o", &path], &format!("/proc/{pid}/pagemap"), number);
            assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
            let read = marusa(&["export", &path, "--csv", "-"]);
            assert!(!text(&read.stderr).contains("left out"), "{}", text(&read.stderr));
        }
    }
    std::fs::remove_file(&file).expect("ours");
}
