//! Mappings that changed while a process was read. A busy JVM maps and unmaps all the time, mostly what holds next to nothing: that
//! is a gap only where it holds enough to change the account.

use crate::base::{Bytes, Gap, Range, Why, holding};
use crate::os::maps::Mapping;
use crate::os::target::OsView;
use std::collections::HashSet;

/// A thousandth of the resident bytes changes no figure that people read.
const SHARE: u64 = 1000;

/// `grown`: what the process grew or shrank by while it was read, which is what new mappings hold.
pub fn gap(before: &OsView, now: &[Mapping], grown: Bytes) -> Option<Gap> {
    fn key(mapping: &Mapping) -> (Range, String) {
        (mapping.range, mapping.rights.text())
    }
    let (then, there): (HashSet<_>, HashSet<_>) =
        (before.mappings.iter().map(key).collect(), now.iter().map(key).collect());
    let lost: Vec<Range> =
        before.mappings.iter().filter(|it| !there.contains(&key(it))).map(|it| it.range).collect();
    let new = now.iter().filter(|it| !then.contains(&key(it))).count();
    let is_lost = |range: Range| holding(&lost, range.start).is_some_and(|mapping| mapping.covers(range));
    let (mut all, mut changed) = (0, 0);
    for run in before.pages.iter().flatten().filter(|run| run.is_present()) {
        all += run.range.bytes();
        changed += if is_lost(run.range) { run.range.bytes() } else { 0 };
    }
    let count = new.max(lost.len());
    let matters = count > 0 && changed.max(grown).saturating_mul(SHARE) > all;
    let what = || format!("{count} of {} mappings changed while they were read", now.len());
    matters.then(|| Gap::new(what(), Why::Torn).hint("the account is of the first reading of the mappings"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::os::process::Process;
    use crate::snapshot::{Want, take};

    #[test]
    fn only_what_holds_memory_matters() {
        let me = Process::open(std::process::id() as i32).expect("it runs");
        let view = take::take_once(&me, Want::default()).expect("our own").os;
        let present = |mapping: &Mapping| -> Bytes {
            let runs = view.pages.iter().flatten().filter(|run| run.is_present());
            runs.filter(|run| mapping.range.covers(run.range)).map(|run| run.range.bytes()).sum()
        };
        let without = |range: Range| -> Vec<Mapping> {
            view.mappings.iter().filter(|mapping| mapping.range != range).cloned().collect()
        };
        let all: Bytes = view.mappings.iter().map(present).sum();
        let empty = view.mappings.iter().find(|mapping| present(mapping) == 0).expect("a guard page");
        let full = view.mappings.iter().max_by_key(|mapping| present(mapping)).expect("mappings");
        assert_eq!(gap(&view, &view.mappings, all), None, "nothing changed");
        assert_eq!(gap(&view, &without(empty.range), all / 1001), None);
        assert!(gap(&view, &without(empty.range), all / 900).is_some(), "it grew");
        let gap = gap(&view, &without(full.range), 0).expect("much of it is gone");
        assert!(gap.what.starts_with("1 of "), "{gap}");
    }
}
