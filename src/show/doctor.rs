//! Findings for people: the count by level, then each with its evidence, its cost and its remedies, the worst first; and what
//! could not be judged, since no finding is not the same as healthy.

mod json;
mod page;
mod sarif;
#[cfg(test)]
mod tests;

pub use json::{DoctorDocument, RulesDocument};
pub use page::page;
pub use sarif::sarif;

use crate::base::Gap;
use crate::base::printable::escaped;
use crate::base::style::Style;
use crate::doctor::facts::gather::{Gathered, Patient};
use crate::doctor::if_xmx::IfXmx;
use crate::doctor::{Cost, Entry, Evidence, Finding, Level, Remedy, Subject};
use crate::show::paint;
use crate::show::units::{
    columns, counted, faint, human, led, more, painted, pasted, prose, shorten, wrapped,
};
use crate::show::width::width;
use std::io::{self, Write};

/// What is shown whole of a host with hundreds of JVMs; JSON has all.
const FINDINGS_SHOWN_MAX: usize = 50;
const GAPS_SHOWN_MAX: usize = 12;
/// Pids that a gap names.
const PIDS_SHOWN_MAX: usize = 4;
/// Columns of the evidence: what, and its value. What is left is the source's, if that is enough.
const WHAT_COLUMNS_MAX: usize = 44;
const VALUE_COLUMNS_MAX: usize = 30;
const SOURCE_COLUMNS_MIN: usize = 16;
/// The longest word for a level, and the blanks behind it.
const LEVEL_COLUMNS: usize = 10;

/// What was examined and found.
pub struct Shown<'a> {
    pub gathered: &'a Gathered,
    /// The worst first.
    pub findings: &'a [Finding],
    pub ignored: &'a [String],
    pub catalog: &'a [Entry],
    /// The answer to `--if-xmx`, which is the only finding then.
    pub if_xmx: Option<&'a IfXmx>,
    /// Whether the host was examined.
    pub has_host: bool,
}

impl Shown<'_> {
    fn rules(&self) -> usize {
        self.catalog.iter().filter(|entry| !self.ignored.iter().any(|id| id == entry.rule.id)).count()
    }
    fn count(&self, level: Level) -> usize {
        self.findings.iter().filter(|finding| finding.level == level).count()
    }
    fn patient(&self, pid: i32) -> Option<&Patient> {
        self.gathered.patients.iter().find(|patient| patient.pid == pid)
    }
    fn examined(&self) -> usize {
        self.gathered.patients.iter().filter(|patient| patient.unread.is_none()).count()
    }
    /// Once each, with the pid of the JVM that it is about.
    fn gaps(&self) -> Vec<(Option<i32>, &Gap)> {
        let facts = &self.gathered.facts;
        let of_host = facts.host.gaps.iter().chain(&self.gathered.unlisted).map(|gap| (None, gap));
        let unread = self.gathered.patients.iter().filter_map(|it| Some((Some(it.pid), it.unread.as_ref()?)));
        let of_jvms = facts.jvms.iter().flat_map(|jvm| jvm.gaps.iter().map(|gap| (Some(jvm.pid), gap)));
        let mut gaps: Vec<(Option<i32>, &Gap)> = Vec::new();
        for gap in of_host.chain(unread).chain(of_jvms) {
            if !gaps.contains(&gap) {
                gaps.push(gap);
            }
        }
        gaps
    }
}

pub fn text(out: &mut dyn Write, shown: &Shown) -> io::Result<()> {
    if let Some(answer) = shown.if_xmx {
        led(out, "", if answer.fits { "it fits" } else { "it does not fit" })?;
    } else {
        painted(out, ("", Style::Plain), "", (&headline(shown), Style::Bold))?;
    }
    for finding in shown.findings.iter().take(FINDINGS_SHOWN_MAX) {
        writeln!(out)?;
        one(out, shown, finding)?;
    }
    if shown.findings.len() > FINDINGS_SHOWN_MAX {
        let more = shown.findings.len() - FINDINGS_SHOWN_MAX;
        writeln!(out, "\nand {more} more (--json lists all)")?;
    }
    if let Some(view) = view(shown) {
        writeln!(out)?;
        led(out, "", &view)?;
    }
    gaps(out, shown)?;
    match shown.findings.first() {
        Some(worst) => prose(out, &format!("\nmarusa doctor --explain {} says more", worst.id)),
        None => Ok(()),
    }
}

