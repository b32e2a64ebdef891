//! `marusa pages collapse` and `split`: what is fit for it and what is left and why, and afterwards what the page tables say.

mod json;

pub use json::CollapseDocument;

use crate::base::Bytes;
use crate::map::{Account, MemoryMap};
use crate::pages::blocks::{AreaBlocks, BlockPlan, Done, Left, Pace, Refusal, Stopped, Wanted};
use crate::show::table::Table;
use crate::show::text::head;
use crate::show::units::{counted, human, human_signed, paragraph, percent, prose};
use crate::snapshot::Snapshot;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::{self, Write};

/// Reasons of an area that are shown in text, those of the most memory.
const REASONS_SHOWN_MAX: usize = 6;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    Collapse,
    Split,
}

impl Direction {
    fn verb(self) -> &'static str {
        match self {
            Direction::Collapse => "put on 2 MiB",
            Direction::Split => "split",
        }
    }
}

/// What the user wants.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct Asked {
    #[serde(skip)]
    pub direction: Direction,
    #[serde(flatten)]
    pub wanted: Wanted,
    #[serde(flatten)]
    pub pace: Pace,
    #[serde(skip)]
    pub dry_run: bool,
}

/// What a second sample found.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct After {
    /// `None`: it could not be looked at again.
    #[serde(skip)]
    pub areas: Option<Vec<AreaBlocks>>,
    #[serde(rename = "resident_before_bytes")]
    pub resident_before: Option<Bytes>,
    #[serde(rename = "resident_after_bytes")]
    pub resident_after: Option<Bytes>,
    #[serde(rename = "page_faults")]
    pub faults: Option<u64>,
    pub receipt: Option<String>,
    pub note: Option<String>,
}

impl After {
    fn growth(&self) -> Option<i64> {
        let (before, after) = self.resident_before.zip(self.resident_after)?;
        Some(i64::try_from(after).ok()?.saturating_sub(i64::try_from(before).ok()?))
    }
}

/// Before anything is changed.
pub fn before(
    out: &mut dyn Write,
    snapshot: &Snapshot,
    map: &MemoryMap,
    plan: &BlockPlan,
    asked: &Asked,
    blocks: usize,
) -> io::Result<()> {
    head(out, &Account::of(snapshot, map))?;
    match asked.direction {
        Direction::Collapse => fit(out, plan, blocks),
        Direction::Split => {
            let mut table = Table::new(["AREA", ">RESIDENT", ">ON 2 MIB NOW"]);
            for area in &plan.areas {
                table.row([area.area.title(), &human(area.resident), &human(area.on_2m)]);
            }
            table.write(out)?;
            prose(out, &format!("\nto split: {blocks} huge 2 MiB pages"))
        }
    }
}

fn fit(out: &mut dyn Write, plan: &BlockPlan, blocks: usize) -> io::Result<()> {
    let mut table = Table::new(["AREA", ">RESIDENT", ">ON 2 MIB NOW", ">FIT FOR IT", ">LEFT"]);
    for area in &plan.areas {
        let left: Bytes = area.left.values().sum();
        let figures = [area.resident, area.on_2m, area.planned, left].map(human);
        table.row([area.area.title().to_string()].into_iter().chain(figures));
        reasons(&mut table, &area.left);
    }
    table.write(out)?;
    let text = format!(
        "\nto be put on 2 MiB: {}; what they lack adds at most {} ({} % of the process)",
        counted(blocks, "block"),
        human(plan.growth),
        percent(plan.growth, plan.resident)
    );
    prose(out, &text)
}

fn reasons(table: &mut Table, left: &BTreeMap<Left, Bytes>) {
    let mut left: Vec<_> = left.iter().collect();
    left.sort_by_key(|(_, bytes)| std::cmp::Reverse(**bytes));
    let shown = left.into_iter().take(REASONS_SHOWN_MAX);
    shown.for_each(|(why, bytes)| table.note(&format!("  {:>10}  ", human(*bytes)), why.words()));
}

