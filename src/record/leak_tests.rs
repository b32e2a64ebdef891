//! Recordings of twenty minutes, each asked at every minute from 2 to 20: the headline names what leaks or nothing.

use super::*;
use crate::record::Moment;
use crate::record::headline::Headline;
use crate::record::reader;
use crate::record::writer::{JvmFacts, Scope, Session, Writer};

const MB: u64 = 1 << 20;
const END: u64 = 20 * 60;

/// A JVM as `record --all` sees it: a cheap look each second, an account about each 16 seconds that is read seconds after its look.
struct Jvm {
    areas: fn(Area, u64) -> u64,
    heap_used: fn(u64) -> u64,
    young_every: u64,
    old_every: u64,
    /// Every third account could not walk malloc.
    loses_depth: bool,
    /// The file is cut here, and its first part is dropped, as of a ring.
    cut_at: Option<u64>,
}

impl Jvm {
    fn with(areas: fn(Area, u64) -> u64) -> Jvm {
        Jvm {
            areas,
            heap_used: |_| 20 * MB,
            young_every: 7,
            old_every: 10_000,
            loses_depth: false,
            cut_at: None,
        }
    }

    fn figures(&self, second: u64) -> Vec<(Key, Option<u64>)> {
        let collections = |every: u64| second / every;
        // The VM brings the figure up to date at collections.
        let last = second - second % self.young_every.min(self.old_every);
        vec![
            (
                Key::process(Measure::KernelResident),
                Some(Area::ALL.iter().map(|area| (self.areas)(*area, second)).sum()),
            ),
            (Key::process(Measure::HeapUsed), Some((self.heap_used)(last))),
            (
                Key::process(Measure::Collections),
                Some(collections(self.young_every) + collections(self.old_every)),
            ),
            (Key::process(Measure::OldCollections), Some(collections(self.old_every))),
        ]
    }

    fn account(&self, number: u64, read_at: u64) -> Vec<(Key, Option<u64>)> {
        let is_shallow = self.loses_depth && number % 3 == 1;
        let of = |area: Area| match area {
            Area::MallocFreed if is_shallow => None,
            Area::JvmWork if is_shallow => {
                Some((self.areas)(area, read_at) + (self.areas)(Area::MallocFreed, read_at))
            }
            area => Some((self.areas)(area, read_at)),
        };
        let space = |area: Area| if area == Area::Gc { Some(16 * MB) } else { of(area) };
        let mut figures = vec![(Key::process(Measure::AccountAt), Some(read_at * 1000))];
        for area in Area::ALL {
            let subject = Subject::Area(*area);
            figures.push((Key::of(&subject, Measure::Resident), of(*area)));
            figures.push((Key::of(&subject, Measure::Reserved), space(*area)));
        }
        figures
    }

    fn history(&self) -> History {
        let session = |segment| Session { recording: "one".to_string(), segment, ..Session::default() };
        let mut writer = Writer::new(&session(0));
        let facts = JvmFacts { max_heap_bytes: Some(512 * MB), ..JvmFacts::default() };
        let jvm = writer.jvm(facts);
        let mut random = fastrand::Rng::with_seed(7);
        let (mut due, mut number) = (0, 0);
        for second in 0..=END {
            let at = Moment { steady_ms: second * 1000, wall_ms: (second * 1000) as i64 };
            let mut figures = self.figures(second);
            let mut scope = Scope::Glance;
            if second >= due {
                figures.extend(self.account(number, second + random.u64(0..6)));
                scope = Scope::Account;
                number += 1;
                due = second + random.u64(10..24);
            }
            writer.sample(jvm, at, scope, &figures);
            if self.cut_at == Some(second) {
                writer.take();
                writer.next_segment(&session(1));
            }
        }
        reader::read(&[&writer.take()]).expect("a recording").jvms.remove(0)
    }
}

/// The headline at each minute, and what it names.
fn minutes(jvm: &Jvm) -> Vec<(u64, Headline, Vec<What>)> {
    let history = jvm.history();
    let at = |minute: u64| {
        let rows = judge(&history, 0.0, (minute * 60) as f64, false);
        let (headline, named) = headline::of(&rows);
        (minute, headline, named.iter().map(|row| row.what.clone()).collect())
    };
    (2..=20).map(at).collect()
}

