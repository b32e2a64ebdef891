//! A frozen file is sent to strangers: nothing of the command line, of the environment or of the user is in it.

use crate::common::*;
use flate2::read::GzDecoder;
use marusa::snapshot::file::Frozen;
use std::collections::HashSet;
use std::io::Read;
use std::process::{Command, Stdio};

const SECRET: &str = "hZ7uQnJt3kXe9rW2";
const MAGIC_BYTES: usize = 16;
/// A word that was searched for pointers may keep a small number, of three letters at most.
const FRAGMENT_BYTES: usize = 5;

/// Every few letters in a row, as bytes and as UTF-16.
fn fragments() -> Vec<Vec<u8>> {
    let narrow = SECRET.as_bytes().windows(FRAGMENT_BYTES);
    narrow.flat_map(|bytes| [bytes.to_vec(), bytes.iter().flat_map(|byte| [*byte, 0]).collect()]).collect()
}

fn assert_clean(bytes: &[u8], fragments: &HashSet<Vec<u8>>, what: &str) {
    let is_first = |byte: u8| SECRET.as_bytes().contains(&byte);
    for length in [FRAGMENT_BYTES, FRAGMENT_BYTES * 2] {
        for (at, window) in bytes.windows(length).enumerate() {
            if is_first(window[0]) && fragments.contains(window) {
                let around = &bytes[at.saturating_sub(64)..(at + 64).min(bytes.len())];
                panic!("{what}: a piece of the secret in {:?}", String::from_utf8_lossy(around));
            }
        }
    }
}

#[test]
fn a_frozen_file_has_no_secret_of_the_command_line_or_the_environment() {
    let folder = crate::folder("secrets");
    let file = folder.join("a.frozen");
    let path = file.to_str().expect("UTF-8");
    let fragments: HashSet<Vec<u8>> = fragments().into_iter().collect();
    for (jdk, gc) in [("8", "parallel"), ("11", "g1"), ("17", "serial"), ("25", "g1"), ("25", "shenandoah")] {
        let Some(java) = java(jdk) else { continue };
        let mut command = Command::new(java);
        command.args(row(jdk, gc).options).arg("-Xmx100m");
        command.arg(format!("-Dpassword={SECRET}")).arg(format!("-XX:OnOutOfMemoryError=echo {SECRET}"));
        command.arg(format!("-XX:ErrorFile=/tmp/{SECRET}"));
        command.arg("-cp").arg(root().join("java/build-out"));
        command.args(["marusa.Load", "heap=20m", "threads=5", "classes=100", "deflate=1", "quiet=1"]);
        // Not used without a mapped file; but a part of sun.java.command, in the VM and in Java.
        command.arg(format!("dir=/tmp/{SECRET}"));
        command.env("SECRET", SECRET).stderr(Stdio::null());
        let jvm = Jvm::of(command);
        let arguments = std::fs::read_to_string(format!("/proc/{}/cmdline", jvm.pid)).expect("its own");
        assert!(arguments.contains(SECRET), "the test works");
        assert!(marusa(&["freeze", &jvm.pid.to_string(), "-o", path]).status.success());

        let packed = std::fs::read(&file).expect("the file");
        let mut unpacked = Vec::new();
        GzDecoder::new(&packed[MAGIC_BYTES..]).read_to_end(&mut unpacked).expect("gzip");
        assert_clean(&unpacked, &fragments, &format!("JDK {jdk} {gc}"));
        // What is in two pieces of the file may be one text in memory.
        let frozen = Frozen::load(&mut &packed[..]).expect("a frozen file");
        let known: Vec<u8> = frozen.memory.pieces().iter().flat_map(|(_, bytes)| bytes.to_vec()).collect();
        assert!(known.len() > 100_000, "there is something to look at");
        assert_clean(&known, &fragments, &format!("memory of JDK {jdk} {gc}"));
    }
    std::fs::remove_dir_all(folder).expect("removed");
}
