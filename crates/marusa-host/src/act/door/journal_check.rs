//! What a journal may make `undo` write. A journal is a file like any other, and `undo` writes as root what stands in it:
//! it may name only what a plan may name, restore only values that the table of settings has, and of a sum take back no more
//! than its own step gave. Whoever could write a journal gains nothing that a plan could not do.

use super::journal::{self, Coupled, Entry, Goal, Record, Seen};
use super::machine::Machine;
use super::step::{Change, Step};
use super::{allowed, look, number, room};
use crate::base::{Refused, refuse};

/// `memory_kib`: of the host, where it is known.
pub fn check(records: &[Record], state_directory: &str, memory_kib: Option<u64>) -> Result<(), Refused> {
    let Some(begin) = journal::begin(records) else { return Ok(()) };
    begin.steps.iter().try_for_each(|step| allowed::check(&step.change, state_directory))?;
    for record in records {
        let entry = |step: &usize| begin.steps.get(*step).ok_or(format!("record {} has no step", record.n));
        match &record.entry {
            Entry::Intent { step, before, goal, coupled }
            | Entry::UndoIntent { step, before, goal, coupled } => {
                let step = entry(step)?;
                let fits = if matches!(record.entry, Entry::Intent { .. }) { forth } else { back };
                fits(step, before, goal).map_err(|why| format!("record {}: {why}", record.n))?;
                coupled_fits(step, coupled.as_ref(), memory_kib)?;
            }
            Entry::ReadBack { step, coupled, .. } => {
                coupled_fits(entry(step)?, coupled.as_ref(), memory_kib)?
            }
            _ => {}
        }
    }
    Ok(())
}

pub fn memory_kib(machine: &dyn Machine) -> Option<u64> {
    number::meminfo(machine, "MemTotal")
}

/// A write that `apply` made: what was before it is what undo writes.
fn forth(step: &Step, before: &Seen, goal: &Goal) -> Result<(), Refused> {
    let place = step.change.place();
    let fits = match (&step.change, before, goal) {
        (Change::Add { by, .. }, Seen::Number { value: from, .. }, Goal::Number { value: to }) => {
            to.checked_sub(*from).is_some_and(|more| more <= *by)
        }
        (Change::Set { value, .. }, Seen::Number { .. }, Goal::Number { value: to }) => {
            look::was_before(&step.change, before)?;
            to == value
        }
        (Change::Choose { word, .. }, Seen::Word { .. }, Goal::Word { word: to }) => {
            look::was_before(&step.change, before)?;
            to == word
        }
        (Change::Add { .. } | Change::Set { .. } | Change::Choose { .. }, ..) => false,
        _ => *goal == Goal::There,
    };
    if !fits {
        refuse!("what it says of {place} is not what its step does");
    }
    Ok(())
}

/// A write that an `undo` began, which the next one goes on with.
fn back(step: &Step, before: &Seen, goal: &Goal) -> Result<(), Refused> {
    let place = step.change.place();
    let fits = match (&step.change, before, goal) {
        (Change::Add { by, .. }, Seen::Number { value: from, .. }, Goal::Number { value: to }) => {
            from.checked_sub(*to).is_some_and(|less| less <= *by)
        }
        (Change::Set { .. }, _, Goal::Number { value }) => {
            look::was_before(&step.change, &Seen::Number { text: String::new(), value: *value })?;
            true
        }
        (Change::Choose { .. }, _, Goal::Word { word }) => {
            look::was_before(&step.change, &Seen::Word { text: String::new(), word: word.clone() })?;
            true
        }
        (Change::Add { .. } | Change::Set { .. } | Change::Choose { .. }, ..) => false,
        _ => *goal == Goal::Absent,
    };
    if !fits {
        refuse!("what it says of {place} is not what undoing its step does");
    }
    Ok(())
}

/// The number that the kernel moved along, which undo puts back too.
fn coupled_fits(step: &Step, coupled: Option<&Coupled>, memory_kib: Option<u64>) -> Result<(), Refused> {
    let Some(coupled) = coupled else { return Ok(()) };
    let place = step.change.place();
    let is_choice = matches!(step.change, Change::Choose { .. });
    if !is_choice || allowed::moves_with(place) != Some(coupled.file.as_str()) {
        refuse!("{:?} does not move with {place}", coupled.file);
    }
    let digits = coupled.text.strip_suffix('\n').unwrap_or(&coupled.text);
    let kib = digits.parse().ok().filter(|_| digits.bytes().all(|one| one.is_ascii_digit()));
    let kib = kib.ok_or_else(|| format!("{:?} is not a number of {}", coupled.text, coupled.file))?;
    room::reserve_fits(kib, memory_kib)
}

