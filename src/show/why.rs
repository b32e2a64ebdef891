//! What fills the memory, for people: the answers in the first lines, then how each is known and what to do.

use crate::base::style::Style;
use crate::base::{Bytes, Gap, word_of};
use crate::map::model::GapRow;
use crate::show::json::Head;
use crate::show::units::{columns, human, human_signed, led, painted, shorten};
use crate::show::width::width;
use crate::show::{doctor, paint};
use crate::why::{Answer, Look};
use schemars::JsonSchema;
use serde::Serialize;
use std::io::{self, Write};

/// The answers about one JVM.
pub struct Shown<'a> {
    /// The main class, the jar or the module.
    pub name: Option<String>,
    pub looks: &'a [Look],
    /// The worst first.
    pub answers: &'a [Answer],
    /// The time it was watched.
    pub seconds: f64,
    /// The time that reading took.
    pub read_ms: f64,
    /// Why the samples ended early.
    pub ended: Option<&'a Gap>,
    /// What rules could not judge.
    pub findings_gaps: &'a [Gap],
}

/// `marusa why --json`.
#[derive(JsonSchema, Serialize)]
pub struct WhyDocument<'a> {
    #[serde(flatten)]
    head: Head,
    process: ProcessRow<'a>,
    /// The time it was watched; 0: one sample.
    watched_seconds: f64,
    looks: usize,
    /// The time that reading the process took.
    read_ms: f64,
    resident_bytes: Option<Bytes>,
    /// `None`: one sample.
    resident_bytes_per_hour: Option<i64>,
    /// The worst first; empty: nothing unusual.
    answers: &'a [Answer],
    gaps: Vec<GapRow>,
}

#[derive(JsonSchema, Serialize)]
struct ProcessRow<'a> {
    pid: i32,
    main: Option<&'a str>,
    started: Option<&'a str>,
}

impl<'a> WhyDocument<'a> {
    pub fn of(shown: &'a Shown) -> WhyDocument<'a> {
        let last = shown.looks.last();
        let process = last.map(|look| &look.account.process);
        WhyDocument {
            head: Head::now("marusa/why/1"),
            process: ProcessRow {
                pid: process.map_or(0, |process| process.pid),
                main: shown.name.as_deref(),
                started: process.and_then(|process| process.started.as_deref()),
            },
            watched_seconds: (shown.seconds * 10.0).round() / 10.0,
            looks: shown.looks.len(),
            read_ms: (shown.read_ms * 100.0).round() / 100.0,
            resident_bytes: last.map(|look| look.account.kernel_or_resident_bytes()),
            resident_bytes_per_hour: shown.per_hour(),
            answers: shown.answers,
            gaps: shown.gaps(),
        }
    }
}

impl Shown<'_> {
    /// Growth of the whole process: the bytes that became resident, and in how many seconds.
    fn grown(&self) -> Option<(i64, f64)> {
        let (first, last) = (self.looks.first()?, self.looks.last()?);
        let seconds = last.seconds - first.seconds;
        let resident = |look: &Look| look.account.kernel_or_resident_bytes() as i64;
        (seconds > 0.0).then(|| (resident(last) - resident(first), seconds))
    }

    fn per_hour(&self) -> Option<i64> {
        self.grown().map(|(bytes, seconds)| (bytes as f64 / seconds * 3600.0) as i64)
    }

    fn gaps(&self) -> Vec<GapRow> {
        let of_account = self.looks.last().into_iter().flat_map(|look| look.account.gaps.iter().cloned());
        let mut gaps: Vec<GapRow> = self.ended.into_iter().map(GapRow::from).collect();
        for gap in of_account.chain(self.findings_gaps.iter().map(GapRow::from)) {
            if !gaps.contains(&gap) {
                gaps.push(gap);
            }
        }
        if self.looks.len() == 1 {
            let why = "one sample shows no growth".to_string();
            gaps.push(GapRow { what: "resident_bytes_per_hour".to_string(), why, hint: None });
        }
        for (place, answer) in self.answers.iter().enumerate() {
            let unknown = [
                ("who", answer.who.is_none(), "the rule is about the whole process"),
                ("bytes", answer.bytes.is_none(), "it is not an amount of memory"),
                ("bytes_per_hour", answer.bytes_per_hour.is_none(), "it is large; it was not seen to grow"),
            ];
            gaps.extend(unknown.into_iter().filter(|(_, is_unknown, _)| *is_unknown).map(|(key, _, why)| {
                GapRow { what: format!("answers[{place}].{key}"), why: why.to_string(), hint: None }
            }));
        }
        gaps
    }
}

