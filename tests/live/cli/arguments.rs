//! Arguments hold passwords and tokens: no face shows their values, and no file has them, unless the user asks for it.

use crate::common::*;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const PROPERTY: &str = "Qm7xTr2kWz9bLd4f";
const TOKEN: &str = "Vn3sHj8pYc6gKe1u";
const SEPARATE: &str = "Bt5oAf0iRq2wXv7m";
const VARIABLE: &str = "Zk9dPl4yGh6nUs8j";
const SECRETS: [&str; 4] = [PROPERTY, TOKEN, SEPARATE, VARIABLE];
const FRAGMENT_BYTES: usize = 6;

fn has_fragment(text: &str, secret: &str) -> bool {
    (0..=secret.len() - FRAGMENT_BYTES).any(|at| text.contains(&secret[at..at + FRAGMENT_BYTES]))
}

fn assert_hidden(text: &str, what: &str) {
    for secret in SECRETS {
        assert!(!has_fragment(text, secret), "{what} shows {secret}: {text}");
    }
}

fn directory(name: &str) -> PathBuf {
    let directory = super::directory(name);
    std::fs::set_permissions(&directory, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("ours");
    directory
}

/// A JVM with secrets on its command line and in its environment.
fn jvm(jdk: &str, gc: &str) -> Option<Jvm> {
    let mut command = Command::new(java(jdk)?);
    command.arg(format!("-Dpassword={PROPERTY}")).args(row(jdk, gc).options).arg("-Xmx100m");
    command.arg(format!("-XX:OnError=echo {PROPERTY}")).arg("-cp").arg(root().join("java/build-out"));
    command.args(["marusa.Secrets", "/dev/null", "/dev/null"]).env("SECRETS", "none,such");
    command.args([&format!("--token={TOKEN}"), "--key", SEPARATE, &format!("url=http://u:{TOKEN}@h/")]);
    command.env("SECRET", VARIABLE).env("JAVA_TOOL_OPTIONS", format!("-Dkey={VARIABLE}"));
    Some(Jvm::of(command))
}

/// With the umask that most people have.
fn run(arguments: &[&str]) -> Output {
    let mut command = Command::new("sh");
    command.args(["-c", "umask 022; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_marusa")]).args(arguments);
    command.env_remove("XDG_STATE_HOME").output().expect("marusa runs")
}

/// Both streams of a command that succeeds, or only has findings.
fn printed(arguments: &[&str]) -> String {
    let output = run(arguments);
    let all = text(&output.stdout) + &text(&output.stderr);
    assert!(output.status.code().is_some_and(|code| code < 2), "{arguments:?}: {all}");
    all
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap_or_else(|error| panic!("{}: {error}", path.display())).mode() & 0o777
}

/// The oldest, whose command line is read from another root, and the newest; one between in `make test-long`.
fn chosen_jvms() -> impl Iterator<Item = (&'static str, &'static str)> {
    let all = [("8", "parallel"), ("25", "serial"), ("17", "g1")];
    all.into_iter().take(if is_long() { 3 } else { 2 })
}

