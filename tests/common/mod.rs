//! What the tests share: the JDKs that `scripts/jdks` installs, real JVMs under a known load, and the real binary.
#![allow(dead_code, reason = "each test binary uses its own part")]

pub mod fragments;
pub mod host;
pub mod hostile;
pub mod native;
pub mod scrape;
pub mod small_disk;
pub mod small_group;
pub mod work;

use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// How long a JVM may take to be ready on a busy machine.
const READY_MAX: Duration = Duration::from_secs(120);

/// One row of tests/data/jdk-gc.tsv: a JDK and a collector it has.
#[derive(Clone, Debug)]
pub struct Row {
    pub jdk: String,
    pub gc: String,
    pub options: Vec<String>,
}

impl Row {
    pub fn name(&self) -> String {
        format!("jdk {} {}", self.jdk, self.gc)
    }
}

pub fn rows() -> Vec<Row> {
    let text = std::fs::read_to_string(root().join("tests/data/jdk-gc.tsv")).expect("tests/data/jdk-gc.tsv");
    text.lines()
        .skip(1)
        .filter(|line| !line.starts_with('#'))
        .map(|line| {
            let mut columns = line.split('\t');
            let mut next = || columns.next().unwrap_or_default().to_string();
            let (jdk, gc, options) = (next(), next(), next());
            Row { jdk, gc, options: options.split_whitespace().map(str::to_string).collect() }
        })
        .collect()
}

/// Every JDK and every collector at least once; all rows in `make test-long`.
pub fn chosen_rows() -> Vec<Row> {
    const CHOSEN: [(&str, &str); 15] = [
        ("8", "parallel"),
        ("11", "cms"),
        ("11", "z"),
        ("17", "g1"),
        ("21", "z"),
        ("25", "serial"),
        ("25", "parallel"),
        ("25", "g1"),
        ("25", "z-generational"),
        ("25", "shenandoah"),
        ("25", "shenandoah-generational"),
        ("26", "z-generational"),
        ("27", "g1"),
        ("28", "parallel"),
        ("28", "shenandoah"),
    ];
    let is_chosen = |row: &Row| is_long() || CHOSEN.contains(&(row.jdk.as_str(), row.gc.as_str()));
    rows().into_iter().filter(is_chosen).collect()
}

pub fn row(jdk: &str, gc: &str) -> Row {
    rows().into_iter().find(|row| row.jdk == jdk && row.gc == gc).expect("a row of tests/data/jdk-gc.tsv")
}

pub fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// A mirror may lack them: what tests them is skipped then, also where every test must run.
const OPTIONAL_JDKS: [&str; 3] = ["26", "27", "28"];

/// The `java` of a test JDK. `None` prints why the test is skipped, or fails where `MARUSA_ALL_TESTS` forbids it.
pub fn java(jdk: &str) -> Option<PathBuf> {
    let home = std::env::var("MARUSA_JDKS").map(PathBuf::from).unwrap_or_else(|_| {
        PathBuf::from(std::env::var("HOME").unwrap_or_default()).join(".cache/marusa/jdks")
    });
    let java = home.join(jdk).join("bin/java");
    if java.exists() {
        return Some(java);
    }
    let why = format!("no JDK {jdk} at {}; scripts/jdks {jdk} installs it", java.display());
    match OPTIONAL_JDKS.contains(&jdk) {
        true => println!("skipped: {why}"),
        false => skip(&why),
    }
    None
}

/// Says why a test does not run. Where every test must run (`make test`), that is a failure.
pub fn skip(why: &str) {
    assert!(!is_set("MARUSA_ALL_TESTS"), "this test may not be skipped here: {why}");
    println!("skipped: {why}");
}

fn is_set(variable: &str) -> bool {
    std::env::var_os(variable).is_some_and(|value| !value.is_empty())
}

/// Whether this is `make test-long`, where every case of a test runs; `make test` has the cases that differ most.
pub fn is_long() -> bool {
    is_set("MARUSA_LONG_TESTS")
}

