use super::resolve::{below, by_kernel, by_name};
use super::*;
use rustix::process::{Gid, getgroups};
use rustix::thread::set_thread_groups;
use std::collections::BTreeSet;
use std::fs;
use std::os::fd::AsRawFd;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

fn anywhere(_found: &OwnedFd) -> io::Result<()> {
    Ok(())
}

fn reference(path: &Path) -> OwnedFd {
    File::options().read(true).custom_flags(libc::O_PATH).open(path).expect("a directory").into()
}

fn place(found: &OwnedFd) -> PathBuf {
    fs::read_link(format!("/proc/self/fd/{}", found.as_raw_fd())).expect("an open file")
}

/// Directories, files and links that lead anywhere, below `root` and next to it: (all directories, names).
fn grow(random: &mut fastrand::Rng, top: &Path) {
    const NAMES: [&str; 5] = ["a", "b", "c", "root", "outside"];
    let mut directories = vec![top.join("root"), top.join("outside")];
    for directory in &directories {
        fs::create_dir(directory).expect("a directory");
    }
    for _ in 0..24 {
        let at = directories[random.usize(..directories.len())].join(NAMES[random.usize(..NAMES.len())]);
        let done = match random.u8(..4) {
            0 => fs::create_dir(&at).map(|()| directories.push(at)),
            1 => fs::write(&at, "x"),
            _ => symlink(path(random), &at),
        };
        // The name may be taken.
        drop(done);
    }
}

fn path(random: &mut fastrand::Rng) -> String {
    const PARTS: [&str; 9] = ["a", "b", "c", "..", "..", ".", "", "root", "outside"];
    let start = if random.bool() { "/" } else { "" };
    let parts: Vec<&str> = (0..random.usize(1..6)).map(|_| PARTS[random.usize(..PARTS.len())]).collect();
    let path = format!("{start}{}", parts.join("/"));
    if path.is_empty() { ".".to_string() } else { path }
}

#[test]
fn no_web_of_links_leads_out_of_the_root_and_both_ways_to_resolve_agree() {
    let mut outcomes = BTreeSet::new();
    for seed in 0..150 {
        let mut random = fastrand::Rng::with_seed(seed);
        let top = tempfile::tempdir().expect("a directory");
        grow(&mut random, top.path());
        let inside = fs::canonicalize(top.path().join("root")).expect("there");
        let root = reference(&inside);
        for _ in 0..60 {
            let path = path(&mut random);
            let (kernel, ours) = (by_kernel(&root, &path), by_name(&root, &path, &anywhere));
            match (kernel, ours) {
                (Ok(kernel), Ok(ours)) => {
                    assert_eq!(place(&kernel), place(&ours), "seed {seed}, path {path}");
                    assert!(
                        place(&ours).starts_with(&inside),
                        "seed {seed}: {path} leads to {:?}",
                        place(&ours)
                    );
                    outcomes.insert(0);
                }
                (Err(kernel), Err(ours)) => {
                    assert_eq!(kernel.raw_os_error(), ours.raw_os_error(), "seed {seed}, path {path}");
                    outcomes.extend(ours.raw_os_error());
                }
                (Err(error), _) if error.raw_os_error() == Some(libc::ENOSYS) => {
                    assert!(
                        by_name(&root, &path, &anywhere).map_or(true, |it| place(&it).starts_with(&inside))
                    );
                }
                (kernel, ours) => panic!("seed {seed}, path {path}: {kernel:?} and {ours:?}"),
            }
        }
    }
    let common = [0, libc::ENOENT, libc::ENOTDIR, libc::ELOOP];
    assert!(common.iter().all(|outcome| outcomes.contains(outcome)), "the trees show only {outcomes:?}");
}

#[test]
fn forty_links_are_followed_and_one_more_is_not() {
    let top = tempfile::tempdir().expect("a directory");
    fs::write(top.path().join("0"), "x").expect("a file");
    for number in 1..=41 {
        symlink((number - 1).to_string(), top.path().join(number.to_string())).expect("a link");
    }
    let root = reference(top.path());
    assert!(by_name(&root, "40", &anywhere).is_ok());
    let last = by_name(&root, "41", &anywhere).expect_err("too many");
    assert_eq!(last.raw_os_error(), Some(libc::ELOOP));
    let deep = "a/".repeat(FOREIGN_DEPTH) + "a";
    fs::create_dir_all(top.path().join(&deep)).expect("directories");
    let last = by_name(&root, &deep, &anywhere).expect_err("too deep");
    assert_eq!(last.raw_os_error(), Some(libc::ENAMETOOLONG));
    let long = "./".repeat(3_000);
    assert_eq!(by_name(&root, &long, &anywhere).expect_err("long").raw_os_error(), Some(libc::ENAMETOOLONG));
    assert!(by_name(&root, "", &anywhere).is_err() && below(&root, "a\0b", &anywhere).is_err());
}

