//! The table of steps that `apply` and `undo` share: what was there, what is, and the way back.

use crate::pages::changes::{Change, Goal, How, Seen, Step};
use crate::show::units::{shorten, wrapped};
use crate::show::width::width as line_width;
use serde_json::{Value, json};
use std::io::{self, Write};

const STATE_COLUMNS: usize = 11;
const BACK_COLUMNS: usize = 24;
/// The number of the step, and the gaps between five columns.
const OTHER_COLUMNS: usize = 4 + 4 * 2;

/// A line of the table, and what is said below it.
pub struct Row {
    pub step: usize,
    pub place: String,
    pub before: String,
    pub after: String,
    pub back: String,
    pub notes: Vec<String>,
}

pub fn table(out: &mut dyn Write, last: &str, rows: &[Row]) -> io::Result<()> {
    let width = |text: &dyn Fn(&Row) -> &String, head: &str, max: usize| {
        rows.iter().map(|row| text(row).chars().count()).max().unwrap_or(0).max(head.len()).min(max)
    };
    let before = width(&|row| &row.before, "BEFORE", STATE_COLUMNS);
    let after = width(&|row| &row.after, "AFTER", STATE_COLUMNS);
    let back = width(&|row| &row.back, last, BACK_COLUMNS);
    let place = width(
        &|row| &row.place,
        "PLACE",
        line_width().saturating_sub(OTHER_COLUMNS + before + after + back).max(16),
    );
    writeln!(out, "STEP  {:<place$}  {:<before$}  {:<after$}  {last}", "PLACE", "BEFORE", "AFTER")?;
    for row in rows {
        let (one, two) = (shorten(&row.before, before), shorten(&row.after, after));
        let (path, back) = (shorten(&row.place, place), shorten(&row.back, back));
        writeln!(out, "{:>4}  {path:<place$}  {one:<before$}  {two:<after$}  {back}", row.step + 1)?;
        for note in &row.notes {
            indented(out, note)?;
        }
    }
    Ok(())
}

/// A plan's texts are anybody's: none of them moves the cursor.
pub fn plain(text: &str) -> String {
    crate::base::printable::escaped(text).into_owned()
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
        Some(Seen::Folder { empty: true }) => "empty".to_string(),
        Some(Seen::Folder { empty: false }) => "folder".to_string(),
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
        Change::Folder { .. } => "removed when empty".to_string(),
        Change::MountTmpfs { .. } => "unmounted when unused".to_string(),
        Change::CopyTree { .. } => "goes with its tmpfs".to_string(),
        Change::SwapFile { .. } => "swapped back, removed".to_string(),
        Change::MemoryGroup { .. } => "removed when empty".to_string(),
    }
}

pub fn how(how: How) -> &'static str {
    match how {
        How::Restored => "put back",
        How::NotMade => "was never made",
        How::Gone => "was gone already",
        How::Left => "LEFT",
    }
}

/// A step of a plan in JSON; what happened to it is added to that.
pub fn json(index: usize, step: &Step) -> Value {
    json!({
        "step": index + 1,
        "what": step.what,
        "why": step.why,
        "risk": step.risk,
        "place": step.change.place(),
        "change": step.change,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_fits_and_a_plan_moves_no_cursor() {
        let row = |place: &str, before: &str| Row {
            step: 998,
            place: place.repeat(30),
            before: before.repeat(9),
            after: "always".into(),
            back: "always unless changed and so on".into(),
            notes: vec!["risk: \x1b[2Jgone ".repeat(30)],
        };
        let mut out = Vec::new();
        table(&mut out, "WAY BACK", &[row("/sys/\x1b[2J", "nev\r"), row("/a", "1")]).expect("written");
        let text = String::from_utf8(out).expect("UTF-8");
        assert!(text.lines().all(|line| line.chars().count() <= line_width()), "{text}");
        assert!(text.chars().all(|letter| letter == '\n' || !letter.is_control()), "{text:?}");
    }
}
