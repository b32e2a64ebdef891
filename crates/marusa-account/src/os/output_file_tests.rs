use super::*;
use std::ffi::CString;
use std::fs;
use std::io::Read;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{PermissionsExt, chown, symlink};

const STRANGER: u32 = 65_534;

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).expect("ours");
    entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

#[test]
fn a_file_is_whole_and_private_or_not_there() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("out");
    let mut file = OutputFile::create(&path, 0o600).expect("a place");
    file.write_all(b"half").expect("room");
    assert!(!path.exists(), "not before it is whole");
    drop(file);
    assert_eq!(names(directory.path()), [] as [&str; 0], "nothing of it stays");
    assert_eq!(write(&path, 0o600, b"first").expect("room"), 5);
    assert_eq!(fs::metadata(&path).expect("there").permissions().mode() & 0o777, 0o600);
    let kept = write(&path, 0o600, b"other").expect_err("it is there");
    assert_eq!(kept.kind(), io::ErrorKind::AlreadyExists, "{kept}");
    assert!(kept.to_string().contains("--force"), "{kept}");
    let mut file = OutputFile::replace(&path, 0o600).expect("ours");
    file.write_all(b"second").expect("room");
    assert_eq!(fs::read(&path).expect("there"), b"first", "the earlier file stays until then");
    assert_eq!(file.finish().expect("room"), 6);
    assert_eq!((fs::read(&path).expect("there"), names(directory.path()).len()), (b"second".to_vec(), 1));
    assert!(write(directory.path(), 0o600, b"x").is_err(), "a directory");
}

#[test]
fn a_draft_with_a_name_goes_too() {
    let directory = tempfile::tempdir().expect("a directory");
    let place = Place::of(&directory.path().join("out")).expect("a place");
    let draft = draft_of(&place).expect("a place");
    let file = draft.create_new(0o600).expect("new");
    drop(OutputFile { file, bytes: 0, place: Some(place), draft: Some(draft) });
    assert_eq!(names(directory.path()), [] as [&str; 0]);
}

#[test]
fn links_and_files_of_strangers_are_refused_and_left_as_they_are() {
    if super::super::place::own_uid() != 0 {
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o1777)).expect("ours");
    let at = |name: &str| directory.path().join(name);
    fs::write(at("victim"), "root's").expect("a file");
    symlink(at("victim"), at("trap")).expect("a link");
    std::os::unix::fs::lchown(at("trap"), Some(STRANGER), None).expect("root");
    fs::write(at("his"), "his").expect("a file");
    chown(at("his"), Some(STRANGER), None).expect("root");
    for name in ["trap", "his"] {
        let error = write(&at(name), 0o600, b"secret").expect_err("a stranger's");
        assert_eq!(error.kind(), io::ErrorKind::PermissionDenied, "{name}: {error}");
    }
    assert_eq!(fs::read(at("victim")).expect("there"), b"root's");
    assert_eq!(fs::read(at("his")).expect("there"), b"his");
}

#[test]
fn a_fifo_of_ours_and_devices_are_written_to_and_a_strangers_fifo_is_not() {
    assert_eq!(write(Path::new("/dev/null"), 0o600, b"away").expect("it takes all"), 4);
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("fifo");
    let name = CString::new(path.as_os_str().as_encoded_bytes()).expect("no NUL");
    // SAFETY: the name is a NUL-terminated string that outlives the call.
    assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
    let reader = {
        let path = path.clone();
        std::thread::spawn(move || {
            let mut text = String::new();
            File::open(path).and_then(|mut file| file.read_to_string(&mut text)).map(|_| text)
        })
    };
    assert_eq!(write(&path, 0o600, b"through").expect("a reader"), 7);
    assert_eq!(reader.join().expect("ended").expect("read"), "through");
    if super::super::place::own_uid() == 0 {
        chown(&path, Some(STRANGER), None).expect("root");
        assert!(write(&path, 0o600, b"x").is_err());
    }
}

#[test]
fn an_open_file_of_ours_is_written_to_by_its_number() {
    let mut behind = tempfile::tempfile().expect("a file");
    let path = format!("/proc/self/fd/{}", behind.as_raw_fd());
    assert_eq!(write(Path::new(&path), 0o600, b"here").expect("ours"), 4);
    let mut text = String::new();
    io::Seek::rewind(&mut behind).and_then(|()| behind.read_to_string(&mut text)).expect("read");
    assert_eq!(text, "here");
}
