//! A recording in the form that charts and tables take: rows of resident bytes, as long as the times.

use super::compiled;
use super::history::{History, Recording};
use super::key::{Key, Measure, Subject};
use crate::base::limits::{REPORT_FIGURES_MAX, REPORT_NOTES_MAX};
use crate::base::{Bytes, Gap, Why, human};
use crate::map::Area;
use crate::map::malloc::owners::HEADERS;
use crate::measure::history::{self, Detail, Event, Line, Recorded, Row};
use std::collections::BTreeMap;

/// A limit is drawn where it is at most this many times what the JVM has.
const NEAR: u64 = 3;
/// What an area has next to its parts, where a recording keeps only some of them.
const REST: &str = "other parts";
/// Lines next to the areas, that of the kernel's sum included.
const LINES: usize = 8;

pub fn of(recording: &Recording) -> Recorded {
    let step = step(recording, REPORT_FIGURES_MAX);
    let mut histories: Vec<history::History> = recording.jvms.iter().map(|jvm| one(jvm, step)).collect();
    let notes_max = REPORT_NOTES_MAX / recording.jvms.len().max(1);
    let mut has_more = false;
    for (index, history) in histories.iter_mut().enumerate() {
        let of = &recording.jvms[index];
        let before = history.events.len();
        let notes = recording.notes.iter().filter(|note| note.concerns(of.facts.pid)).filter_map(|note| {
            let (first, last) = (of.moments.first()?, of.moments.last()?);
            let is_within = (first.steady_ms..=last.steady_ms).contains(&note.at.steady_ms);
            is_within.then(|| Event { at: seconds(of, note.at.steady_ms), text: note.text.clone() })
        });
        history.events.extend(notes.take(notes_max));
        has_more |= history.events.len() - before == notes_max;
        history.events.sort_by(|one, other| one.at.total_cmp(&other.at));
    }
    let mut gaps = gaps(recording);
    if has_more {
        let what = format!("notes of the recorder after the first {notes_max} of a JVM");
        gaps.push(Gap::new(what, Why::OverLimit).hint("the page would be too large"));
    }
    if step > 1 {
        let what = format!("moments of the recording between each {step}th one");
        gaps.push(
            Gap::new(what, Why::OverLimit).hint("the page would be too large; marusa export has them all"),
        );
    }
    Recorded { histories, gaps }
}

/// Which moments are drawn: each one, each second one, and so on, so that all figures together stay below the limit.
fn step(recording: &Recording, figures_max: usize) -> usize {
    let figures = |jvm: &History| {
        let is_drawn = |key: &&Key| {
            key.measure == Measure::Resident || key.subject.is_holder() && key.measure == Measure::InUse
        };
        let series = jvm.keys().iter().filter(is_drawn).count() + LINES;
        series.saturating_mul(jvm.len())
    };
    let all = recording.jvms.iter().map(figures).fold(0, usize::saturating_add);
    all.div_ceil(figures_max).max(1)
}

/// A history at each `step`th of its moments, and at the last.
struct Drawn<'a> {
    history: &'a History,
    moments: Vec<usize>,
}

impl Drawn<'_> {
    fn of(history: &History, step: usize) -> Drawn<'_> {
        let mut moments: Vec<usize> = (0..history.len()).step_by(step).collect();
        if let Some(last) = history.len().checked_sub(1)
            && moments.last() != Some(&last)
        {
            moments.push(last);
        }
        Drawn { history, moments }
    }

    fn series(&self, key: &Key) -> Vec<Option<u64>> {
        self.history.series_at(key, &self.moments)
    }
}

fn gaps(recording: &Recording) -> Vec<Gap> {
    let torn = recording.torn.iter().map(|torn| {
        Gap::new(
            format!("the last {} bytes of file {} of the recording", torn.dropped_bytes, torn.segment),
            Why::Torn,
        )
        .hint(format!("{}: the recorder was killed, or still writes", torn.why))
    });
    torn.collect()
}

