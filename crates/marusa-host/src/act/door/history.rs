//! What a journal says of each step: how far it came, and how far it was undone.

use super::journal::{self, Coupled, Entry, Goal, How, Record, Seen};
use super::step::Change;

/// One write and what was read after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Round {
    pub before: Seen,
    pub goal: Goal,
    pub coupled: Option<Coupled>,
    pub after: Option<(Seen, Option<Coupled>)>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    pub rounds: Vec<Round>,
    /// The step came to its end.
    pub made: bool,
    /// It was so before: this was found.
    pub already: Option<Seen>,
    pub notes: Vec<String>,
    pub back: Option<Round>,
    pub undone: Option<How>,
    /// When the last of it was read.
    pub at_ns: u64,
}

impl Round {
    pub fn value_before(&self) -> u64 {
        self.before.value().unwrap_or(0)
    }
    pub fn value_after(&self) -> Option<u64> {
        self.after.as_ref()?.0.value()
    }
    pub fn value_aimed(&self) -> u64 {
        match self.goal {
            Goal::Number { value } => value.max(self.value_before()),
            _ => self.value_before(),
        }
    }
    /// What came by this write, as far as it is known.
    pub fn gained(&self) -> u64 {
        let room = self.value_aimed() - self.value_before();
        self.value_after().map_or(0, |after| after.saturating_sub(self.value_before()).min(room))
    }
}

impl History {
    /// Nothing is left to take back.
    pub fn is_over(&self) -> bool {
        self.rounds.is_empty() || matches!(self.undone, Some(How::Restored | How::NotMade | How::Gone))
    }
}

/// By step.
pub fn of(records: &[Record], steps: usize) -> Vec<History> {
    let mut all = vec![History::default(); steps];
    for record in records {
        let Some(history) = record.entry.step().and_then(|step| all.get_mut(step)) else { continue };
        history.at_ns = record.at_ns;
        match record.entry.clone() {
            Entry::Intent { before, goal, coupled, .. } => {
                history.rounds.push(Round { before, goal, coupled, after: None });
            }
            Entry::ReadBack { now, coupled, .. } => {
                if let Some(round) = history.rounds.last_mut() {
                    round.after = Some((now, coupled));
                }
            }
            Entry::Made { already, notes, .. } => {
                (history.made, history.already, history.notes) = (true, already, notes);
            }
            Entry::UndoIntent { before, goal, coupled, .. } => {
                history.back = Some(Round { before, goal, coupled, after: None });
            }
            Entry::Undone { how, .. } => history.undone = Some(how),
            _ => {}
        }
    }
    all
}

/// By how much another run of ours has moved the number in a file since a moment.
pub fn moved(records: &[Record], file: &str, since_ns: u64) -> i128 {
    let Some(begin) = journal::begin(records) else { return 0 };
    let change = |index: usize| begin.steps.get(index).map(|step| &step.change);
    let ours = |index: usize| matches!(change(index), Some(Change::Add { file: one, .. }) if one == file);
    let mut sum = 0;
    // What was last meant: from, to.
    let mut open: Option<(u64, u64)> = None;
    let since = records.iter().filter(|record| record.at_ns > since_ns);
    for record in since.filter(|record| record.entry.step().is_some_and(ours)) {
        match &record.entry {
            Entry::Intent { before, goal, .. } => open = range(before, goal),
            Entry::UndoIntent { before, goal, .. } => {
                // A write that a crash left without its reading.
                if let (Some((from, to)), Some(now)) = (open, before.value()) {
                    sum += if (from..=to).contains(&now) { i128::from(now) - i128::from(from) } else { 0 };
                }
                open = range(before, goal);
            }
            Entry::ReadBack { now, .. } | Entry::Undone { now: Some(now), .. } => {
                if let (Some((from, _)), Some(now)) = (open.take(), now.value()) {
                    sum += i128::from(now) - i128::from(from);
                }
            }
            _ => {}
        }
    }
    sum
}

fn range(before: &Seen, goal: &Goal) -> Option<(u64, u64)> {
    match (before.value(), goal) {
        (Some(from), Goal::Number { value }) => Some((from, *value)),
        _ => None,
    }
}
