//! Leak or not, in words: first what grows without bound or towards its bound, then what cannot be judged yet and when it can,
//! then what levels off.

mod held;
mod json;
#[cfg(test)]
mod tests;

pub use json::LeakDocument;

use super::width::width;
use crate::base::style::Style;
use crate::measure::growth::{Caveat, Growth, Rate, Verdict};
use crate::os::pidfd::Exit;
use crate::record::headline::{self, Headline};
use crate::record::leak_row::{Counted, Row, What};
use crate::record::since::{FULL_SHARE, Since};
use crate::record::writer::Ending;
use crate::record::{History, Measure, compiled};
use crate::show::paint;
use crate::show::units::{counted, fitted, human, human_signed, indented, led, painted, paragraph, shorten};
use std::io::{self, Write};

pub const SCHEMA: &str = "marusa/leak/2";

/// A JVM, its verdicts, and the samples after its last account.
pub type Judged<'a> = (&'a History, Vec<Row>, Since);

/// One JVM with all of its rows; of several, the answer to each.
pub fn text(out: &mut dyn Write, judged: &[Judged]) -> io::Result<()> {
    if let [only] = judged {
        return one(out, only);
    }
    for (history, rows, since) in judged {
        writeln!(out, "{}", shorten(&history.title(), width()))?;
        paragraph(out, "  ", "  ", &answer(rows, since))?;
    }
    writeln!(out, "\n--jvm PID shows one of them in full")
}

fn one(out: &mut dyn Write, (history, rows, since): &Judged) -> io::Result<()> {
    writeln!(out, "{}", shorten(&history.title(), width()))?;
    if let (Some(first), Some(last)) = (history.moments.first(), history.moments.last()) {
        let (from, to) = (first.wall(), last.wall());
        let (samples, accounts) =
            (counted(history.len(), "sample"), counted(history.accounts().len(), "account"));
        indented(out, &format!("{from} to {to}, {samples}, {accounts}"), 0)?;
    }
    if let Some(at) = &since.account {
        let age = time(since.seconds / 60.0);
        indented(out, &format!("last account {at}, {age} before the last sample"), 0)?;
    }
    if let Some(at) = &since.holders {
        let times = counted(history.holders().len(), "time");
        indented(out, &format!("holders of malloc's blocks last read {at}, {times} in all"), 0)?;
    }
    if let Some(at) = &since.classes {
        let times = counted(history.reads(Measure::ClassesAt).len(), "time");
        indented(out, &format!("classes of the heap's objects last counted {at}, {times} in all"), 0)?;
    }
    writeln!(out)?;
    painted(out, ("", Style::Plain), "", (&answer(rows, since), Style::Bold))?;
    if let Some(jump) = compiled::jumps(history).first() {
        let (grown, methods) = (human(jump.grown_bytes), jump.methods_in_words());
        let text =
            format!("JIT work jumped by up to {grown}, as read at {}; compiled then: {methods}", jump.at);
        paragraph(out, "", "", &text)?;
    }
    if let Some(advice) = held::advice(history, &headline::of(rows).1) {
        paragraph(out, "", "", advice)?;
    }
    for (verdict, title) in [
        (Verdict::GrowsWithoutBound, "grows without bound"),
        (Verdict::GrowsToBound, "grows towards its bound"),
        (Verdict::CannotTellYet, "cannot be judged yet"),
        (Verdict::LevelsOff, "levels off"),
    ] {
        let of_it: Vec<&Row> = rows.iter().filter(|row| row.growth.verdict == verdict).collect();
        if of_it.is_empty() {
            continue;
        }
        let said: Vec<String> = of_it.iter().map(|row| words(&row.growth)).collect();
        // Of a short recording all says the same.
        let is_one = said.len() > 2 && said.iter().all(|words| *words == said[0]);
        writeln!(out)?;
        paint::put(out, style(verdict), title)?;
        writeln!(out, "{}", if is_one { format!(", {}:", said[0]) } else { ":".to_string() })?;
        let mut rows = of_it.iter().zip(&said);
        rows.try_for_each(|(row, words)| line(out, row, Some(words).filter(|_| !is_one)))?;
    }
    Ok(())
}

fn style(verdict: Verdict) -> Style {
    match verdict {
        Verdict::GrowsWithoutBound => Style::Red,
        Verdict::GrowsToBound => Style::Yellow,
        Verdict::CannotTellYet => Style::Bold,
        Verdict::LevelsOff => Style::Green,
    }
}

