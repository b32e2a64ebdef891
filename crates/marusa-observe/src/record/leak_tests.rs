//! The prepared recordings, each asked at every minute from 2 to 20: the headline names what leaks or nothing.

use super::*;
use crate::record::headline::{self, Headline};
use crate::record::leak_row::Count;
use crate::record::prepared::{END, Jvm, MB, jvms};

fn jvm(name: &str) -> Jvm {
    jvms().into_iter().find(|(it, _)| *it == name).expect("one of the prepared").1
}

fn end_of(jvm: &Jvm) -> u64 {
    jvm.ends.map_or(END, |(second, _)| second) / 60
}

/// The headline at each minute, and what it names.
fn minutes(jvm: &Jvm) -> Vec<(u64, Headline, Vec<What>)> {
    let history = jvm.history();
    let at = |minute: u64| {
        let rows = judge(&history, 0.0, (minute * 60) as f64, false);
        let (headline, named) = headline::of(&rows);
        (minute, headline, named.iter().map(|row| row.what.clone()).collect())
    };
    (2..=end_of(jvm)).map(at).collect()
}

/// Leaks of one area: nothing else is ever named, and from a minute on it has a verdict.
fn assert_names(jvm: &Jvm, what: What, known_by: u64, name: &str) {
    let all = minutes(jvm);
    for (minute, headline, named) in &all {
        let is_right = match headline {
            Headline::Grows => *named == [what.clone()],
            Headline::Early => *named == [what.clone()] && *minute < known_by,
            Headline::NothingYet => *minute < 4,
            _ => false,
        };
        assert!(is_right, "{name}, minute {minute}: {headline:?} {named:?}\n{all:?}");
        assert!(*minute < known_by || *headline == Headline::Grows, "{name}, minute {minute}: {all:?}");
    }
}

fn assert_names_nothing(jvm: &Jvm, name: &str) {
    let all = minutes(jvm);
    let is_quiet = |headline: &Headline| matches!(headline, Headline::NothingYet | Headline::Nothing);
    assert!(all.iter().all(|(_, headline, named)| is_quiet(headline) && named.is_empty()), "{name}: {all:?}");
}

#[test]
fn one_leak_is_named_and_nothing_else_ever_is() {
    let loaders = || What::Area(Area::ClassMetadata);
    for (name, what, known_by) in [
        ("class loaders", loaders(), 10),
        ("class loaders, sparse accounts", loaders(), 16),
        ("class loaders, until it exits", loaders(), 10),
        ("class loaders, until it is killed", loaders(), 10),
        ("freed, accounts without depth", What::Area(Area::MallocFreed), 11),
        ("malloc", What::Area(Area::MallocUnknown), 11),
        ("malloc, sparse accounts", What::Area(Area::MallocUnknown), 17),
        ("malloc, until it exits", What::Area(Area::MallocUnknown), 10),
        ("malloc, next to a few threads", What::Area(Area::MallocUnknown), 12),
    ] {
        assert_names(&jvm(name), what, known_by, name);
    }
}

#[test]
fn where_nothing_leaks_nothing_is_named() {
    for name in [
        "still, accounts without depth",
        "a heap that is touched",
        "garbage in the old generation",
        "garbage, by class",
        "nothing, sparse accounts",
        "nothing, until it exits",
    ] {
        assert_names_nothing(&jvm(name), name);
    }
    let rows = judge(&jvm("a heap that is touched").history(), 0.0, f64::INFINITY, false);
    let gc = rows.iter().find(|row| row.what == What::Area(Area::Gc)).expect("a row");
    assert_eq!(
        (gc.growth.bound_bytes, gc.growth.verdict == Verdict::GrowsWithoutBound),
        (Some(16 * MB), false)
    );
}

#[test]
fn live_bytes_that_grow_are_named_with_the_maximum_of_the_heap() {
    let jvm = jvm("live bytes");
    let all = minutes(&jvm);
    for (minute, headline, named) in &all {
        let is_judged = matches!(headline, Headline::Grows | Headline::Early) && *named == [What::HeapInUse];
        assert!(is_judged || *minute < 6 && *headline == Headline::NothingYet, "{all:?}");
        assert!(*minute < 12 || *headline == Headline::Grows, "{all:?}");
    }
    let rows = judge(&jvm.history(), 0.0, f64::INFINITY, false);
    let heap = rows.iter().find(|row| row.what == What::HeapInUse).expect("a row");
    assert_eq!((heap.growth.verdict, heap.growth.bound_bytes), (Verdict::GrowsToBound, Some(512 * MB)));
}

