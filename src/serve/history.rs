//! The last while of each JVM, kept small: one row for each sample, with the resident bytes of each area where an account was read.
//! A row has the time of the steady clock: the clock on the wall may be set, and all rows follow it when they are shown.

use super::summary::AreaNow;
use crate::base::Bytes;
use crate::map::Area;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::VecDeque;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// At 10 seconds a sample, an hour.
const ROWS_MAX: usize = 360;
/// Rows that there is room for in addition, when there is room for no more.
const STEP: usize = 40;
const AREAS: usize = Area::ALL.len();
/// A row, and the areas of one, with what malloc adds to a block (glibc: 8 bytes, in multiples of 16).
const ROW_BYTES: usize = size_of::<Row>();
const AREAS_BYTES: usize = AREAS * size_of::<Bytes>() + 16;

/// One sample. What is not known is `null`.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema, Serialize)]
pub struct MomentRow {
    /// Milliseconds since 1970.
    pub at_ms: i64,
    pub kernel_resident_bytes: Option<Bytes>,
    pub heap_used_bytes: Option<Bytes>,
    pub group_held_bytes: Option<Bytes>,
    pub group_limit_bytes: Option<Bytes>,
    /// In the order of the document's `areas`; `None`: no account was read at this moment.
    pub areas: Option<Vec<Bytes>>,
}

/// A sample as it is kept.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    at: Instant,
    /// `UNKNOWN`, or bytes: resident, heap used, held and limit of the group.
    figures: [Bytes; 4],
    /// In the order of `Area::ALL`.
    areas: Option<Box<[Bytes; AREAS]>>,
}

const UNKNOWN: Bytes = Bytes::MAX;

impl Row {
    pub fn new(at: Instant, figures: [Option<Bytes>; 4], areas: Option<&[AreaNow]>) -> Row {
        let areas = areas.map(|areas| {
            let of = |area| areas.iter().find(|now| now.area == area).map_or(0, |now| now.resident_bytes);
            Box::new(std::array::from_fn(|index| of(Area::ALL[index])))
        });
        Row { at, figures: figures.map(|figure| figure.unwrap_or(UNKNOWN)), areas }
    }

    pub fn shown(&self, clock: Clock) -> MomentRow {
        let known = |index: usize| Some(self.figures[index]).filter(|bytes| *bytes != UNKNOWN);
        MomentRow {
            at_ms: clock.wall_ms(self.at),
            kernel_resident_bytes: known(0),
            heap_used_bytes: known(1),
            group_held_bytes: known(2),
            group_limit_bytes: known(3),
            areas: self.areas.as_ref().map(|areas| areas.to_vec()),
        }
    }
}

/// Both clocks at one moment.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    pub steady: Instant,
    pub wall: SystemTime,
}

impl Clock {
    pub fn now() -> Clock {
        Clock { steady: Instant::now(), wall: SystemTime::now() }
    }

    /// When that was, in milliseconds since 1970, by the clock on the wall as it is set now.
    pub fn wall_ms(self, at: Instant) -> i64 {
        let ms = |time: Duration| time.as_millis() as i64;
        // A clock before 1970 is none.
        let now = self.wall.duration_since(UNIX_EPOCH).map_or(0, ms);
        now - ms(self.steady.saturating_duration_since(at))
    }
}

#[derive(Clone, Debug, Default)]
pub struct History {
    rows: VecDeque<Row>,
    /// Rows that have areas.
    with_areas: usize,
}

impl History {
    /// Adds one, and lets go of the oldest until all fit.
    pub fn add(&mut self, row: Row, bytes_max: Bytes) {
        if self.rows.len() == self.rows.capacity() {
            self.rows.reserve_exact(STEP);
        }
        self.with_areas += usize::from(row.areas.is_some());
        self.rows.push_back(row);
        while self.rows.len() > 1 && (self.rows.len() > ROWS_MAX || self.bytes() > bytes_max) {
            let oldest = self.rows.pop_front();
            self.with_areas -= usize::from(oldest.is_some_and(|row| row.areas.is_some()));
        }
        if self.rows.capacity() > self.rows.len() + 2 * STEP {
            self.rows.shrink_to(self.rows.len() + STEP);
        }
    }

    pub fn rows(&self) -> impl DoubleEndedIterator<Item = &Row> {
        self.rows.iter()
    }

    /// What it takes.
    pub fn bytes(&self) -> Bytes {
        (self.rows.len() * ROW_BYTES + self.with_areas * AREAS_BYTES) as Bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(at: Instant, areas: Option<&[AreaNow]>) -> Row {
        Row::new(at, [Some(1), None, Some(0), None], areas)
    }

    fn gc(resident_bytes: Bytes) -> AreaNow {
        AreaNow { area: Area::Gc, resident_bytes, committed_bytes: None }
    }

    #[test]
    fn the_oldest_goes_when_it_is_full() {
        let (start, mut history) = (Instant::now(), History::default());
        let at = |ms: u64| start + Duration::from_millis(ms);
        (0..1000).for_each(|ms| history.add(row(at(ms), None), u64::MAX));
        assert_eq!(history.rows().count(), ROWS_MAX);
        assert_eq!(history.rows().next().map(|row| row.at), Some(at(1000 - ROWS_MAX as u64)));
        // Less room, as more JVMs come.
        let room = 10 * (ROW_BYTES + AREAS_BYTES) as Bytes;
        (0..20).for_each(|ms| history.add(row(at(2000 + ms), Some(&[gc(1)])), room));
        assert_eq!((history.rows().count(), history.bytes()), (10, room));
        assert!(history.rows.capacity() <= 10 + 2 * STEP);
        history.add(row(at(3000), None), 0);
        assert_eq!((history.rows().count(), history.with_areas), (1, 0), "the last one is always there");
    }

    #[test]
    fn what_is_not_known_is_null_and_areas_have_their_places() {
        let clock = Clock::now();
        let shown = row(clock.steady, Some(&[gc(7)])).shown(clock);
        assert_eq!((shown.kernel_resident_bytes, shown.heap_used_bytes), (Some(1), None));
        assert_eq!((shown.group_held_bytes, shown.group_limit_bytes), (Some(0), None));
        let areas = shown.areas.expect("an account");
        assert_eq!(areas.len(), Area::ALL.len());
        let of_gc = Area::ALL.iter().position(|area| *area == Area::Gc).expect("one of all");
        assert!(areas.iter().enumerate().all(|(index, bytes)| (*bytes == 7) == (index == of_gc)));
        assert_eq!(row(clock.steady, None).shown(clock).areas, None);
    }

    #[test]
    fn a_clock_that_is_set_takes_all_rows_with_it() {
        let (steady, wall) = (Instant::now(), UNIX_EPOCH + Duration::from_secs(1_700_000_000));
        let mut history = History::default();
        (0..5).for_each(|s| history.add(row(steady + Duration::from_secs(s), None), u64::MAX));
        let later = steady + Duration::from_secs(4);
        let year = Duration::from_secs(365 * 86_400);
        for wall in [wall, wall + year, wall - year, UNIX_EPOCH, UNIX_EPOCH - year] {
            let clock = Clock { steady: later, wall };
            let now = clock.wall_ms(later);
            let ages: Vec<i64> = history.rows().map(|row| now - row.shown(clock).at_ms).collect();
            assert_eq!(ages, [4000, 3000, 2000, 1000, 0]);
        }
    }
}
