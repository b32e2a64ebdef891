//! What grew between two moments: the answer in one sentence, then the table that was asked for. At most 100 columns.

mod holders;
pub mod json;
#[cfg(test)]
mod tests;

use crate::base::Bytes;
use crate::base::style::Style;
use crate::map::Area;
use crate::map::diff::{Cause, Causes, Diff, Grown, Lost, ThreadRow, What};
use crate::map::rows::Named;
use crate::show::paint;
use crate::show::units::{counted, fitted, human, human_signed, more, or_dash, painted, paragraph, shorten};
use crate::show::width::width;
use std::io::{self, Write};
use std::sync::LazyLock;

/// What a side is and where it comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq, schemars::JsonSchema, serde::Serialize)]
pub struct Taken {
    /// The file, or "now".
    pub from: String,
    pub at: Option<String>,
    pub pid: Option<i32>,
    pub command: Option<String>,
    /// For a recording: how old the account was at that moment.
    pub account_age_ms: u64,
    /// For a recording: when the holders were read.
    pub holders_at: Option<String>,
    /// When the classes of the heap's objects were counted.
    pub classes_at: Option<String>,
    /// It has classes of the heap's objects and no account.
    #[serde(skip)]
    pub has_only_classes: bool,
}

/// Which table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    Area,
    Part,
    Arena,
    Library,
    Thread,
    Named(Named),
}

impl clap::ValueEnum for By {
    fn value_variants<'a>() -> &'a [By] {
        static ALL: LazyLock<Vec<By>> = LazyLock::new(|| {
            let fixed = [By::Area, By::Part, By::Arena, By::Library, By::Thread];
            // Methods that are compiled are other ones at each moment.
            let named = Named::ALL.iter().copied().filter(|kind| *kind != Named::Compiled);
            fixed.into_iter().chain(named.map(By::Named)).collect()
        });
        &ALL
    }

    fn to_possible_value(&self) -> Option<clap::builder::PossibleValue> {
        Some(clap::builder::PossibleValue::new(match self {
            By::Area => "area",
            By::Part => "part",
            By::Arena => "arena",
            By::Library => "library",
            By::Thread => "thread",
            By::Named(kind) => kind.word(),
        }))
    }
}

const ROWS_MAX: usize = 40;
const NAME_MAX: usize = 42;
const FIGURE: usize = 11;
/// Below it there is no room for what was before.
const ALL_FIGURES_MIN: usize = 75;
/// And below it for what is now either.
const THREE_FIGURES_MIN: usize = 50;
/// A part is shown below its area from this share of its area's change on.
const PART_PERCENT: u64 = 5;

pub fn text(out: &mut dyn Write, before: &Taken, now: &Taken, diff: &Diff, by: By) -> io::Result<()> {
    head(out, before, now)?;
    if !before.has_only_classes && !now.has_only_classes {
        sums(out, diff)?;
        painted(out, ("", Style::Plain), "", (&sentence(&diff.causes), Style::Bold))?;
        writeln!(out)?;
    }
    match by {
        By::Area => areas(out, diff),
        By::Part => {
            let name = |(area, part): &(Area, String)| format!("{} / {part}", area.title());
            table(out, "AREA / PART", diff.parts.iter().map(|row| (name(&row.key), row.grown)).collect())
        }
        By::Arena => {
            let rows = diff.arenas.iter().map(|arena| {
                let freed = arena.freed.map_or("unknown".to_string(), human_signed);
                (format!("arena {}  freed {freed}", arena.row.key.number), arena.row.grown)
            });
            table(out, "ARENA OF MALLOC", rows.collect())
        }
        By::Library => {
            let rows = diff.libraries.iter().map(|row| (row.key.clone(), row.grown));
            table(out, "LIBRARY OR FILE", rows.collect())
        }
        By::Thread => {
            let rows = diff.threads.iter().map(|ThreadRow { row, threads_before, threads_now }| {
                (format!("{} ({threads_before} -> {threads_now})", row.key), row.grown)
            });
            table(out, "THREADS (HOW MANY), THEIR STACKS", rows.collect())
        }
        By::Named(Named::Holder) => holders::holders(out, before, now, diff),
        By::Named(Named::Loader) => holders::loaders(out, diff),
        By::Named(Named::Class) => holders::classes(out, before, now, diff),
        By::Named(kind) => {
            let rows = diff.named.iter().filter(|row| row.key.0 == kind);
            let rows = rows.map(|row| (row.key.1.clone(), row.grown));
            table(out, &kind.title().to_uppercase(), rows.collect())
        }
    }
}

