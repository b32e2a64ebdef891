//! Which areas of a JVM grow without bound, by its recording: the figures of each area as they were read (`leak_series`) go to
//! `measure::growth`, with the bound of the area, where it has one.

use super::history::History;
use super::key::{Key, Measure, Named, Subject};
use super::leak_row::{Row, What};
use super::leak_series::{self, Accounts};
use super::since::Since;
use super::{counts, held_by};
use crate::base::Bytes;
use crate::map::Area;
use crate::measure::growth::{self, Growth, Nature, Point, Rate, Verdict};
use std::cmp::Reverse;

/// Parts smaller than this are crumbs.
const PART_BYTES_MIN: u64 = 1 << 20;

/// Areas that cannot exceed their address space unless that grows. In others, resident bytes come and go within address space
/// that says nothing of a bound: arenas of malloc, nodes of metaspace.
const BOUNDED: [Area; 8] = [
    Area::JavaHeap,
    Area::Gc,
    Area::JitCode,
    Area::CdsArchive,
    Area::Stack,
    Area::NativeLibrary,
    Area::Code,
    Area::MappedFile,
];

/// All but the heap, the heap after collections, each area, and with `parts` each part and named subject of a mebibyte and more;
/// what grows comes first, the fastest at the top. `from_seconds`, `to_seconds`: since the JVM's first moment.
pub fn judge(history: &History, from_seconds: f64, to_seconds: f64, parts: bool) -> Vec<Row> {
    let is_within = |at: usize| (from_seconds..=to_seconds).contains(&history.seconds(at));
    let accounts = Accounts::of(history, is_within);
    let process_bytes = leak_series::process_bytes(history, is_within);
    let plain = Nature { process_bytes, ..Nature::default() };
    let mut rows = Vec::new();
    let mut add = |what: What, points: &[Point], nature: Nature| {
        if !points.is_empty() {
            rows.push(Row { what, growth: growth::judge(points, nature), with: None, held_by: Vec::new() });
        }
    };
    add(What::All, &accounts.sums(Some(Area::JavaHeap)), plain);
    let (heap, is_floor) = leak_series::heap_after_collections(history, is_within);
    let bound_bytes = heap_bound(history, &accounts);
    add(What::HeapInUse, &heap, Nature { is_collected: !is_floor, is_floor, bound_bytes, ..plain });
    for area in Area::ALL {
        let subject = Subject::Area(*area);
        let points = accounts.series(&Key::of(&subject, Measure::Resident));
        add(What::Area(*area), &points, nature(history, &accounts, *area, &subject, &points, plain));
    }
    for key in history.keys().iter().filter(|key| parts && key.measure == Measure::Resident) {
        let points = accounts.series(key);
        if points.last().is_none_or(|last| last.bytes < PART_BYTES_MIN as f64) {
            continue;
        }
        match &key.subject {
            Subject::Part(area, part) => {
                let nature = nature(history, &accounts, *area, &key.subject, &points, plain);
                add(What::Part(*area, part.clone()), &points, nature);
            }
            Subject::Named(kind, name) => add(What::Named(*kind, name.clone()), &points, plain),
            _ => {}
        }
    }
    if parts {
        let of_clock = |clock| Accounts::of_clock(history, clock, is_within);
        add_holders(history, &of_clock(Measure::HoldersAt), plain, Named::Holder, &mut rows);
        add_holders(history, &accounts, plain, Named::Loader, &mut rows);
        let nature = held_by::nature_of_classes(history, is_within, plain);
        add_holders(history, &of_clock(Measure::ClassesAt), nature, Named::Class, &mut rows);
    }
    counts::mark(history, &accounts, &mut rows);
    held_by::mark(history, is_within, plain, &mut rows);
    if is_gone(history) {
        // No more of it can be recorded.
        rows.iter_mut().for_each(|row| row.growth.needs_minutes = None);
        if Since::of(history, to_seconds).full_heap.is_some() {
            rows.iter_mut()
                .filter(|row| row.what == What::HeapInUse)
                .for_each(|row| has_filled(&mut row.growth));
        }
    }
    rows.sort_by(|one, other| {
        let place =
            |row: &Row| (order(row.growth.verdict), Reverse(row.growth.level_bytes), row.what.clone());
        let grows = order(one.growth.verdict) == order(other.growth.verdict) && order(one.growth.verdict) < 2;
        let faster = other.pace().total_cmp(&one.pace());
        if grows { faster.then_with(|| place(one).cmp(&place(other))) } else { place(one).cmp(&place(other)) }
    });
    rows
}

/// Holders, groups of class loaders or classes of a mebibyte and more, by the accounts that have them.
fn add_holders(history: &History, accounts: &Accounts, plain: Nature, kind: Named, rows: &mut Vec<Row>) {
    let keys = history.keys().iter();
    for key in keys.filter(|key| key.measure == kind.size() && key.subject.is_named(kind)) {
        let points = held_by::series(accounts, &key.subject, kind.size());
        if points.last().is_some_and(|last| last.bytes >= PART_BYTES_MIN as f64) {
            let growth = growth::judge(&points, plain);
            let what = What::Named(kind, key.subject.name().unwrap_or_default());
            rows.push(Row { what, growth, with: None, held_by: Vec::new() });
        }
    }
}

