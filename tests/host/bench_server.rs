//! The experiments on a real server, a real collector and a real compiler, as short as they can be: the tables are complete, the
//! pages were verified, what was saved is not done again, and the host is as it was. The figures themselves need quiet and time.

use crate::common::host::{HUGETLB, Host};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

const JDK: &str = "17";
const POOL: &str = "hugepages-2048kB/nr_hugepages";

/// The JDK and, for what needs the server, the server; else why not.
struct Scene {
    home: PathBuf,
    directory: tempfile::TempDir,
}

impl Scene {
    fn new() -> Option<Scene> {
        let java = crate::common::java(JDK)?;
        let home = java.ancestors().nth(2).expect("bin/java").to_path_buf();
        Some(Scene { home, directory: tempfile::tempdir().expect("a directory") })
    }

    fn with_server() -> Option<Scene> {
        let scene = Scene::new()?;
        let wrk = Command::new("wrk").arg("-v").stdout(Stdio::null()).stderr(Stdio::null()).status();
        if wrk.is_err() {
            crate::common::skip("no wrk: `scripts/workloads fetch daytrader` installs it and the server");
            return None;
        }
        let output = scene.bench(&["account", "--program", "daytrader", "--dry-run", "--json"]);
        let missing = json(&output)["missing"].as_array().expect("a list").clone();
        if let Some(why) = missing.first() {
            crate::common::skip(&format!("{why}; scripts/workloads fetch daytrader brings it"));
            return None;
        }
        Some(scene)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_marusa"));
        command.arg("bench").args(arguments).arg("--jdk").arg(&self.home);
        if arguments.first() == Some(&"throughput") {
            command.args(["--quiet-wait", "0s"]);
        }
        // What it starts is known by the directory that it works in.
        command.env("TMPDIR", self.directory.path());
        command
    }

    fn bench(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().expect("marusa runs")
    }

    fn path(&self, name: &str) -> String {
        self.directory.path().join(name).display().to_string()
    }
}

fn json(output: &Output) -> Value {
    let text = crate::common::text(&output.stdout);
    serde_json::from_str(&text)
        .unwrap_or_else(|error| panic!("{error}: {text}{}", crate::common::text(&output.stderr)))
}

fn pool() -> String {
    std::fs::read_to_string(format!("{HUGETLB}/{POOL}")).unwrap_or_default()
}

/// Processes that name our directory and this word in their command, marusa itself left out.
fn running(scene: &Scene, word: &str) -> usize {
    let pattern = format!("{}.*{word}", scene.path("marusa-server-"));
    let output = Command::new("pgrep").args(["-f", &pattern]).output().expect("pgrep");
    crate::common::text(&output.stdout).lines().count()
}

#[test]
fn a_server_on_small_and_on_huge_pages_and_what_is_saved_is_not_done_again() {
    if !crate::common::is_root() {
        return crate::common::skip("a pool of huge pages needs root");
    }
    let Some(scene) = Scene::with_server() else { return };
    let lock = Host::lock();
    let before = pool();
    let (save, state) = (scene.path("trials"), scene.path("state"));
    let mut arguments =
        vec!["throughput", "--heaps", "128m", "--pages", "4k,hugetlb-2m", "--rounds", "1", "--seed", "7"];
    // At a rate that any machine keeps, once the pages of the scenario are compiled.
    arguments.extend(["--warm-up", "8s", "--duration", "3s", "--clients", "4", "--rate", "20", "--json"]);
    arguments.extend(["--live", "16m", "--first-touch", "start"]);
    arguments.extend(["--save", &save, "--state", &state]);
    let output = scene.bench(&arguments);
    let found = json(&output);
    assert_eq!(found["schema"], "marusa/bench-throughput/2");
    assert_eq!((&found["complete"], output.status.code()), (&Value::Bool(true), Some(0)), "{found:#}");
    for arm in found["arms"].as_array().expect("arms") {
        let rate = arm["requests_per_second"]["mean"].as_f64().expect("a rate");
        assert!((15.0..21.0).contains(&rate), "{arm:#}");
        assert_eq!((&arm["arm"]["live_bytes"], &arm["arm"]["touch"]), (&(16 << 20).into(), &"start".into()));
        assert!(arm["resident_bytes"]["mean"].as_f64().expect("bytes") > 128e6, "all of the heap is touched");
        assert!(arm["collections_per_minute"]["mean"].is_number(), "{arm:#}");
        assert!(arm["page_share_min"].as_f64().expect("verified") > 0.98, "{arm:#}");
    }
    for trial in found["trials"].as_array().expect("trials") {
        assert_eq!(trial["pages"].as_array().map(Vec::len), Some(2), "before and after the load");
        assert_eq!(trial["load"]["errors"], 0, "{trial:#}");
    }
    assert_eq!(pool(), before, "the pool is as it was");
    drop(lock);
    // Both trials are there: nothing is started again.
    let started = Instant::now();
    let again = json(&scene.bench(&arguments));
    assert_eq!(again["trials"], found["trials"]);
    assert!(started.elapsed() < Duration::from_secs(10));
}

