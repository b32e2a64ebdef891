//! The journal of a run: what will be done, written and synced before it is done, and what was read back after.
//!
//! One record a line, each a JSON document of its own: `{"crc32":"9ae0daaf","length":   123,"record":{...}}`. The checksum and
//! the length are those of the record's text, so that a line that was torn by a crash or damaged later is seen; records are
//! numbered, so that a line that is missing is seen too. `docs/pages-apply.md` has the format for readers.

use super::step::Step;
use crate::base::limits::DOOR_STEPS_MAX;
use crate::base::{Refused, refuse};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub const SCHEMA: &str = "marusa/pages-journal/2";
const HEAD_BYTES: usize = r#"{"crc32":"00000000","length":123456,"record":"#.len();

/// What is at the place of a step.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum Seen {
    Absent,
    /// The text byte for byte; of a pool the pages that stay, without the ones that are only lent (surplus).
    Number {
        text: String,
        value: u64,
    },
    Word {
        text: String,
        word: String,
    },
    /// A file with the text of the step.
    Same,
    /// A file with the start of that text: a crash while it was written.
    Part,
    /// A file with another text.
    Foreign,
    #[serde(alias = "folder")]
    Directory {
        empty: bool,
    },
    /// A mount with this source on a directory.
    Mount {
        source: String,
    },
    /// Something that the door does not touch: a link, a device.
    Other,
}

/// What a step makes of its place.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(tag = "to", rename_all = "snake_case")]
pub enum Goal {
    Number { value: u64 },
    Word { word: String },
    There,
    Absent,
}

/// A number that the kernel moves along with another file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Coupled {
    pub file: String,
    pub text: String,
}

/// How a step was undone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum How {
    /// What was there before is there again, or our part of it is gone.
    Restored,
    /// It was never made.
    NotMade,
    /// The next boot, or another process, undid it already.
    Gone,
    /// Another process changed it: it stays as it is.
    Left,
}

/// Which plan a run applied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanMark {
    pub path: String,
    pub bytes: u64,
    pub crc32: String,
}

