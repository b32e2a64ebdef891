//! How many walks a step really took, where this processor counts walks: a cost is then divided by them. Elsewhere one walk a
//! step is assumed.

use crate::measure::Side;
use crate::measure::events::{self, Meaning};
use crate::measure::interval::Count;
use crate::os::cpu;
use crate::os::perf::{Counter, Mode, Reading};

/// Counters of this very thread.
pub struct WalkCounters {
    counters: Vec<(Side, Counter)>,
}

impl WalkCounters {
    /// Without counters, or the right to use them, an empty set.
    pub fn open() -> WalkCounters {
        let Ok(set) = events::choose(&cpu::read()) else { return WalkCounters { counters: Vec::new() } };
        let of_walks =
            set.groups.iter().flat_map(|group| group.iter()).filter_map(|event| match event.meaning {
                Meaning::Walks(side, _) => Some((side, set.encoding(event))),
                _ => None,
            });
        let open = |(side, encoding)| {
            // 0: the calling thread.
            let counter = Counter::open(encoding, Mode::User, 0, None).ok()?;
            counter.enable().ok()?;
            Some((side, counter))
        };
        let wanted: Vec<_> = of_walks.collect();
        let counters: Vec<(Side, Counter)> = wanted.iter().copied().filter_map(open).collect();
        // A part of the events gives a part of the walks.
        WalkCounters { counters: if counters.len() == wanted.len() { counters } else { Vec::new() } }
    }

    /// Does the work, and says how many walks of this side each of its `steps` took.
    pub fn during<T>(&self, side: Side, steps: u64, work: impl FnOnce() -> T) -> (T, Option<f64>) {
        let before = self.read(side);
        let done = work();
        let walks = before.zip(self.read(side)).and_then(|(before, now)| {
            let counts = before.into_iter().zip(now).map(|(last, now)| Count::between(last, now)?.scaled());
            counts.sum::<Option<f64>>()
        });
        (done, walks.map(|walks| walks / steps.max(1) as f64))
    }

    fn read(&self, side: Side) -> Option<Vec<Reading>> {
        let of_side = self.counters.iter().filter(|(of, _)| *of == side);
        let readings: Vec<Reading> =
            of_side.map(|(_, counter)| counter.read().ok()).collect::<Option<_>>()?;
        (!readings.is_empty()).then_some(readings)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_done_whether_it_is_counted_or_not() {
        let none = WalkCounters { counters: Vec::new() };
        assert_eq!(none.during(Side::Data, 10, || 7), (7, None));
        let (done, walks) = WalkCounters::open().during(Side::Data, 10, || 7);
        assert!(done == 7 && walks.is_none_or(|walks| walks >= 0.0));
    }
}
