//! What is kept of each JVM, and its earlier samples as a line of small levels: two figures and a rate do not show whether memory
//! goes up and down or only up.

use crate::base::{Bytes, Known};
use crate::jvm;
use crate::map::Area;
use crate::measure::look::{Look, growth, rate};
use std::collections::VecDeque;

/// Samples that are kept of each JVM: four minutes at the default interval.
const LOOKS_MAX: usize = 120;
/// A line that changes by less than this part of its largest value is drawn as nearly flat.
const FLAT_SHARE: u64 = 8;

/// What is kept of one JVM.
#[derive(Clone, Debug)]
pub struct Kept {
    pub now: Look,
    pub before: Option<Look>,
    pub mark: Option<Look>,
    /// The last sample with holders, which are read where they are asked for.
    pub held: Option<Held>,
    pub trail: Trail,
}

impl Kept {
    pub fn seconds(&self) -> f64 {
        self.before.as_ref().map_or(0.0, |before| self.now.at - before.at)
    }
    /// The rate of a figure that `of` takes from a sample.
    pub fn rate(&self, of: impl Fn(&Look) -> Option<u64>) -> Option<f64> {
        rate(of(self.before.as_ref()?), of(&self.now), self.seconds())
    }
    pub fn growth(&self, of: impl Fn(&Look) -> Option<u64>) -> Option<i64> {
        growth(of(self.mark.as_ref()?), of(&self.now))
    }
}

/// The holders of malloc's blocks of one JVM.
#[derive(Clone, Debug)]
pub struct Held {
    /// The time, in seconds of the samples.
    pub at: f64,
    pub holders: Known<Vec<jvm::Held>>,
    /// The ones that were read before, and when.
    pub before: Option<(f64, Vec<jvm::Held>)>,
}

/// The sums of one JVM at its last samples, oldest first.
#[derive(Clone, Debug, Default)]
pub struct Trail(VecDeque<Sums>);

#[derive(Clone, Debug)]
struct Sums {
    resident: Option<Bytes>,
    /// In the order of `Area::ALL`; `None`: there was no account.
    areas: Option<Vec<Bytes>>,
}

impl Trail {
    pub fn add(&mut self, look: &Look) {
        if self.0.len() == LOOKS_MAX {
            self.0.pop_front();
        }
        let account = look.account.as_ref().ok();
        let areas = account.map(|it| Area::ALL.iter().map(|area| it.resident_bytes_of(*area)).collect());
        self.0.push_back(Sums { resident: look.resident_bytes(), areas });
    }

    pub fn resident(&self) -> Vec<Option<Bytes>> {
        self.0.iter().map(|sums| sums.resident).collect()
    }

    pub fn of(&self, area: Area) -> Vec<Option<Bytes>> {
        let at = Area::ALL.iter().position(|it| *it == area);
        self.0.iter().map(|sums| sums.areas.as_ref()?.get(at?).copied()).collect()
    }
}

/// A line of `cells`, the newest value to the right; a value that is not known is blank. Where there are more values than cells, a
/// cell has the last one of its part.
pub fn line(values: &[Option<Bytes>], cells: usize, levels: &[char]) -> String {
    let known = || values.iter().flatten().copied();
    let (Some(low), Some(high)) = (known().min(), known().max()) else { return " ".repeat(cells) };
    let range = (high - low).max(high / FLAT_SHARE).max(1) as f64;
    let level = |value: Bytes| {
        let step = (value - low) as f64 / range * levels.len().saturating_sub(1) as f64;
        levels.get(step.round() as usize).copied().unwrap_or(' ')
    };
    let used = values.len().min(cells);
    let cell = |at: usize| {
        let part = &values[at * values.len() / used..(at + 1) * values.len() / used];
        part.iter().rev().find_map(|value| *value).map_or(' ', level)
    };
    " ".repeat(cells - used).chars().chain((0..used).map(cell)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEVELS: [char; 5] = ['1', '2', '3', '4', '5'];

    fn of(values: &[u64], cells: usize) -> String {
        line(&values.iter().map(|value| Some(*value)).collect::<Vec<_>>(), cells, &LEVELS)
    }

    #[test]
    fn the_newest_value_is_to_the_right_and_the_line_spans_its_range() {
        assert_eq!(of(&[0, 50, 100], 5), "  135");
        assert_eq!(of(&[100, 0], 2), "51");
        assert_eq!(of(&(0..100).collect::<Vec<u64>>(), 5), "23345");
    }

    #[test]
    fn little_change_is_nearly_flat() {
        assert_eq!(of(&[1000, 1001, 1000], 3), "111");
        assert_eq!(of(&[1000, 1060, 1125], 3), "135");
        assert_eq!(of(&[0, 0], 2), "11");
    }

    #[test]
    fn what_is_not_known_is_blank() {
        assert_eq!(line(&[Some(1), None, Some(9)], 3, &LEVELS), "1 5");
        assert_eq!(
            (line(&[None], 3, &LEVELS), line(&[], 2, &LEVELS), of(&[7], 0)),
            ("   ".into(), "  ".into(), String::new())
        );
    }

    #[test]
    fn a_trail_keeps_a_bounded_number_of_looks() {
        let mut trail = Trail::default();
        let looks =
            (0..LOOKS_MAX as u64 + 5).map(|at| super::super::model::tests::look(1, at as f64, 100 + at));
        looks.for_each(|look| trail.add(&look));
        assert_eq!(trail.resident().len(), LOOKS_MAX);
        assert_eq!(trail.of(Area::JavaHeap).first(), Some(&Some(105 << 20)));
        assert_eq!(trail.of(Area::Stack).last(), Some(&Some(0)));
    }
}
