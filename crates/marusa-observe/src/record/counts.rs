//! Counts that areas grow with: threads, class loaders, mapped files, arenas of malloc. Areas that grow with one count have one
//! cause. A count has no noise, so its growth is known where that of the bytes is not, and it says what to look for.

use super::history::History;
use super::key::{Key, Measure, Named, Subject};
use super::leak_row::{Count, Counted, Row, What};
use super::leak_series::Accounts;
use crate::map::Area;
use crate::measure::growth::{self, Growth, Nature, Point, Rate, Verdict};

/// A count that grew by less than this, or by less than this share, explains nothing.
const GROWN_MIN: f64 = 16.0;
const GROWN_SHARE: f64 = 0.2;
/// The share of the variance of an area that a count must explain.
const EXPLAINED: f64 = 0.9;
/// An area grows by at least a page for each one that is counted.
const EACH_BYTES_MIN: f64 = 4096.0;
/// The threads of one name explain the growth of all from this share on.
const NAMED_SHARE: f64 = 0.5;

impl Count {
    const ALL: [Count; 4] = [Count::Threads, Count::ClassLoaders, Count::MappedFiles, Count::MallocArenas];

    /// The areas that may grow with it. The first has what each one needs in any case: without its growth there is no
    /// relation.
    fn areas(self) -> &'static [Area] {
        match self {
            Count::Threads => {
                &[Area::Stack, Area::MallocUnknown, Area::MallocFreed, Area::JvmWork, Area::Unattributed]
            }
            Count::ClassLoaders => &[Area::ClassMetadata, Area::JvmWork, Area::JitCode],
            Count::MappedFiles => &[Area::MappedFile],
            Count::MallocArenas => &[Area::MallocFreed, Area::MallocUnknown, Area::Unattributed],
        }
    }

    /// By what those of one name are counted.
    fn measure_of_groups(self) -> Option<Measure> {
        match self {
            Count::Threads => Some(Measure::Threads),
            Count::ClassLoaders => Some(Measure::ClassLoaders),
            Count::MappedFiles | Count::MallocArenas => None,
        }
    }

    /// At the times of the accounts.
    fn series(self, accounts: &Accounts) -> Vec<Point> {
        accounts.series(&match self {
            Count::Threads => Key::process(Measure::Tasks),
            Count::ClassLoaders => Key::process(Measure::ClassLoaders),
            Count::MappedFiles => Key::of(&Subject::Area(Area::MappedFile), Measure::Mappings),
            Count::MallocArenas => Key::process(Measure::Arenas),
        })
    }
}

/// Marks the rows of areas that grow with a count. A row without a verdict takes that of its count.
pub fn mark(history: &History, accounts: &Accounts, rows: &mut [Row]) {
    for count in Count::ALL {
        let numbers = count.series(accounts);
        let Some(grown) = grown(&numbers) else { continue };
        let each: Vec<(usize, f64)> = (0..rows.len())
            .filter_map(|at| Some((at, each(count, accounts, &rows[at], &numbers)?)))
            .collect();
        let first = What::Area(count.areas()[0]);
        if !each.iter().any(|(at, _)| rows[*at].what == first) {
            continue;
        }
        let all: f64 = each.iter().map(|(_, each)| each).sum();
        let bytes: Vec<Point> =
            numbers.iter().map(|point| Point { bytes: point.bytes * all, ..*point }).collect();
        let judged = growth::judge(&bytes, Nature::default());
        let name = count.measure_of_groups().and_then(|measure| group(history, measure, grown));
        for (at, each) in each {
            let row = &mut rows[at];
            row.with =
                Some(Counted { count, name: name.clone(), grown: grown as i64, is_first: row.what == first });
            take_verdict(&mut row.growth, &judged, each / all);
        }
    }
}

fn grown(numbers: &[Point]) -> Option<f64> {
    let (first, last) = (numbers.first()?.bytes, numbers.last()?.bytes);
    Some(last - first).filter(|grown| *grown >= GROWN_MIN.max(first * GROWN_SHARE))
}