/// The answer: how it ended, what grows, and what the last account is too old to show.
pub fn answer(rows: &[Row], since: &Since) -> String {
    [ended(since), Some(growing(rows, since)), held::of_unknown_heap(rows), unread(since)]
        .into_iter()
        .flatten()
        .collect::<Vec<_>>()
        .join(" ")
}

fn ended(since: &Since) -> Option<String> {
    let killed = matches!(since.ending, Some((_, Ending::KilledForMemory)));
    // Of a JVM that was asked to end, nothing is said (143 is SIGTERM, 130 SIGINT).
    let exit = match since.ending {
        Some((_, Ending::Exit(exit))) if exit.is_crash() => Some(format!(
            "It {}: a crash, of which HotSpot leaves hs_err_pid<PID>.log in its working directory.",
            exit.in_words()
        )),
        Some((_, Ending::Exit(Exit::Status(0 | 130 | 143)))) => None,
        Some((_, Ending::Exit(exit))) => Some(format!("It {}.", exit.in_words())),
        _ => None,
    };
    match (killed, since.full_heap) {
        (true, _) => Some("The kernel killed it for lack of memory.".to_string()),
        (_, Some((used, max))) => {
            let heap = format!(
                "It ended with a full heap: {} of {} were in use after the last collection.",
                human(used),
                human(max)
            );
            Some([Some(heap), exit].into_iter().flatten().collect::<Vec<_>>().join(" "))
        }
        _ => exit,
    }
}

/// Growth since the last account, whose owner is unknown.
fn unread(since: &Since) -> Option<String> {
    let grown = since.grown().map(|bytes| format!("{} resident since, owner not read", human_signed(bytes)));
    let age = time(since.seconds / 60.0);
    match (&since.account, grown) {
        (None, None) => Some("No account was read.".to_string()),
        (None, Some(grown)) => Some(format!("No account was read in {age}: {grown}.")),
        (Some(_), None) if !since.is_stale() => None,
        (Some(at), None) => Some(format!("Not read since {at}, {age} before the last sample.")),
        (Some(at), Some(grown)) => {
            Some(format!("Not read since {at}, {age} before the last sample: {grown}."))
        }
    }
}

fn growing(rows: &[Row], since: &Since) -> String {
    let (headline, named) = headline::of(rows);
    let later = rows.iter().filter_map(|row| row.growth.needs_minutes).reduce(f64::max);
    match headline {
        Headline::Grows => grown(&named) + &counts(&named) + &held::sentence(&named),
        Headline::Early => {
            let early = named.first().map_or(String::new(), |row| early(row, since));
            early + &counts(&named) + &held::sentence(&named)
        }
        Headline::OnlyTogether => {
            "All memory except the Java heap, taken together, grows without bound, but no single area \
                                   certainly does yet."
                .to_string()
        }
        Headline::NothingYet | Headline::Nothing if since.is_stale() => {
            "Nothing grew without bound until the last account.".to_string()
        }
        Headline::NothingYet => match later {
            Some(minutes) => {
                format!("Nothing grows without bound so far; {} more may settle the rest.", time(minutes))
            }
            None => "Nothing grows without bound as far as can be judged.".to_string(),
        },
        Headline::Nothing => "Nothing grows without bound.".to_string(),
        Headline::NothingJudged => "The recording contains nothing that could be judged.".to_string(),
    }
}

/// What the named areas grow with.
fn counts(named: &[&Row]) -> String {
    let mut causes: Vec<(&Counted, Vec<String>)> = Vec::new();
    for row in named {
        let Some(with) = &row.with else { continue };
        match causes.iter_mut().find(|(counted, _)| counted.count == with.count) {
            Some((_, areas)) => areas.push(title(&row.what)),
            None => causes.push((with, vec![title(&row.what)])),
        }
    }
    let sentence = |(counted, areas): (&Counted, Vec<String>)| {
        let verb = if areas.len() == 1 { "grows" } else { "grow" };
        let name = counted.name.as_ref().map_or(String::new(), |name| format!("{name}, "));
        let areas = capitalized(&areas.join(" and "));
        format!(" {areas} {verb} with the number of {}: {name}{:+}.", counted.count.title(), counted.grown)
    };
    causes.into_iter().map(sentence).collect()
}

/// What has a verdict: first what has no bound, then what has one.
fn grown(named: &[&Row]) -> String {
    let unbounded: Vec<String> = named
        .iter()
        .filter(|row| row.growth.verdict == Verdict::GrowsWithoutBound)
        .map(|row| format!("{} ({}/h)", title(&row.what), signed(row.pace())))
        .collect();
    let bounded = named.iter().filter(|row| row.growth.verdict == Verdict::GrowsToBound);
    let mut sentences: Vec<String> = bounded.map(|row| towards_bound(row)).collect();
    if !unbounded.is_empty() {
        sentences.insert(0, format!("Grows without bound: {}.", unbounded.join(", ")));
    }
    sentences.join(" ")
}