const FOREIGN_DEPTH: usize = crate::base::limits::FOREIGN_PATH_DEPTH_MAX;

#[test]
fn only_regular_files_are_opened_and_nothing_waits() {
    let top = tempfile::tempdir().expect("a directory");
    let fifo = top.path().join("fifo");
    let name = std::ffi::CString::new(fifo.to_str().expect("UTF-8")).expect("no NUL");
    // SAFETY: the name is a NUL-terminated string that outlives the call.
    assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
    symlink("fifo", top.path().join("link")).expect("a link");
    fs::write(top.path().join("file"), "text").expect("a file");
    let root = Root { directory: reference(top.path()), path: "/".into(), mounts: Mounts::own(), ids: None };
    for path in ["/fifo", "link", ".", "none"] {
        assert!(root.open(path).is_err(), "{path}");
    }
    assert_eq!(start(root.open("/file").expect("a file"), 3).expect("read"), b"tex");
    assert!(open(&fifo).is_err() && open(Path::new("/dev/null")).is_err() && open(top.path()).is_err());
    assert!(open(&top.path().join("file")).is_ok());
}

#[test]
fn a_path_as_the_kernel_prints_it_is_cut_to_the_root_of_a_chroot() {
    let inside = |root: &str, path: &str| {
        let root = Root {
            directory: reference(Path::new("/")),
            path: root.into(),
            mounts: Mounts::own(),
            ids: None,
        };
        root.inside(path).to_string()
    };
    assert_eq!(inside("/", "/usr/lib/a.so"), "/usr/lib/a.so");
    assert_eq!(inside("/srv/jail", "/srv/jail/lib/a.so"), "/lib/a.so");
    assert_eq!(inside("/srv/jail", "/srv/jailed/a.so"), "/srv/jailed/a.so");
}

#[test]
fn a_file_that_another_has_replaced_is_not_the_mapped_one() {
    let me = Process::own().expect("myself");
    let mappings = me.mappings().expect("mine");
    let own = std::env::current_exe().expect("this program");
    let mapping = mappings.iter().find(|mapping| Path::new(mapping.file_path()) == own).expect("mapped");
    let root = Root::of(&me).expect("my root");
    assert!(root.open_mapped(mapping).is_ok());
    assert!(root.open_mapped(&Mapping { inode: mapping.inode + 1, ..mapping.clone() }).is_err());
    assert!(root.open_mapped(&Mapping { device: "fffff:fffff".into(), ..mapping.clone() }).is_err());
    assert!(mapped(&me, mapping).is_some());
}

#[test]
fn what_only_root_may_read_is_not_opened_for_another_user() {
    // SAFETY: geteuid takes nothing and cannot fail.
    if unsafe { libc::geteuid() } != 0 {
        return;
    }
    let top = tempfile::tempdir().expect("a directory");
    let nobody = (65_534, 65_534);
    fs::write(top.path().join("secret"), "root's").expect("a file");
    let secret = top.path().join("secret");
    fs::set_permissions(&secret, std::os::unix::fs::PermissionsExt::from_mode(0o600)).expect("mode");
    let root = |ids| Root { directory: reference(top.path()), path: "/".into(), mounts: Mounts::own(), ids };
    let all = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(top.path(), all).expect("mode");
    assert!(root(None).open("/secret").is_ok());
    let error = root(Some(nobody)).open("/secret").expect_err("not nobody's");
    assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
    assert!(fs::read(&secret).is_ok(), "our own rights are back");
    // The file is for a group that we belong to.
    let before = getgroups().expect("our groups");
    set_thread_groups(&[Gid::ROOT]).expect("root may");
    fs::set_permissions(&secret, std::os::unix::fs::PermissionsExt::from_mode(0o640)).expect("mode");
    let opened = root(Some(nobody)).open("/secret");
    assert_eq!(getgroups().expect("our groups"), [Gid::ROOT], "they are back");
    set_thread_groups(&before).expect("root may");
    assert!(opened.is_err(), "nor by a group of ours");
    fs::set_permissions(&secret, std::os::unix::fs::PermissionsExt::from_mode(0o644)).expect("mode");
    assert!(root(Some(nobody)).open("/secret").is_ok());
}
