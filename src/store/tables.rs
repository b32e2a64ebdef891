//! The tables of the store, made of recordings. An account is in the long form (a row for each area, part, library, ... that was
//! read), so that a new area is a row and not a column; the samples are in the wide form. Rows are sorted by JVM, then by what they
//! are of, then by time: the figures of one series stand next to each other, which packs them best.

use super::layout::{File, Place};
use super::sheet::{About, Cell, Column, Kind, Sheet};
use crate::doctor::Level;
use crate::map::Area;
use crate::map::rows::{Measure, Named, Subject};
use crate::os::identity;
use crate::os::pidfd::Exit;
use crate::record::rows::moments_of;
use crate::record::writer::Ending;
use crate::record::{History, Key, Moment, Recording};
use std::collections::BTreeMap;
use std::io::{self, Write};

/// The number behind a table's name in `sheet::SCHEMA_KEY`: raised when an older Marusa must not write next to such files.
pub const SCHEMA: u64 = 1;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Table {
    /// A row for each sample: the sums of the kernel, the runtime and the cgroup.
    Process,
    /// A row for each area each time the account was read, and one for each part, arena, library, group of threads, class loader
    /// and class each time a figure moved by more than a 64th and 16 KiB.
    Account,
    /// Who holds malloc's blocks.
    Holders,
    /// What fills the cgroup, near its limit.
    Ledger,
    /// What the doctor found.
    Finding,
    /// Who a JVM is; one row for each file.
    Jvm,
}

impl Table {
    pub const ALL: [Table; 6] =
        [Table::Process, Table::Account, Table::Holders, Table::Ledger, Table::Finding, Table::Jvm];

    pub fn name(self) -> &'static str {
        match self {
            Table::Process => "process",
            Table::Account => "account",
            Table::Holders => "holders",
            Table::Ledger => "ledger",
            Table::Finding => "finding",
            Table::Jvm => "jvm",
        }
    }

    /// "account/1".
    pub fn schema(self) -> String {
        format!("{}/{SCHEMA}", self.name())
    }

    /// Below the root of the store.
    pub fn directory(self) -> String {
        format!("{}/{}", super::layout::VERSION, self.name())
    }

    pub fn columns(self) -> Vec<Column> {
        let mut columns = vec![required("time", Kind::Time), required("jvm_id", Kind::Text)];
        columns.push(required("node", Kind::Text));
        columns.extend(IDENTITY.map(|name| optional(name, Kind::Text)));
        columns.extend(self.own_columns());
        let measures = self.measures();
        columns.extend(measures.iter().map(|measure| optional(measure.name(), Kind::Long)));
        columns
    }

    /// Between the identity and the measures.
    fn own_columns(self) -> Vec<Column> {
        let age = || optional("account_age_ms", Kind::Long);
        let text = |name| required(name, Kind::Text);
        match self {
            Table::Process => vec![age(), optional("outside_heap_bytes", Kind::Long)],
            Table::Account => {
                vec![text("subject"), optional("area", Kind::Text), optional("name", Kind::Text), age()]
            }
            Table::Holders => vec![text("holder"), age()],
            Table::Ledger => vec![text("item"), age()],
            Table::Finding => vec![text("id"), text("level")],
            Table::Jvm => JVM_TEXTS
                .map(|name| optional(name, Kind::Text))
                .into_iter()
                .chain(JVM_NUMBERS.map(|(name, kind)| optional(name, kind)))
                .collect(),
        }
    }

    fn measures(self) -> Vec<Measure> {
        match self {
            Table::Process => {
                let is_column =
                    |measure: &Measure| is_of_process(*measure) && !Measure::CLOCKS.contains(measure);
                Measure::ALL.iter().copied().filter(is_column).collect()
            }
            Table::Account => {
                let others = [Measure::Level, Measure::Cost, Measure::Arenas, Measure::Trimmable];
                let is_column = |measure: &Measure| measure.number() < 20 && !others.contains(measure);
                Measure::ALL.iter().copied().filter(is_column).collect()
            }
            Table::Holders => vec![Measure::InUse, Measure::Blocks],
            Table::Ledger => vec![Measure::Resident],
            Table::Finding => vec![Measure::Cost],
            Table::Jvm => Vec::new(),
        }
    }

    pub(super) fn sorted_by(self) -> Vec<&'static str> {
        match self {
            Table::Process | Table::Jvm => vec!["jvm_id", "time"],
            Table::Account => vec!["jvm_id", "subject", "area", "name", "time"],
            Table::Holders => vec!["jvm_id", "holder", "time"],
            Table::Ledger => vec!["jvm_id", "item", "time"],
            Table::Finding => vec!["jvm_id", "id", "time"],
        }
    }

    /// Whether a subject has a row only where a figure moved, which is then that of all moments up to the next row; one without
    /// figures: it is gone. Parts, arenas and libraries are many, and most accounts find them as they were.
    fn is_by_change(self, subject: &Subject) -> bool {
        self == Table::Account && !matches!(subject, Subject::Area(_))
    }

    /// The table that a subject's rows are in.
    fn of(subject: &Subject) -> Table {
        match subject {
            Subject::Process => Table::Process,
            Subject::Named(Named::Holder, _) => Table::Holders,
            Subject::Named(Named::CgroupRow, _) => Table::Ledger,
            Subject::Named(Named::Finding, _) => Table::Finding,
            _ => Table::Account,
        }
    }
}

