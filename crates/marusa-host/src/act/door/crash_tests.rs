//! What is left by a run that ends at any moment, by a loss of power and by a damaged journal: undo finds all of it.

use super::super::fake::{Fake, OVERCOMMIT, POOL, World};
use super::super::*;
use super::{Directory, GROUP, add, everything, request, undo_all};
use std::path::PathBuf;

/// How many moments something takes.
fn moments(work: impl FnOnce(&Fake)) -> u64 {
    let machine = Fake::default();
    work(&machine);
    machine.done.get()
}

/// A moment at which some of the steps are made and others are not.
pub(super) fn midway() -> u64 {
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
fn a_damaged_journal_undoes_nothing_without_force() {
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