/// What was done, and what it cost.
pub fn after(
    out: &mut dyn Write,
    snapshot: &Snapshot,
    plan: &BlockPlan,
    asked: &Asked,
    done: &Done,
    after: &After,
) -> io::Result<()> {
    writeln!(out)?;
    if let Some(areas) = &after.areas {
        let titles = ["AREA", ">RESIDENT NOW", ">ON 2 MIB BEFORE", ">ON 2 MIB NOW", ">SHARE"];
        let mut table = Table::new(titles);
        for area in areas {
            let before = plan.areas.iter().find(|one| one.area == area.area);
            table.row([
                area.area.title().to_string(),
                human(area.resident),
                human(before.map_or(0, |area| area.on_2m)),
                human(area.on_2m),
                format!("{} %", percent(area.on_2m, area.resident)),
            ]);
        }
        table.write(out)?;
        writeln!(out)?;
    }
    paragraph(out, "", "", &done_words(asked, done))?;
    for (refusal, blocks) in &done.refused {
        paragraph(out, "", "", &format!("refused: {}", refused_words(*refusal, *blocks)))?;
    }
    if let Some(stopped) = &done.stopped {
        paragraph(out, "", "", &format!("stopped before the end: {}", stopped_words(stopped, &asked.pace)))?;
    }
    paragraph(out, "", "", &price_words(asked, done))?;
    paragraph(out, "", "", &memory_words(after))?;
    after.note.iter().try_for_each(|note| paragraph(out, "", "", note))?;
    match (&after.receipt, asked.direction) {
        (Some(path), Direction::Collapse) if done.reached_bytes() > 0 => {
            let pid = snapshot.os.process.pid;
            prose(out, &format!("to take it back: marusa pages split {pid} --receipt {path}"))
        }
        _ => Ok(()),
    }
}

fn done_words(asked: &Asked, done: &Done) -> String {
    let mut text = format!("{}: {}", asked.direction.verb(), human(done.reached_bytes()));
    let mut also = |count: usize, words: &str| {
        if count > 0 {
            text += &format!("; {count} {words}");
        }
    };
    also(done.were_so, "blocks were so by then");
    also(done.no_longer, "blocks were left, as the JVM gave pages of them back during the call");
    also(done.not_tried, "blocks were not tried");
    text
}

fn refused_words(refusal: Refusal, blocks: usize) -> String {
    format!("{}, {}: {}", counted(blocks, "block"), refusal.name(), refusal.words())
}

fn stopped_words(stopped: &Stopped, pace: &Pace) -> String {
    let budget_ms = pace.stall_budget.as_secs_f64() * 1e3;
    match stopped {
        Stopped::Signal => "by a signal (Ctrl-C)".to_string(),
        Stopped::TargetEnded => "the JVM ended".to_string(),
        Stopped::SlowCalls => format!(
            "one call after the other took longer than the {budget_ms} ms that a thread of the JVM may wait: the host is too \
             busy now; --stall-budget allows more"
        ),
        Stopped::LittleMemory { available_bytes } => {
            format!("only {} of memory are left to others", human(*available_bytes))
        }
        Stopped::NoPieces { free_bytes } => format!(
            "the host has {} of free memory in pieces of 2 MiB; for more the kernel would have to move others' memory, which \
             --compact allows",
            human(*free_bytes)
        ),
        Stopped::Refused(refusal) => format!("{}: {}", refusal.name(), refusal.words()),
        Stopped::Receipt(error) => format!("the receipt cannot be written: {error}"),
        Stopped::Unreadable(gap) => format!("the pages cannot be looked at: {gap}"),
    }
}

fn price_words(asked: &Asked, done: &Done) -> String {
    let price = &done.price;
    let share = if price.wall_ms > 0.0 { price.cpu_ms / price.wall_ms * 100.0 } else { 0.0 };
    let mut text = format!(
        "took {:.1} s, of them {:.1} s of CPU ({share:.0} %); a call: median {:.2} ms, p99 {:.2} ms, longest {:.2} ms: no \
         thread of the JVM waited longer than that for one",
        price.wall_ms / 1e3,
        price.cpu_ms / 1e3,
        price.calls.median_ms,
        price.calls.p99_ms,
        price.calls.max_ms
    );
    if price.over_budget > 0 {
        let budget_ms = asked.pace.stall_budget.as_secs_f64() * 1e3;
        text +=
            &format!("; {} took more than the {budget_ms} ms budget", counted(price.over_budget, "block"));
    }
    if price.retries > 0 {
        text += &format!("; {}", counted(price.retries, "retry"));
    }
    text
}

