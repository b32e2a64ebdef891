//! The live view in a real terminal (script(1) makes one), and its lines of JSON without.

use super::{LOAD, assert_fails};
use crate::common::*;
use serde_json::Value;
use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const SHOWN_MAX: Duration = Duration::from_secs(60);

/// `marusa top` on a terminal of this size.
struct Screen {
    child: Child,
    written: Arc<Mutex<String>>,
    reader: JoinHandle<()>,
}

impl Screen {
    fn start(columns: u16, rows: u16, environment: &str, arguments: &str) -> Screen {
        let program = env!("CARGO_BIN_EXE_marusa");
        let line = format!(
            "stty cols {columns} rows {rows}; {environment} TERM=xterm exec {program} top {arguments}"
        );
        let mut child = Command::new("script")
            .args(["-qefc", &line, "/dev/null"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("script(1)");
        let written = Arc::new(Mutex::new(String::new()));
        let (into, mut from) = (written.clone(), child.stdout.take().expect("piped"));
        let reader = std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = from.read(&mut bytes) {
                into.lock().expect("not poisoned").push_str(&String::from_utf8_lossy(&bytes[..count]));
            }
        });
        Screen { child, written, reader }
    }

    fn written(&self) -> String {
        self.written.lock().expect("not poisoned").clone()
    }