/// The heap was full when the JVM ended: where its live bytes had grown, they grew to their bound.
fn has_filled(growth: &mut Growth) {
    if growth.is_small || growth.bound_bytes.is_none() || growth.grown_bytes <= 0 {
        return;
    }
    (growth.verdict, growth.caveat) = (Verdict::GrowsToBound, None);
    if growth.rate.is_none_or(|rate| rate.bytes_per_hour <= 0.0) {
        let pace = growth.grown_bytes as f64 / growth.grown_seconds.max(1.0) * 3600.0;
        growth.rate =
            Some(Rate { bytes_per_hour: pace, low_bytes_per_hour: pace, high_bytes_per_hour: pace });
    }
}

fn is_gone(history: &History) -> bool {
    history.ending.is_some_and(|(_, ending)| ending.is_gone())
}

fn nature(
    history: &History,
    accounts: &Accounts,
    area: Area,
    subject: &Subject,
    points: &[Point],
    plain: Nature,
) -> Nature {
    let bound_bytes = match area {
        Area::JavaHeap if *subject == Subject::Area(area) => heap_bound(history, accounts),
        area if BOUNDED.contains(&area) => address_space(accounts, subject, points),
        _ => None,
    };
    // What is resident of a heap grows to its maximum and mostly stays there: only what falls has a floor.
    Nature { is_collected: area == Area::JavaHeap, bound_bytes, ..plain }
}

fn heap_bound(history: &History, accounts: &Accounts) -> Option<Bytes> {
    let reserved = || accounts.series(&Key::of(&Subject::Area(Area::JavaHeap), Measure::Reserved));
    history.facts.max_heap_bytes.or_else(|| reserved().last().map(|point| point.bytes as Bytes))
}

/// The address space that what is resident lies in, where that did not grow with it.
fn address_space(accounts: &Accounts, subject: &Subject, points: &[Point]) -> Option<Bytes> {
    let reserved = accounts.series(&Key::of(subject, Measure::Reserved));
    let grown = |points: &[Point]| Some(points.last()?.bytes - points.first()?.bytes);
    let (space, bytes) = (grown(&reserved)?, grown(points)?.max(0.0));
    let last = reserved.last()?.bytes;
    let is_fixed = space <= 0.0 || space < bytes / 2.0;
    (is_fixed && last >= points.last()?.bytes).then_some(last as Bytes)
}

fn order(verdict: Verdict) -> u8 {
    match verdict {
        Verdict::GrowsWithoutBound => 0,
        Verdict::GrowsToBound => 1,
        Verdict::CannotTellYet => 2,
        Verdict::LevelsOff => 3,
    }
}

#[cfg(test)]
#[path = "leak_tests.rs"]
mod minutes;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Moment;
    use crate::record::reader;
    use crate::record::writer::Ending;
    use crate::record::writer::{JvmFacts, Scope, Session, Writer};

    const MB: u64 = 1 << 20;

    /// An hour, an account each ten seconds: malloc-then-freed grows by a mebibyte a minute, class metadata does not.
    fn hour() -> History {
        let mut writer = Writer::new(&Session::default());
        let jvm = writer.jvm(JvmFacts::default());
        for second in (0..3600).step_by(10) {
            let steady_ms = second * 1000;
            let area = |area| Key::of(&Subject::Area(area), Measure::Resident);
            let part = Key::of(&Subject::Part(Area::MallocFreed, "unsorted".to_string()), Measure::Resident);
            let freed = 100 * MB + second * MB / 60 + second * 7919 % 65_536;
            writer.sample(
                jvm,
                Moment { steady_ms, wall_ms: steady_ms as i64 },
                Scope::Account,
                &[
                    (Key::process(Measure::AccountAt), Some(steady_ms)),
                    (area(Area::MallocFreed), Some(freed)),
                    (part, Some(freed)),
                    (area(Area::ClassMetadata), Some(50 * MB)),
                ],
            );
        }
        reader::read(&[&writer.take()]).expect("a recording").jvms.remove(0)
    }

    #[test]
    fn what_grows_comes_first() {
        let rows = judge(&hour(), 0.0, f64::INFINITY, true);
        let grown: Vec<(What, Verdict)> =
            rows.iter().map(|row| (row.what.clone(), row.growth.verdict)).collect();
        assert_eq!(
            grown,
            [
                (What::All, Verdict::GrowsWithoutBound),
                (What::Area(Area::MallocFreed), Verdict::GrowsWithoutBound),
                (What::Part(Area::MallocFreed, "unsorted".to_string()), Verdict::GrowsWithoutBound),
                (What::Area(Area::ClassMetadata), Verdict::LevelsOff),
            ]
        );
        let rate = rows[0].growth.rate.expect("a rate").bytes_per_hour / MB as f64;
        assert!((rate - 60.0).abs() < 1.0, "{rate}");
    }

    #[test]
    fn of_one_that_is_gone_no_more_minutes_are_asked_for() {
        let mut history = hour();
        let asks = |history: &History| {
            judge(history, 0.0, 100.0, false).iter().any(|row| row.growth.needs_minutes.is_some())
        };
        assert!(asks(&history));
        history.ending = Some((Moment::default(), Ending::NotWatched));
        assert!(asks(&history));
        history.ending = Some((Moment::default(), Ending::Ended));
        assert!(!asks(&history));
    }

    #[test]
    fn a_short_part_has_no_verdict() {
        let rows = judge(&hour(), 0.0, 40.0, false);
        assert!(rows.iter().all(|row| row.growth.verdict == Verdict::CannotTellYet), "{rows:?}");
        assert!(judge(&hour(), 1e9, 2e9, false).is_empty());
    }
}
