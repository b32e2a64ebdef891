//! The table of steps that `apply` and `undo` share: what was there, what is, and the way back.

use crate::pages::changes::{Change, Goal, How, Seen, Step, content};
use crate::show::table::Table;
use crate::show::units::{human, shorten, wrapped};
use crate::show::width::width as line_width;
use schemars::JsonSchema;
use serde::Serialize;
use std::io::{self, Write};

const STATE_COLUMNS: usize = 11;
const BACK_COLUMNS: usize = 24;

/// A line of the table, and the remarks below it.
pub struct Row {
    pub step: usize,
    pub place: String,
    pub before: String,
    pub after: String,
    pub back: String,
    pub notes: Vec<String>,
    /// Lines of the file that it makes, as they are.
    pub text: Vec<String>,
}

pub fn table(out: &mut dyn Write, last: &str, rows: &[Row]) -> io::Result<()> {
    let titles = [">STEP", "PLACE", "BEFORE", "AFTER", last];
    let mut table = Table::new(titles).shortened(1, 16);
    for row in rows {
        let (before, after) = (shorten(&row.before, STATE_COLUMNS), shorten(&row.after, STATE_COLUMNS));
        let number = (row.step + 1).to_string();
        table.row([number, row.place.clone(), before, after, shorten(&row.back, BACK_COLUMNS)]);
        row.notes.iter().for_each(|note| table.note("      ", &plain(note)));
        row.text.iter().for_each(|line| table.note("      ", line));
    }
    table.write(out)
}

/// A plan's texts may come from another user: none of them moves the cursor.
pub fn plain(text: &str) -> String {
    crate::base::printable::escaped(text).into_owned()
}

/// What a step does, in words that are made of the step itself: what its author says of it may be anything.
pub fn described(change: &Change) -> String {
    let words = match change {
        Change::Add { file, by } => format!("{file} +{by}"),
        Change::Choose { file, word } => format!("{file} {word}"),
        Change::Set { file, value } => format!("{file} {value}"),
        Change::Create { file, .. } => format!("new file {file}"),
        Change::Directory { path } => format!("new directory {path}"),
        Change::MountTmpfs { at, options } => format!("tmpfs {at} ({options})"),
        Change::CopyTree { from, to, linked } if linked.is_empty() => format!("copy {from} to {to}"),
        Change::CopyTree { from, to, linked } => {
            format!("copy {from} to {to}, with links to {}", linked.join(", "))
        }
        Change::SwapFile { file, bytes } => format!("swap to {file}, {}", human(*bytes)),
        Change::MemoryGroup { path, limit_bytes } => {
            format!("make the group {path} with {}", human(*limit_bytes))
        }
    };
    plain(&words)
}

/// The whole text of the file that a step makes, line by line; long lines go on in the next, further in.
pub fn file_text(change: &Change) -> Vec<String> {
    let Change::Create { content, .. } = change else { return Vec::new() };
    let text = content::text(content);
    let line = |line: &str| {
        let parts = wrapped(&plain(line), line_width().saturating_sub(16));
        let marked = |(at, part): (usize, String)| format!("{}{part}", if at == 0 { "| " } else { "|     " });
        parts.into_iter().enumerate().map(marked).collect::<Vec<String>>()
    };
    text.split_terminator('\n').flat_map(line).collect()
}

/// A remark below its step.
pub fn indented(out: &mut dyn Write, note: &str) -> io::Result<()> {
    wrapped(&plain(note), line_width() - 6).iter().try_for_each(|line| writeln!(out, "      {line}"))
}

/// A remark of the whole.
pub fn remark(out: &mut dyn Write, text: &str) -> io::Result<()> {
    wrapped(&plain(text), line_width()).iter().try_for_each(|line| writeln!(out, "{line}"))
}

pub fn seen(seen: Option<&Seen>) -> String {
    match seen {
        None => "-".to_string(),
        Some(Seen::Absent) => "not there".to_string(),
        Some(Seen::Number { value, .. }) => value.to_string(),
        Some(Seen::Word { word, .. }) => word.clone(),
        Some(Seen::Same) => "there".to_string(),
        Some(Seen::Part) => "in part".to_string(),
        Some(Seen::Foreign) => "other text".to_string(),
        Some(Seen::Directory { empty: true }) => "empty".to_string(),
        Some(Seen::Directory { empty: false }) => "directory".to_string(),
        Some(Seen::Mount { .. }) => "mounted".to_string(),
        Some(Seen::Other) => "other".to_string(),
    }
}