/// Measures of the process as a whole.
fn is_of_process(measure: Measure) -> bool {
    measure.number() >= 20 || matches!(measure, Measure::Arenas | Measure::ClassLoaders | Measure::Trimmable)
}

/// Who the JVM is, in each table: nearly free where rows are sorted by JVM, and no query needs a join.
const IDENTITY: [&str; 6] = ["namespace", "pod", "container", "workload", "unit", "main"];

const JVM_TEXTS: [&str; 9] = [
    "pod_uid",
    "container_id",
    "runtime",
    "image",
    "java_version",
    "gc",
    "kernel",
    "marusa_version",
    "ending",
];
const JVM_NUMBERS: [(&str, Kind); 5] = [
    ("pid", Kind::Int),
    ("max_heap_bytes", Kind::Long),
    ("started", Kind::Time),
    ("last_seen", Kind::Time),
    ("ended", Kind::Time),
];

fn required(name: &'static str, kind: Kind) -> Column {
    Column { name, kind, is_required: true }
}

fn optional(name: &'static str, kind: Kind) -> Column {
    Column { name, kind, is_required: false }
}

/// Writes the rows of one file, and returns how many there were.
pub fn write<W: Write + Send>(out: W, file: &File, recording: &Recording, place: &Place) -> io::Result<u64> {
    let table = file.table;
    let about = About { schema: Some(table.schema()), sorted_by: table.sorted_by() };
    let mut sheet = Sheet::new(out, &table.columns(), &about);
    let mut jvms: Vec<(String, &History)> =
        recording.jvms.iter().map(|jvm| (id_of(recording, jvm), jvm)).collect();
    jvms.sort_by(|one, other| one.0.cmp(&other.0));
    let repeated_ms = recording.sessions.first().and_then(|session| session.repeated_ms);
    for (id, jvm) in &jvms {
        let identity = identity_of(jvm, id, place);
        let mut rows = Rows { file, sheet: &mut sheet, jvm, identity, repeated_ms };
        match table {
            Table::Jvm => rows.jvm(recording)?,
            _ => rows.series()?,
        }
    }
    sheet.finish()
}

/// The JVM's id; of a recording from before ids were recorded, one that no other recording has.
fn id_of(recording: &Recording, jvm: &History) -> String {
    jvm.facts.jvm_id.clone().unwrap_or_else(|| {
        let of = recording.sessions.first().map_or("", |session| session.recording.as_str());
        identity::hashed(&format!("{of} {} {}", jvm.facts.pid, jvm.facts.start_ticks))
    })
}

