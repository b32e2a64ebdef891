//! A frozen file is sent to strangers: nothing of the command line, of the environment, of the program's data or of the
//! user is in it.

use crate::common::*;
use flate2::read::GzDecoder;
use marusa::snapshot::file::Frozen;
use std::collections::HashSet;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};

/// What is planted: on the command line, in the environment, in the heap and in malloc, in a file that is read, and as a
/// user whose home directory holds a mapped file and the class path.
const OPTION: &str = "hZ7uQnJt3kXe9rW2";
const VARIABLE: &str = "Lw5vTbYc8sPg4mRd";
const DATA: &str = "Xk2jHf6nVq9zCa3u";
const LINE: &str = "Gy8eMo1iSw7dBx5t";
const HOME: &str = "rN4pKz0fUc6hJl9v";
const ALL: [&str; 5] = [OPTION, VARIABLE, DATA, LINE, HOME];
const MAGIC_BYTES: usize = 16;
const FRAGMENT_BYTES: usize = 6;

/// Every few letters in a row, as bytes and as UTF-16.
fn fragments() -> HashSet<Vec<u8>> {
    let narrow = ALL.iter().flat_map(|secret| secret.as_bytes().windows(FRAGMENT_BYTES));
    narrow.flat_map(|bytes| [bytes.to_vec(), bytes.iter().flat_map(|byte| [*byte, 0]).collect()]).collect()
}

/// The first fragment in `bytes`, with what is around it.
fn found(bytes: &[u8], fragments: &HashSet<Vec<u8>>) -> Option<String> {
    let mut is_first = [false; 256];
    ALL.iter().flat_map(|secret| secret.bytes()).for_each(|byte| is_first[usize::from(byte)] = true);
    [FRAGMENT_BYTES, FRAGMENT_BYTES * 2].into_iter().find_map(|length| {
        let mut windows = bytes.windows(length).enumerate();
        let (at, _) =
            windows.find(|(_, window)| is_first[usize::from(window[0])] && fragments.contains(*window))?;
        let around = &bytes[at.saturating_sub(64)..(at + 64).min(bytes.len())];
        Some(format!("at {at} of {}: {:?}", bytes.len(), String::from_utf8_lossy(around)))
    })
}

fn assert_clean(file: &Path, fragments: &HashSet<Vec<u8>>, what: &str) {
    let packed = std::fs::read(file).expect("the file");
    assert_eq!(found(&packed, fragments), None, "{what}, packed");
    let mut unpacked = Vec::new();
    GzDecoder::new(&packed[MAGIC_BYTES..]).read_to_end(&mut unpacked).expect("gzip");
    assert_eq!(found(&unpacked, fragments), None, "{what}, unpacked");
    // What is in two pieces of the file may be one text in memory.
    let frozen = Frozen::load(&mut &packed[..]).expect("a frozen file");
    let known: Vec<u8> = frozen.memory.pieces().iter().flat_map(|(_, bytes)| bytes.to_vec()).collect();
    assert!(known.len() > 100_000, "there is something to look at");
    assert_eq!(found(&known, fragments), None, "{what}, memory");
}

/// A JVM in which all of them are.
fn jvm(java: &Path, options: &[String], directory: &Path) -> Jvm {
    let home = directory.join("home").join(HOME);
    std::fs::create_dir_all(&home).expect("a directory");
    let (read, mapped) = (directory.join("read"), home.join("mapped.bin"));
    std::fs::write(&read, format!("alice:x:1000:1000:{LINE}:/:/bin/sh\n").repeat(1000)).expect("written");
    std::fs::write(&mapped, LINE.repeat(1000)).expect("written");
    if !home.join("classes").exists() {
        std::os::unix::fs::symlink(root().join("java/build-out"), home.join("classes")).expect("a link");
    }
    let mut command = Command::new(java);
    command.args(options).arg("-Xmx100m").arg(format!("-Dpassword={OPTION}"));
    command.arg(format!("-XX:OnOutOfMemoryError=echo {OPTION}")).arg(format!("-XX:ErrorFile=/tmp/{OPTION}"));
    command.arg("-cp").arg(home.join("classes")).arg("marusa.Secrets").args([&read, &mapped]);
    command.args([&format!("--token={OPTION}"), "--key", OPTION]);
    command.env("SECRETS", format!("{DATA},{DATA}{DATA}")).env("SECRET", VARIABLE).stderr(Stdio::null());
    let jvm = Jvm::of(command);
    let arguments = std::fs::read_to_string(format!("/proc/{}/cmdline", jvm.pid)).expect("its own");
    assert!(arguments.contains(OPTION), "the test works");
    jvm
}

#[test]
fn a_frozen_file_has_no_secret_of_the_command_line_the_environment_or_the_program() {
    // Below the target directory, which the root of JDK 8 has too.
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("secrets-{}", std::process::id()));
    std::fs::create_dir_all(&directory).expect("a directory");
    let file = directory.join("a.frozen");
    let fragments = fragments();
    // "detail" has the most text to leak; `make test-long` has the others with each JDK.
    let tracking: &[&'static str] = if is_long() { &["off", "summary", "detail"] } else { &["detail"] };
    let vms = [("8", "parallel"), ("11", "g1"), ("17", "serial"), ("21", "z-generational"), ("25", "g1")];
    let with = |(jdk, gc): (&'static str, &'static str)| tracking.iter().map(move |level| (jdk, gc, *level));
    let others = [("25", "shenandoah", "off"), ("17", "g1", "summary")];
    for (jdk, gc, level) in vms.into_iter().flat_map(with).chain(others) {
        let Some(java) = java(jdk) else { continue };
        let mut options = row(jdk, gc).options;
        options.push(format!("-XX:NativeMemoryTracking={level}"));
        let jvm = jvm(&java, &options, &directory);
        let frozen =
            marusa(&["freeze", &jvm.pid.to_string(), "-o", file.to_str().expect("UTF-8"), "--force"]);
        assert!(frozen.status.success(), "{}", text(&frozen.stderr));
        let what = format!("JDK {jdk} {gc}, tracking {level}");
        assert_clean(&file, &fragments, &what);
        assert_eq!(found(&frozen.stderr, &fragments), None, "{what}");
        // What was left out is nothing that the account hangs on.
        let replay = marusa(&["map", "--from", file.to_str().expect("UTF-8"), "--json"]);
        assert!(replay.status.success(), "{}", text(&replay.stderr));
        let replay: serde_json::Value = serde_json::from_slice(&replay.stdout).expect("JSON");
        check_laws(&replay);
        let resident = |name: &str| number(&area(&replay, name)["resident_bytes"]);
        assert!(resident("jvm_work") + resident("malloc_unknown") > 1 << 20, "{what}");
    }
    std::fs::remove_dir_all(directory).expect("removed");
}
