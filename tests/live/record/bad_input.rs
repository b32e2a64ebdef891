//! A full disk, files of others and of later versions, damaged ones, times that make no sense.

use super::*;
use crate::common::small_disk::SmallDisk;

fn fails(arguments: &[&str], status: i32, words: &str) {
    let output = marusa(arguments);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(status), "{arguments:?}: {said}");
    assert!(said.contains(words) && !said.contains("panicked"), "{arguments:?}: {said}");
}

#[test]
fn files_that_are_no_recording_say_so() {
    let directory = Directory::new("foreign");
    let (newer, foreign, empty) =
        (directory.file("newer"), directory.file("foreign"), directory.file("empty"));
    std::fs::write(&newer, b"marusa-record 2\nwhatever comes").expect("ours");
    std::fs::write(&foreign, b"PAR1 and more").expect("ours");
    std::fs::write(&empty, b"").expect("ours");
    for command in ["leak", "export"] {
        let more: &[&str] = if command == "export" { &["--csv", "-"] } else { &[] };
        let with =
            |file: &str, status, words: &str| fails(&[&[command, file][..], more].concat(), status, words);
        with(&newer, 3, "a newer marusa wrote it");
        with(&foreign, 3, "not a recording");
        with(&empty, 3, "not a recording");
        with(&directory.file("absent"), 3, "absent");
    }
    fails(&["diff", &newer], 3, "a newer marusa wrote it");
    fails(&["diff", &foreign, "1"], 3, "neither a frozen snapshot");
    fails(&["diff", &foreign], 2, "a second one is needed");
    fails(&["record", "--all", "-o", &foreign, "--append"], 2, "not a recording");
    fails(&["record", "--all", "--append"], 2, "--output");
    fails(&["record", "1", "--all", "-o", "x"], 2, "cannot be used with");
    fails(&["record", "4194304", "-o", &directory.file("x")], 3, "no process");
    assert!(!Path::new(&directory.file("x")).exists(), "nothing was begun");
}

#[test]
fn damaged_bytes_never_do_more_than_end_the_file_early() {
    let Some(jvm) = grow(&[], &[]) else { return };
    let directory = Directory::new("damaged");
    let path = directory.file("a.marusa");
    Recorder::start(&[&jvm.pid.to_string(), "-o", &path, "--every", "100ms", "--for", "2s"]).wait();
    let good = std::fs::read(&path).expect("ours");
    fails(&["diff", &format!("{path}@soon"), &path], 2, "is not a moment");
    fails(&["leak", &path, "--from", "yesterday"], 2, "is not a moment");
    fails(&["leak", &path, "--jvm", "nobody"], 3, "no JVM in the recording matches");
    fails(&["export", &path, "--csv", &path], 2, "the recording itself");
    for _ in 0..40 {
        let mut bytes = good.clone();
        let at = fastrand::usize(16..bytes.len());
        bytes[at] ^= 1 << fastrand::u8(0..8);
        std::fs::write(&path, &bytes).expect("ours");
        let output = marusa(&["export", &path, "--csv", "-"]);
        let said = text(&output.stderr);
        assert!(
            matches!(output.status.code(), Some(0 | 3)) && !said.contains("panicked"),
            "byte {at}: {said}"
        );
        assert!(said.contains("left out") || said.contains("no JVM"), "byte {at}: {said}");
    }
}

/// A small file system, which others fill while the recorder is at work.
#[test]
fn a_full_disk_ends_the_recording_and_keeps_what_it_has() {
    let Some(jvm) = grow(&[], &["churn=10m/s"]) else { return };
    let directory = Directory::new("full");
    let Some(mounted) = SmallDisk::new(&directory.0, "256k") else { return };
    let path = directory.file("a.marusa");
    let options = ["--every", "10ms", "--account-every", "10ms", "--cpu", "200", "--for", "5m"];
    let recorder =
        Recorder::start(&[&[jvm.pid.to_string().as_str(), "-o", &path][..], &options[..]].concat());
    wait_for_bytes(&path, 64);
    let begun = std::fs::metadata(&path).expect("ours").len();
    // Some samples more; then at most the rest of its last page is left.
    wait_for_bytes(&path, begun + 500);
    let filled = std::fs::write(directory.file("others"), vec![1; 512 << 10]);
    assert_eq!(filled.map_err(|error| error.kind()), Err(std::io::ErrorKind::StorageFull));
    let output = recorder.wait();
    assert_eq!(output.status.code(), Some(3), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("what is in it is whole"), "{}", text(&output.stderr));
    let (lines, said) = exported(&path);
    assert!(said.is_empty() && of(&lines, "process").len() >= 2, "{said}");
    drop(mounted);
}