#[test]
fn no_face_shows_the_values_of_arguments_unless_it_is_asked_to() {
    for (jdk, gc) in chosen_jvms() {
        let Some(jvm) = jvm(jdk, gc) else { continue };
        let pid = jvm.pid.to_string();
        for arguments in [
            &["map", &pid][..],
            &["map", &pid, "--json"],
            &["map", &pid, "--html", "-"],
            &["map", &pid, "--by", "mapping"],
            &["list"],
            &["list", "--json"],
            &["doctor", &pid],
            &["doctor", &pid, "--json"],
            &["doctor", &pid, "--sarif"],
            &["pages", "plan", &pid],
            &["pages", "plan", &pid, "--json"],
            &["pages", "verify", &pid],
            &["pages", "verify", &pid, "--json"],
            &["pages", "collapse", &pid, "--dry-run"],
            &["pages", "collapse", &pid, "--dry-run", "--json"],
            &["trim", &pid, "--dry-run"],
            &["trim", &pid, "--dry-run", "--json"],
            &["audit", &pid],
            &["audit", &pid, "--json"],
        ] {
            let output = run(arguments);
            let all = text(&output.stdout) + &text(&output.stderr);
            assert!(!output.stdout.is_empty() || !output.status.success(), "{arguments:?}: {all}");
            assert_hidden(&all, &format!("JDK {jdk}: {arguments:?}"));
        }
        let text = printed(&["map", &pid, "--json"]);
        let map: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        let command = map["process"]["command"].as_str().expect("a command");
        for shown in ["-Dpassword=…", "-XX:OnError=…", "-Xmx100m", "marusa.Secrets", "--token=…", "--key …"]
        {
            assert!(command.contains(shown), "no {shown} in {command}");
        }
        for arguments in
            [&["map", &pid, "--show-arguments"][..], &["--show-arguments", "map", &pid, "--html", "-"]]
        {
            let all = printed(arguments);
            // A line of text is cut in its middle at the width of the terminal.
            assert!(SECRETS.iter().any(|secret| has_fragment(&all, secret)), "{arguments:?}: {all}");
        }
        let all = printed(&["map", &pid, "--json", "--show-arguments"]);
        for secret in [PROPERTY, TOKEN, SEPARATE] {
            assert!(all.contains(secret), "JDK {jdk}: --show-arguments shows {secret}");
        }
        assert!(!all.contains(VARIABLE), "the environment is never shown");
    }
}

#[test]
fn recordings_and_what_is_made_of_them_have_no_arguments() {
    let directory = directory("arguments-record");
    let path = |name: &str| directory.join(name).display().to_string();
    for (jdk, gc) in chosen_jvms() {
        let Some(jvm) = jvm(jdk, gc) else { continue };
        let pid = jvm.pid.to_string();
        let (recording, frozen) = (path("a.marusa"), path("a.frozen"));
        for name in ["a.marusa", "a.frozen", "a.csv", "a.parquet", "a.jsonl", "a.html", "b.html", "plan.json"]
        {
            let _ = std::fs::remove_file(directory.join(name));
        }
        printed(&["record", &pid, "-o", &recording, "--every", "200ms", "--for", "1s"]);
        printed(&["freeze", &pid, "-o", &frozen]);
        printed(&["export", &recording, "--csv", &path("a.csv"), "--parquet", &path("a.parquet")]);
        printed(&["report", &recording, "-o", &path("a.html")]);
        printed(&["map", &pid, "--html", &path("b.html")]);
        printed(&["pages", "plan", &pid, "-o", &path("plan.json")]);
        let leak = run(&["leak", &recording]);
        assert_hidden(&(text(&leak.stdout) + &text(&leak.stderr)), "leak");
        assert_hidden(&printed(&["diff", &frozen, &pid]), "diff");
        for entry in std::fs::read_dir(&directory).expect("ours").flatten() {
            let bytes = std::fs::read(entry.path()).expect("written");
            assert_hidden(&text(&bytes), &format!("JDK {jdk}: {}", entry.path().display()));
            assert_eq!(mode(&entry.path()), 0o600, "{}", entry.path().display());
        }
    }
    std::fs::remove_dir_all(directory).expect("ours");
}