/// Under the saw of what was promoted and died, and next to a cache that grows in steps, the class whose objects stay is named with
/// the arrays that they hold.
#[test]
fn classes_that_grow_are_named_and_garbage_never_is() {
    for jvm in [
        jvm("sessions, by class"),
        Jvm { heap_used: |second| 40 * MB + second * MB / 5, ..jvm("sessions, by class") },
    ] {
        let history = jvm.history();
        for minute in 4..=20 {
            let rows = judge(&history, 0.0, (minute * 60) as f64, false);
            let heap = rows.iter().find(|row| row.what == What::HeapInUse).expect("a row");
            let names: Vec<&str> = heap.held_by.iter().map(|held| held.name.as_str()).collect();
            let is_right = matches!(names[..], ["[B", "com.app.Session"]);
            assert!(is_right || minute < 14 && names.is_empty(), "minute {minute}: {names:?}");
        }
        let rows = judge(&history, 0.0, f64::INFINITY, true);
        let heap = rows.iter().find(|row| row.what == What::HeapInUse).expect("a row");
        let arrays = &heap.held_by[0];
        assert!((arrays.pace() / MB as f64 - 720.0).abs() < 40.0, "{arrays:?}");
        let session = &heap.held_by[1];
        let grown = session.count_grown.expect("instances");
        assert!(grown.abs_diff((1140 * MB / 5 / 40 / 24) as i64) <= 1, "{session:?}");
        assert!(rows.iter().any(|row| row.what == What::Named(Named::Class, "com.app.Session".to_string())));
    }
    let two = judge(&jvm("sessions, by class").history(), 0.0, 100.0, false);
    assert!(two.iter().all(|row| row.held_by.is_empty()), "two histograms: {two:?}");
    let garbage = jvm("garbage, by class").history();
    for minute in 2..=20 {
        let rows = judge(&garbage, 0.0, (minute * 60) as f64, false);
        assert!(rows.iter().all(|row| row.held_by.is_empty()), "minute {minute}: {rows:?}");
    }
}

#[test]
fn a_leak_is_named_in_what_a_ring_has_left_and_each_account_counts_once() {
    let history = jvm("class loaders, part of a ring").history();
    let accounts = Accounts::of(&history, |_| true);
    let points = accounts.series(&Key::of(&Subject::Area(Area::ClassMetadata), Measure::Resident));
    assert!(points.is_sorted_by(|one, other| one.seconds < other.seconds), "{points:?}");
    // The first account is older than the first moment of what is left; each figure is that of the time at which it was read.
    let first = history.moments[0].steady_ms as f64 / 1e3;
    for point in &points {
        assert_eq!(point.bytes, (20.0 + point.seconds + first) * MB as f64, "{point:?}");
    }
    let (headline, named) = {
        let rows = judge(&history, 0.0, f64::INFINITY, false);
        let (headline, named) = headline::of(&rows);
        (headline, named.iter().map(|row| row.what.clone()).collect::<Vec<_>>())
    };
    assert_eq!((headline, named), (Headline::Grows, vec![What::Area(Area::ClassMetadata)]));
}

#[test]
fn areas_that_grow_with_the_threads_have_one_cause_which_stays_named() {
    let jvm = jvm("threads");
    let all = minutes(&jvm);
    let right = [What::Area(Area::Stack), What::Area(Area::MallocUnknown)];
    for (minute, headline, named) in &all {
        let is_right = match headline {
            Headline::Grows => named[..] == right,
            // Below a third of its rate there is no verdict yet, but the names must stay.
            Headline::Early => named[..] == right && *minute < 14,
            _ => *minute < 4 && named.is_empty(),
        };
        assert!(is_right, "minute {minute}: {headline:?} {named:?}\n{all:?}");
    }
    let rows = judge(&jvm.history(), 0.0, f64::INFINITY, false);
    let (_, named) = headline::of(&rows);
    let with = named[0].with.as_ref().expect("threads");
    assert_eq!(
        (with.count, with.name.as_deref(), with.grown >= 5400),
        (Count::Threads, Some("session-#"), true)
    );
}

#[test]
fn two_leaks_are_both_named() {
    let all = minutes(&jvm("class loaders and threads"));
    let right = [What::Area(Area::ClassMetadata), What::Area(Area::Stack)];
    for (minute, headline, named) in &all {
        let is_right = !named.is_empty() && named.iter().all(|what| right.contains(what));
        assert!(is_right || *minute < 4 && named.is_empty(), "minute {minute}: {headline:?} {named:?}");
        assert!(
            *minute < 12 || (*headline == Headline::Grows && named.len() == 2),
            "minute {minute}: {all:?}"
        );
    }
}

#[test]
fn a_pool_of_threads_that_fills_is_no_leak() {
    let all = minutes(&jvm("a pool of threads"));
    let is_right = |(minute, headline, named): &(u64, Headline, Vec<What>)| match headline {
        Headline::Early => *minute < 8 && *named == [What::Area(Area::Stack)],
        headline => matches!(headline, Headline::NothingYet | Headline::Nothing),
    };
    assert!(all.iter().all(is_right), "{all:?}");
}

/// Live bytes that reach the maximum of the heap; the JVM ends.
#[test]
fn a_heap_that_was_full_at_the_end_is_named() {
    for name in ["a full heap, ended", "a full heap, killed"] {
        let rows = judge(&jvm(name).history(), 0.0, f64::INFINITY, false);
        let (headline, named) = headline::of(&rows);
        let named: Vec<&What> = named.iter().map(|row| &row.what).collect();
        assert_eq!((headline, named), (Headline::Grows, vec![&What::HeapInUse]), "{name}");
        assert!(rows.iter().all(|row| row.growth.needs_minutes.is_none()));
    }
}

#[test]
fn threads_are_named_where_the_jvm_was_killed_early() {
    let rows = judge(&jvm("threads, until it is killed").history(), 0.0, f64::INFINITY, false);
    let (headline, named) = headline::of(&rows);
    assert_eq!((headline, &named[0].what), (Headline::Early, &What::Area(Area::Stack)));
}