impl PlanMark {
    pub fn of(path: &str, text: &[u8]) -> PlanMark {
        PlanMark { path: path.to_string(), bytes: text.len() as u64, crc32: checksum(text) }
    }
    /// The same text, wherever it lies.
    pub fn is(&self, other: &PlanMark) -> bool {
        self.bytes == other.bytes && self.crc32 == other.crc32
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Begin {
    pub schema: String,
    pub id: String,
    /// When the run began.
    pub since: String,
    pub made_by: String,
    pub boot: String,
    pub plan: PlanMark,
    pub persist: bool,
    pub steps: Vec<Step>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Entry {
    Begin(Box<Begin>),
    /// Before each write: what is there, and what is about to be written.
    Intent {
        step: usize,
        before: Seen,
        goal: Goal,
        #[serde(alias = "beside")]
        coupled: Option<Coupled>,
    },
    /// What was read after it.
    ReadBack {
        step: usize,
        now: Seen,
        #[serde(alias = "beside")]
        coupled: Option<Coupled>,
    },
    /// Done with the step; `already`: this was found, and nothing was to do.
    Made {
        step: usize,
        already: Option<Seen>,
        notes: Vec<String>,
    },
    Applied,
    UndoBegin {
        why: String,
        boot: String,
    },
    UndoIntent {
        step: usize,
        before: Seen,
        goal: Goal,
        #[serde(alias = "beside")]
        coupled: Option<Coupled>,
    },
    Undone {
        step: usize,
        how: How,
        now: Option<Seen>,
        notes: Vec<String>,
    },
    UndoEnd {
        complete: bool,
    },
}

impl Seen {
    pub fn value(&self) -> Option<u64> {
        match self {
            Seen::Number { value, .. } => Some(*value),
            _ => None,
        }
    }
}

/// What the run is for; `None` in a journal that does not begin with it.
pub fn begin(records: &[Record]) -> Option<&Begin> {
    match &records.first()?.entry {
        Entry::Begin(begin) => Some(begin),
        _ => None,
    }
}

impl Entry {
    /// The number of the step that it is about.
    pub fn step(&self) -> Option<usize> {
        match self {
            Entry::Intent { step, .. }
            | Entry::ReadBack { step, .. }
            | Entry::Made { step, .. }
            | Entry::UndoIntent { step, .. }
            | Entry::Undone { step, .. } => Some(*step),
            _ => None,
        }
    }

    /// Whether it must be on the disk before we go on. What was read after a write need not: where a loss of power takes such a
    /// record, undo looks at what is there, as after a kill between the write and the record.
    pub fn is_acted_upon(&self) -> bool {
        !matches!(self, Entry::ReadBack { .. } | Entry::Made { .. } | Entry::Undone { .. })
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// From 0, without a hole.
    pub n: u64,
    pub at: String,
    /// Nanoseconds since 1970: orders the runs among each other.
    pub at_ns: u64,
    #[serde(flatten)]
    pub entry: Entry,
}

pub fn checksum(bytes: &[u8]) -> String {
    let mut crc = flate2::Crc::new();
    crc.update(bytes);
    format!("{:08x}", crc.sum())
}

/// A record as a line, with its end.
pub fn line(record: &Record) -> serde_json::Result<String> {
    let text = serde_json::to_string(record)?;
    Ok(format!(
        "{{\"crc32\":\"{}\",\"length\":{:>6},\"record\":{text}}}\n",
        checksum(text.as_bytes()),
        text.len()
    ))
}

/// What could be read of a journal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parsed {
    pub records: Vec<Record>,
    /// Bytes up to the end of the last whole record.
    pub whole_bytes: u64,
    /// A crash cut the last line: its record was never acted upon.
    pub torn: bool,
    /// Why what follows the records cannot be read.
    pub damage: Option<String>,
}

pub fn parse(bytes: &[u8]) -> Parsed {
    let mut parsed = Parsed::default();
    for (index, line) in bytes.split_inclusive(|byte| *byte == b'\n').enumerate() {
        match record(line, parsed.records.len() as u64) {
            Ok(record) => {
                parsed.records.push(record);
                parsed.whole_bytes += line.len() as u64;
            }
            // The last line without its end, or with zeros in it: what a crash or a loss of power leaves. Lines are synced before
            // anything is done, so nothing was.
            Err(_)
                if parsed.whole_bytes + line.len() as u64 == bytes.len() as u64
                    && (!line.ends_with(b"\n") || line.contains(&0)) =>
            {
                parsed.torn = true;
                break;
            }
            Err(why) => {
                parsed.damage = Some(format!("line {}: {why}", index + 1));
                break;
            }
        }
    }
    if let Some(why) = parsed.damage.is_none().then(|| out_of_bounds(&parsed.records)).flatten() {
        parsed.damage = Some(why);
        parsed.records.clear();
    }
    parsed
}

fn record(line: &[u8], n: u64) -> Result<Record, Refused> {
    let text = line
        .strip_suffix(b"}\n")
        .and_then(|line| line.get(HEAD_BYTES..))
        .ok_or("no record of this format")?;
    let head = format!("{{\"crc32\":\"{}\",\"length\":{:>6},\"record\":", checksum(text), text.len());
    if line[..HEAD_BYTES] != *head.as_bytes() {
        refuse!("its checksum or its length does not fit");
    }
    let record: Record = serde_json::from_slice(text).map_err(|error| error.to_string())?;
    if record.n != n {
        refuse!("it has the number {} and should have {n}", record.n);
    }
    Ok(record)
}

/// A journal starts with its plan, and speaks of no step that the plan does not have.
fn out_of_bounds(records: &[Record]) -> Option<String> {
    let (_, rest) = records.split_first()?;
    let Some(begin) = begin(records) else { return Some("it does not start with a plan".to_string()) };
    if begin.schema != SCHEMA {
        return Some(format!("it has the format {:?}; this version reads {SCHEMA}", begin.schema));
    }
    if begin.steps.len() > DOOR_STEPS_MAX {
        return Some(format!("it has {} steps, more than {DOOR_STEPS_MAX}", begin.steps.len()));
    }
    let bad = |record: &&Record| {
        let step = record.entry.step();
        matches!(record.entry, Entry::Begin(_)) || step.is_some_and(|step| step >= begin.steps.len())
    };
    rest.iter().find(bad).map(|record| format!("record {} fits none of its steps", record.n))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::act::door::step::Change;

    fn records() -> Vec<Record> {
        let change = Change::Add { file: "/proc/sys/vm/nr_hugepages".into(), by: 3 };
        let step = Step { what: "more".into(), why: "so".into(), risk: None, change };
        let begin = Begin {
            schema: SCHEMA.into(),
            id: "x".into(),
            since: "t".into(),
            made_by: "v".into(),
            boot: "b".into(),
            plan: PlanMark::of("p.json", b"{}"),
            persist: false,
            steps: vec![step],
        };
        let before = Seen::Number { text: "0\n".into(), value: 0 };
        let intent = Entry::Intent { step: 0, before, goal: Goal::Number { value: 3 }, coupled: None };
        let made = Entry::Made { step: 0, already: None, notes: vec!["\u{e4}\n".into()] };
        [Entry::Begin(Box::new(begin)), intent, made, Entry::Applied]
            .into_iter()
            .enumerate()
            .map(|(n, entry)| Record { n: n as u64, at: "t".into(), at_ns: 7, entry })
            .collect()
    }

    fn text() -> Vec<u8> {
        records().iter().flat_map(|record| line(record).expect("JSON").into_bytes()).collect()
    }

    #[test]
    fn what_was_written_is_read_and_each_line_is_json() {
        let parsed = parse(&text());
        assert_eq!((parsed.records, parsed.damage, parsed.torn), (records(), None, false));
        assert_eq!(parsed.whole_bytes, text().len() as u64);
        for line in text().split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            let value: serde_json::Value = serde_json::from_slice(line).expect("JSON");
            assert!(value["record"]["n"].is_u64() && value["length"].is_u64(), "{value}");
        }
    }

    #[test]
    fn a_journal_that_is_cut_anywhere_keeps_its_whole_lines() {
        let text = text();
        for length in 0..text.len() {
            let parsed = parse(&text[..length]);
            let lines = text[..length].iter().filter(|byte| **byte == b'\n').count();
            assert_eq!((parsed.records.len(), parsed.damage), (lines, None), "cut at {length}");
            assert_eq!(parsed.torn, length > 0 && text[length - 1] != b'\n');
        }
    }

    #[test]
    fn any_changed_byte_is_seen() {
        let text = text();
        for index in 0..text.len() {
            let mut changed = text.clone();
            changed[index] ^= 1;
            let parsed = parse(&changed);
            assert!(parsed.damage.is_some() || parsed.torn, "byte {index}");
            assert!(parsed.records.iter().zip(records()).all(|(read, wrote)| *read == wrote));
        }
    }

    #[test]
    fn a_line_that_is_missing_or_twice_is_seen() {
        let lines: Vec<String> = records().iter().map(|record| line(record).expect("JSON")).collect();
        let missing = format!("{}{}{}", lines[0], lines[2], lines[3]);
        assert_eq!(parse(missing.as_bytes()).records.len(), 1);
        assert!(parse(missing.as_bytes()).damage.is_some_and(|why| why.contains("number 2")));
        let twice = format!("{}{}{}", lines[0], lines[0], lines[1]);
        assert!(parse(twice.as_bytes()).damage.is_some());
        let headless = Record { n: 0, ..records()[1].clone() };
        assert!(parse(line(&headless).expect("JSON").as_bytes()).damage.is_some());
        let mut far = records();
        far[2].entry = Entry::Made { step: 7, already: None, notes: Vec::new() };
        let far: String = far.iter().map(|record| line(record).expect("JSON")).collect();
        assert!(parse(far.as_bytes()).damage.is_some_and(|why| why.contains("fits none")));
    }

    #[test]
    fn zeros_at_the_end_are_a_loss_of_power() {
        let mut bytes = text();
        bytes.extend([0; 300]);
        assert!(parse(&bytes).torn);
        assert_eq!(parse(&bytes).records.len(), 4);
    }
}
