//! The code of a JDK on huge pages: planned, applied, verified and undone, with a JVM that runs from there.

use super::jvm::{Logging, as_nobody};
use super::{codes, row, shown, verify};
use crate::common::{is_root, java, marusa, skip, text};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A plan, its state directory, and its mount; all gone in the end.
struct Copy {
    name: String,
    directory: PathBuf,
}

impl Copy {
    fn new(name: &str) -> Copy {
        let name = format!("{name}-{}", std::process::id());
        let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(&name);
        std::fs::create_dir_all(&directory).expect("a directory");
        Copy { name, directory }
    }
    fn at(&self) -> String {
        format!("/run/marusa/{}", self.name)
    }
    fn file(&self) -> String {
        self.directory.join("plan.json").to_string_lossy().into_owned()
    }
    fn plan(&self, home: &Path) -> Output {
        marusa(&[
            "pages",
            "plan",
            "--code",
            "--jdk",
            &home.to_string_lossy(),
            "--name",
            &self.name,
            "-o",
            &self.file(),
            "--force",
        ])
    }
    fn with_state(&self, arguments: &[&str]) -> Output {
        marusa(&[&["pages"], arguments, &["--state", &self.directory.to_string_lossy()]].concat())
    }
    fn apply(&self) -> Output {
        self.with_state(&["apply", &self.file(), "--yes"])
    }
    fn undo(&self) -> Output {
        self.with_state(&["undo", &self.file()])
    }
    fn is_mounted(&self) -> bool {
        std::fs::read_to_string("/proc/mounts")
            .is_ok_and(|mounts| mounts.contains(&format!(" {} ", self.at())))
    }
    /// A JVM that is started from the copy.
    fn jvm(&self) -> Logging {
        let java = Command::new(format!("{}/bin/java", self.at()));
        Logging::of(java, &["-Xmx64m", "-XX:+UseSerialGC"])
    }
}

impl Drop for Copy {
    fn drop(&mut self) {
        if self.is_mounted() {
            let _ = Command::new("umount").arg(self.at()).status();
            let _ = std::fs::remove_dir(self.at());
        }
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

fn home(jdk: &str) -> Option<PathBuf> {
    Some(java(jdk)?.parent()?.parent()?.to_path_buf())
}

#[test]
fn the_code_of_a_jdk_from_the_plan_to_the_way_back() {
    if !is_root() {
        return skip("only root may mount");
    }
    for jdk in ["17", "25", "11", "21"] {
        let Some(home) = home(jdk) else { return };
        let copy = Copy::new(&format!("verify-code-{jdk}"));
        let planned = copy.plan(&home);
        assert!(planned.status.success(), "JDK {jdk}: {}", text(&planned.stderr));
        let shown_plan = text(&planned.stdout);
        let is_command = |line: &&str| line.starts_with("  marusa") || line.starts_with("  /");
        let mut prose = shown_plan.lines().filter(|line| !is_command(line));
        assert!(prose.all(|line| line.chars().count() <= 100), "{shown_plan}");
        let applied = copy.apply();
        assert!(applied.status.success(), "JDK {jdk}: {} {}", text(&applied.stdout), text(&applied.stderr));
        assert!(copy.is_mounted());

        let jvm = copy.jvm();
        let (status, answer, errors) = verify(&jvm.pid(), &[&copy.file()]);
        assert_eq!(status, Some(0), "JDK {jdk}: {errors} {answer:#}");
        let text_row = row(&answer, "libjvm.so text");
        assert_eq!(text_row["verdict"], "met", "JDK {jdk}: {text_row:#}");
        assert!(
            answer["totals"][0]["found_pages"].as_u64().is_some_and(|pages| pages >= 5),
            "JDK {jdk}: {answer:#}"
        );
        let busy = copy.undo();
        assert_eq!(busy.status.code(), Some(1), "JDK {jdk}: {}", text(&busy.stdout));
        assert!(text(&busy.stdout).contains(&jvm.pid()), "it names who uses it: {}", text(&busy.stdout));
        assert!(copy.is_mounted());
        let (status, _, errors) = verify(&jvm.pid(), &[&copy.file()]);
        assert_eq!(status, Some(0), "JDK {jdk}: the JVM lives on: {errors}");
        drop(jvm);
        let undone = copy.undo();
        assert!(undone.status.success(), "JDK {jdk}: {} {}", text(&undone.stdout), text(&undone.stderr));
        assert!(!copy.is_mounted() && !Path::new(&copy.at()).exists(), "JDK {jdk}: all is gone");
    }
}

#[test]
fn a_jvm_that_was_not_started_from_the_copy() {
    let (Some(home), Some(jvm)) = (home("17"), Logging::start("17", &["-Xmx64m", "-XX:+UseSerialGC"])) else {
        return;
    };
    let copy = Copy::new("verify-other");
    assert!(copy.plan(&home).status.success());
    let (status, answer, errors) = verify(&jvm.pid(), &[&copy.file()]);
    assert_eq!(status, Some(1), "{errors}");
    assert_eq!(codes(&answer, "causes")[0], "other_java", "{answer:#}");
    let next = answer["causes"][0]["next"].as_str().expect("text");
    assert!(next.contains(&format!("{}/bin/java", copy.at())), "{next}");
    assert!(shown(&jvm.pid(), &[&copy.file()]).contains("NOT MET"));
}

#[test]
fn nobody_runs_a_jvm_from_the_copy() {
    if !is_root() {
        return skip("only root may mount");
    }
    // Nobody must be able to go where the links lead.
    let debian = Path::new("/usr/lib/jvm/java-17-openjdk-amd64");
    if !debian.join("bin/java").exists() {
        return skip("no JDK that everybody may read");
    }
    let copy = Copy::new("verify-nobody");
    assert!(copy.plan(debian).status.success() && copy.apply().status.success());
    let mut command = Command::new(format!("{}/bin/java", copy.at()));
    let output = as_nobody(&mut command).arg("-Xmx32m").arg("-version").output().expect("it starts");
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(copy.undo().status.success() && !copy.is_mounted());
}

#[test]
fn what_is_no_jdk_gets_no_plan() {
    let copy = Copy::new("verify-none");
    for bad in ["/no/such/jdk", "/usr", &copy.directory.to_string_lossy()] {
        let output = copy.plan(Path::new(bad));
        assert_eq!(output.status.code(), Some(2), "{bad}: {}", text(&output.stderr));
        assert!(text(&output.stderr).starts_with("marusa: "), "{bad}: {}", text(&output.stderr));
    }
    assert!(!Path::new(&copy.file()).exists());
    for arguments in [&["--code"][..], &["--code", "--jdk", "/usr", "--heap", "1g"]] {
        let output = marusa(&[&["pages", "plan"], arguments].concat());
        assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
    }
}
