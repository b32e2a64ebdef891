//! The account of JVMs over time, in the form that a page, a table or a test of growth takes it: one row of figures for each area
//! and part, as long as the times. A recording fills it.

use super::look::growth;
use crate::base::{Bytes, Gap};
use crate::map::area::Area;
use crate::map::rows::Named;

/// Seconds between two moments that a clock gave the same time.
const STEP_MIN: f64 = 0.001;

/// All JVMs of one recording.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recorded {
    pub histories: Vec<History>,
    /// What the recording cannot tell: a torn tail, a time without samples.
    pub gaps: Vec<Gap>,
}

/// One JVM.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct History {
    pub pid: i32,
    /// "com.example.Main", or the command where there is no main class.
    pub name: String,
    /// "21.0.8+9, g1".
    pub runtime: String,
    /// Seconds since 1970, rising.
    pub times: Vec<f64>,
    /// VmRSS and HugetlbPages; as long as `times`.
    pub kernel_resident_bytes: Vec<Option<Bytes>>,
    /// In the order in which they were met first.
    pub rows: Vec<Row>,
    pub events: Vec<Event>,
    /// What is drawn next to the areas: a limit, what the runtime says of itself.
    pub lines: Vec<Line>,
    /// What else is followed: arenas, libraries, threads and holders. Their bytes are in the rows, too.
    pub details: Vec<Detail>,
}

/// The resident bytes of one part of an area.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    pub area: Area,
    pub part: String,
    /// As long as the times. `None`: not known at that moment; 0: it had nothing.
    pub resident_bytes: Vec<Option<Bytes>>,
}

/// A figure over time that is not part of the sum.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    pub title: &'static str,
    /// Without being asked for: else it would make all others small.
    pub is_shown: bool,
    pub bytes: Vec<Option<Bytes>>,
}

/// The bytes of one of many: in memory, or, of a holder of malloc's blocks, in use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Detail {
    /// "arena", "library", "threads", "holder".
    pub kind: &'static str,
    pub name: String,
    /// As long as the times. `None`: not known at that moment; 0: it had nothing.
    pub bytes: Vec<Option<Bytes>>,
}

/// A holder of malloc's blocks when holders were read first and last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldOverTime<'a> {
    pub name: &'a str,
    pub first_bytes: Bytes,
    pub last_bytes: Bytes,
    pub grown_bytes: i64,
}

/// Something that happened: an OOM kill, a start, an interval that was made shorter.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Seconds since 1970.
    pub at: f64,
    pub text: String,
}

impl History {
    /// From whole rows. A time that does not rise is put right behind the one before.
    pub fn of_rows(
        pid: i32,
        name: String,
        runtime: String,
        mut times: Vec<f64>,
        kernel_resident_bytes: Vec<Option<Bytes>>,
        rows: Vec<Row>,
        events: Vec<Event>,
    ) -> History {
        for at in 1..times.len() {
            if times[at] <= times[at - 1] {
                times[at] = times[at - 1] + STEP_MIN;
            }
        }
        History { pid, name, runtime, times, kernel_resident_bytes, rows, events, ..History::default() }
    }

    /// The areas that ever had a byte, in the order of `Area::ALL`, each with its sum at each moment.
    pub fn areas(&self) -> Vec<(Area, Vec<Option<Bytes>>)> {
        let of = |area: Area| {
            let rows: Vec<&Row> = self.rows.iter().filter(|row| row.area == area).collect();
            let at = |moment: usize| rows.iter().map(|row| row.resident_bytes[moment]).sum::<Option<Bytes>>();
            (area, (0..self.times.len()).map(at).collect::<Vec<_>>())
        };
        let has_any = |(_, sums): &(Area, Vec<Option<Bytes>>)| sums.iter().flatten().any(|bytes| *bytes > 0);
        Area::ALL.iter().map(|area| of(*area)).filter(has_any).collect()
    }

    /// All areas together; `None` where one is not known.
    pub fn totals(&self) -> Vec<Option<Bytes>> {
        let at = |moment: usize| self.rows.iter().map(|row| row.resident_bytes[moment]).sum();
        (0..self.times.len()).map(at).collect()
    }

    /// What is in memory at each moment: the kernel's figure, which is of the moment itself; where it is not known, the account's.
    pub fn resident_bytes(&self) -> Vec<Option<Bytes>> {
        let kernel = self.kernel_resident_bytes.iter().copied().chain(std::iter::repeat(None));
        kernel.zip(self.totals()).map(|(kernel, total)| kernel.or(total)).collect()
    }

    /// At most `most` moments that tell the same story: of every range of moments the one with the most and the one with the
    /// least in all, the first, the last, and those around events. Sums stay exact, since whole moments are kept or left out.
    pub fn thinned(&self, most: usize) -> Vec<usize> {
        let count = self.times.len();
        if count <= most.max(2) {
            return (0..count).collect();
        }
        let highs = self.resident_bytes();
        let parts = (most.saturating_sub(2 + 2 * self.events.len()) / 2).max(1);
        let mut kept = vec![0, count - 1];
        for part in 0..parts {
            let (first, end) = (part * count / parts, (part + 1) * count / parts);
            kept.extend((first..end).max_by_key(|at| highs[*at]));
            kept.extend((first..end).min_by_key(|at| highs[*at]));
        }
        for event in &self.events {
            let after = self.times.partition_point(|time| *time < event.at);
            kept.extend([after.saturating_sub(1), after.min(count - 1)]);
        }
        kept.sort_unstable();
        kept.dedup();
        kept
    }