/// "1 critical, 2 warn: the host and 3 JVMs, 31 rules, watched for 1.0 s"
fn headline(shown: &Shown) -> String {
    let counts = [Level::Critical, Level::Warn, Level::Info]
        .into_iter()
        .filter(|level| shown.count(*level) > 0)
        .map(|level| format!("{} {}", shown.count(level), level.word()));
    let counts: Vec<String> = counts.collect();
    let found = if counts.is_empty() { "nothing found".to_string() } else { counts.join(", ") };
    let ignored = match shown.ignored.len() {
        0 => String::new(),
        count => format!(" ({count} ignored)"),
    };
    let seconds = shown.gathered.facts.host.seconds;
    let watched = if shown.has_host { format!(", watched for {seconds:.1} s") } else { String::new() };
    let gaps = shown.gaps().len();
    let judged = match gaps {
        0 => String::new(),
        _ => format!("; {} could not be judged", counted(gaps, "thing")),
    };
    let rules = counted(shown.rules(), "rule");
    format!("{found}: {} examined by {rules}{ignored}{watched}{judged}", who(shown))
}

fn who(shown: &Shown) -> String {
    let examined = shown.examined();
    let unread = shown.gathered.patients.len() - examined;
    let jvms = match (examined, shown.gathered.patients.as_slice()) {
        (1, [patient]) => name(patient),
        (1, _) => "1 JVM".to_string(),
        (count, _) => format!("{count} JVMs"),
    };
    let others = if unread > 0 { format!(" ({unread} more could not be read)") } else { String::new() };
    match (shown.has_host, shown.gathered.patients.len()) {
        (true, 0) => "the host".to_string(),
        (true, _) => format!("the host and {jvms}{others}"),
        (false, _) => jvms,
    }
}

/// "pid 4711 com.example.Main", "pid 4712 Kafka".
fn name(patient: &Patient) -> String {
    let main = patient.server.as_deref().or(patient.main.as_deref()).unwrap_or_default();
    // The end of a class or a path says more than its start.
    let short = main.rsplit('/').next().unwrap_or(main);
    format!("pid {} {}", patient.pid, shorten(short, 48)).trim_end().to_string()
}

fn subject(shown: &Shown, subject: Subject) -> String {
    match subject {
        Subject::Host => "the host".to_string(),
        Subject::Jvm(pid) => shown.patient(pid).map_or_else(|| format!("pid {pid}"), name),
    }
}

fn one(out: &mut dyn Write, shown: &Shown, finding: &Finding) -> io::Result<()> {
    let level = finding.level.word().to_uppercase();
    paint::put(out, style(finding.level), &level)?;
    write!(out, "{}{}", " ".repeat(LEVEL_COLUMNS - level.len().min(LEVEL_COLUMNS)), finding.id)?;
    let of = subject(shown, finding.subject);
    if LEVEL_COLUMNS + finding.id.len() + 2 + columns(&of) > width() {
        write!(out, "\n{}", " ".repeat(LEVEL_COLUMNS - 2))?;
    }
    writeln!(out, "  {}", shorten(&of, width().saturating_sub(LEVEL_COLUMNS)))?;
    painted(out, ("  ", Style::Plain), "  ", (&finding.title, Style::Bold))?;
    evidence(out, &finding.evidence)?;
    if let Some(cost) = cost(&finding.cost) {
        led(out, "  ", &format!("costs {cost}"))?;
    }
    for remedy in &finding.remedies {
        let (label, is_command) = label(remedy);
        let text = remedy.text();
        match is_command {
            true => {
                let command = |line| pasted(out, &format!("  {label:<10}  "), &escaped(line));
                text.lines().try_for_each(command)?;
            }
            false => led(out, &format!("  {label:<10}  "), text)?,
        }
    }
    Ok(())
}

fn evidence(out: &mut dyn Write, evidence: &[Evidence]) -> io::Result<()> {
    let longest = |texts: &[String], most: usize| {
        texts.iter().map(|text| columns(text)).filter(|columns| *columns <= most).max().unwrap_or(0)
    };
    let values: Vec<String> = evidence.iter().map(|it| escaped(&value(it)).into_owned()).collect();
    let value_columns = longest(&values, VALUE_COLUMNS_MAX);
    let room = width().saturating_sub(4 + 2 + value_columns);
    let what_max = WHAT_COLUMNS_MAX.min(room.max(width() / 2));
    let whats: Vec<String> = evidence.iter().map(|it| shorten(&it.what, what_max)).collect();
    let what_columns = longest(&whats, what_max);
    for ((evidence, what), value) in evidence.iter().zip(&whats).zip(values) {
        // Figures are aligned right, words left.
        let value = match evidence.number {
            Some(_) => format!("{value:>value_columns$}"),
            None => format!("{value:<value_columns$}"),
        };
        let line = format!("    {what:<what_columns$}  {value}");
        let left = width().saturating_sub(line.chars().count() + 2);
        match left >= SOURCE_COLUMNS_MIN {
            true => {
                write!(out, "{line}  ")?;
                paint::line(out, Style::Dim, &shorten(&evidence.source, left))?;
            }
            false => long(out, what, what_columns, value.trim())?,
        }
    }
    Ok(())
}

