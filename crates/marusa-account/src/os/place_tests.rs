use super::*;
use std::fs;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{chown, symlink};

/// Another user: nobody.
const STRANGER: u32 = 65_534;

fn leads_to(path: &Path) -> io::Result<(u64, u64)> {
    let place = Place::of(path)?;
    let facts = place.facts()?.expect("it is there");
    Ok((facts.device, facts.inode))
}

#[test]
fn our_own_links_are_followed_and_dots_are_walked() {
    let directory = tempfile::tempdir().expect("a directory");
    let at = |name: &str| directory.path().join(name);
    fs::create_dir_all(at("real/deep")).expect("directories");
    fs::write(at("real/file"), "x").expect("a file");
    symlink("real", at("way")).expect("a link");
    symlink(at("way/file"), at("last")).expect("a link");
    let real = leads_to(&at("real/file")).expect("there");
    for path in ["way/file", "last", "way/deep/../file", "./real/./file"] {
        assert_eq!(leads_to(&at(path)).expect("ours"), real, "{path}");
    }
    assert!(Place::of(&at("real/new")).expect("a place").facts().expect("read").is_none());
    assert!(Place::of(&at("none/new")).is_err() && Place::of(&at("real/file/x")).is_err());
    symlink("turn", at("turn")).expect("a link");
    assert_eq!(Place::of(&at("turn")).expect_err("a circle").raw_os_error(), Some(libc::ELOOP));
}

#[test]
fn a_strangers_link_is_refused_wherever_it_stands() {
    if own_uid() != 0 {
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    let at = |name: &str| directory.path().join(name);
    fs::create_dir_all(at("his")).expect("a directory");
    fs::create_dir_all(at("ours")).expect("a directory");
    fs::write(at("ours/file"), "x").expect("a file");
    symlink(at("ours"), at("planted")).expect("a link");
    std::os::unix::fs::lchown(at("planted"), Some(STRANGER), None).expect("root");
    // Our own link in his directory: he could have moved it there.
    symlink(at("ours/file"), at("his/moved")).expect("a link");
    chown(at("his"), Some(STRANGER), None).expect("root");
    for path in ["planted/file", "planted/new", "his/moved"] {
        let error = Place::of(&at(path)).expect_err("planted");
        assert_eq!(error.kind(), io::ErrorKind::PermissionDenied, "{path}: {error}");
        assert!(error.to_string().contains("user 65534"), "{error}");
    }
    assert!(Place::of(&at("his/new")).is_ok(), "a new file in another user's directory does no harm");
}

#[test]
fn links_of_proc_lead_nowhere_but_to_our_own_files() {
    let number = File::open("/dev/null").expect("it is there");
    for path in ["/proc/self/fd", "/dev/fd", "/proc/thread-self/fd"] {
        let path = format!("{path}/{}", number.as_raw_fd());
        let found = find(Path::new(&path));
        let is_same = matches!(found, Ok(Found::Descriptor(found)) if found == number.as_raw_fd());
        assert!(is_same || path.contains("thread-self"), "{path}: {found:?}");
    }
    let error = Place::of(Path::new("/proc/self/cwd/file")).expect_err("into a process");
    assert!(error.to_string().contains("another process"), "{error}");
}