pub fn text(out: &mut dyn Write, shown: &Shown) -> io::Result<()> {
    paint::line(out, Style::Bold, &shorten(&head(shown), width()))?;
    for (place, answer) in shown.answers.iter().enumerate() {
        let first = format!("{} {:<9}", place + 1, answer.level.word().to_uppercase());
        let next = " ".repeat(columns(&first));
        painted(out, (&first, doctor::style(answer.level)), &next, (&said(answer), Style::Plain))?;
    }
    if shown.answers.is_empty() {
        let grown = if shown.looks.len() > 1 { "nothing that grows all the time, and " } else { "" };
        led(out, "", &format!("Nothing unusual: {grown}nothing that the doctor's rules call large."))?;
        if shown.looks.len() > 1 {
            led(out, "", "What grows slowly shows in hours: `marusa record`, then `marusa leak`.")?;
        }
    }
    if let Some(gap) = shown.ended {
        led(out, "", &format!("Fewer samples than planned: {gap}."))?;
    }
    for (place, answer) in shown.answers.iter().enumerate() {
        writeln!(out)?;
        led(out, &format!("{} how   ", place + 1), &format!("{} ({})", answer.how, word_of(&answer.sure)))?;
        for (word, text) in [("next", &answer.next), ("fix", &answer.fix)] {
            if let Some(text) = text {
                led(out, &format!("  {word:<6}"), text)?;
            }
        }
        if let Some(id) = answer.finding {
            led(out, "  more  ", &format!("marusa doctor --explain {id}"))?;
        }
    }
    Ok(())
}

fn head(shown: &Shown) -> String {
    let Some(last) = shown.looks.last() else { return String::new() };
    let resident = human(last.account.kernel_or_resident_bytes());
    let watched = shown.grown().map_or("one sample".to_string(), |(bytes, _)| {
        format!("watched for {:.0} s, {}", shown.seconds, human_signed(bytes))
    });
    let name = shown.name.as_ref().map_or(String::new(), |name| format!(" {name}"));
    format!("pid {}{name}: {resident} resident, {watched}", last.account.process.pid)
}

fn said(answer: &Answer) -> String {
    let who = answer.who.as_ref().map_or(String::new(), |who| format!(": {who}"));
    let bytes = answer.bytes.map(human);
    let rate = answer.bytes_per_hour.map(|rate| format!("{}/h", human_signed(rate)));
    let figures: Vec<String> = bytes.into_iter().chain(rate).collect();
    let figures = if figures.is_empty() { String::new() } else { format!("; {}", figures.join(", ")) };
    format!("{}{who}{figures}", answer.what)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Level;
    use crate::map::{Account, Area};
    use crate::show::width::within;
    use crate::why::Sure;

    fn shown(answers: &[Answer], seconds: f64) -> (String, serde_json::Value) {
        let look = |seconds: f64, bytes: u64| Look {
            seconds,
            account: Account::made_up(&[(Area::MallocUnknown, bytes)]),
            ..Look::default()
        };
        let looks = [look(0.0, 90 << 20), look(30.0, 100 << 20)];
        let shown = Shown {
            name: Some("app.Main\u{1b}[2J".to_string()),
            looks: &looks[usize::from(seconds == 0.0)..],
            answers,
            seconds,
            read_ms: 12.0,
            ended: None,
            findings_gaps: &[],
        };
        let mut out = Vec::new();
        text(&mut out, &shown).expect("text");
        let document = serde_json::to_value(WhyDocument::of(&shown)).expect("JSON");
        (String::from_utf8(out).expect("UTF-8"), document)
    }

    fn answer(bytes: Option<u64>) -> Answer {
        Answer {
            what: "objects that are not closed: org.rocksdb.RocksIterator".to_string(),
            who: Some("org.rocksdb.RocksIterator.nativeHandle_".to_string()),
            level: Level::Warn,
            bytes,
            bytes_per_hour: Some(700 << 20),
            how: "21765 blocks of malloc of rocksdb::ArenaWrappedDBIter, by field".to_string(),
            sure: Sure::Certain,
            next: Some("marusa map 7 --by holder".to_string()),
            fix: None,
            finding: Some("native-memory-not-closed"),
            area: None,
        }
    }

    #[test]
    fn the_answers_stand_first_and_fit_any_width() {
        for columns in [60, 80, 100] {
            let (page, _) = within(columns, || shown(&[answer(Some(20 << 20)), answer(None)], 30.0));
            assert!(page.lines().all(|line| line.chars().count() <= columns), "{page}");
            assert!(!page.contains('\u{1b}'), "{page}");
            let first: String = page.lines().take(5).collect();
            assert!(first.contains("org.rocksdb.RocksIterator") && first.contains("+700.0 MiB/h"), "{page}");
        }
    }

    #[test]
    fn nothing_unusual_is_said_and_one_look_says_nothing_of_growth() {
        let (page, document) = shown(&[], 30.0);
        assert!(page.contains("watched for 30 s, +10.0 MiB\nNothing unusual: nothing that grows"), "{page}");
        assert_eq!(document["answers"], serde_json::json!([]));
        let (page, document) = shown(&[], 0.0);
        assert!(page.contains("one sample\nNothing unusual: nothing that the doctor's"), "{page}");
        assert!(document["resident_bytes_per_hour"].is_null());
    }

    #[test]
    fn what_is_not_known_is_null_with_a_gap() {
        let (_, document) = shown(&[answer(None)], 30.0);
        let (answer, gaps) = (&document["answers"][0], document["gaps"].as_array().expect("gaps"));
        assert!(
            answer["bytes"].is_null() && answer["bytes_per_hour"] == 700 << 20 && answer["sure"] == "certain"
        );
        assert_eq!(gaps.iter().map(|gap| &gap["what"]).collect::<Vec<_>>(), ["answers[0].bytes"]);
    }
}
