//! The classes of the heap's objects, over time.

use super::*;
use marusa::act::attach;
use marusa::os::process::Process;

const CLASS: &str = "marusa.Leak$Session";
const OFTEN: [&str; 8] = ["--every", "250ms", "--account-every", "1s", "--cpu", "400", "--heap-every", "2s"];

fn leaks(path: &str) -> Value {
    let output = marusa(&["leak", path, "--json"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let all: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    all["jvms"][0].clone()
}

/// Each class that is named anywhere.
fn named(leaks: &Value) -> Vec<String> {
    let rows = leaks["rows"].as_array().expect("rows").iter();
    let held = rows.flat_map(|row| row["held_by"].as_array().expect("a list"));
    let classes = held.filter(|holder| holder["kind"] == "class");
    classes.map(|class| class["holder"].as_str().expect("a name").to_string()).collect()
}

/// One program keeps sessions in the midst of garbage, and the other one makes nothing but garbage. Whole collections settle
/// what is alive.
#[test]
fn a_class_that_grows_is_named_and_garbage_is_not() {
    let Some(java) = java("17") else { return };
    let options = ["-Xmx512m", "-Xmn32m", "-XX:+UseSerialGC"];
    let leaking = Jvm::start(&java, &options, &["marusa.Leak", "kind=session", "rate=3m/s", "churn=40m/s"]);
    let healthy = Jvm::start(&java, &options, &["marusa.Grow", "churn=40m/s"]);
    let directory = Directory::new("classes");
    let record = |jvm: &Jvm, name: &str| {
        let (path, pid) = (directory.file(name), jvm.pid.to_string());
        let recorder = Recorder::start(&[&[pid.as_str(), "-o", &path, "--for", "30s"][..], &OFTEN].concat());
        (path, recorder)
    };
    let before = directory.file("before.json");
    let heap = |to: &str| {
        let heap = marusa(&["heap", &leaking.pid.to_string(), "--json"]);
        assert!(heap.status.success(), "{}", text(&heap.stderr));
        std::fs::write(to, heap.stdout).expect("ours");
    };
    heap(&before);
    let (path, recorder) = record(&leaking, "leaking.marusa");
    let (other, other_recorder) = record(&healthy, "healthy.marusa");
    let attached =
        [&leaking, &healthy].map(|jvm| attach::open(&Process::open(jvm.pid).expect("a JVM")).expect("asked"));
    for _ in 0..12 {
        attached.iter().for_each(|jvm| drop(jvm.command("GC.run").expect("a collection")));
        std::thread::sleep(Duration::from_secs(2));
    }
    for recorder in [recorder, other_recorder] {
        let output = recorder.wait();
        assert!(output.status.success(), "{}", text(&output.stderr));
    }
    let (lines, _) = exported(&path);
    let classes = of(&lines, "class");
    let sessions: Vec<&&Value> = classes.iter().filter(|line| line["name"] == CLASS).collect();
    assert!(sessions.len() >= 3, "{} histograms", sessions.len());
    let (first, last) = (sessions[0], sessions[sessions.len() - 1]);
    assert!(
        number(&last["survived_instances"]) > number(&first["survived_instances"]) + 1000,
        "{first} {last}"
    );
    let found = leaks(&path);
    assert!(named(&found).iter().any(|name| name == CLASS), "{found:#}");
    let found = leaks(&other);
    assert!(named(&found).is_empty() && found["last_classes_at"].is_string(), "{found:#}");
    let healthy_lines = exported(&other).0;
    assert!(of(&healthy_lines, "class").len() > 10, "it was counted");
    let now = directory.file("now.json");
    heap(&now);
    let pid = leaking.pid.to_string();
    for sides in [&[path.as_str()][..], &[&before, &now], &[&before, &pid], &[&path, &now]] {
        let diff = marusa(&[&["diff", "--by", "class", "--json"][..], sides].concat());
        assert!(diff.status.success(), "{}", text(&diff.stderr));
        let diff: Value = serde_json::from_slice(&diff.stdout).expect("JSON");
        let rows = diff["classes"].as_array().expect("classes");
        let session = rows.iter().find(|row| row["class"] == CLASS).expect("it grew");
        assert!(number(&session["instances_grown"]) > 1000, "{session}");
        assert_eq!(number(&session["grown_bytes"]), number(&session["instances_grown"]) * 16, "{session}");
        let words = marusa(&[&["diff", "--by", "class"][..], sides].concat());
        assert!(text(&words.stdout).contains(CLASS), "{}", text(&words.stdout));
    }
    let areas = marusa(&["diff", &before, &now]);
    assert_eq!(areas.status.code(), Some(2), "{}", text(&areas.stdout));
}

/// What it costs is more than a small budget has: it is left out, the recording says so, and the accounts go on.
#[test]
fn a_histogram_that_cannot_be_paid_is_noted() {
    let Some(java) = java("17") else { return };
    let options = ["-Xms512m", "-Xmx512m", "-XX:+AlwaysPreTouch", "-XX:+UseSerialGC"];
    let jvm = Jvm::start(&java, &options, &["marusa.Grow"]);
    let directory = Directory::new("unpaid");
    let (path, pid) = (directory.file("a.marusa"), jvm.pid.to_string());
    let arguments =
        [&pid, "-o", &path, "--for", "6s", "--every", "250ms", "--heap-every", "1s", "--cpu", "2"];
    let output = Recorder::start(&arguments).wait();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let (lines, _) = exported(&path);
    assert!(of(&lines, "class").is_empty() && of(&lines, "process").len() >= 5, "{} lines", lines.len());
    let recording = text(&std::fs::read(&path).expect("the recording"));
    assert!(recording.contains("the class histogram comes later than asked for"));
}
