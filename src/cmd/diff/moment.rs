//! Which moment of a recording is meant: "start", "end", "+10m" (since the start), "-5m" (before the end),
//! "2026-11-21T14:00:00Z", and "14:00" or "14:00:30" of the recording's day, UTC.

use crate::base::{Bytes, Refused, days_since_1970};
use crate::cmd::amount;
use crate::map::Area;
use crate::record::{History, Key, Measure, Subject};
use std::time::Duration;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    Start,
    End,
    After(Duration),
    Before(Duration),
    /// Milliseconds since 1970.
    Wall(i64),
    /// Milliseconds since midnight, UTC.
    OfDay(i64),
}

const DAY_MS: i64 = 86_400_000;

pub fn parse(text: &str) -> Result<When, Refused> {
    let step = |text: &str| amount::duration(text);
    match text {
        "start" => return Ok(When::Start),
        "end" => return Ok(When::End),
        _ => {}
    }
    if let Some(text) = text.strip_prefix('+') {
        return step(text).map(When::After);
    }
    if let Some(text) = text.strip_prefix('-') {
        return step(text).map(When::Before);
    }
    wall(text).map(When::Wall).or_else(|| of_day(text).map(When::OfDay)).ok_or_else(|| {
        Refused(format!(
            "'{text}' is not a moment: start, end, +10m, -5m, 2026-11-21T14:00:00Z, 14:00 or 14:00:30 (UTC)"
        ))
    })
}

/// "2026-11-21T14:00:00Z", as every time is written here.
fn wall(text: &str) -> Option<i64> {
    let (date, time) = text.strip_suffix('Z')?.split_once('T')?;
    let mut fields = date.splitn(3, '-').map(|field| field.parse::<i64>().ok());
    let (year, month, day) = (fields.next()??, fields.next()??, fields.next()??);
    Some(days_since_1970(year, month, day)? * DAY_MS + of_day(time)?)
}

fn of_day(text: &str) -> Option<i64> {
    let mut fields = text.splitn(3, ':');
    let hour: i64 = fields.next()?.parse().ok()?;
    let minute: i64 = fields.next()?.parse().ok()?;
    let second: f64 = fields.next().map_or(Some(0.0), |field| field.parse().ok())?;
    let is_time = (0..24).contains(&hour) && (0..60).contains(&minute) && (0.0..61.0).contains(&second);
    is_time.then(|| (hour * 3600 + minute * 60) * 1000 + (second * 1000.0) as i64)
}

/// The moment of a JVM's history whose account is meant: the last one at or before, the first where there is none before.
/// `None`: no account was recorded.
pub fn find(history: &History, when: When) -> Option<usize> {
    let (first, last) = (history.moments.first()?, history.moments.last()?);
    let milliseconds = |duration: Duration| u64::try_from(duration.as_millis()).unwrap_or(Bytes::MAX);
    let at = match when {
        When::Start => Some(first_known(history)),
        When::End => Some(history.len() - 1),
        When::After(step) => history.at_or_before(first.steady_ms.saturating_add(milliseconds(step))),
        When::Before(step) => history.at_or_before(last.steady_ms.saturating_sub(milliseconds(step))),
        When::Wall(wall_ms) => history.nearest_wall(wall_ms),
        When::OfDay(of_day_ms) => {
            let day = |moment_ms: i64| {
                moment_ms.saturating_sub(moment_ms.rem_euclid(DAY_MS)).saturating_add(of_day_ms)
            };
            // Over midnight, the day on which it was recorded at that time.
            let days = [day(first.wall_ms), day(last.wall_ms)];
            let inside = days.into_iter().find(|at| (first.wall_ms..=last.wall_ms).contains(at));
            history.nearest_wall(inside.unwrap_or(days[0]))
        }
    }?;
    let accounts = history.accounts();
    let after = accounts.partition_point(|account| *account <= at);
    accounts.get(after.saturating_sub(1)).copied()
}

/// The first account that knows the Java heap: one that was read while the JVM was just starting has too little to be compared.
fn first_known(history: &History) -> usize {
    let heap = Key::of(&Subject::Area(Area::JavaHeap), Measure::Resident);
    let knows = |at: &usize| history.value(&heap, *at).is_some();
    history.accounts().into_iter().find(knows).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::writer::{JvmFacts, Scope, Session, Writer};
    use crate::record::{Moment, reader};

    #[test]
    fn every_form_of_a_moment() {
        assert_eq!((parse("start"), parse("end")), (Ok(When::Start), Ok(When::End)));
        assert_eq!(parse("+10m"), Ok(When::After(Duration::from_secs(600))));
        assert_eq!(parse("-1.5h"), Ok(When::Before(Duration::from_secs(5400))));
        assert_eq!(parse("2000-02-29T12:34:56Z"), Ok(When::Wall(951_827_696_000)));
        assert_eq!(parse("1970-01-01T00:00:00Z"), Ok(When::Wall(0)));
        assert_eq!(parse("2026-12-31T23:59:59Z"), Ok(When::Wall(1_798_761_599_000)));
        assert_eq!(parse("14:00:30"), Ok(When::OfDay(50_430_000)));
        for bad in [
            "",
            "soon",
            "25:00",
            "2026-13-01T00:00:00Z",
            "+",
            "+x",
            "14",
            "2026-11-21",
            "99999-01-01T00:00:00Z",
        ] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }

    /// A sample each second for ten minutes from 23:55 on, the account each ten seconds from the third on.
    fn history() -> History {
        let midnight = 20_000 * DAY_MS;
        let mut writer = Writer::new(&Session::default());
        let jvm = writer.jvm(JvmFacts::default());
        for second in 0..600 {
            let at = Moment { steady_ms: second * 1000, wall_ms: midnight - 300_000 + second as i64 * 1000 };
            let look = (Key::process(Measure::KernelResident), Some(second));
            let account = (Key::process(Measure::AccountAt), Some(at.steady_ms));
            match second % 10 {
                3 => writer.sample(jvm, at, Scope::Account, &[look, account]),
                _ => writer.sample(jvm, at, Scope::Glance, &[look]),
            }
        }
        reader::read(&[&writer.take()]).expect("a recording").jvms.remove(0)
    }

    #[test]
    fn the_account_that_was_known_at_a_moment() {
        let history = history();
        let of = |text: &str| find(&history, parse(text).expect("a moment"));
        assert_eq!((of("start"), of("end")), (Some(3), Some(593)));
        assert_eq!((of("+1m"), of("+63s"), of("-9m")), (Some(53), Some(63), Some(53)));
        assert_eq!((of("23:56"), of("00:01"), of("12:00")), (Some(53), Some(353), Some(3)));
        assert_eq!(find(&History::default(), When::Start), None);
    }
}
