//! Which areas of a JVM grow without bound, by its recording: each area's figures, where it was read anew, go to `measure::growth`.

use super::history::History;
use super::key::{Key, Measure, Subject};
use super::writer::Ending;
use crate::map::Area;
use crate::measure::growth::{self, Growth, Nature, Point, Verdict};

/// What is looked at.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum What {
    /// All but the Java heap, which has a bound of its own.
    All,
    /// What the last collection left.
    HeapInUse,
    Area(Area),
    Part(Area, String),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    pub what: What,
    pub growth: Growth,
}

/// Parts smaller than this are crumbs.
const PART_BYTES_MIN: u64 = 1 << 20;

/// All but the heap, the heap after collections, each area, and with `parts` each part of a mebibyte and more; what grows
/// first, and among alike what is larger. `from_seconds`, `to_seconds`: since the JVM's first moment.
pub fn judge(history: &History, from_seconds: f64, to_seconds: f64, parts: bool) -> Vec<Row> {
    let is_within = |at: &usize| (from_seconds..=to_seconds).contains(&history.seconds(*at));
    let accounts: Vec<usize> = history.accounts().into_iter().filter(is_within).collect();
    let all: Vec<usize> = (0..history.len()).filter(is_within).collect();
    let of = |key: &Key, moments: &[usize], nature: Nature| {
        let series = history.series(key);
        judged(history, moments, nature, |at| series[at])
    };
    let mut rows = Vec::new();
    let mut add = |what: What, growth: Option<Growth>| rows.extend(growth.map(|growth| Row { what, growth }));
    let beside = beside_heap(history);
    add(What::All, judged(history, &accounts, Nature::default(), |at| beside[at]));
    let collected = Nature { is_collected: true };
    add(What::HeapInUse, of(&Key::process(Measure::HeapUsed), &collections(history, &all), collected));
    for area in Area::ALL {
        let key = Key::of(&Subject::Area(*area), Measure::Resident);
        add(What::Area(*area), of(&key, &accounts, nature(*area)));
    }
    for key in history.keys().iter().filter(|key| parts && key.measure == Measure::Resident) {
        let Subject::Part(area, part) = &key.subject else { continue };
        let growth = of(key, &accounts, nature(*area));
        add(What::Part(*area, part.clone()), growth.filter(|growth| growth.level_bytes >= PART_BYTES_MIN));
    }
    if is_gone(history) {
        // Nobody can record more of it.
        rows.iter_mut().for_each(|row| row.growth.needs_minutes = None);
    }
    rows.sort_by_key(|row| {
        (order(row.growth.verdict), std::cmp::Reverse(row.growth.level_bytes), row.what.clone())
    });
    rows
}

fn is_gone(history: &History) -> bool {
    matches!(history.ending, Some((_, Ending::Ended | Ending::KilledForMemory)))
}

/// What is resident of a heap grows to its maximum and mostly stays there: only what falls has a floor.
fn nature(area: Area) -> Nature {
    Nature { is_collected: area == Area::JavaHeap }
}

fn judged(
    history: &History,
    moments: &[usize],
    nature: Nature,
    of: impl Fn(usize) -> Option<u64>,
) -> Option<Growth> {
    let point = |at: &usize| Some(Point { seconds: history.seconds(*at), bytes: of(*at)? as f64 });
    let points: Vec<Point> = moments.iter().filter_map(point).collect();
    (!points.is_empty()).then(|| growth::judge(&points, nature))
}

/// Resident bytes of all areas but the Java heap, at each moment that has an account.
fn beside_heap(history: &History) -> Vec<Option<u64>> {
    let mut sums: Vec<Option<u64>> = vec![None; history.len()];
    for area in Area::ALL.iter().filter(|area| **area != Area::JavaHeap) {
        let series = history.series(&Key::of(&Subject::Area(*area), Measure::Resident));
        for (sum, bytes) in sums.iter_mut().zip(series) {
            *sum = match (*sum, bytes) {
                (Some(sum), Some(bytes)) => Some(sum.saturating_add(bytes)),
                (sum, bytes) => sum.or(bytes),
            };
        }
    }
    sums
}

fn order(verdict: Verdict) -> u8 {
    match verdict {
        Verdict::GrowsWithoutBound => 0,
        Verdict::CannotTellYet => 1,
        Verdict::LevelsOff => 2,
    }
}

/// The moments right after a collection: only then the VM's figure is new. All moments, where it does not count them.
fn collections(history: &History, within: &[usize]) -> Vec<usize> {
    let counted = history.changes(&Key::process(Measure::Collections));
    if counted.is_empty() {
        return within.to_vec();
    }
    let new: Vec<usize> = counted.iter().map(|(at, _)| *at as usize).collect();
    within.iter().copied().filter(|at| new.binary_search(at).is_ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Moment;
    use crate::record::reader;
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
        let told: Vec<(What, Verdict)> =
            rows.iter().map(|row| (row.what.clone(), row.growth.verdict)).collect();
        assert_eq!(
            told,
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
    fn of_a_short_part_nothing_is_told() {
        let rows = judge(&hour(), 0.0, 40.0, false);
        assert!(rows.iter().all(|row| row.growth.verdict == Verdict::CannotTellYet), "{rows:?}");
        assert!(judge(&hour(), 1e9, 2e9, false).is_empty());
    }
}
