//! The largest moment of each JVM of a recording. The table and the bars of a page take their figures from here, so that both say
//! the same; and where there are more JVMs than a page can show, all but the largest become one sum.

use super::history::History;
use super::look::growth;
use crate::base::Bytes;
use crate::map::Area;
use std::cmp::Reverse;

/// What one JVM, or several together, had in memory over a recording.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Peak {
    /// The peak; for several JVMs, the sum of what each had at its own largest moment.
    pub most_bytes: Bytes,
    pub last_bytes: Bytes,
    pub grown_bytes: i64,
    /// The areas at the largest moment, by the account that was read last before it, or else first after it.
    pub areas: Vec<(Area, Bytes)>,
    /// What came after that account was read: of `most_bytes` what the areas do not sum to.
    pub unread_bytes: Bytes,
}

/// The JVMs that are not shown one by one.
#[derive(Clone, Debug, PartialEq)]
pub struct Others {
    pub jvms: usize,
    /// Seconds since 1970: the first moment of any, and the last.
    pub from: f64,
    pub to: f64,
    pub peak: Peak,
}

impl History {
    /// `None`: nothing was ever known.
    pub fn peak(&self) -> Option<Peak> {
        let resident = self.resident_bytes();
        let known = || resident.iter().copied().enumerate().filter_map(|(at, bytes)| Some((at, bytes?)));
        let (at, most_bytes) = known().max_by_key(|(at, bytes)| (*bytes, Reverse(*at)))?;
        let (first, last) = (known().next()?.1, known().next_back()?.1);
        let areas = self.areas();
        let is_read = |at: &usize| areas.iter().all(|(_, bytes)| bytes[*at].is_some());
        let read_at = (0..=at).rev().find(is_read).or_else(|| (at..resident.len()).find(is_read));
        let of = |(area, bytes): &(Area, Vec<Option<Bytes>>)| Some((*area, bytes[read_at?]?));
        let areas: Vec<(Area, Bytes)> = areas.iter().filter_map(of).filter(|(_, bytes)| *bytes > 0).collect();
        Some(Peak {
            most_bytes,
            last_bytes: last,
            grown_bytes: growth(Some(first), Some(last))?,
            unread_bytes: most_bytes.saturating_sub(areas.iter().map(|(_, bytes)| bytes).sum()),
            areas,
        })
    }
}

/// The places of histories, the one with the largest peak first.
pub fn largest_first(histories: &[History]) -> Vec<usize> {
    let most: Vec<Option<Bytes>> =
        histories.iter().map(|history| history.resident_bytes().into_iter().flatten().max()).collect();
    let mut order: Vec<usize> = (0..histories.len()).collect();
    order.sort_by_key(|index| Reverse(most[*index]));
    order
}

impl Others {
    /// `None`: there are none.
    pub fn of<'a>(histories: impl Iterator<Item = &'a History>) -> Option<Others> {
        let mut others = Others { jvms: 0, from: f64::INFINITY, to: 0.0, peak: Peak::default() };
        for history in histories {
            others.jvms += 1;
            others.from = history.times.first().copied().unwrap_or(f64::INFINITY).min(others.from);
            others.to = history.times.last().copied().unwrap_or(0.0).max(others.to);
            history.peak().iter().for_each(|peak| others.peak.add(peak));
        }
        (others.jvms > 0).then_some(others)
    }
}

impl Peak {
    fn add(&mut self, other: &Peak) {
        self.most_bytes = self.most_bytes.saturating_add(other.most_bytes);
        self.last_bytes = self.last_bytes.saturating_add(other.last_bytes);
        self.grown_bytes = self.grown_bytes.saturating_add(other.grown_bytes);
        self.unread_bytes = self.unread_bytes.saturating_add(other.unread_bytes);
        for (area, bytes) in &other.areas {
            match self.areas.iter_mut().find(|(known, _)| known == area) {
                Some((_, sum)) => *sum = sum.saturating_add(*bytes),
                None => self.areas.push((*area, *bytes)),
            }
        }
        self.areas.sort_unstable_by_key(|(area, _)| *area);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::history::Row;

    const MIB: u64 = 1 << 20;

    fn history(heap: &[Option<u64>], kernel: &[u64]) -> History {
        let mib = |bytes: &Option<u64>| bytes.map(|bytes| bytes * MIB);
        let row = |area, part: &str, resident_bytes| Row { area, part: part.to_string(), resident_bytes };
        let rows = vec![
            row(Area::JavaHeap, "eden", heap.iter().map(mib).collect()),
            row(Area::Stack, "Java", heap.iter().map(|bytes| bytes.map(|_| MIB)).collect()),
        ];
        let times = (0..heap.len()).map(|at| at as f64 + 10.0).collect();
        let kernel = kernel.iter().map(|bytes| Some(bytes * MIB)).collect();
        History::of_rows(7, String::new(), String::new(), times, kernel, rows, Vec::new())
    }

    #[test]
    fn the_largest_moment_is_the_kernels_also_where_the_account_was_read_before() {
        let history = history(&[None, Some(240), None, None], &[100, 245, 1700, 1600]);
        let peak = history.peak().expect("known");
        assert_eq!((peak.most_bytes, peak.last_bytes), (1700 * MIB, 1600 * MIB));
        assert_eq!(peak.grown_bytes, 1500 << 20);
        assert_eq!(peak.areas, [(Area::JavaHeap, 240 * MIB), (Area::Stack, MIB)]);
        assert_eq!(peak.unread_bytes, (1700 - 241) * MIB);
    }

    #[test]
    fn an_account_that_was_read_only_later_is_that_of_the_peak_too() {
        let peak = history(&[None, None, Some(90)], &[100, 90, 91]).peak().expect("known");
        assert_eq!((peak.most_bytes, peak.unread_bytes), (100 * MIB, 9 * MIB));
        assert_eq!(history(&[], &[]).peak(), None);
        let unread = history(&[None], &[50]).peak().expect("the kernel's figure");
        assert_eq!((unread.areas, unread.unread_bytes), (Vec::new(), 50 * MIB));
    }

    #[test]
    fn the_largest_come_first_and_the_others_are_one_sum() {
        let all = [
            history(&[Some(9)], &[10]),
            history(&[None], &[0]),
            history(&[Some(29), Some(19)], &[30, 20]),
            history(&[Some(19)], &[20]),
        ];
        let order = largest_first(&all);
        assert_eq!(order, [2, 3, 0, 1]);
        let others = Others::of(order[1..].iter().map(|index| &all[*index])).expect("three");
        assert_eq!((others.jvms, others.from, others.to), (3, 10.0, 10.0));
        assert_eq!((others.peak.most_bytes, others.peak.last_bytes), (30 * MIB, 30 * MIB));
        assert_eq!(others.peak.areas, [(Area::JavaHeap, 28 * MIB), (Area::Stack, 2 * MIB)]);
        assert_eq!(Others::of(order[4..].iter().map(|index| &all[*index])), None);
    }
}