fn memory_words(after: &After) -> String {
    let figure = |bytes: Option<Bytes>| bytes.map_or("unknown".to_string(), human);
    let mut text = format!("resident {} -> {}", figure(after.resident_before), figure(after.resident_after));
    if let (Some(growth), Some(before)) = (after.growth(), after.resident_before) {
        let share = growth as f64 / before.max(1) as f64 * 100.0;
        text += &format!(" ({}, {share:+.2} %)", human_signed(growth));
    }
    match after.faults {
        Some(faults) => text + &format!("; the JVM took {faults} page faults during it"),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::{Addr, Range};
    use crate::map::Area;
    use crate::pages::blocks::Price;
    use crate::show::width::width;
    use std::time::Duration;

    fn asked() -> Asked {
        let wanted = Wanted { areas: vec![Area::JavaHeap], density: 0.9, growth: 0.01 };
        let pace = Pace { stall_budget: Duration::from_millis(5), ..Pace::default() };
        Asked { direction: Direction::Collapse, wanted, pace, dry_run: false }
    }

    fn stops() -> Vec<Stopped> {
        vec![
            Stopped::Signal,
            Stopped::TargetEnded,
            Stopped::SlowCalls,
            Stopped::LittleMemory { available_bytes: 1 << 20 },
            Stopped::NoPieces { free_bytes: 1 << 20 },
            Stopped::Refused(Refusal::NoHugePage),
            Stopped::Receipt("disk full".to_string()),
            Stopped::Unreadable("pagemap".to_string()),
        ]
    }

    #[test]
    fn every_line_fits_the_width() {
        let mut bytes = Vec::new();
        let all = [
            Refusal::NoCall,
            Refusal::NoRights,
            Refusal::OtherUser,
            Refusal::InUse,
            Refusal::GroupLimit,
            Refusal::NoHugePage,
            Refusal::NotHere,
            Refusal::NoEffect,
        ];
        for stopped in stops() {
            let done = Done {
                reached: vec![Range::sized(Addr(2 << 20), 2 << 20)],
                were_so: 1,
                no_longer: 2,
                refused: all.iter().map(|refusal| (*refusal, 3)).collect(),
                not_tried: 9,
                stopped: Some(stopped),
                price: Price {
                    wall_ms: 12345.6,
                    cpu_ms: 1234.5,
                    over_budget: 1,
                    retries: 2,
                    ..Price::default()
                },
            };
            let area = AreaBlocks {
                area: Area::NativeLibrary,
                resident: 999 << 30,
                on_2m: 998 << 30,
                planned: 0,
                left: [(Left::Growth, 1 << 30), (Left::OtherArea, 7)].into(),
            };
            let plan = BlockPlan {
                blocks: Vec::new(),
                on_2m: Vec::new(),
                areas: vec![area.clone()],
                growth: 1 << 20,
                resident: 1 << 30,
            };
            let second = After {
                areas: Some(vec![area]),
                resident_before: Some(100 << 20),
                resident_after: Some(101 << 20),
                faults: Some(7),
                receipt: None,
                note: None,
            };
            fit(&mut bytes, &plan, 7).expect("written");
            let snapshot = crate::map::made_up::snapshot("", Vec::new(), Vec::new());
            after(&mut bytes, &snapshot, &plan, &asked(), &done, &second).expect("written");
        }
        let text = String::from_utf8(bytes).expect("UTF-8");
        for line in text.lines() {
            assert!(line.chars().count() <= width(), "{line}");
        }
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for word in ["+1.00 %", "EAGAIN", "--compact", "2 retries", "998.0 GiB", "(10 %)"] {
            assert!(text.contains(word), "no {word} in {text}");
        }
    }
}
