use super::content::{Content, Put, Value};

use super::fake::{Fake, NODE_POOL, OVERCOMMIT, POOL, RESERVE, SCAN, SHMEM, World};
use super::journal::{How, PlanMark};
use super::machine::Machine;
use super::step::{Change, Step};
use super::store::State;
use super::*;
use crash::midway;
use std::path::PathBuf;

#[path = "crash_tests.rs"]
mod crash;

const FILE: &str = "/etc/sysctl.d/60-marusa.conf";
const UNITS: &str = "/etc/systemd/system/java.service.d";
const MOUNT: &str = "/run/marusa/jdk";
const SWAP_DIRECTORY: &str = "/run/marusa/bench";
pub(super) const GROUP: &str = "/sys/fs/cgroup/memory/marusa-bench-1";

/// A state directory in memory, where the disk need not be waited for; gone with the test.
pub(super) struct Directory(pub(super) PathBuf);

impl Directory {
    pub(super) fn new() -> Directory {
        static NUMBER: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let memory = PathBuf::from("/dev/shm");
        let base = if memory.is_dir() { memory } else { std::env::temp_dir() };
        Directory(base.join(format!("marusa-door-{}-{number}", std::process::id())))
    }
    pub(super) fn store(&self) -> Store {
        Store::new(&self.0)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub(super) fn add(file: &str, by: u64) -> Change {
    Change::Add { file: file.into(), by }
}

pub(super) fn request(changes: Vec<Change>) -> Request {
    let step = |change| Step { what: "w".into(), why: "y".into(), risk: None, change };
    let steps: Vec<Step> = changes.into_iter().map(step).collect();
    let steps = with_own_directory(&Fake::default(), steps);
    let plan = PlanMark::of("p.json", format!("{steps:?}").as_bytes());
    let made_by = "test".to_string();
    Request { plan, steps, persist: true, drop_caches: false, again: false, made_by }
}

fn pool_at_boot(pages: u64) -> Content {
    Content::Sysctl { settings: vec![Put { file: POOL.into(), value: Value::Number(pages) }] }
}

pub(super) fn everything() -> Request {
    let unit = Content::Unit { memlock_bytes: Some(1 << 30), java_options: vec!["-Xmx1g".to_string()] };
    request(vec![
        add(POOL, 8),
        add(NODE_POOL, 4),
        add(OVERCOMMIT, 2),
        Change::Choose { file: SHMEM.into(), word: "advise".into() },
        Change::Set { file: SCAN.into(), value: 100 },
        Change::Create { file: FILE.into(), content: pool_at_boot(5) },
        Change::Directory { path: UNITS.into() },
        Change::Create { file: format!("{UNITS}/marusa.conf"), content: unit },
        Change::Directory { path: MOUNT.into() },
        Change::MountTmpfs { at: MOUNT.into(), options: "huge=always".into() },
        Change::CopyTree { from: "/usr/lib/jvm/x".into(), to: MOUNT.into(), linked: Vec::new() },
        Change::Directory { path: SWAP_DIRECTORY.into() },
        Change::SwapFile { file: format!("{SWAP_DIRECTORY}/swap"), bytes: 64 << 20 },
        Change::MemoryGroup { path: GROUP.into(), limit_bytes: 64 << 20 },
        add(POOL, 1),
    ])
}

/// All that is open, the last first, as the command does it.
pub(super) fn undo_all(machine: &Fake, store: &Store) -> Result<Vec<UndoReceipt>, DoorError> {
    let open = store.list()?.into_iter().rev().filter(|one| one.state() != State::Undone);
    open.map(|one| undo(machine, store, &one.id, false)).collect()
}

#[test]
fn what_is_applied_is_there_and_what_is_undone_is_as_before() {
    let (machine, directory) = (Fake::default(), Directory::new());
    let store = directory.store();
    // An existing cgroup cannot be shared, so no plan with one is applied twice.
    let everything = || {
        let mut all = everything();
        all.steps.retain(|step| !matches!(step.change, Change::MemoryGroup { .. }));
        all
    };
    let receipt = apply(&machine, &store, &everything()).expect("applied");
    assert_eq!(receipt.outcome, Outcome::Applied);
    {
        let world = machine.world.borrow();
        assert_eq!((world.numbers[POOL], world.numbers[NODE_POOL], world.numbers[OVERCOMMIT]), (11, 11, 3));
        assert_eq!((world.word.as_str(), world.numbers[SCAN], world.files.len()), ("advise", 100, 3));
        assert_eq!(world.swaps.len(), 1);
        assert_eq!(world.mounts[MOUNT], (format!("marusa:{}:10", receipt.id), true));
    }
    assert!(
        receipt.steps[4].notes[0].contains("min_free_kbytes from 45056 to 67584"),
        "{:?}",
        receipt.steps[4]
    );
    let again = apply(&machine, &store, &everything()).expect("the same again");
    assert_eq!((again.outcome, again.id), (Outcome::AlreadyApplied { lost: Vec::new() }, receipt.id.clone()));
    machine.world.borrow_mut().numbers.insert(SCAN, 7);
    let again = apply(&machine, &store, &everything()).expect("the same again");
    let Outcome::AlreadyApplied { lost } = again.outcome else { panic!("{again:#?}") };
    assert!(lost.len() == 1 && lost[0].contains(SCAN), "{lost:?}");
    machine.world.borrow_mut().numbers.insert(SCAN, 100);
    let undone = undo(&machine, &store, &receipt.id, false).expect("undone");
    assert!(undone.complete && undone.steps.iter().all(|step| step.how == How::Restored), "{undone:#?}");
    assert_eq!(*machine.world.borrow(), World::default());
    assert!(undo(&machine, &store, &receipt.id, false).expect("twice").nothing_left);
}

#[test]
fn what_others_changed_stays() {
    let (machine, directory) = (Fake::default(), Directory::new());
    let receipt = apply(&machine, &directory.store(), &everything()).expect("applied");
    {
        let mut world = machine.world.borrow_mut();
        world.numbers.insert(POOL, 30);
        world.numbers.insert(OVERCOMMIT, 0);
        world.numbers.insert(RESERVE, 99999);
        world.word = "always".into();
        world.files.insert(FILE.into(), "vm.nr_hugepages = 7\n".into());
        world.files.insert(format!("{UNITS}/other.conf"), "x".into());
        world.busy = true;
    }
    let undone = undo(&machine, &directory.store(), &receipt.id, false).expect("undone");
    let how = |step: usize| undone.steps.iter().find(|one| one.step == step).map(|one| one.how);
    assert!(!undone.complete);
    let world = machine.world.borrow().clone();
    assert_eq!((world.numbers[POOL], world.numbers[OVERCOMMIT]), (21, 0), "only ours was taken");
    assert_eq!(
        (how(4), how(6), how(7), how(10)),
        (Some(How::Left), Some(How::Left), Some(How::Left), Some(How::Left))
    );
    assert_eq!((world.word.as_str(), world.numbers[RESERVE]), ("always", 99999));
    assert!(undone.steps.iter().any(|one| one.notes.iter().any(|note| note.contains("4711"))));
    // Once the others are gone, undo goes on with what it left.
    {
        let mut world = machine.world.borrow_mut();
        world.word = "advise".into();
        world.files.remove(FILE);
        world.files.remove(&format!("{UNITS}/other.conf"));
        world.busy = false;
    }
    let undone = undo(&machine, &directory.store(), &receipt.id, false).expect("undone");
    assert!(undone.complete, "{undone:#?}");
    assert_eq!(machine.world.borrow().numbers[RESERVE], 99999, "what another process set stays");
    assert!(machine.world.borrow().mounts.is_empty() && machine.world.borrow().files.is_empty());
}

#[test]
fn runs_are_undone_in_any_order() {
    for order in [[0, 1, 2], [2, 1, 0], [1, 0, 2], [1, 2, 0], [0, 2, 1], [2, 0, 1]] {
        let (machine, directory) = (Fake::default(), Directory::new());
        let ids: Vec<String> = [8, 4, 2]
            .iter()
            .map(|by| {
                apply(&machine, &directory.store(), &request(vec![add(POOL, *by)])).expect("applied").id
            })
            .collect();
        assert_eq!(machine.world.borrow().numbers[POOL], 16);
        for index in order {
            let undone = undo(&machine, &directory.store(), &ids[index], false).expect("undone");
            assert!(undone.complete && undone.steps[0].notes.is_empty(), "{order:?}: {undone:#?}");
        }
        assert_eq!(*machine.world.borrow(), World::default(), "{order:?}");
    }
}

#[test]
fn too_few_pages_are_compacted_for_and_else_put_back() {
    let (machine, directory) = (Fake::default(), Directory::new());
    machine.world.borrow_mut().pool_max = 5;
    let receipt = apply(&machine, &directory.store(), &request(vec![add(POOL, 8)])).expect("applied");
    assert_eq!((receipt.outcome, machine.world.borrow().numbers[POOL]), (Outcome::Applied, 10));
    assert!(receipt.steps[0].notes[0].contains("compacted memory"), "{:?}", receipt.steps);
    undo_all(&machine, &directory.store()).expect("undone");
    assert_eq!(machine.world.borrow().numbers[POOL], 2);
    machine.world.borrow_mut().pool_max = 5;
    machine.world.borrow_mut().pool_max_compacted = 7;
    let before = machine.world.borrow().clone();
    let file = add(OVERCOMMIT, 2);
    let receipt = apply(&machine, &directory.store(), &request(vec![file, add(POOL, 8)])).expect("undone");
    let Outcome::TakenBack { why, complete: true, .. } = receipt.outcome else { panic!("{receipt:#?}") };
    assert!(why.to_string().contains("only 5 of 8") && why.to_string().contains("--drop-caches"), "{why}");
    assert_eq!(World { pool_max: 5, ..machine.world.borrow().clone() }, before);
}

#[test]
fn somebody_who_changes_the_pool_between_two_tries_is_not_overwritten() {
    let (machine, directory) = (Fake::default(), Directory::new());
    machine.world.borrow_mut().pool_max = 5;
    // Before memory is compacted another process asks for 20 more, and gets them.
    *machine.other.borrow_mut() = Some(Box::new(|world, at| {
        if at.ends_with("compact_memory") && world.numbers[POOL] == 5 {
            world.numbers.insert(POOL, 25);
        }
    }));
    let receipt = apply(&machine, &directory.store(), &request(vec![add(POOL, 8)])).expect("applied");
    assert_eq!(
        (&receipt.outcome, machine.world.borrow().numbers[POOL]),
        (&Outcome::Applied, 30),
        "2 + 8 + 20"
    );
    assert!(receipt.steps[0].notes.iter().any(|note| note.contains("others changed it")), "{receipt:#?}");
    *machine.other.borrow_mut() = None;
    undo_all(&machine, &directory.store()).expect("undone");
    assert_eq!(machine.world.borrow().numbers[POOL], 22, "their 20 stay");
}

#[test]
fn nothing_is_done_where_a_step_can_not_be_made() {
    let refuses = |change: Change, prepare: fn(&mut World)| {
        let (machine, directory) = (Fake::default(), Directory::new());
        prepare(&mut machine.world.borrow_mut());
        let before = machine.world.borrow().clone();
        let why = apply(&machine, &directory.store(), &request(vec![add(OVERCOMMIT, 1), change]));
        assert_eq!(*machine.world.borrow(), before);
        assert!(!directory.0.exists(), "not even the state directory was made");
        why.expect_err("refused")
    };
    let file = |content: Content| Change::Create { file: FILE.into(), content };
    let foreign = refuses(file(pool_at_boot(5)), |world| {
        world.files.insert(FILE.into(), "vm.nr_hugepages = 6\n".into());
    });
    assert!(matches!(&foreign, DoorError::No(why) if why.contains("not overwritten")), "{foreign}");
    let less = refuses(file(pool_at_boot(1)), |_| ());
    assert!(matches!(&less, DoorError::No(why) if why.contains("it is 2 now")), "{less}");
    let pattern = Put { file: "/proc/sys/kernel/core_pattern".into(), value: Value::Word("|/x".into()) };
    let pattern = Content::Sysctl { settings: vec![pattern] };
    assert!(matches!(refuses(file(pattern), |_| ()), DoorError::Refused(_)));
    assert!(matches!(refuses(add("/etc/passwd", 1), |_| ()), DoorError::Refused(_)));
    let missing = add("/sys/kernel/mm/hugepages/hugepages-64kB/nr_hugepages", 1);
    assert!(matches!(refuses(missing, |_| ()), DoorError::Rights(why) if why.contains("container")));
    let word = Change::Choose { file: SHMEM.into(), word: "within_size".into() };
    assert!(matches!(refuses(word, |_| ()), DoorError::No(why) if why.contains("no choice")));
    let read_only = refuses(add(POOL, 1), |world| world.read_only = true);
    assert!(matches!(&read_only, DoorError::Rights(why) if why.contains("read only")), "{read_only}");
    let huge = add(POOL, u64::MAX);
    assert!(matches!(refuses(huge, |_| ()), DoorError::Refused(_)));
    let copy = Change::CopyTree { from: "/usr".into(), to: "/run/marusa/x".into(), linked: Vec::new() };
    assert!(matches!(
        refuses(copy, |world| world.directories.extend(["/run/marusa/x".to_string()])),
        DoorError::Refused(_)
    ));
}

#[test]
fn one_run_at_a_time_and_none_over_an_interrupted_one() {
    let (machine, directory) = (Fake::default(), Directory::new());
    let store = directory.store();
    let lock = store.lock().expect("free");
    let busy = apply(&machine, &store, &everything()).expect_err("locked");
    assert!(busy.to_string().contains(&format!("pid {}", std::process::id())), "{busy}");
    drop(lock);
    machine.left.set(Some(midway()));
    apply(&machine, &store, &everything()).expect_err("it died");
    machine.left.set(None);
    let open = apply(&machine, &store, &request(vec![add(OVERCOMMIT, 1)])).expect_err("interrupted");
    assert!(
        open.to_string().contains("was interrupted") && open.to_string().contains("pages undo"),
        "{open}"
    );
    undo_all(&machine, &store).expect("undone");
    apply(&machine, &store, &request(vec![add(OVERCOMMIT, 1)])).expect("now it may");
}

#[test]
fn a_journal_that_others_could_write_is_not_believed() {
    use std::os::unix::fs::PermissionsExt;
    let (machine, directory) = (Fake::default(), Directory::new());
    let receipt = apply(&machine, &directory.store(), &everything()).expect("applied");
    std::fs::set_permissions(&directory.0, PermissionsExt::from_mode(0o777)).expect("a mode");
    let why = undo(&machine, &directory.store(), &receipt.id, false).expect_err("not ours alone");
    assert!(matches!(why, DoorError::Refused(_)), "{why}");
}

#[test]
fn the_real_machine_follows_no_link_and_makes_files_whole() {
    let directory = Directory::new();
    let path = |name: &str| directory.0.join(name);
    std::fs::create_dir_all(path("etc/sysctl.d")).expect("directories");
    std::os::unix::fs::symlink(path("etc/sysctl.d"), path("etc/tmpfiles.d")).expect("a link");
    std::os::unix::fs::symlink(path("secret"), path("etc/sysctl.d/marusa.conf")).expect("a link");
    std::fs::write(path("secret"), "s").expect("a file");
    let machine = Linux::below(&directory.0);
    assert!(machine.create("/etc/tmpfiles.d/marusa.conf", "x", 0o644).is_err(), "a directory that is a link");
    assert!(machine.create("/etc/sysctl.d/marusa.conf", "x", 0o644).is_err(), "a file that is a link");
    assert!(machine.write("/etc/sysctl.d/marusa.conf", "x").is_err());
    assert!(machine.read("/etc/sysctl.d/../../secret", 9).is_err());
    assert_eq!(machine.lies("/etc/sysctl.d/marusa.conf").expect("seen"), machine::Lies::Other);
    assert_eq!(std::fs::read(path("secret")).expect("there"), b"s");
    machine.create("/etc/sysctl.d/a.conf", "text", 0o644).expect("made");
    assert_eq!(machine.read("/etc/sysctl.d/a.conf", 9).expect("read"), b"text");
    assert!(machine.create("/etc/sysctl.d/a.conf", "other", 0o644).is_err(), "never over another file");
    machine.remove("/etc/sysctl.d/a.conf").expect("removed");
    assert_eq!(machine.lies("/etc/sysctl.d/a.conf").expect("seen"), machine::Lies::Nothing);
    machine.make_directory("/etc/x").expect("made");
    assert_eq!(machine.lies("/etc/x").expect("seen"), machine::Lies::Directory { empty: true });
    machine.remove_directory("/etc/x").expect("removed");
}
