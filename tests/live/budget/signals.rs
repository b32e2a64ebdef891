//! SIGINT and SIGTERM end a command that is in the middle of a long reading.

use super::*;

/// A shell has its jobs in the background ignore SIGINT, and what they start inherits that.
fn let_signals_end_what_is_started() {
    for number in [libc::SIGINT, libc::SIGTERM] {
        // SAFETY: no handler of ours is replaced.
        unsafe { libc::signal(number, libc::SIG_DFL) };
    }
}

/// Starts a command, waits until it has the target's memory or pages open, sends the signal, and waits for the end.
fn interrupted(arguments: &[&str], word: &str, signal_number: i32) -> Output {
    let_signals_end_what_is_started();
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
        &["map", &pid, "--by", "loader"],
        &["map", &pid, "--by", "buffer"],
        &["heap", &pid],
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

/// The recording is that of a small JVM; its lines do not fit into a pipe that nobody reads.
#[test]
fn a_signal_ends_a_command_whose_output_nobody_takes() {
    let Some(java) = java("21") else { return };
    let_signals_end_what_is_started();
    let jvm = Jvm::start(&java, &["-Xmx32m", "-XX:+UseSerialGC"], &["marusa.Idle"]);
    let pid = jvm.pid.to_string();
    let file = std::env::temp_dir().join(format!("marusa-untaken-{}.marusa", std::process::id()));
    let path = file.display().to_string();
    let recorded = marusa(&["record", &pid, "-o", &path, "--every", "100ms", "--for", "5s"]);
    assert!(recorded.status.success(), "{}", text(&recorded.stderr));
    for arguments in
        [&["export", &path, "--json-lines", "-"][..], &["map", &pid, "--json", "--by", "mapping"][..]]
    {
        for number in [libc::SIGINT, libc::SIGTERM] {
            let mut child = Command::new(env!("CARGO_BIN_EXE_marusa"))
                .args(arguments)
                .stdout(Stdio::piped())
                .stderr(Stdio::null())
                .spawn()
                .expect("marusa runs");
            let untaken = child.stdout.take().expect("a pipe");
            until_full(&untaken);
            signal(child.id() as i32, number);
            let status = child.wait().expect("it ends");
            assert_eq!(status.signal(), Some(number), "{arguments:?}: {status}");
        }
    }
    std::fs::remove_file(&file).expect("ours");
}

/// Waits until a pipe takes no page more.
fn until_full(pipe: &std::process::ChildStdout) {
    use std::os::fd::AsRawFd;
    let started = Instant::now();
    let waiting = || {
        let mut bytes: libc::c_int = 0;
        // SAFETY: the number outlives the call.
        let asked = unsafe { libc::ioctl(pipe.as_raw_fd(), libc::FIONREAD, &mut bytes) };
        assert_eq!(asked, 0, "FIONREAD");
        bytes
    };
    // SAFETY: a system call with numbers.
    let capacity = unsafe { libc::fcntl(pipe.as_raw_fd(), libc::F_GETPIPE_SZ) };
    while waiting() <= capacity - 4096 {
        assert!(started.elapsed() < Duration::from_secs(60), "only {} of {capacity} bytes came", waiting());
        std::thread::sleep(Duration::from_millis(5));
    }
}
