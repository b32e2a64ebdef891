//! JVMs at rest: every figure of every arena equals malloc_info's, which a preloaded library asks for within the JVM. jcmd
//! would do for some versions, but the thread that answers it changes what it counts.

use super::compare::differences;
use super::glibcs::{self, Glibc};
use super::info::Info;
use super::programs::{TemporaryFile, snapshot};
use crate::common::*;
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

const LOAD: &[&str] =
    &["heap=10m", "threads=12", "direct=24m", "classes=500", "jit=1", "deflate=1", "quiet=1"];
/// A JVM that allocated between the two reports is asked again, this often.
const TRIES: usize = 40;
const ANSWER_MAX: Duration = Duration::from_secs(20);

/// A JVM that can be asked what its malloc holds.
struct Asked {
    jvm: Jvm,
    ask: TemporaryFile,
    answer: TemporaryFile,
}

impl Asked {
    fn start(libc: &Glibc, java: &Path, options: &[&str]) -> Asked {
        let (ask, answer) = (TemporaryFile::new("oracle-ask"), TemporaryFile::new("oracle-answer"));
        let made = Command::new("mkfifo").arg(&ask.0).status().expect("mkfifo runs");
        assert!(made.success());
        let java = java.canonicalize().expect("a path");
        let libraries = java.parent().expect("bin").with_file_name("lib");
        let mut command = libc.command(&java, &[&libraries, &libraries.join("server")]);
        command
            .env("LD_PRELOAD", libc.shared("malloc_oracle"))
            .env("MALLOC_ORACLE_ASK", &ask.0)
            .env("MALLOC_ORACLE_ANSWER", &answer.0)
            .args(["-Xmx48m", "-XX:+UseSerialGC", "-XX:CICompilerCount=2"])
            .args(options)
            .arg("-cp")
            .arg(root().join("java/build-out"))
            .arg("marusa.Load")
            .args(LOAD);
        Asked { jvm: Jvm::of(command), ask, answer }
    }

    fn info(&self) -> Info {
        let before = std::fs::metadata(&self.answer.0).expect("the answers").len() as usize;
        let mut ask = std::fs::OpenOptions::new().write(true).open(&self.ask.0).expect("the pipe");
        ask.write_all(b"?").expect("the oracle reads");
        let asked = Instant::now();
        loop {
            let text = std::fs::read_to_string(&self.answer.0).expect("the answers");
            if text[before..].ends_with("END\n") {
                return Info::parse(&text[before..]);
            }
            assert!(asked.elapsed() < ANSWER_MAX, "the oracle does not answer");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// Compares while the JVM holds still; the JVM's own threads still allocate now and then.
fn check(libc: &Glibc, jdk: &str, options: &[&str]) {
    let Some(java) = java(jdk) else { return };
    let asked = Asked::start(libc, &java, options);
    let mut found = vec!["the JVM never held still".to_string()];
    for _ in 0..TRIES {
        let before = asked.info();
        let taken = snapshot(asked.jvm.pid).expect("a snapshot");
        if asked.info() != before {
            std::thread::sleep(Duration::from_millis(200));
            continue;
        }
        let view = match &taken.alloc {
            Ok(view) => view,
            Err(gap) => panic!("{gap}"),
        };
        found = differences(view, &before);
        if found.is_empty() {
            println!(
                "jdk {jdk} on {} ({}): {} arenas, {} bytes equal",
                libc.name,
                view.allocator,
                view.arenas.len(),
                before.system_bytes
            );
            return;
        }
    }
    panic!("jdk {jdk} on {}: {found:#?}", libc.name);
}

#[test]
fn jdk_17_and_25_on_the_system_s_glibc() {
    check(&glibcs::system(), "17", &[]);
    check(&glibcs::system(), "25", &["-XX:NativeMemoryTracking=summary"]);
}

#[test]
fn jdk_17_on_glibc_2_31() {
    if let Some(libc) = glibcs::of_suite("bullseye") {
        check(&libc, "17", &[]);
    }
}

#[test]
fn jdk_25_on_the_newest_glibc() {
    if let Some(libc) = glibcs::of_suite("sid") {
        check(&libc, "25", &[]);
    }
}