/// The cells after the time.
fn identity_of<'a>(jvm: &'a History, id: &'a str, place: &'a Place) -> Vec<Option<Cell<'a>>> {
    let who = &jvm.facts.identity;
    let container = who.container.as_ref().or(jvm.facts.container.as_ref());
    let texts =
        [who.namespace.as_ref(), who.pod.as_ref(), container, who.workload.as_ref(), who.unit.as_ref()];
    let mut cells = vec![Some(Cell::Text(id)), Some(Cell::Text(&place.node))];
    cells.extend(texts.map(|text| text.map(|text| Cell::Text(text))));
    cells.push(jvm.facts.short_name().map(Cell::Text));
    cells
}

/// What a series is of: the word of its subject, its area, and its name.
type Name<'a> = (&'a str, Option<&'a str>, Option<String>);

/// The rows of one JVM in one file.
struct Rows<'a, W: Write + Send> {
    file: &'a File,
    sheet: &'a mut Sheet<W>,
    jvm: &'a History,
    identity: Vec<Option<Cell<'a>>>,
    /// Samples up to here are rows of the recording's file before this one.
    repeated_ms: Option<u64>,
}

impl<W: Write + Send> Rows<'_, W> {
    /// A row for each subject of the table at each moment at which it was read.
    fn series(&mut self) -> io::Result<()> {
        let (table, jvm) = (self.file.table, self.jvm);
        let measures = table.measures();
        let mut subjects: BTreeMap<Name<'_>, Vec<&Key>> = BTreeMap::new();
        for key in jvm.keys().iter().filter(|key| Table::of(&key.subject) == table) {
            let subject = &key.subject;
            let area = subject.area().map(crate::map::Area::name);
            subjects.entry((subject.word(), area, subject.name())).or_default().push(key);
        }
        let outside = if table == Table::Process { outside_heap(jvm) } else { BTreeMap::new() };
        for ((word, area, name), keys) in &subjects {
            let Some(subject) = keys.first().map(|key| &key.subject) else { continue };
            let moments = self.within(moments_of(jvm, subject));
            let own = |at, age: Option<Cell<'static>>, level: Option<&'static str>| match table {
                Table::Process => vec![age, outside.get(&at).copied().map(Cell::number)],
                Table::Account => {
                    vec![Some(Cell::Text(word)), area.map(Cell::Text), name.as_deref().map(Cell::Text), age]
                }
                Table::Finding => vec![name.as_deref().map(Cell::Text), level.map(Cell::Text)],
                _ => vec![name.as_deref().map(Cell::Text), age],
            };
            let values = |measure: &Measure| jvm.series_at(&Key::of(subject, *measure), &moments);
            let values: Vec<Vec<Option<u64>>> = measures.iter().map(values).collect();
            let levels = values_of_level(jvm, subject, &moments);
            let mut before: Option<Vec<Option<u64>>> = None;
            for (place, at) in moments.iter().enumerate() {
                let row: Vec<Option<u64>> = values.iter().map(|values| values[place]).collect();
                let level = levels[place];
                let is_gone = row.iter().all(Option::is_none) && level.is_none();
                let is_same = before.as_ref().map_or(is_gone, |before| is_alike(&measures, before, &row));
                if is_same && table.is_by_change(subject) || is_gone && !table.is_by_change(subject) {
                    continue;
                }
                before = Some(row.clone());
                let age = jvm.age_ms(subject.clock(), *at).map(Cell::number);
                let measured = row.into_iter().map(|value| value.map(Cell::number));
                self.add(jvm.moments[*at], own(*at, age, level), measured)?;
            }
        }
        Ok(())
    }

    fn within(&self, moments: Vec<usize>) -> Vec<usize> {
        let is_within = |at: &usize| {
            let moment = self.jvm.moments[*at];
            let is_repeated = self.repeated_ms.is_some_and(|until| moment.steady_ms <= until);
            self.file.span.contains(&moment.wall_ms) && !is_repeated
        };
        moments.into_iter().filter(is_within).collect()
    }

    fn add<'c>(
        &mut self,
        at: Moment,
        own: Vec<Option<Cell<'c>>>,
        measured: impl Iterator<Item = Option<Cell<'c>>>,
    ) -> io::Result<()> {
        let mut row: Vec<Option<Cell<'_>>> = vec![Some(Cell::Number(at.wall_ms))];
        self.identity.iter().for_each(|cell| row.push(*cell));
        own.iter().for_each(|cell| row.push(*cell));
        measured.for_each(|cell| row.push(cell));
        self.sheet.add(&row)
    }

    /// Who it is, at its first sample in the file.
    fn jvm(&mut self, recording: &Recording) -> io::Result<()> {
        let seen = self.within((0..self.jvm.len()).collect());
        let ending = self.jvm.ending.filter(|(at, _)| self.file.span.contains(&at.wall_ms));
        let ending = ending.and_then(|(at, ending)| Some((at, word_of(ending)?)));
        let moments = || seen.iter().map(|at| self.jvm.moments[*at]).chain(ending.map(|(at, _)| at));
        let (Some(first), Some(last)) = (moments().next(), moments().last()) else { return Ok(()) };
        let (facts, session) = (&self.jvm.facts, recording.sessions.last());
        let who = &facts.identity;
        fn text(text: &Option<String>) -> Option<Cell<'_>> {
            text.as_deref().map(Cell::Text)
        }
        let own = vec![
            text(&who.pod_uid),
            text(&who.container_id),
            text(&who.runtime),
            text(&who.image),
            text(&facts.version),
            text(&facts.gc),
            session.map(|session| Cell::Text(&session.kernel)),
            session.map(|session| Cell::Text(&session.marusa)),
            ending.map(|(_, word)| Cell::Text(word)),
            Some(Cell::Number(facts.pid.into())),
            facts.max_heap_bytes.map(Cell::number),
            facts.started_ms.map(Cell::Number),
            Some(Cell::Number(last.wall_ms)),
            ending.map(|(at, _)| Cell::Number(at.wall_ms)),
        ];
        self.add(first, own, std::iter::empty())
    }
}