/// Leaks of one area: nothing else is ever named, and from a minute on it has a verdict.
fn assert_names(jvm: &Jvm, what: What, known_by: u64) {
    let all = minutes(jvm);
    for (minute, headline, named) in &all {
        let is_right = match headline {
            Headline::Grows => *named == [what.clone()],
            Headline::Early => *named == [what.clone()] && *minute < known_by,
            Headline::NothingYet => *minute < 4,
            _ => false,
        };
        assert!(is_right, "minute {minute}: {headline:?} {named:?}\n{all:?}");
        assert!(*minute < known_by || *headline == Headline::Grows, "minute {minute}: {all:?}");
    }
}

fn assert_names_nothing(jvm: &Jvm) {
    let all = minutes(jvm);
    let is_quiet = |headline: &Headline| matches!(headline, Headline::NothingYet | Headline::Nothing);
    assert!(all.iter().all(|(_, headline, named)| is_quiet(headline) && named.is_empty()), "{all:?}");
}

fn quiet(area: Area, _: u64) -> u64 {
    match area {
        Area::JavaHeap => 120 * MB,
        Area::MallocFreed => 6 * MB,
        _ => 10 * MB,
    }
}

/// The case of issue 16: 767 MiB in 12 minutes, while the heap expands.
fn class_loaders(area: Area, second: u64) -> u64 {
    match area {
        Area::ClassMetadata => 20 * MB + second * MB,
        Area::JavaHeap => 64 * MB + (second / 30 * 5 * MB).min(400 * MB),
        Area::JvmWork => 12 * MB + second * MB / 40,
        area => quiet(area, second),
    }
}

#[test]
fn a_class_loader_leak_is_named_and_the_heap_never() {
    let heap_used = |second: u64| 20 * MB + second * MB / 10;
    assert_names(&Jvm { heap_used, ..Jvm::with(class_loaders) }, What::Area(Area::ClassMetadata), 10);
}

#[test]
fn accounts_that_lost_their_depth_do_not_move_areas() {
    let freed = |area: Area, second: u64| match area {
        Area::MallocFreed => 40 * MB + second * MB / 2,
        area => quiet(area, second),
    };
    let still = |area: Area, second: u64| match area {
        Area::MallocFreed => 140 * MB,
        area => quiet(area, second),
    };
    assert_names(&Jvm { loses_depth: true, ..Jvm::with(freed) }, What::Area(Area::MallocFreed), 11);
    assert_names_nothing(&Jvm { loses_depth: true, ..Jvm::with(still) });
}

#[test]
fn a_heap_of_fixed_size_and_its_tables_grow_only_to_their_bound() {
    let touched = |area: Area, second: u64| match area {
        Area::JavaHeap => 60 * MB + second * MB / 4,
        Area::Gc => MB + second * 8 * MB / END,
        area => quiet(area, second),
    };
    assert_names_nothing(&Jvm::with(touched));
    let rows = judge(&Jvm::with(touched).history(), 0.0, f64::INFINITY, false);
    let gc = rows.iter().find(|row| row.what == What::Area(Area::Gc)).expect("a row");
    assert_eq!(
        (gc.growth.bound_bytes, gc.growth.verdict == Verdict::GrowsWithoutBound),
        (Some(16 * MB), false)
    );
}

#[test]
fn live_bytes_that_grow_are_named_with_the_maximum_of_the_heap() {
    // Between two whole collections there is a tooth of what young collections let through.
    let heap_used = |second: u64| 40 * MB + second * MB / 5 + second % 40 * MB / 2;
    let jvm = Jvm { heap_used, old_every: 40, ..Jvm::with(quiet) };
    let all = minutes(&jvm);
    for (minute, headline, named) in &all {
        let is_told = matches!(headline, Headline::Grows | Headline::Early) && *named == [What::HeapInUse];
        assert!(is_told || *minute < 6 && *headline == Headline::NothingYet, "{all:?}");
        assert!(*minute < 12 || *headline == Headline::Grows, "{all:?}");
    }
    let rows = judge(&jvm.history(), 0.0, f64::INFINITY, false);
    let heap = rows.iter().find(|row| row.what == What::HeapInUse).expect("a row");
    assert_eq!((heap.growth.verdict, heap.growth.bound_bytes), (Verdict::GrowsToBound, Some(512 * MB)));
}

#[test]
fn garbage_in_the_old_generation_is_no_leak() {
    let heap_used = |second: u64| 40 * MB + second % 140 * MB / 2;
    assert_names_nothing(&Jvm { heap_used, old_every: 140, ..Jvm::with(quiet) });
}

#[test]
fn a_leak_is_named_in_what_a_ring_has_left_and_each_account_counts_once() {
    let history = Jvm { cut_at: Some(400), ..Jvm::with(class_loaders) }.history();
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