#[test]
fn the_account_of_a_server_under_load_until_a_signal() {
    let Some(scene) = Scene::with_server() else { return };
    let (html, csv) = (scene.path("page.html"), scene.path("samples.csv"));
    let arguments =
        ["account", "--program", "daytrader", "--runs", "1", "--duration", "300s", "--interval", "500ms"];
    let mut command = scene.command(&arguments);
    command.args(["--clients", "4", "--json", "--html", &html, "--csv", &csv]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("marusa runs");
    let pid = child.id() as i32;
    let deadline = Instant::now() + Duration::from_secs(240);
    // The clients are the sign that it is looked at.
    while running(&scene, "daytrader/scenario") == 0 && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(200));
    }
    // Not even a busy machine looks at it only once in this time.
    std::thread::sleep(Duration::from_secs(5));
    crate::common::signal(pid, libc::SIGINT);
    let output = child.wait_with_output().expect("it ends");
    let found = json(&output);
    assert_eq!((&found["stopped"], output.status.code()), (&Value::Bool(true), Some(1)), "{found:#}");
    let run = &found["runs"][0];
    let samples = run["seconds"].as_array().expect("moments").len();
    assert!(samples >= 1, "{run:#}");
    for (name, series) in run["series"].as_object().expect("areas") {
        assert_eq!(series.as_array().map(Vec::len), Some(samples), "{name}");
    }
    let metadata = run["series"]["class_metadata_bytes"][0].as_f64().expect("a figure");
    assert!(metadata > 2e7, "a server has thousands of classes: {metadata}");
    let page = std::fs::read_to_string(&html).expect("the page");
    assert!(page.contains("class=\"layer") && !page.contains("http"), "areas, and nothing from outside");
    assert_eq!(std::fs::read_to_string(&csv).expect("the samples").lines().count(), samples + 1);
    assert_eq!(running(&scene, ""), 0, "the server and its clients are ended");
    let left = std::fs::read_dir(scene.directory.path())
        .expect("the directory")
        .flatten()
        .map(|entry| entry.file_name());
    let left: Vec<_> = left.filter(|name| name.to_string_lossy().starts_with("marusa-")).collect();
    assert!(left.is_empty(), "{left:?}");
}

/// The libraries come from Maven Central once, 3 MB.
#[test]
fn the_account_of_a_batch_program_that_runs_again_and_again() {
    let Some(scene) = Scene::new() else { return };
    let mut arguments = vec!["account", "--program", "h2", "--runs", "1", "--json"];
    let missing = json(&scene.bench(&[arguments.as_slice(), &["--dry-run"]].concat()))["missing"].clone();
    if let Some(why) = missing.get(0).and_then(Value::as_str) {
        assert!(why.contains("--fetch brings it from Maven Central"), "{why}");
        arguments.push("--fetch");
    }
    for seconds in [6, 12, 24, 48] {
        let duration = format!("{seconds}s");
        let output = scene.bench(&[arguments.as_slice(), &["--duration", &duration]].concat());
        let said = crate::common::text(&output.stderr);
        if said.contains("could not be fetched") {
            return crate::common::skip(&said);
        }
        let found = json(&output);
        assert_eq!(output.status.code(), Some(0), "{found:#}{said}");
        let run = &found["runs"][0];
        assert!(run["series"]["malloc_freed_bytes"].is_array(), "{run:#}");
        // A slow machine ends no run in six seconds, and the program then says nothing.
        let Some(words) = run["said"].as_str() else { continue };
        let runs = words.split(' ').nth(1).and_then(|count| count.parse::<u32>().ok());
        assert!(runs.is_some_and(|runs| runs >= 1), "{run:#}");
        return;
    }
    panic!("no run of H2 ended in 48 s");
}

#[test]
fn collectors_with_their_own_threads_and_with_more() {
    let Some(scene) = Scene::new() else { return };
    let state = scene.path("state");
    let mut arguments =
        vec!["gc", "--gc", "serial,g1", "--pages", "4k", "--gc-threads", "own,8", "--rounds", "1"];
    arguments.extend([
        "--live",
        "16m",
        "--warm-up",
        "500ms",
        "--duration",
        "1s",
        "--json",
        "--state",
        &state,
    ]);
    let output = scene.bench(&arguments);
    let found = json(&output);
    assert_eq!((&found["schema"], output.status.code()), (&"marusa/bench-gc/2".into(), Some(0)), "{found:#}");
    let arms = found["arms"].as_array().expect("arms");
    let names: Vec<String> =
        arms.iter().map(|arm| format!("{} {}", arm["arm"]["gc"], arm["arm"]["threads"])).collect();
    assert_eq!(names, ["\"serial\" \"own\"", "\"g1\" \"own\"", "\"g1\" {\"exactly\":8}"]);
    for arm in arms {
        assert!(arm["collections_per_minute"]["mean"].as_f64().expect("its log") > 0.0, "{arm:#}");
        assert!(arm["operations_per_second"]["mean"].as_f64().expect("its work") > 0.0, "{arm:#}");
    }
    assert_eq!(arms[2]["threads"]["parallel"], 8);
    assert_ne!(arms[1]["threads"]["parallel"], 8);
    assert_eq!(arms[1]["threads"]["parallel"], arms[1]["threads"]["parallel_by_formula"]);
}

#[test]
fn what_is_missing_is_named_with_what_brings_it() {
    let Some(scene) = Scene::new() else { return };
    let nowhere = scene.directory.path().join("nowhere");
    let mut command = scene.command(&["throughput", "--rounds", "1"]);
    let output = command.env("MARUSA_WORKLOADS", &nowhere).output().expect("marusa runs");
    let said = crate::common::text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("--fetch brings it") && said.contains("mvn"), "{said}");
    let output = scene.bench(&["throughput", "--server", &scene.path("")]);
    let said = crate::common::text(&output.stderr);
    assert!(output.status.code() == Some(2) && said.contains("it has no tomee"), "{said}");
    assert!(!Path::new(&nowhere).exists());
    let output = scene.bench(&["gc", "--gc", "cms", "--rounds", "1"]);
    let said = crate::common::text(&output.stderr);
    assert!(output.status.code() == Some(2) && said.contains("it left with 14"), "{said}");
    let output = scene.bench(&["gc", "--live", "1g", "--heap", "1g"]);
    assert_eq!(output.status.code(), Some(2), "{}", crate::common::text(&output.stderr));
}