    /// Only cells that differ from the screen before are written: words without a style of their own are parted at spaces.
    fn wait_for(&self, words: &str) {
        let started = Instant::now();
        while !self.written().contains(words) {
            assert!(started.elapsed() < SHOWN_MAX, "no {words:?} in {:?}", self.written());
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn press(&mut self, keys: &str) {
        let input = self.child.stdin.as_mut().expect("piped");
        input.write_all(keys.as_bytes()).and_then(|()| input.flush()).expect("it reads");
    }

    /// Quits; everything that was drawn.
    fn quit(mut self) -> String {
        self.press("q");
        let status = self.child.wait().expect("it ends");
        assert!(status.success(), "{status}");
        // To the end of what was written.
        self.reader.join().expect("it reads");
        self.written.lock().expect("not poisoned").clone()
    }
}

#[test]
fn a_jvm_on_a_terminal_and_the_terminal_as_it_was() {
    let Some(jvm) = Jvm::under_load(&row("17", "g1"), &[], LOAD) else { return };
    let mut screen = Screen::start(80, 24, "NO_COLOR=", &jvm.pid.to_string());
    screen.wait_for("Java heap");
    screen.press("2");
    screen.wait_for("PAGE");
    screen.press("5");
    screen.wait_for("HotSpot");
    screen.press("1m");
    screen.wait_for("MARK");
    screen.press("?");
    screen.wait_for("keys");
    screen.press("x");
    let written = screen.quit();
    assert!(written.contains("\x1b[?1049h") && written.contains("\x1b[?1049l"), "the screen is given back");
    assert!(written.contains("\x1b[3") && !written.contains("panicked"), "it has colours");
}

#[test]
fn without_colours_and_on_a_narrow_terminal() {
    let Some(jvm) = Jvm::under_load(&row("17", "g1"), &[], LOAD) else { return };
    let screen = Screen::start(80, 24, "NO_COLOR=1", &jvm.pid.to_string());
    screen.wait_for("HHH");
    let written = screen.quit();
    for colour in ["\x1b[34m", "\x1b[38;5;4m", "\x1b[32m", "\x1b[38;5;2m"] {
        assert!(!written.contains(colour), "{colour:?}");
    }
    let narrow = Screen::start(20, 24, "", &jvm.pid.to_string());
    narrow.wait_for("small");
    assert!(!narrow.quit().contains("panicked"));
}

#[test]
fn without_a_terminal_there_are_lines_or_a_reason() {
    assert_fails(&marusa(&["top"]), 2, &["terminal", "--json"]);
    assert_fails(&marusa(&["top", "4194304"]), 3, &["no process with pid 4194304"]);
    let Some(jvm) = Jvm::under_load(&row("17", "g1"), &[], LOAD) else { return };
    let output = marusa(&["top", &jvm.pid.to_string(), "--json", "--count", "2", "--every", "200ms"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let looks: Vec<Value> =
        text(&output.stdout).lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(looks.len(), 2);
    for look in &looks {
        assert_eq!((&look["schema"], &look["pid"]), (&"marusa/top/2".into(), &jvm.pid.into()));
        let areas = look["areas"].as_array().expect("areas");
        let sum: u64 = areas.iter().map(|area| number(&area["resident_bytes"])).sum();
        assert_eq!(sum, number(&look["resident_bytes"]), "areas sum exactly");
    }
    assert!(looks[1]["at_seconds"].as_f64() > looks[0]["at_seconds"].as_f64());
}

#[test]
fn the_manual_and_the_completions_are_there() {
    let page = marusa(&["man", "pages", "plan"]);
    assert!(page.status.success() && text(&page.stdout).contains(".TH"), "{}", text(&page.stderr));
    assert_fails(&marusa(&["man", "nonsense"]), 2, &["is not a command of marusa", "map"]);
    for shell in ["bash", "zsh", "fish"] {
        let completions = marusa(&["completions", shell]);
        assert!(completions.status.success(), "{}", text(&completions.stderr));
        assert_reads(Command::new(shell).arg("-n"), &completions.stdout);
    }
    assert!(text(&marusa(&["completions", "bash"]).stdout).contains("complete -F"));
    let directory = super::directory("man");
    let all = marusa(&["man", "-o", &directory.to_string_lossy()]);
    assert!(all.status.success(), "{}", text(&all.stderr));
    for name in ["marusa.1", "marusa-map.1", "marusa-pages-plan.1"] {
        assert!(directory.join(name).exists(), "{name}");
    }
    for page in std::fs::read_dir(&directory).expect("ours").flatten() {
        let page = std::fs::read(page.path()).expect("a page");
        assert_reads(Command::new("groff").args(["-man", "-Tutf8", "-ww", "-z"]), &page);
    }
    std::fs::remove_dir_all(directory).expect("ours");
}

/// What reads it finds nothing wrong with it, where this host has what reads it.
fn assert_reads(reader: &mut Command, bytes: &[u8]) {
    let started = reader.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let Ok(mut reading) = started else { return };
    reading.stdin.take().expect("piped").write_all(bytes).expect("it reads");
    let output = reading.wait_with_output().expect("it ends");
    assert!(output.status.success() && output.stderr.is_empty(), "{reader:?}: {}", text(&output.stderr));
}

/// The one whose command line begins with this program and `top PID`, not the shell or script(1) around it.
fn pid_of_top(jvm: i32) -> i32 {
    let line = format!("{} top {jvm}", env!("CARGO_BIN_EXE_marusa"));
    let listed = Command::new("ps").args(["-eo", "pid,args"]).output().expect("ps");
    let listed = text(&listed.stdout);
    let is_ours = |row: &&str| row.trim_start().split_once(' ').is_some_and(|(_, args)| args.trim() == line);
    let row = listed.lines().find(is_ours).unwrap_or_else(|| panic!("no {line} in {listed}"));
    row.split_whitespace().next().and_then(|pid| pid.parse().ok()).expect("a pid")
}

#[test]
fn a_signal_to_end_leaves_the_terminal_as_it_was() {
    let Some(jvm) = Jvm::under_load(&row("17", "g1"), &[], LOAD) else { return };
    let mut screen = Screen::start(80, 24, "", &jvm.pid.to_string());
    screen.wait_for("RESIDENT");
    signal(pid_of_top(jvm.pid), libc::SIGTERM);
    screen.wait_for("\x1b[?1049l");
    screen.child.wait().expect("it ends");
}

#[test]
fn it_ends_when_its_terminal_goes_away() {
    let Some(jvm) = Jvm::under_load(&row("17", "g1"), &[], LOAD) else { return };
    let mut screen = Screen::start(80, 24, "", &jvm.pid.to_string());
    screen.wait_for("RESIDENT");
    let pid = pid_of_top(jvm.pid);
    screen
        .child
        .kill()
        .and_then(|()| screen.child.wait())
        .expect("script(1) is gone, and the terminal with it");
    let started = Instant::now();
    // One that has ended and whose parent has not asked for it yet is a Z.
    let runs =
        || std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "));
    while runs() {
        assert!(started.elapsed() < SHOWN_MAX, "it goes on without a terminal");
        std::thread::sleep(Duration::from_millis(50));
    }
}