#[cfg(test)]
mod tests {
    use super::super::journal::{Begin, PlanMark, SCHEMA};
    use super::*;

    const POOL: &str = "/proc/sys/vm/nr_hugepages";
    const COUNT: &str = "/proc/sys/vm/max_map_count";
    const ENABLED: &str = "/sys/kernel/mm/transparent_hugepage/enabled";
    const RESERVE: &str = "/proc/sys/vm/min_free_kbytes";

    fn verdict(change: Change, entry: Entry) -> Result<(), Refused> {
        let step = Step { what: "w".into(), why: "y".into(), risk: None, change };
        let begin = Begin {
            schema: SCHEMA.into(),
            id: "x".into(),
            since: "t".into(),
            made_by: "v".into(),
            boot: "b".into(),
            plan: PlanMark::of("p.json", b"{}"),
            persist: false,
            steps: vec![step],
        };
        let record = |n, entry| Record { n, at: "t".into(), at_ns: 7, entry };
        check(&[record(0, Entry::Begin(Box::new(begin))), record(1, entry)], "/state", Some(8 << 20))
    }
    fn is(value: u64) -> Seen {
        Seen::Number { text: format!("{value}\n"), value }
    }
    fn word(word: &str) -> Seen {
        Seen::Word { text: String::new(), word: word.into() }
    }
    fn to(value: u64) -> Goal {
        Goal::Number { value }
    }
    fn add() -> Change {
        Change::Add { file: POOL.into(), by: 5 }
    }
    fn choose() -> Change {
        Change::Choose { file: ENABLED.into(), word: "madvise".into() }
    }
    fn set() -> Change {
        Change::Set { file: COUNT.into(), value: 262_144 }
    }
    fn intent(before: Seen, goal: Goal, coupled: Option<(&str, &str)>) -> Entry {
        let coupled = coupled.map(|(file, text)| Coupled { file: file.into(), text: text.into() });
        Entry::Intent { step: 0, before, goal, coupled }
    }
    fn undo(before: Seen, goal: Goal) -> Entry {
        Entry::UndoIntent { step: 0, before, goal, coupled: None }
    }

    #[test]
    fn what_a_run_writes_is_accepted() {
        let chosen = || Goal::Word { word: "madvise".into() };
        for (change, entry) in [
            (add(), intent(is(2), to(7), None)),
            (add(), undo(is(7), to(2))),
            (set(), intent(is(65_530), to(262_144), None)),
            (set(), undo(is(262_144), to(65_530))),
            (choose(), intent(word("never"), chosen(), Some((RESERVE, "67584\n")))),
            (choose(), undo(word("madvise"), Goal::Word { word: "never".into() })),
        ] {
            assert_eq!(verdict(change.clone(), entry.clone()), Ok(()), "{change:?} {entry:?}");
        }
    }

    #[test]
    fn what_no_run_writes_is_refused() {
        let chosen = || Goal::Word { word: "madvise".into() };
        for (change, entry) in [
            // More than the step gave, or a pool that grows by an undo.
            (add(), intent(is(2), to(1_000), None)),
            (add(), intent(is(9), to(2), None)),
            (add(), undo(is(7), to(0))),
            (add(), undo(is(0), to(1 << 20))),
            (add(), intent(Seen::Absent, Goal::There, None)),
            // What was there before is what undo writes.
            (set(), intent(is(1), to(262_144), None)),
            (set(), undo(is(262_144), to(1))),
            (set(), intent(is(65_530), to(70_000), None)),
            (choose(), intent(word("always\rx"), chosen(), None)),
            (choose(), intent(word("force"), chosen(), None)),
            (choose(), undo(word("madvise"), Goal::Word { word: "x".into() })),
            // The coupled number.
            (choose(), intent(word("never"), chosen(), Some((RESERVE, "8000000\n")))),
            (choose(), intent(word("never"), chosen(), Some((RESERVE, "1\n")))),
            (choose(), intent(word("never"), chosen(), Some((RESERVE, "+67584\n")))),
            (choose(), intent(word("never"), chosen(), Some((RESERVE, "67584\n1")))),
            (choose(), intent(word("never"), chosen(), Some(("/proc/sys/vm/overcommit_memory", "2")))),
            (set(), intent(is(65_530), to(262_144), Some((RESERVE, "67584\n")))),
        ] {
            assert!(verdict(change.clone(), entry.clone()).is_err(), "{change:?} {entry:?}");
        }
        let bad = Change::Set { file: COUNT.into(), value: 1 };
        assert!(verdict(bad, intent(is(65_530), to(1), None)).is_err());
    }
}
