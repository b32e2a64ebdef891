//! Names of FIFOs, devices and directories where a file is meant.

use super::*;
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;

/// Nothing of these is opened for reading, and nothing waits.
#[test]
fn what_is_no_regular_file_is_refused_by_every_command() {
    let directory = Directory::new();
    let fifo = directory.path("fifo");
    let name = CString::new(fifo.as_os_str().as_bytes()).expect("no NUL");
    // SAFETY: the name outlives the call.
    assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
    let link = directory.path("link");
    std::os::unix::fs::symlink("/dev/zero", &link).expect("a link");
    let page = directory.path("page.html").display().to_string();
    let things = [
        fifo.display().to_string(),
        link.display().to_string(),
        "/dev/zero".to_string(),
        "/proc".to_string(),
    ];
    for thing in &things {
        for command in [
            &["map", "--from", thing][..],
            &["leak", thing],
            &["export", thing, "--csv", "-"],
            &["diff", thing, thing],
            &["report", thing, "-o", &page, "--force"],
        ] {
            let ended = marusa(&directory, command);
            assert_eq!(ended.status, Some(3), "{command:?}: {}", ended.stderr);
            let wanted = format!("cannot read {thing}: not a regular file");
            assert!(ended.stderr.contains(&wanted), "{command:?}: {}", ended.stderr);
            assert!(ended.peak_bytes < INPUT_PROCESS_BYTES_FREE, "{command:?}");
        }
        let ended = marusa(&directory, &["record", "--all", "-o", thing, "--append"]);
        assert_eq!(ended.status, Some(2), "{}", ended.stderr);
        // A file that is written may not be a link either.
        let is_refused = ["not a regular file", "symbolic link", "Is a directory"]
            .iter()
            .any(|why| ended.stderr.contains(why));
        assert!(is_refused, "{}", ended.stderr);
    }
}

#[test]
fn a_comparison_in_a_fifo_is_refused() {
    let directory = Directory::new();
    let saved = directory.path("saved");
    std::fs::create_dir(&saved).expect("ours");
    let head = saved.join("compare.json");
    let name = CString::new(head.as_os_str().as_bytes()).expect("no NUL");
    // SAFETY: the name outlives the call.
    assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
    let saved = saved.display().to_string();
    let arms = ["compare", "--quiet-wait", "0s", "--arm", "one=X=1", "--arm", "other=X=2", "--seed", "1"];
    let ended = marusa(&directory, &[&arms[..], &["--resume", "--save", &saved, "--", "true"]].concat());
    assert_eq!(ended.status, Some(2), "{}", ended.stderr);
    assert!(ended.stderr.contains("not a regular file"), "{}", ended.stderr);
}