    fn holders(&self) -> impl Iterator<Item = &Detail> {
        self.details.iter().filter(|detail| detail.kind == Named::Holder.word())
    }

    pub fn has_holders(&self) -> bool {
        self.holders().next().is_some()
    }

    /// The largest at the end first; `None`: they were not recorded.
    pub fn held(&self) -> Option<Vec<HeldOverTime<'_>>> {
        let mut rows: Vec<HeldOverTime> = Vec::new();
        for detail in self.holders() {
            let mut known = detail.bytes.iter().copied().flatten();
            let Some(first_bytes) = known.next() else { continue };
            let last_bytes = known.next_back().unwrap_or(first_bytes);
            let grown_bytes = growth(Some(first_bytes), Some(last_bytes)).unwrap_or(0);
            rows.push(HeldOverTime { name: &detail.name, first_bytes, last_bytes, grown_bytes });
        }
        rows.sort_by_key(|row| (std::cmp::Reverse(row.last_bytes), row.name));
        (!rows.is_empty()).then_some(rows)
    }

    /// Only these moments.
    pub fn only(&self, moments: &[usize]) -> History {
        let of = |bytes: &[Option<Bytes>]| -> Vec<Option<Bytes>> {
            moments.iter().map(|at| bytes.get(*at).copied().flatten()).collect()
        };
        let row = |row: &Row| Row {
            resident_bytes: of(&row.resident_bytes),
            area: row.area,
            part: row.part.clone(),
        };
        let line = |line: &Line| Line { bytes: of(&line.bytes), ..*line };
        let detail = |detail: &Detail| Detail {
            kind: detail.kind,
            name: detail.name.clone(),
            bytes: of(&detail.bytes),
        };
        History {
            pid: self.pid,
            name: self.name.clone(),
            runtime: self.runtime.clone(),
            times: moments.iter().map(|at| self.times[*at]).collect(),
            kernel_resident_bytes: of(&self.kernel_resident_bytes),
            rows: self.rows.iter().map(row).collect(),
            events: self.events.clone(),
            lines: self.lines.iter().map(line).collect(),
            details: self.details.iter().map(detail).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    /// A saw-tooth with one peak, and a part that comes late.
    fn sawtooth(count: usize) -> History {
        let eden = |at: usize| if at == count / 2 { 900 * MIB } else { (10 + at as u64 % 10) * MIB };
        let row = |area, part: &str, bytes: &dyn Fn(usize) -> u64| Row {
            area,
            part: part.to_string(),
            resident_bytes: (0..count).map(|at| Some(bytes(at))).collect(),
        };
        let rows = vec![
            row(Area::JavaHeap, "eden", &eden),
            row(Area::Stack, "Java thread stack", &|_| MIB),
            row(Area::JavaHeap, "old", &|at| if at < 5 { 0 } else { MIB }),
        ];
        let times = (0..count).map(|at| 1000.0 + at as f64).collect();
        let kernel = (0..count).map(|at| Some(eden(at) + 2 * MIB)).collect();
        History::of_rows(7, "Main".to_string(), "21, g1".to_string(), times, kernel, rows, Vec::new())
    }

    #[test]
    fn rows_are_as_long_as_the_times_and_sum_to_the_areas() {
        let history = sawtooth(60);
        assert!(history.rows.iter().all(|row| row.resident_bytes.len() == 60));
        let areas = history.areas();
        assert_eq!(areas.iter().map(|(area, _)| *area).collect::<Vec<_>>(), [Area::JavaHeap, Area::Stack]);
        assert_eq!((areas[0].1[0], areas[0].1[5]), (Some(10 * MIB), Some(16 * MIB)));
        assert_eq!(history.totals()[0], Some(11 * MIB));
    }

    #[test]
    fn what_is_not_known_is_not_nothing() {
        let mut history = sawtooth(5);
        history.rows.iter_mut().for_each(|row| row.resident_bytes[3] = None);
        assert_eq!(history.totals()[3], None);
        assert_eq!(history.totals()[4], Some(15 * MIB), "what comes late had nothing before");
        assert_eq!(history.areas()[0].1[3], None);
    }

    #[test]
    fn fewer_moments_keep_the_peaks_the_ends_and_the_events() {
        let mut history = sawtooth(6000);
        history.events.push(Event { at: 1777.5, text: "the interval is shorter".to_string() });
        let kept = history.thinned(400);
        assert!(kept.len() <= 400, "{}", kept.len());
        for at in [0, 777, 778, 3000, 5999] {
            assert!(kept.contains(&at), "moment {at}");
        }
        let short = history.only(&kept);
        assert_eq!(short.totals().iter().max(), history.totals().iter().max());
        assert_eq!(sawtooth(50).thinned(400).len(), 50);
    }

    #[test]
    fn times_rise_also_where_a_clock_was_set_back() {
        let times = vec![3.0, 4.0, 1.0, 5.0];
        let history =
            History::of_rows(7, String::new(), String::new(), times, Vec::new(), Vec::new(), Vec::new());
        assert!(history.times.windows(2).all(|pair| pair[0] < pair[1]), "{:?}", history.times);
    }
}