/// A value that leaves no room for its source: in full, over as many lines as it takes.
fn long(out: &mut dyn Write, what: &str, what_columns: usize, value: &str) -> io::Result<()> {
    let start = what_columns + 6;
    let room = width().saturating_sub(start).max(SOURCE_COLUMNS_MIN);
    for (index, piece) in wrapped(value, room).iter().enumerate() {
        let what = if index == 0 { what } else { "" };
        writeln!(out, "{}", shorten(&format!("    {what:<what_columns$}  {piece}"), width()))?;
    }
    Ok(())
}

/// For people; bytes are written as everywhere else.
pub(super) fn value(evidence: &Evidence) -> String {
    match (evidence.unit, evidence.number) {
        ("bytes", Some(bytes)) if evidence.value.is_empty() => human(bytes.max(0.0) as u64),
        _ => evidence.value.clone(),
    }
}

/// `None`: not known.
pub(super) fn cost(cost: &Cost) -> Option<String> {
    let parts = [
        cost.bytes.map(human),
        cost.cpu_percent.map(|percent| format!("{percent:.1} % of a CPU")),
        cost.stall_ms.map(|ms| format!("{ms:.1} ms of waiting while it was watched")),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// The severity as a colour; its word is next to it.
pub(super) fn style(level: Level) -> Style {
    match level {
        Level::Critical => Style::Alarm,
        Level::Warn => Style::Yellow,
        Level::Info => Style::Cyan,
    }
}

/// What a remedy is, and whether it has a line of its own.
pub(super) fn label(remedy: &Remedy) -> (&'static str, bool) {
    match remedy {
        Remedy::Command(_) => ("run", true),
        Remedy::JvmOption(_) => ("JVM option", true),
        Remedy::Environment(_) => ("variable", true),
        Remedy::Setting(_) => ("as root", true),
        Remedy::Advice(_) => ("or", false),
    }
}

/// Which figures are not of what the user may think.
fn view(shown: &Shown) -> Option<String> {
    let view = &shown.gathered.facts.host.view;
    if !shown.has_host || !view.is_container {
        return None;
    }
    let own = match view.covered.as_slice() {
        [] => String::new(),
        files => format!("; {} may be the container's", files.join(", ")),
    };
    Some(format!(
        "marusa runs in a container: it sees the JVMs of this container only; memory, vmstat, pressure, pools and settings of \
         pages are the host's{own}"
    ))
}

fn gaps(out: &mut dyn Write, shown: &Shown) -> io::Result<()> {
    let mut merged: Vec<(&Gap, Vec<i32>)> = Vec::new();
    for (pid, gap) in shown.gaps() {
        match merged.iter_mut().find(|(known, _)| *known == gap) {
            Some((_, pids)) => pids.extend(pid),
            None => merged.push((gap, pid.into_iter().collect())),
        }
    }
    if !merged.is_empty() {
        writeln!(out)?;
        paint::line(out, Style::Bold, "not judged, since it could not be read:")?;
    }
    for (gap, pids) in merged.iter().take(GAPS_SHOWN_MAX) {
        let named: Vec<String> = pids.iter().take(PIDS_SHOWN_MAX).map(i32::to_string).collect();
        let more = match pids.len().saturating_sub(PIDS_SHOWN_MAX) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let of = if pids.is_empty() { String::new() } else { format!("pid {}{more}: ", named.join(", ")) };
        faint(out, &format!("{of}{}: {}", gap.what, gap.why), 2)?;
        gap.hint.iter().try_for_each(|hint| faint(out, hint, 4))?;
    }
    more(out, merged.len(), GAPS_SHOWN_MAX, 2)
}

/// All that is looked for.
pub fn list(out: &mut dyn Write, catalog: &[Entry]) -> io::Result<()> {
    let ids = catalog.iter().map(|entry| entry.rule.id.len()).max().unwrap_or(0);
    for entry in catalog {
        let head = format!("{:<ids$}  {:<14}  ", entry.rule.id, levels(entry));
        led(out, &head, entry.rule.title)?;
    }
    let rules = counted(catalog.len(), "rule");
    prose(out, &format!("\n{rules}; marusa doctor --explain ID prints the page of one"))
}

/// "warn", "info, critical", "info..critical".
fn levels(entry: &Entry) -> String {
    match entry.levels {
        [Level::Info, Level::Warn, Level::Critical] => "info..critical".to_string(),
        levels => levels.iter().map(|level| level.word()).collect::<Vec<_>>().join(", "),
    }
}