/// By the clock that never jumps, from where the wall's stood at the first moment.
fn seconds(history: &History, steady_ms: u64) -> f64 {
    let first = history.moments.first().copied().unwrap_or_default();
    first.wall_ms as f64 / 1e3 + (steady_ms as f64 - first.steady_ms as f64) / 1e3
}

fn one(history: &History, step: usize) -> history::History {
    let drawn = Drawn::of(history, step);
    let facts = &history.facts;
    let runtime =
        [facts.version.as_deref(), facts.gc.as_deref()].into_iter().flatten().collect::<Vec<_>>().join(", ");
    let name = facts.name().unwrap_or("a JVM").to_string();
    let times = drawn.moments.iter().map(|at| seconds(history, history.moments[*at].steady_ms)).collect();
    let kernel = drawn.series(&Key::process(Measure::KernelResident));
    let mut events = Vec::new();
    if let Some((at, ending)) = history.ending {
        events.push(Event { at: seconds(history, at.steady_ms), text: ending.in_words() });
    }
    events.extend(depth_events(history));
    events.extend(compiled::jumps(history).iter().filter_map(|jump| {
        let (grown, methods) = (human(jump.grown_bytes), jump.methods_in_words());
        let at = seconds(history, history.moments.get(jump.moment)?.steady_ms);
        Some(Event { at, text: format!("JIT work had grown by {grown}; compiled then: {methods}") })
    }));
    let lines = lines(&drawn, &kernel);
    let rows = rows(&drawn);
    let mut made = history::History::of_rows(facts.pid, name, runtime, times, kernel, rows, events);
    made.lines = lines;
    made.details = details(&drawn);
    made
}

/// When a part of the process could not be read any more, or could again: its bytes are then in other areas, and did not move.
fn depth_events(history: &History) -> Vec<Event> {
    let heap = Subject::Area(Area::JavaHeap);
    let chunks = Subject::Part(Area::Overhead, HEADERS.to_string());
    let mut events = Vec::new();
    for (subject, what) in [(heap, "the Java heap"), (chunks, "the chunks of malloc")] {
        let changes = history.changes(&Key::of(&subject, Measure::Resident));
        for pair in changes.windows(2) {
            let text = match (pair[0].1, pair[1].1) {
                (Some(_), None) => {
                    format!("{what} could not be read: its bytes are in other areas from here")
                }
                (None, Some(_)) => format!("{what} could be read again"),
                _ => continue,
            };
            let Some(moment) = history.moments.get(pair[1].0 as usize) else { continue };
            events.push(Event { at: seconds(history, moment.steady_ms), text });
        }
    }
    events
}

/// The limit of the cgroup, where it is near enough to be a line in the same picture; and what can be asked for.
fn lines(drawn: &Drawn, kernel: &[Option<Bytes>]) -> Vec<Line> {
    let most = kernel.iter().flatten().max().copied().unwrap_or(0);
    let line = |(measure, title, is_wanted): (Measure, &'static str, bool)| {
        let bytes = drawn.series(&Key::process(measure));
        let largest = bytes.iter().flatten().max().copied()?;
        let is_near = largest <= most.saturating_mul(NEAR);
        Some(Line { title, is_shown: is_wanted && is_near, bytes })
    };
    let measures = [
        (Measure::GroupLimit, "limit of the cgroup", true),
        (Measure::GroupCurrent, "used of that limit, by all", false),
        (Measure::HeapUsed, "Java heap in use", false),
        (Measure::HeapCapacity, "Java heap committed", false),
        (Measure::KernelSwapped, "swapped", false),
    ];
    measures.into_iter().filter_map(line).collect()
}

/// For a holder what it has in use, for the others what is in memory.
fn details(drawn: &Drawn) -> Vec<Detail> {
    let has_accounts = drawn.series(&Key::process(Measure::AccountAt));
    let has_holders = drawn.series(&Key::process(Measure::HoldersAt));
    let detail = |key: &Key| {
        let name = match &key.subject {
            Subject::Process | Subject::Area(_) | Subject::Part(..) => return None,
            Subject::Arena(at) => format!("arena at {at:#x}"),
            other => other.name()?,
        };
        let is_holder = key.subject.is_holder();
        let measure = if is_holder { Measure::InUse } else { Measure::Resident };
        let bytes = || filled(&drawn.series(key), if is_holder { &has_holders } else { &has_accounts });
        (key.measure == measure).then(|| Detail { kind: key.subject.word(), name, bytes: bytes() })
    };
    drawn.history.keys().iter().filter_map(detail).collect()
}