fn head(out: &mut dyn Write, before: &Taken, now: &Taken) -> io::Result<()> {
    let who = |taken: &Taken| {
        let pid = taken.pid.map_or("unknown pid".to_string(), |pid| format!("pid {pid}"));
        format!("{pid}  {}", taken.command.as_deref().unwrap_or(""))
    };
    writeln!(out, "{}", shorten(who(now).trim_end(), width()))?;
    // One side may have its arguments, and the other only its main class.
    if before.pid != now.pid {
        writeln!(out, "{}", shorten(&format!("against {}", who(before)), width()))?;
    }
    let when = |taken: &Taken| {
        let at = taken.at.as_deref().unwrap_or("an unknown time");
        let age = match taken.account_age_ms {
            0 => String::new(),
            age => format!(", then {:.1} s old", age as f64 / 1e3),
        };
        format!("{at} ({}{age})", taken.from)
    };
    paragraph(out, "", "", &format!("from {} to {}", when(before), when(now)))?;
    writeln!(out)
}

fn sums(out: &mut dyn Write, diff: &Diff) -> io::Result<()> {
    let kernel = diff.kernel_resident.map_or("unknown".to_string(), human_signed);
    let tables = diff.page_tables.map_or("unknown".to_string(), human_signed);
    let (resident, before, now) = (human_signed(diff.resident()), human(diff.before), human(diff.now));
    let sums =
        format!("resident {resident} ({before} -> {now}), by the kernel {kernel}, page tables {tables}");
    paragraph(out, "", "", &sums)?;
    diff.lost.iter().try_for_each(|lost| paragraph(out, "", "", &not_compared(lost)))?;
    writeln!(out)
}

/// "malloc's chunks could not be read at the first moment: ... are compared as one sum"
fn not_compared(lost: &Lost) -> String {
    let areas: Vec<&str> = lost.areas.iter().map(|area| area.title()).collect();
    format!("{}: {} are compared as one sum, not one by one", lost.why, areas.join(", "))
}

/// "Of +412 MiB: 380 MiB freed memory that arena 7 of malloc holds, 32 MiB class metadata (metaspace)."
pub fn sentence(causes: &Causes) -> String {
    let total = human_signed(causes.total);
    if causes.causes.is_empty() {
        return match causes.total {
            0 => "Nothing grew and nothing shrank.".to_string(),
            _ => format!("{total} in all, in pieces too small to name."),
        };
    }
    let words =
        |cause: &Cause| format!("{} {}", amount(cause.bytes, causes.total < 0), what_words(&cause.what));
    let mut named: Vec<String> = causes.causes.iter().map(words).collect();
    if causes.rest != 0 {
        named.push(format!("{} elsewhere", amount(causes.rest, causes.total < 0)));
    }
    let against = causes.against.as_ref().map(|cause| {
        let verb = if cause.bytes < 0 { "less" } else { "more" };
        format!("; against it {} {verb} {}", human(cause.bytes.unsigned_abs()), what_words(&cause.what))
    });
    format!("Of {total}: {}{}.", named.join(", "), against.unwrap_or_default())
}