pub fn kernel_is_at_least(major: u32, minor: u32) -> bool {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").expect("procfs");
    let mut numbers = release.split(['.', '-']).map_while(|part| part.trim().parse::<u32>().ok());
    (numbers.next(), numbers.next()) >= (Some(major), Some(minor))
}

pub fn is_root() -> bool {
    std::fs::read_to_string("/proc/self/status").is_ok_and(|text| text.contains("\nUid:\t0\t0"))
}

/// A running JVM, ended when dropped.
pub struct Jvm {
    child: Child,
    pub pid: i32,
}

impl Jvm {
    /// Starts `java OPTIONS -cp java/build-out PROGRAM` and waits for its line "READY".
    pub fn start(java: &Path, options: &[&str], program: &[&str]) -> Jvm {
        let mut command = Command::new(java);
        command.args(options).arg("-cp").arg(root().join("java/build-out")).args(program);
        Jvm::of(command)
    }

    /// The usual load, quiet once it is set up.
    pub fn under_load(row: &Row, options: &[&str], load: &[&str]) -> Option<Jvm> {
        let java = java(&row.jdk)?;
        let mut all: Vec<&str> = row.options.iter().map(String::as_str).collect();
        all.extend(options);
        let directory = format!("dir={}", env!("CARGO_TARGET_TMPDIR"));
        let mut program = vec!["marusa.Load", &directory];
        program.extend(load);
        Some(Jvm::start(&java, &all, &program))
    }

    pub fn of(mut command: Command) -> Jvm {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        let started = Instant::now();
        let ready = lines.by_ref().map_while(Result::ok).any(|line| line.starts_with("READY"));
        assert!(ready && started.elapsed() < READY_MAX, "{command:?} did not get ready");
        // Whatever it prints later must not block it.
        std::thread::spawn(move || lines.count());
        let pid = jvm_below(child.id() as i32).expect("a JVM below the started process");
        Jvm { child, pid }
    }
}

impl Jvm {
    /// Writes a line to the program's standard input.
    pub fn tell(&mut self, line: &str) {
        let input = self.child.stdin.as_mut().expect("a pipe");
        writeln!(input, "{line}").and_then(|()| input.flush()).expect("the program reads");
    }
}

impl Drop for Jvm {
    fn drop(&mut self) {
        signal(self.pid, libc::SIGKILL);
        let _ = self.child.kill();
        let _ = self.child.wait();
        // A killed JVM leaves the socket that it listened on, and its pid comes again.
        let _ = std::fs::remove_file(format!("/tmp/.java_pid{}", self.pid));
        // The file that `marusa.Load mapped=` leaves when it is killed.
        for entry in std::fs::read_dir(env!("CARGO_TARGET_TMPDIR")).into_iter().flatten().flatten() {
            if entry.file_name().to_string_lossy().starts_with("load-") {
                let _ = std::fs::remove_file(entry.path());
            }
        }
    }
}

pub fn signal(pid: i32, number: i32) {
    // SAFETY: kill has no memory effects; the pid is that of a process which this test started.
    unsafe { libc::kill(pid, number) };
}