#[test]
fn files_are_private_unless_another_mode_is_asked_for() {
    let Some(jvm) = jvm("17", "g1") else { return };
    let (directory, pid) = (directory("arguments-mode"), jvm.pid.to_string());
    let file = |name: &str| directory.join(name);
    let path = |name: &str| file(name).display().to_string();
    std::fs::write(file("there.frozen"), "").expect("ours");
    assert_eq!(mode(&file("there.frozen")) & 0o600, 0o600);
    std::fs::set_permissions(file("there.frozen"), std::os::unix::fs::PermissionsExt::from_mode(0o666))
        .expect("ours");
    let kept = run(&["freeze", &pid, "-o", &path("there.frozen")]);
    assert_eq!(kept.status.code(), Some(2), "{}", text(&kept.stderr));
    assert!(
        text(&kept.stderr).contains("--force") && mode(&file("there.frozen")) == 0o666,
        "{}",
        text(&kept.stderr)
    );
    printed(&["freeze", &pid, "-o", &path("there.frozen"), "--force"]);
    assert_eq!(mode(&file("there.frozen")), 0o600, "a file that was open to all");
    printed(&["freeze", &pid, "-o", &path("b.frozen"), "--file-mode", "0644"]);
    printed(&["--file-mode", "640", "map", &pid, "--html", &path("b.html")]);
    printed(&[
        "record",
        &pid,
        "-o",
        &path("b.marusa"),
        "--every",
        "200ms",
        "--for",
        "1s",
        "--file-mode",
        "0664",
    ]);
    assert_eq!(
        (mode(&file("b.frozen")), mode(&file("b.html")), mode(&file("b.marusa"))),
        (0o644, 0o640, 0o664)
    );
    let refused = run(&["freeze", &pid, "-o", &path("c.frozen"), "--file-mode", "0044"]);
    assert_eq!(refused.status.code(), Some(2), "{}", text(&refused.stderr));
    assert!(!file("c.frozen").exists());
    std::fs::remove_dir_all(directory).expect("ours");
}

#[test]
fn a_comparison_is_saved_without_the_values_of_arguments() {
    for jdk in ["8", "17", "25"] {
        let Some(java) = java(jdk) else { continue };
        let directory = directory("arguments-compare");
        let path = |name: &str| directory.join(name).display().to_string();
        let compare = |more: &[&str], token: &str| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_marusa"));
            command
                .args([
                    "compare",
                    "--quiet-wait",
                    "0s",
                    "--runs",
                    "2",
                    "--state",
                    &path("state"),
                    "--seed",
                    "1",
                ])
                .args(more);
            command.args(["--arm", "base=", "--arm", &format!("other=-Dkey={SEPARATE}")]);
            command.arg("--").arg(&java).arg(format!("-Dpassword={PROPERTY}")).arg("-cp");
            command.arg(root().join("java/build-out")).args(["marusa.Secrets", "/dev/null", "/dev/null"]);
            command.arg(format!("--token={token}")).env("SECRETS", "none,such");
            command.env("JAVA_TOOL_OPTIONS", format!("-Dvariable={VARIABLE}")).output().expect("runs")
        };
        let dry = compare(&["--dry-run", "--json"], TOKEN);
        assert!(dry.status.success(), "{}", text(&dry.stderr));
        assert_hidden(&text(&dry.stdout), "compare --dry-run");
        let shown = text(&compare(&["--dry-run", "--json", "--show-arguments"], TOKEN).stdout);
        assert!([PROPERTY, TOKEN, SEPARATE].iter().all(|secret| shown.contains(secret)), "{shown}");

        let (save, html) = (path("save"), path("a.html"));
        let kept = ["--save", &save, "--html", &html];
        let output = compare(&kept, TOKEN);
        assert_hidden(&(text(&output.stdout) + &text(&output.stderr)), "compare");
        let files = [
            directory.join("save/compare.json"),
            directory.join("save/trials.jsonl"),
            directory.join("a.html"),
        ];
        for file in &files {
            let bytes = std::fs::read(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
            assert_hidden(&text(&bytes), &format!("JDK {jdk}: {}", file.display()));
            assert_eq!(mode(file), 0o600, "{}", file.display());
        }
        // What a program and its JVM print is their own; nobody else reads it.
        assert_eq!(mode(&directory.join("save/output")), 0o700);
        for entry in std::fs::read_dir(directory.join("save/output")).expect("ours").flatten() {
            let is_of_jvm = entry.path().extension().is_some_and(|kind| kind == "log");
            assert!(is_of_jvm || mode(&entry.path()) == 0o600, "{}", entry.path().display());
        }
        let other = compare(&["--save", &save, "--resume"], "another");
        let error = text(&other.stderr);
        assert_eq!(other.status.code(), Some(2), "{error}");
        assert!(error.contains("the command has other values"), "{error}");
        let same = compare(&["--save", &save, "--resume"], TOKEN);
        assert!(same.status.code() != Some(2), "{}", text(&same.stderr));
        std::fs::remove_dir_all(directory).expect("ours");
    }
}
