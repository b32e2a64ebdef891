//! The pages of the arms: given for each run, verified in the page tables, undone, also when somebody presses Ctrl-C.

use super::{Directory, begun, classes, json, left_out, runs, saved_runs};
use crate::common::host::{HUGETLB, Host, THP};
use crate::common::{is_root, java, signal, skip, text};
use serde_json::Value;
use std::time::{Duration, Instant};

/// The pool, and the word of transparent pages, with the lock of the host.
struct Pool {
    _host: Host,
    before: (String, String),
}

fn read() -> (String, String) {
    let text = |path: String| std::fs::read_to_string(path).unwrap_or_default();
    (text(format!("{HUGETLB}/hugepages-2048kB/nr_hugepages")), text(format!("{THP}/enabled")))
}

impl Pool {
    fn lock() -> Option<Pool> {
        if !is_root() {
            skip("only root gives huge pages");
            return None;
        }
        let mut host = Host::lock();
        let set = |host: &mut Host, path: &str, value: &str| host.set(path.to_string(), value);
        if let Err(why) = set(&mut host, &format!("{THP}/enabled"), "madvise") {
            skip(&why);
            return None;
        }
        let file = format!("{HUGETLB}/hugepages-2048kB/nr_hugepages");
        let tried = set(&mut host, &file, "200").and_then(|()| set(&mut host, &file, "0"));
        if let Err(why) = tried {
            skip(&why);
            return None;
        }
        Some(Pool { _host: host, before: read() })
    }

    fn assert_as_before(&self) {
        assert_eq!(read(), self.before, "the host is as it was");
    }
}

const HEAP: [&str; 5] =
    ["-Xmx48m", "-Xms48m", "-XX:+AlwaysPreTouch", "-XX:+UseSerialGC", "-XX:ReservedCodeCacheSize=16m"];
const ARMS: [&str; 6] =
    ["--arm", "base=", "--arm", "thp=-XX:+UseTransparentHugePages", "--arm", "huge=-XX:+UseLargePages"];

fn work(java: &str, wait: &str) -> Vec<String> {
    let mut words = vec![java.to_string()];
    words.extend(HEAP.map(String::from));
    let classes = classes();
    words.extend(["-cp", &classes, "marusa.Work", "data=4m", "rounds=5", wait].map(String::from));
    words
}

fn found(run: &Value) -> (&str, f64) {
    let pages = &run["heap_pages"];
    let (all, wanted) = (pages["heap_resident_bytes"].as_f64(), pages["heap_wanted_bytes"].as_f64());
    (pages["mode"].as_str().unwrap_or("none"), wanted.unwrap_or(0.0) / all.unwrap_or(1.0))
}

#[test]
fn each_run_has_its_pages_by_the_page_tables_and_the_host_is_put_back() {
    let (Some(java), Some(pool)) = (java("17"), Pool::lock()) else { return };
    let directory = Directory::new("each");
    let program = work(&java.display().to_string(), "wait=1500");
    let program: Vec<&str> = program.iter().map(String::as_str).collect();
    let json = json(&directory, 0, &[&ARMS[..], &["--runs", "2", "--"], &program].concat());
    pool.assert_as_before();
    for run in runs(&json) {
        let (mode, share) = found(run);
        let wanted = match run["arm"].as_str() {
            Some("thp") => "thp",
            Some("huge") => "hugetlb-2m",
            _ => "as-is",
        };
        assert!(run["left_out"].is_null() && mode == wanted && share > 0.9, "{run:#}");
    }
    let changes = json["arms"][2]["host_changes"].as_array().expect("changes");
    assert!(changes[0].as_str().is_some_and(|text| text.contains("more 2M huge pages")), "{changes:?}");
}

#[test]
fn an_arm_that_does_not_get_its_pages_does_not_count_and_says_why() {
    let (Some(java), Some(pool)) = (java("17"), Pool::lock()) else { return };
    let directory = Directory::new("none");
    let program = work(&java.display().to_string(), "wait=1500");
    let program: Vec<&str> = program.iter().map(String::as_str).collect();
    let arms = ["--arm", "base=", "--arm", "huge=-XX:+UseLargePages", "--runs", "2", "--pages", "none", "--"];
    let json = json(&directory, 1, &[&arms[..], &program].concat());
    let why = left_out(&json);
    assert!(!why.is_empty() && why.iter().all(|why| why.contains("hugetlb-2m pages")), "{why:?}");
    assert!(why[0].contains("no large pages when it started"), "{why:?}");
    assert_eq!(json["arms"][1]["counted_runs"], 0);
    pool.assert_as_before();
}

#[test]
fn ctrl_c_in_a_run_with_a_pool_puts_the_host_back() {
    let (Some(java), Some(pool)) = (java("17"), Pool::lock()) else { return };
    let directory = Directory::new("ctrl-c");
    let program = work(&java.display().to_string(), "wait=20000");
    let program: Vec<&str> = program.iter().map(String::as_str).collect();
    let save = directory.path("save");
    let arms =
        ["--arm", "a=-XX:+UseLargePages", "--arm", "b=-XX:+UseLargePages -Xss512k", "--save", &save, "--"];
    let arguments = [&arms[..], &program].concat();
    let child = begun(&directory, &arguments);
    let deadline = Instant::now() + Duration::from_secs(60);
    let has_jvm = || {
        let children =
            std::fs::read_to_string(format!("/proc/{0}/task/{0}/children", child.id())).unwrap_or_default();
        children.split_whitespace().find_map(|pid| pid.parse::<i32>().ok()).filter(|_| read() != pool.before)
    };
    while has_jvm().is_none() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(20));
    }
    let jvm = has_jvm().expect("a run under way, with its pool");
    signal(child.id() as i32, libc::SIGINT);
    let output = child.wait_with_output().expect("it ends");
    pool.assert_as_before();
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    assert!(!std::path::Path::new(&format!("/proc/{jvm}")).exists(), "the program was ended");
    assert_eq!(saved_runs(&directory.0.join("save")), 0, "the run that was cut does not count");
    let said = text(&output.stdout).replace('\n', " ");
    assert!(said.contains("the host is as it was"), "{said}");
}
