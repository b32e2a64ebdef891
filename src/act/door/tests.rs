use super::content::{Content, Put, Value};
use super::fake::{Fake, NODE_POOL, OVERCOMMIT, POOL, RESERVE, SCAN, SHMEM, World};
use super::journal::{How, PlanMark};
use super::machine::Machine;
use super::step::{Change, Step};
use super::store::State;
use super::*;
use std::path::PathBuf;

const FILE: &str = "/etc/sysctl.d/60-marusa.conf";
const UNITS: &str = "/etc/systemd/system/java.service.d";
const MOUNT: &str = "/run/marusa/jdk";
const SWAP_DIRECTORY: &str = "/run/marusa/bench";
const GROUP: &str = "/sys/fs/cgroup/memory/marusa-bench-1";

/// A state directory in memory, where the disk need not be waited for; gone with the test.
struct Directory(PathBuf);

impl Directory {
    fn new() -> Directory {
        static NUMBER: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let memory = PathBuf::from("/dev/shm");
        let base = if memory.is_dir() { memory } else { std::env::temp_dir() };
        Directory(base.join(format!("marusa-door-{}-{number}", std::process::id())))
    }
    fn store(&self) -> Store {
        Store::new(&self.0)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn add(file: &str, by: u64) -> Change {
    Change::Add { file: file.into(), by }
}

fn request(changes: Vec<Change>) -> Request {
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

fn everything() -> Request {
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
fn undo_all(machine: &Fake, store: &Store) -> Result<Vec<UndoReceipt>, DoorError> {
    let open = store.list()?.into_iter().rev().filter(|one| one.state() != State::Undone);
    open.map(|one| undo(machine, store, &one.id, false)).collect()
}

#[test]
fn what_is_applied_is_there_and_what_is_undone_is_as_before() {
    let (machine, directory) = (Fake::default(), Directory::new());
    let store = directory.store();
    // A group that is there is nobody's to share, so no plan with one is applied twice.
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

/// How many moments something takes.
fn moments(work: impl FnOnce(&Fake)) -> u64 {
    let machine = Fake::default();
    work(&machine);
    machine.done.get()
}

/// A moment at which some of the steps are made and others are not.
fn midway() -> u64 {
    let total =
        moments(|machine| drop(apply(machine, &Directory::new().store(), &everything()).expect("applied")));
    total * 2 / 3
}

#[test]
fn a_crash_at_any_moment_of_apply_leaves_what_undo_needs() {
    let total =
        moments(|machine| drop(apply(machine, &Directory::new().store(), &everything()).expect("applied")));
    assert!(total > 100, "{total}");
    for crash in 0..total {
        let (machine, directory) = (Fake::default(), Directory::new());
        machine.left.set(Some(crash));
        apply(&machine, &directory.store(), &everything()).expect_err("it died");
        machine.left.set(None);
        for receipt in
            undo_all(&machine, &directory.store()).unwrap_or_else(|why| panic!("crash {crash}: {why}"))
        {
            assert!(receipt.complete, "crash {crash}: {receipt:#?}");
        }
        assert_eq!(*machine.world.borrow(), World::default(), "crash {crash}");
    }
}

#[test]
fn an_undo_that_dies_at_any_moment_goes_on_when_asked_again() {
    let total = moments(|machine| {
        let directory = Directory::new();
        apply(machine, &directory.store(), &everything()).expect("applied");
        machine.done.set(0);
        undo_all(machine, &directory.store()).expect("undone");
    });
    for crash in 0..total {
        for second in [None, Some(crash % 17), Some(crash % 41)] {
            let (machine, directory) = (Fake::default(), Directory::new());
            apply(&machine, &directory.store(), &everything()).expect("applied");
            machine.left.set(Some(crash));
            undo_all(&machine, &directory.store()).expect_err("it died");
            if second.is_some() {
                machine.left.set(second);
                let _ = undo_all(&machine, &directory.store());
            }
            machine.left.set(None);
            let receipts = undo_all(&machine, &directory.store()).expect("undone");
            assert!(
                receipts.iter().all(|receipt| receipt.complete),
                "crash {crash}, {second:?}: {receipts:#?}"
            );
            assert_eq!(*machine.world.borrow(), World::default(), "crash {crash}, {second:?}");
        }
    }
}

/// The journal of a directory's only run.
fn only_journal(directory: &Directory) -> PathBuf {
    let kept = directory.store().list().expect("a list");
    kept.first().expect("one run").path.clone()
}

#[test]
fn a_journal_whose_last_line_is_torn_undoes_what_was_done() {
    let (machine, directory) = (Fake::default(), Directory::new());
    machine.left.set(Some(midway()));
    apply(&machine, &directory.store(), &everything()).expect_err("it died");
    machine.left.set(None);
    let (path, world) = (only_journal(&directory), machine.world.borrow().clone());
    let whole = std::fs::read(&path).expect("a journal");
    // A line whose write was under way is one that nothing was done for; here: more of the next line.
    for extra in ["{", "{\"crc32\":\"00000000\",\"len", "\0\0\0\0"] {
        *machine.world.borrow_mut() = world.clone();
        std::fs::write(&path, [&whole, extra.as_bytes()].concat()).expect("written");
        let receipts = undo_all(&machine, &directory.store()).expect("undone");
        assert!(receipts[0].complete && receipts[0].notes[0].contains("cut by a crash"), "{receipts:#?}");
        assert_eq!(*machine.world.borrow(), World::default());
    }
}

#[test]
fn a_damaged_journal_undoes_nothing_until_it_is_told_to() {
    let (machine, directory) = (Fake::default(), Directory::new());
    let receipt = apply(&machine, &directory.store(), &everything()).expect("applied");
    let after = machine.world.borrow().clone();
    let mut bytes = std::fs::read(&receipt.journal).expect("a journal");
    let line_13 = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n').nth(11).expect("lines").0 + 60;
    bytes[line_13] ^= 4;
    std::fs::write(&receipt.journal, &bytes).expect("written");
    let why = undo(&machine, &directory.store(), &receipt.id, false).expect_err("damaged").to_string();
    assert!(why.contains("line 13") && why.contains("nothing was undone") && why.contains(POOL), "{why}");
    assert_eq!(*machine.world.borrow(), after, "nothing was done");
    let undone = undo(&machine, &directory.store(), &receipt.id, true).expect("as far as it can be read");
    assert!(undone.notes[0].contains("damaged") && undone.steps.len() == 4, "{undone:#?}");
    assert_eq!(
        machine.world.borrow().numbers[POOL],
        3,
        "the last step added one, of which the journal lost the record"
    );
    assert_eq!(
        std::fs::read(std::path::Path::new(&receipt.journal).with_extension("damaged")).expect("kept"),
        bytes
    );
    assert!(
        undo(&machine, &directory.store(), &receipt.id, true).expect("once more").nothing_left,
        "not twice"
    );
}

#[test]
fn a_damaged_journal_is_said_to_others_and_one_without_a_start_can_be_put_aside() {
    let (machine, directory) = (Fake::default(), Directory::new());
    let receipt = apply(&machine, &directory.store(), &request(vec![add(POOL, 3)])).expect("applied");
    for bytes in [&b""[..], b"nonsense\n", b"\0\0\0"] {
        std::fs::write(&receipt.journal, bytes).expect("written");
        let why =
            undo(&machine, &directory.store(), &receipt.id, false).expect_err("nothing to read").to_string();
        assert!(why.contains("nothing of it can be read"), "{why}");
        let next = apply(&machine, &directory.store(), &request(vec![add(OVERCOMMIT, 1)])).expect("applied");
        assert!(next.notes[0].contains("is damaged"), "{:?}", next.notes);
        undo(&machine, &directory.store(), &next.id, false).expect("undone");
        let why = undo(&machine, &directory.store(), &receipt.id, true).expect_err("put aside").to_string();
        assert!(why.contains(".damaged"), "{why}");
        assert!(!std::path::Path::new(&receipt.journal).exists());
    }
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
    assert_eq!(machine.world.borrow().numbers[RESERVE], 99999, "what somebody else set stays");
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
    // Before memory is compacted somebody else asks for 20 more, and gets them.
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

/// What a loss of power leaves: files and directories of the disk, and of the journal what was waited for.
fn lose_power(machine: &Fake, directory: &Directory) {
    let mut world = machine.world.borrow_mut();
    let files = world.files.clone();
    let mut directories = world.directories.clone();
    // Neither memory nor a cgroup outlives it.
    directories.retain(|one| !one.starts_with("/run/") && one != GROUP);
    *world = World { files, directories, boot: "two".into(), ..World::default() };
    for kept in directory.store().list().expect("a list") {
        let keep = kept
            .parsed
            .records
            .iter()
            .rposition(|record| record.entry.is_acted_upon())
            .map_or(0, |last| last + 1);
        let lines = kept.parsed.records[..keep].iter().map(|record| journal::line(record).expect("a line"));
        std::fs::write(&kept.path, lines.collect::<String>()).expect("written");
    }
}

#[test]
fn a_loss_of_power_at_any_moment_leaves_what_undo_needs() {
    let total = moments(|machine| {
        let directory = Directory::new();
        apply(machine, &directory.store(), &everything()).expect("applied");
        undo_all(machine, &directory.store()).expect("undone");
    });
    let expected = World { boot: "two".into(), ..World::default() };
    for loss in 0..total {
        let (machine, directory) = (Fake::default(), Directory::new());
        machine.left.set(Some(loss));
        let done = apply(&machine, &directory.store(), &everything()).map(drop);
        let _ = done.and_then(|()| undo_all(&machine, &directory.store()).map(drop));
        machine.left.set(None);
        lose_power(&machine, &directory);
        let receipts = undo_all(&machine, &directory.store()).expect("undone");
        assert!(receipts.iter().all(|receipt| receipt.complete), "loss {loss}: {receipts:#?}");
        assert_eq!(*machine.world.borrow(), expected, "loss {loss}");
    }
}

#[test]
fn after_a_restart_of_the_host_only_files_are_undone() {
    let (machine, directory) = (Fake::default(), Directory::new());
    let receipt = apply(&machine, &directory.store(), &everything()).expect("applied");
    {
        let mut world = machine.world.borrow_mut();
        let files = world.files.clone();
        let directories = world.directories.clone();
        *world = World { files, directories, boot: "two".into(), ..World::default() };
        // No cgroup outlives the kernel that has it.
        world.directories.remove(GROUP);
        // What the sysctl.d file gives at the start of the host is not ours to take.
        world.numbers.insert(POOL, 5);
    }
    let undone = undo(&machine, &directory.store(), &receipt.id, false).expect("undone");
    assert!(undone.complete && undone.notes[0].contains("restarted"), "{undone:#?}");
    let expected = World { boot: "two".into(), ..World::default() };
    let mut world = machine.world.borrow().clone();
    assert_eq!(world.numbers.insert(POOL, 2), Some(5));
    assert_eq!(world, expected);
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