/// At each moment at which the account was read, the resident bytes of all areas that are not the Java heap's. Engines would need a
/// group for each account of the fleet.
fn outside_heap(jvm: &History) -> BTreeMap<usize, u64> {
    let mut sums = BTreeMap::new();
    for key in jvm.keys().iter().filter(|key| key.measure == Measure::Resident) {
        let Subject::Area(area) = key.subject else { continue };
        let moments = moments_of(jvm, &key.subject);
        let is_outside = !matches!(area, Area::JavaHeap | Area::Gc);
        for (at, bytes) in moments.iter().zip(jvm.series_at(key, &moments)) {
            // Without a figure of any area, the sum is not known.
            let Some(bytes) = bytes else { continue };
            *sums.entry(*at).or_insert(0) += if is_outside { bytes } else { 0 };
        }
    }
    sums
}

/// Whether no figure moved by more than a share of it, nor one of bytes by more than a few pages: what parts and arenas do all the
/// time.
fn is_alike(measures: &[Measure], before: &[Option<u64>], now: &[Option<u64>]) -> bool {
    const SHARE: u64 = 64;
    const BYTES: u64 = 16 << 10;
    let alike = |(measure, (before, now)): (&Measure, (&Option<u64>, &Option<u64>))| match (before, now) {
        (Some(before), Some(now)) => {
            let least = if measure.name().ends_with("_bytes") { BYTES } else { 0 };
            before.abs_diff(*now) <= (before.max(now) / SHARE).max(least)
        }
        (before, now) => before == now,
    };
    measures.iter().zip(before.iter().zip(now)).all(alike)
}

fn values_of_level(jvm: &History, subject: &Subject, moments: &[usize]) -> Vec<Option<&'static str>> {
    let levels = jvm.series_at(&Key::of(subject, Measure::Level), moments);
    levels.into_iter().map(|level| Some(Level::of_number(level?)?.word())).collect()
}

/// `None`: the recorder ended first, and the JVM may still run.
fn word_of(ending: Ending) -> Option<&'static str> {
    match ending {
        Ending::Ended => Some("ended"),
        Ending::Exit(Exit::Status(_)) => Some("exited"),
        Ending::Exit(Exit::Signal(_)) => Some("killed"),
        Ending::KilledForMemory => Some("oom_killed"),
        Ending::NotWatched => None,
    }
}