pub fn goal(goal: Option<&Goal>) -> String {
    match goal {
        None => "-".to_string(),
        Some(Goal::Number { value }) => value.to_string(),
        Some(Goal::Word { word }) => word.clone(),
        Some(Goal::There) => "there".to_string(),
        Some(Goal::Absent) => "not there".to_string(),
    }
}

/// What undo will do about a step.
pub fn way_back(change: &Change, before: Option<&Seen>, already: bool) -> String {
    match change {
        _ if already => "none: it was so before".to_string(),
        Change::Add { by, .. } => format!("{by} less"),
        Change::Choose { .. } | Change::Set { .. } => format!("{} unless changed", seen(before)),
        Change::Create { .. } => "removed unless changed".to_string(),
        Change::Directory { .. } => "removed when empty".to_string(),
        Change::MountTmpfs { .. } => "unmounted when unused".to_string(),
        Change::CopyTree { .. } => "goes with its tmpfs".to_string(),
        Change::SwapFile { .. } => "swapped back, removed".to_string(),
        Change::MemoryGroup { .. } => "removed when empty".to_string(),
    }
}

pub fn how(how: How) -> &'static str {
    match how {
        How::Restored => "restored",
        How::NotMade => "was never made",
        How::Gone => "was gone already",
        How::Left => "LEFT",
    }
}

/// A step of a plan in JSON; what happened to it is added to that.
#[derive(JsonSchema, Serialize)]
pub struct StepRow<'a> {
    step: usize,
    place: &'a str,
    /// The text of the file that it makes.
    text: Option<String>,
    #[serde(flatten)]
    of: &'a Step,
}

impl<'a> StepRow<'a> {
    pub fn of((index, of): (usize, &'a Step)) -> StepRow<'a> {
        let text = match &of.change {
            Change::Create { content, .. } => Some(content::text(content)),
            _ => None,
        };
        StepRow { step: index + 1, place: of.change.place(), text, of }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pages::changes::content::Content;

    #[test]
    fn the_table_fits_and_a_plan_moves_no_cursor() {
        let row = |place: &str, before: &str| Row {
            step: 998,
            place: place.repeat(30),
            before: before.repeat(9),
            after: "always".into(),
            back: "always unless changed and so on".into(),
            notes: vec!["risk: \x1b[2Jgone ".repeat(30)],
            text: Vec::new(),
        };
        let mut out = Vec::new();
        table(&mut out, "WAY BACK", &[row("/sys/\x1b[2J", "nev\r"), row("/a", "1")]).expect("written");
        let text = String::from_utf8(out).expect("UTF-8");
        assert!(text.lines().all(|line| line.chars().count() <= line_width()), "{text}");
        assert!(text.chars().all(|letter| letter == '\n' || !letter.is_control()), "{text:?}");
    }

    #[test]
    fn the_whole_text_of_a_file_is_shown() {
        let java_options: Vec<String> = (1..40).map(|number| format!("-Xmx{number}g")).collect();
        let content = Content::Unit { memlock_bytes: None, java_options };
        let change = Change::Create { file: "/etc/systemd/system/a.service.d/marusa.conf".into(), content };
        let lines = file_text(&change);
        assert!(lines.iter().all(|line| line.chars().count() + 6 <= line_width()), "{lines:#?}");
        let shown = lines.join(" ").replace('|', "");
        let words = |text: &str| text.split_whitespace().map(str::to_string).collect::<Vec<String>>();
        let Change::Create { content, .. } = &change else { unreachable!() };
        assert_eq!(words(&shown), words(&content::text(content)));
        let step = Step { what: "w".into(), why: "y".into(), risk: None, change: change.clone() };
        let row = serde_json::to_value(StepRow::of((0, &step))).expect("JSON");
        assert_eq!((&row["text"], &row["what"]), (&content::text(content).into(), &"w".into()));
    }
}