/// In a sentence about a decrease, an amount has no sign.
fn amount(bytes: i64, is_less: bool) -> String {
    match (bytes < 0, is_less) {
        (true, false) => human_signed(bytes),
        _ => human(bytes.unsigned_abs()),
    }
}

fn what_words(what: &What) -> String {
    match what {
        What::Area { area } => area.title().to_string(),
        What::Part { area, part } if part == area.title() => part.clone(),
        What::Part { area, part } => format!("{} ({part})", area.title()),
        What::FreedInArena { arena: 0, .. } => "freed memory held in malloc's main arena".to_string(),
        What::FreedInArena { arena, .. } => format!("freed memory held in malloc's arena {arena}"),
        What::FreedInArenas { arenas, .. } => format!("freed memory held in {arenas} arenas of malloc"),
        What::Threads { threads_named, threads_grown: 0, .. } => {
            format!("stacks of threads '{threads_named}'")
        }
        What::Threads { threads_named, threads_grown, .. } => {
            let more = if *threads_grown > 0 { "more thread" } else { "fewer thread" };
            format!("stacks of {} '{threads_named}'", counted(threads_grown.unsigned_abs(), more))
        }
    }
}

fn areas(out: &mut dyn Write, diff: &Diff) -> io::Result<()> {
    let mut rows = Vec::new();
    for area in &diff.areas {
        rows.push((area.key.title().to_string(), area.grown));
        let is_shown = |part: &Grown| is_shown(&area.grown, part.resident);
        let parts = diff.parts.iter().filter(|part| part.key.0 == area.key && is_shown(&part.grown));
        rows.extend(parts.map(|part| (format!("  {}", part.key.1), part.grown)));
    }
    table(out, "AREA", rows)
}

fn is_shown(area: &Grown, part: i64) -> bool {
    part.unsigned_abs().saturating_mul(100) >= area.resident.unsigned_abs().saturating_mul(PART_PERCENT)
        && part != 0
}

fn table(out: &mut dyn Write, title: &str, rows: Vec<(String, Grown)>) -> io::Result<()> {
    if rows.is_empty() {
        return writeln!(out, "nothing of this kind changed");
    }
    let titles = ["RESIDENT", "BEFORE", "NOW", "COMMITTED", "IN USE"];
    cells(out, title, titles.map(|title| (title.to_string(), Style::Bold)), Style::Bold)?;
    for (name, figures) in rows.iter().take(ROWS_MAX) {
        let bytes = |bytes: Option<Bytes>| (or_dash(bytes.map(human)), Style::Plain);
        let signed = |bytes: i64| (human_signed(bytes), grown(Some(bytes)));
        let in_use = figures.in_use.map_or(("-".to_string(), Style::Plain), signed);
        let (resident, committed) = (signed(figures.resident), signed(figures.committed));
        cells(
            out,
            name,
            [resident, bytes(figures.before), bytes(figures.now), committed, in_use],
            Style::Plain,
        )?;
    }
    more(out, rows.len(), ROWS_MAX, 0)
}

/// More is red, less is green; the sign says the same.
fn grown(bytes: Option<i64>) -> Style {
    match bytes.unwrap_or(0).signum() {
        1 => Style::Red,
        -1 => Style::Green,
        _ => Style::Plain,
    }
}

fn cells(out: &mut dyn Write, name: &str, figures: [(String, Style); 5], style: Style) -> io::Result<()> {
    let shown = match width() {
        ..THREE_FIGURES_MIN => 1,
        THREE_FIGURES_MIN..ALL_FIGURES_MIN => 3,
        ALL_FIGURES_MIN.. => figures.len(),
    };
    let room = width().saturating_sub(shown * FIGURE).min(NAME_MAX);
    let name = fitted(name, room);
    paint::put(out, style, &name)?;
    for (figure, style) in figures.iter().take(shown) {
        write!(out, "{}", " ".repeat(FIGURE.saturating_sub(figure.len())))?;
        paint::put(out, *style, figure)?;
    }
    writeln!(out)
}