fn towards_bound(row: &Row) -> String {
    let (pace, bound) = (row.pace(), row.growth.bound_bytes.unwrap_or(0));
    let level = row.growth.level_bytes;
    let left = bound.saturating_sub(level) as f64;
    let when = time(left / pace.max(1.0) * 60.0);
    let name = capitalized(&title(&row.what));
    if level as f64 >= bound as f64 * FULL_SHARE {
        return format!(
            "{name}: grew by {}/h to {}, its bound is {}.",
            signed(pace),
            human(level),
            human(bound)
        );
    }
    format!("{name}: grows by {}/h towards its bound of {}, reached in {when}.", signed(pace), human(bound))
}

/// Verdicts that later samples cannot change.
fn early(row: &Row, since: &Since) -> String {
    let growth = &row.growth;
    let but = match growth.caveat {
        Some(Caveat::StillSlowing) => " more and more slowly",
        Some(Caveat::Steps) => " in a few steps",
        _ => "",
    };
    let later = growth
        .needs_minutes
        .map_or(String::new(), |minutes| format!("; {} more may settle it", time(minutes)));
    let grown = human_signed(growth.grown_bytes);
    let name = capitalized(&title(&row.what));
    if since.is_gone() {
        return format!("{name}: {grown} in {}{but}, until it ended.", time(growth.grown_seconds / 60.0));
    }
    format!(
        "{name}: {grown} in {}{but}, too early to call it unbounded{later}.",
        time(growth.grown_seconds / 60.0)
    )
}

fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

fn line(out: &mut dyn Write, row: &Row, words: Option<&String>) -> io::Result<()> {
    const NAME: usize = 34;
    let name = fitted(&title(&row.what), NAME.min(width() / 2));
    let words = words.map_or(String::new(), |words| format!(": {words}"));
    let text = format!("{}{words}", human(row.growth.level_bytes));
    led(out, &format!("  {name} "), &text)
}

pub(super) fn words(growth: &Growth) -> String {
    let seen = time(growth.steady_seconds / 60.0);
    let rate = growth.rate.map(|rate| range(&rate));
    match growth.verdict {
        Verdict::GrowsWithoutBound => format!("{}, seen for {seen}", rate.unwrap_or_default()),
        Verdict::GrowsToBound => {
            let bound = human(growth.bound_bytes.unwrap_or(0));
            format!("{}, at most to {bound}, seen for {seen}", rate.unwrap_or_default())
        }
        Verdict::LevelsOff => match growth.rate {
            Some(rate) if rate.high_bytes_per_hour > 0.0 => {
                format!("at most {}/h more, seen for {seen}", human(rate.high_bytes_per_hour as u64))
            }
            _ => format!("it does not grow, seen for {seen}"),
        },
        Verdict::CannotTellYet => {
            let why = growth.caveat.map_or("", |caveat| caveat.words());
            let later = growth
                .needs_minutes
                .map_or(String::new(), |minutes| format!("; needs {} more", time(minutes)));
            let rate = rate.map_or(String::new(), |rate| format!(" ({rate})"));
            format!("{why}{rate}{later}")
        }
    }
}

fn range(rate: &Rate) -> String {
    let (low, high) = (signed(rate.low_bytes_per_hour), signed(rate.high_bytes_per_hour));
    format!("{}/h ({low} to {high})", signed(rate.bytes_per_hour))
}

fn signed(bytes: f64) -> String {
    human_signed(bytes as i64)
}

/// "40 s", "12 min", "3.5 h", "2 d".
fn time(minutes: f64) -> String {
    match minutes {
        minutes if minutes < 2.0 => format!("{:.0} s", (minutes * 60.0).ceil()),
        minutes if minutes < 120.0 => format!("{:.0} min", minutes.ceil()),
        minutes if minutes < 48.0 * 60.0 => format!("{:.1} h", minutes / 60.0),
        minutes => format!("{:.0} d", (minutes / 1440.0).ceil()),
    }
}

pub(super) fn title(what: &What) -> String {
    match what {
        What::All => "all but the Java heap".to_string(),
        What::HeapInUse => "Java heap after collections".to_string(),
        What::Area(area) => area.title().to_string(),
        What::Part(area, part) => format!("{} / {part}", area.title()),
        What::Named(kind, name) => format!("{} / {name}", kind.word()),
    }
}