/// Where what it belongs to was read, what it does not name has nothing.
fn filled(bytes: &[Option<Bytes>], read_at: &[Option<u64>]) -> Vec<Option<Bytes>> {
    let figure =
        |(at, read): (usize, &Option<u64>)| read.map(|_| bytes.get(at).copied().flatten().unwrap_or(0));
    read_at.iter().enumerate().map(figure).collect()
}

/// The parts of each area that has parts, and what is left of the area.
fn rows(drawn: &Drawn) -> Vec<Row> {
    let mut areas: BTreeMap<Area, (Vec<Option<Bytes>>, Vec<Row>)> = BTreeMap::new();
    for key in drawn.history.keys().iter().filter(|key| key.measure == Measure::Resident) {
        match &key.subject {
            Subject::Area(area) => areas.entry(*area).or_default().0 = drawn.series(key),
            Subject::Part(area, part) => {
                let row = Row { area: *area, part: part.clone(), resident_bytes: drawn.series(key) };
                areas.entry(*area).or_default().1.push(row);
            }
            _ => {}
        }
    }
    let read_at = drawn.series(&Key::process(Measure::AccountAt));
    let mut all = Vec::new();
    for (area, (sums, parts)) in areas {
        let mut rest = filled(&sums, &read_at);
        for part in parts {
            let resident_bytes = filled(&part.resident_bytes, &read_at);
            for (rest, bytes) in rest.iter_mut().zip(&resident_bytes) {
                *rest = rest.zip(*bytes).map(|(rest, bytes)| rest.saturating_sub(bytes));
            }
            all.push(Row { resident_bytes, ..part });
        }
        if rest.iter().flatten().any(|bytes| *bytes > 0) {
            all.push(Row { area, part: REST.to_string(), resident_bytes: rest });
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::key::Named;
    use crate::record::made_up::small;
    use crate::record::writer::{JvmFacts, Scope, Session, Writer};
    use crate::record::{Moment, note, reader};

    /// Two JVMs at the same time; the first comes near its limit, and a clock is set.
    #[test]
    fn a_note_about_one_jvm_is_no_event_of_another() {
        let mut writer = Writer::new(&Session::default());
        let jvms = [7, 8].map(|pid| writer.jvm(JvmFacts { pid, ..JvmFacts::default() }));
        let at = |steady_ms: u64| Moment { steady_ms, wall_ms: steady_ms as i64 };
        for second in 0..3 {
            for jvm in jvms {
                let figures = [(Key::process(Measure::KernelResident), Some(500))];
                writer.sample(jvm, at(second * 1000), Scope::Glance, &figures);
            }
            if second == 1 {
                writer.note(at(1000), &note::about(7, "near its memory limit"));
                writer.note(at(1000), "the clock was set");
            }
        }
        let recorded = of(&reader::read(&[&writer.take()]).expect("a recording"));
        let texts = |index: usize| -> Vec<&str> {
            recorded.histories[index].events.iter().map(|event| event.text.as_str()).collect()
        };
        assert_eq!(texts(0), ["near its memory limit", "the clock was set"]);
        assert_eq!(texts(1), ["the clock was set"]);
    }

    #[test]
    fn an_account_that_lost_depth_is_an_event() {
        let mut writer = Writer::new(&Session::default());
        let jvm = writer.jvm(JvmFacts { pid: 7, ..JvmFacts::default() });
        let chunks = Key::of(&Subject::Part(Area::Overhead, HEADERS.to_string()), Measure::Resident);
        for second in 0..3 {
            let at = Moment { steady_ms: second * 1000, wall_ms: second as i64 * 1000 };
            let account = (Key::process(Measure::AccountAt), Some(at.steady_ms));
            let figures = [account, (chunks.clone(), (second != 1).then_some(50 + second))];
            writer.sample(jvm, at, Scope::Account, &figures);
        }
        let recorded = of(&reader::read(&[&writer.take()]).expect("a recording"));
        let events: Vec<(f64, &str)> =
            recorded.histories[0].events.iter().map(|event| (event.at, event.text.as_str())).collect();
        assert_eq!(events.len(), 2, "{events:?}");
        assert_eq!(events[0].0, 1.0);
        assert!(events[0].1.starts_with("the chunks of malloc could not be read"), "{events:?}");
        assert!(events[1].1.ends_with("again"), "{events:?}");
    }

    #[test]
    fn holders_are_unknown_before_they_were_read_and_have_nothing_where_others_were() {
        let mut writer = Writer::new(&Session::default());
        let jvm = writer.jvm(JvmFacts::default());
        let holder = |name: &str| Key::of(&Subject::Named(Named::Holder, name.to_string()), Measure::InUse);
        for (second, held) in [(0, None), (1, Some(("a.B.c", 7))), (2, None), (3, Some(("d.E.f", 9)))] {
            let at = Moment { steady_ms: second * 1000, wall_ms: second as i64 * 1000 };
            let mut figures = vec![(Key::process(Measure::AccountAt), Some(at.steady_ms))];
            let mut scope = Scope::Account;
            if let Some((name, bytes)) = held {
                scope = Scope::AccountWithHolders;
                figures.push((Key::process(Measure::HoldersAt), Some(at.steady_ms)));
                figures.push((holder(name), Some(bytes)));
            }
            writer.sample(jvm, at, scope, &figures);
        }
        let recorded = of(&reader::read(&[&writer.take()]).expect("a recording"));
        let history = &recorded.histories[0];
        let bytes: Vec<(&str, &[Option<u64>])> =
            history.details.iter().map(|detail| (detail.name.as_str(), &detail.bytes[..])).collect();
        let (before, after) = ([None, Some(7), Some(7), Some(0)], [None, Some(0), Some(0), Some(9)]);
        assert_eq!(bytes, [("a.B.c", &before[..]), ("d.E.f", &after[..])]);
        let held = history.held().expect("they were recorded");
        let rows: Vec<(&str, u64, i64)> =
            held.iter().map(|row| (row.name, row.last_bytes, row.grown_bytes)).collect();
        assert_eq!(rows, [("d.E.f", 9, 9), ("a.B.c", 0, -7)]);
    }

    #[test]
    fn parts_and_what_is_left_of_their_area_sum_to_it() {
        let recorded = of(&small());
        let [history] = &recorded.histories[..] else { panic!("one JVM") };
        assert_eq!(history.times, [1.0, 2.0]);
        assert_eq!(history.kernel_resident_bytes, [Some(500), Some(510)]);
        let rows: Vec<(&str, &[Option<Bytes>])> =
            history.rows.iter().map(|row| (row.part.as_str(), &row.resident_bytes[..])).collect();
        assert_eq!(rows, [("eden", &[Some(200), Some(200)][..]), (REST, &[Some(100), Some(100)][..])]);
        assert_eq!(history.totals(), [Some(300), Some(300)]);
    }

    #[test]
    fn of_too_many_moments_some_are_drawn_and_the_last_one_always_is() {
        let recording = small();
        assert_eq!(step(&recording, usize::MAX), 1);
        let figures = 2 * (2 + LINES);
        assert_eq!(step(&recording, figures), 1, "it fits");
        let jvm = &recording.jvms[0];
        let resident = jvm.keys().iter().filter(|key| key.measure == Measure::Resident).count();
        assert_eq!(step(&recording, figures / 4), 2 * (resident + LINES) / (figures / 4));
        let drawn = one(jvm, 7);
        assert_eq!(drawn.times, [1.0, 2.0], "the first and the last");
        assert_eq!(drawn.kernel_resident_bytes, [Some(500), Some(510)]);
        assert!(drawn.rows.iter().all(|row| row.resident_bytes.len() == 2));
    }
}