/// Waits until a process that a test started holds a file open whose name has `word` in it: it does by then what it was started
/// for,
/// however slow the machine is.
pub fn until_open(pid: i32, word: &str) {
    let started = std::time::Instant::now();
    let is_open = || {
        let files = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
        let names = files.filter_map(|file| std::fs::read_link(file.path()).ok());
        names.into_iter().any(|name| name.to_string_lossy().contains(word))
    };
    while !is_open() {
        assert!(started.elapsed() < std::time::Duration::from_secs(60), "pid {pid} never opened {word}");
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
}

/// The process itself or the descendant that maps libjvm.so: JDK 8 runs below `unshare`.
fn jvm_below(pid: i32) -> Option<i32> {
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
    // A VM in a memory file has a name of its own, and HotSpot always loads libjava.so.
    if maps.contains("libjvm.so") || maps.contains("libjava.so") {
        return Some(pid);
    }
    // Each thread has its own.
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let children: String =
        threads.filter_map(|thread| std::fs::read_to_string(thread.path().join("children")).ok()).collect();
    children.split_whitespace().filter_map(|child| child.parse().ok()).find_map(jvm_below)
}

/// Runs the real binary.
pub fn marusa(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_marusa")).args(arguments).output().expect("marusa runs")
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// `marusa map PID --json`, parsed, with the laws of the contract checked.
pub fn map_json(pid: i32) -> Value {
    let output = marusa(&["map", &pid.to_string(), "--json"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(text(&output.stderr), "", "nothing to complain about");
    let map: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    check_laws(&map);
    map
}

/// The laws that hold for every account.
pub fn check_laws(map: &Value) {
    assert_eq!(map["schema"], "marusa/map/2");
    let total = number(&map["totals"]["resident_bytes"]);
    let areas = map["areas"].as_array().expect("areas");
    let sum: u64 = areas.iter().map(|area| number(&area["resident_bytes"])).sum();
    assert_eq!(sum, total, "the areas sum exactly");
    for area in areas {
        let parts: u64 =
            area["parts"].as_array().expect("parts").iter().map(|p| number(&p["resident_bytes"])).sum();
        assert_eq!(parts, number(&area["resident_bytes"]), "the parts of {} sum exactly", area["area"]);
    }
    check_malloc(map);
    let gaps = map["gaps"].as_array().expect("gaps");
    assert!(gaps.iter().all(|gap| gap["what"].is_string() && gap["why"].is_string()));
}

/// malloc's sums, where its chunks were read: by arena, and within the account.
fn check_malloc(map: &Value) {
    let malloc = &map["malloc"];
    if malloc["in_use_bytes"].is_null() {
        return;
    }
    let arenas = malloc["arenas"].as_array().expect("arenas");
    let of_arenas = |key: &str| -> u64 { arenas.iter().map(|arena| number(&arena[key])).sum() };
    for key in
        ["free_bytes", "free_resident_bytes", "free_whole_page_bytes", "trimmable_bytes", "top_kept_bytes"]
    {
        assert_eq!(of_arenas(key), number(&malloc[key]), "the arenas sum exactly to {key}");
    }
    for key in ["in_use_bytes", "overhead_bytes", "unresolved_bytes"] {
        assert!(of_arenas(key) <= number(&malloc[key]), "mapped chunks come on top of the arenas' {key}");
    }
    for arena in arenas {
        let parts = ["in_use_bytes", "free_bytes", "overhead_bytes", "unresolved_bytes"];
        let sum: u64 = parts.iter().map(|key| number(&arena[*key])).sum();
        assert!(sum <= number(&arena["reserved_bytes"]), "arena {} has {sum} bytes", arena["arena"]);
    }
    let given_back = number(&malloc["trimmable_bytes"]) + number(&malloc["top_kept_bytes"]);
    assert!(
        given_back <= number(&malloc["free_whole_page_bytes"]),
        "only whole free pages can be given back"
    );
    assert!(number(&malloc["free_whole_page_bytes"]) <= number(&malloc["free_resident_bytes"]));
    // Nothing changes in a core.
    if map["totals"]["changed_while_reading_bytes"].as_u64().is_none_or(|bytes| bytes == 0) {
        assert!(
            number(&malloc["free_resident_bytes"]) <= number(&area(map, "malloc_freed")["resident_bytes"])
        );
    }
}

pub fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is not a count of bytes"))
}

pub fn area<'a>(map: &'a Value, name: &str) -> &'a Value {
    static NONE: Value = Value::Null;
    map["areas"].as_array().and_then(|areas| areas.iter().find(|area| area["area"] == name)).unwrap_or(&NONE)
}
