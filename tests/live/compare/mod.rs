//! `marusa compare` by the real binary: what it says of programs that behave, and what becomes of the ones that fail, print
//! nothing, leave
//! processes behind, do not end or need what the host does not have; of Ctrl-C, of a full disk, and of going on later.

mod bad;
mod good;
mod interrupted;
mod pages;

use crate::common::*;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

/// A directory of one test, removed when dropped.
struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Directory {
        let path = std::env::temp_dir().join(format!("marusa-compare-test-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).expect("a directory");
        Directory(path)
    }
    fn path(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// `marusa compare` with its state in the directory.
fn command(directory: &Directory, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_marusa"));
    command.args(["compare", "--quiet-wait", "0s", "--state", &directory.path("state")]).args(arguments);
    command.env_remove("JAVA_TOOL_OPTIONS").env_remove("JDK_JAVA_OPTIONS").stdin(Stdio::null());
    command
}

/// Begun, with what it prints to be read when it has ended.
fn begun(directory: &Directory, arguments: &[&str]) -> Child {
    let begun = command(directory, arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    begun.expect("it starts")
}

fn compare(directory: &Directory, arguments: &[&str]) -> Output {
    command(directory, arguments).output().expect("marusa runs")
}

/// As JSON, of a comparison that ended with this status.
fn json(directory: &Directory, status: i32, arguments: &[&str]) -> Value {
    let output = compare(directory, &[&["--json"], arguments].concat());
    assert_eq!(output.status.code(), Some(status), "{}\n{}", text(&output.stderr), text(&output.stdout));
    let json: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(json["schema"], "marusa/compare/2");
    json
}

/// Ends with this status and these words, without a result.
fn assert_refused(output: &Output, status: i32, words: &[&str]) {
    let error = text(&output.stderr);
    assert_eq!(output.status.code(), Some(status), "{error}");
    for word in words {
        assert!(error.contains(word), "no {word:?} in: {error}");
    }
    assert!(!error.contains("panicked"), "{error}");
}

fn runs(json: &Value) -> &[Value] {
    json["runs"].as_array().map(Vec::as_slice).expect("runs")
}

/// Why runs do not count.
fn left_out(json: &Value) -> Vec<String> {
    runs(json).iter().filter_map(|run| run["left_out"].as_str().map(str::to_string)).collect()
}

fn saved_runs(directory: &Path) -> usize {
    let text = std::fs::read_to_string(directory.join("trials.jsonl")).unwrap_or_default();
    text.lines().count()
}

fn classes() -> String {
    root().join("java/build-out").display().to_string()
}