/// The bytes that an area grows by for each one that is counted; `None`: it does not grow with them.
fn each(count: Count, accounts: &Accounts, row: &Row, numbers: &[Point]) -> Option<f64> {
    let What::Area(area) = row.what else { return None };
    if !count.areas().contains(&area) || row.with.is_some() || row.growth.is_small {
        return None;
    }
    let bytes = accounts.series(&Key::of(&Subject::Area(area), Measure::Resident));
    let pairs = numbers.iter().filter_map(|number| {
        let at = bytes.binary_search_by(|point| point.seconds.total_cmp(&number.seconds)).ok()?;
        Some((number.bytes, bytes[at].bytes))
    });
    slope(&pairs.collect::<Vec<_>>()).filter(|each| *each >= EACH_BYTES_MIN)
}

/// By least squares, where the line explains enough.
fn slope(pairs: &[(f64, f64)]) -> Option<f64> {
    let count = pairs.len() as f64;
    let mean = |get: fn(&(f64, f64)) -> f64| pairs.iter().map(get).sum::<f64>() / count;
    let (x, y) = (mean(|pair| pair.0), mean(|pair| pair.1));
    let sum = |of: &dyn Fn(&(f64, f64)) -> f64| pairs.iter().map(of).sum::<f64>();
    let across = sum(&|pair| (pair.0 - x) * (pair.1 - y));
    let (of_x, of_y) = (sum(&|pair| (pair.0 - x).powi(2)), sum(&|pair| (pair.1 - y).powi(2)));
    (pairs.len() >= 4 && across * across >= EXPLAINED * of_x * of_y && of_x > 0.0).then(|| across / of_x)
}

fn take_verdict(growth: &mut Growth, of_count: &Growth, share: f64) {
    if growth.verdict != Verdict::CannotTellYet || of_count.verdict != Verdict::GrowsWithoutBound {
        return;
    }
    growth.verdict = match growth.bound_bytes {
        Some(_) => Verdict::GrowsToBound,
        None => Verdict::GrowsWithoutBound,
    };
    growth.caveat = None;
    growth.needs_minutes = None;
    growth.steady_from_seconds = of_count.steady_from_seconds;
    growth.steady_seconds = of_count.steady_seconds;
    growth.rate = of_count.rate.map(|rate| Rate {
        bytes_per_hour: rate.bytes_per_hour * share,
        low_bytes_per_hour: rate.low_bytes_per_hour * share,
        high_bytes_per_hour: rate.high_bytes_per_hour * share,
    });
}

/// The name of the threads, or of the class loaders, that make most of the growth.
fn group(history: &History, measure: Measure, grown: f64) -> Option<String> {
    let accounts = history.accounts();
    let (first, last) = (*accounts.first()?, *accounts.last()?);
    let mut most: Option<(f64, &String)> = None;
    for key in history.keys().iter().filter(|key| key.measure == measure) {
        let (Subject::Threads(name) | Subject::Named(Named::Loader, name)) = &key.subject else { continue };
        let at = |moment| history.value(key, moment).unwrap_or(0) as f64;
        let more = at(last) - at(first);
        if most.is_none_or(|(highest, _)| more > highest) {
            most = Some((more, name));
        }
    }
    most.filter(|(more, _)| *more >= grown * NAMED_SHARE).map(|(_, name)| name.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slope_is_reported_where_the_line_explains_the_figures() {
        let line: Vec<(f64, f64)> = (0..8).map(|at| (f64::from(at), 5.0 + 3.0 * f64::from(at))).collect();
        assert_eq!(slope(&line), Some(3.0));
        assert_eq!(slope(&line[..3]), None, "three figures");
        let flat: Vec<(f64, f64)> = line.iter().map(|pair| (2.0, pair.1)).collect();
        assert_eq!(slope(&flat), None, "the count stands still");
        let wild: Vec<(f64, f64)> = line.iter().map(|pair| (pair.0, pair.1 + pair.0 % 2.0 * 40.0)).collect();
        assert_eq!(slope(&wild), None);
    }

    #[test]
    fn a_count_explains_from_sixteen_more_and_a_fifth_more() {
        let of = |first: f64, last: f64| {
            grown(&[Point { seconds: 0.0, bytes: first }, Point { seconds: 1.0, bytes: last }])
        };
        assert_eq!((of(10.0, 25.0), of(10.0, 26.0)), (None, Some(16.0)));
        assert_eq!((of(100.0, 119.0), of(100.0, 120.0), grown(&[])), (None, Some(20.0), None));
    }
}
