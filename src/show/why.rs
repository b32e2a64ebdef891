//! What fills the memory, for people: the answers in the first lines, then how each is known and what to do.

use crate::base::{Bytes, Gap};
use crate::map::model::GapRow;
use crate::show::json::Head;
use crate::show::units::{human, human_signed, led, shorten};
use crate::show::width::width;
use crate::why::{Answer, Look};
use schemars::JsonSchema;
use serde::Serialize;
use std::io::{self, Write};

/// What is said of one JVM.
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
    /// Why the looks ended early.
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
    /// The time it was watched; 0: one look.
    watched_seconds: f64,
    looks: usize,
    /// The time that reading the process took.
    read_ms: f64,
    resident_bytes: Option<Bytes>,
    /// `None`: one look.
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
    /// Of the whole process.
    fn per_hour(&self) -> Option<i64> {
        let (first, last) = (self.looks.first()?, self.looks.last()?);
        let seconds = last.seconds - first.seconds;
        let resident = |look: &Look| look.account.kernel_or_resident_bytes() as f64;
        (seconds > 0.0).then(|| ((resident(last) - resident(first)) / seconds * 3600.0) as i64)
    }

    fn gaps(&self) -> Vec<GapRow> {
        let of_account = self.looks.last().into_iter().flat_map(|look| look.account.gaps.iter().cloned());
        let mut gaps: Vec<GapRow> = self.ended.into_iter().map(GapRow::from).collect();
        for gap in of_account.chain(self.findings_gaps.iter().map(GapRow::from)) {
            if !gaps.contains(&gap) {
                gaps.push(gap);
            }
        }
        for (place, answer) in self.answers.iter().enumerate() {
            let unknown = [
                ("who", answer.who.is_none(), "the rule is about the whole process"),
                ("bytes", answer.bytes.is_none(), "it is not an amount of memory"),
                ("bytes_per_hour", answer.bytes_per_hour.is_none(), "it is large; it was not seen to grow"),
            ];
            gaps.extend(unknown.into_iter().filter(|(_, is_unknown, _)| *is_unknown).map(|(key, _, why)| GapRow {
                what: format!("answers[{place}].{key}"),
                why: why.to_string(),
                hint: None,
            }));
        }
        gaps
    }
}

pub fn text(out: &mut dyn Write, shown: &Shown) -> io::Result<()> {
    writeln!(out, "{}", shorten(&head(shown), width()))?;
    for (place, answer) in shown.answers.iter().enumerate() {
        led(out, &format!("{} {:<9}", place + 1, answer.level.word().to_uppercase()), &said(answer))?;
    }
    if shown.answers.is_empty() {
        let grown = if shown.looks.len() > 1 { "nothing that grows all the time, and " } else { "" };
        led(out, "", &format!("Nothing unusual: {grown}nothing that the doctor's rules call large."))?;
        if shown.looks.len() > 1 {
            led(out, "", "What grows slowly shows in hours: `marusa record`, then `marusa leak`.")?;
        }
    }
    if let Some(gap) = shown.ended {
        led(out, "", &format!("Fewer looks than planned: {gap}."))?;
    }
    for (place, answer) in shown.answers.iter().enumerate() {
        writeln!(out)?;
        led(out, &format!("{} how   ", place + 1), &format!("{} ({})", answer.how, answer.sure.word()))?;
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
    let watched = match shown.per_hour() {
        Some(rate) => format!("watched for {:.0} s, {}/h", shown.seconds, human_signed(rate)),
        None => "one look".to_string(),
    };
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
