//! `marusa/pages-collapse/2` and `marusa/pages-split/2`. Unknown is `null`, never 0.

use super::{After, Asked, Direction, refused_words, stopped_words};
use crate::base::Bytes;
use crate::map::model::{GapRow, Taken};
use crate::os::host::Host;
use crate::pages::blocks::{AreaBlocks, BlockPlan, Done, Left, Refusal, Stopped};
use crate::snapshot::Snapshot;
use schemars::JsonSchema;
use serde::Serialize;

impl Direction {
    fn schema(self) -> &'static str {
        match self {
            Direction::Collapse => "marusa/pages-collapse/2",
            Direction::Split => "marusa/pages-split/2",
        }
    }
}

/// `marusa pages collapse --json` and `marusa pages split --json`.
#[derive(JsonSchema, Serialize)]
pub struct CollapseDocument<'a> {
    schema: &'static str,
    host: Host,
    taken: Taken,
    process: Process<'a>,
    dry_run: bool,
    asked: &'a Asked,
    planned: Planned,
    areas: Vec<AreaRow<'a>>,
    /// Why it was not done.
    not_done: Option<&'a str>,
    done: Option<DoneRow<'a>>,
    gaps: Vec<GapRow>,
}

#[derive(JsonSchema, Serialize)]
struct Process<'a> {
    pid: i32,
    command: &'a str,
    start_ticks: u64,
}

#[derive(JsonSchema, Serialize)]
struct Planned {
    blocks: usize,
    bytes: Bytes,
    growth_bytes: Bytes,
}

#[derive(JsonSchema, Serialize)]
struct AreaRow<'a> {
    #[serde(flatten)]
    before: &'a AreaBlocks,
    left: Vec<LeftRow>,
    resident_after_bytes: Option<Bytes>,
    on_2m_after_bytes: Option<Bytes>,
}

#[derive(JsonSchema, Serialize)]
struct LeftRow {
    why: Left,
    words: &'static str,
    bytes: Bytes,
}

#[derive(JsonSchema, Serialize)]
struct DoneRow<'a> {
    is_all: bool,
    changed_bytes: Bytes,
    #[serde(flatten)]
    done: &'a Done,
    refused: Vec<RefusedRow>,
    stopped: Option<StoppedRow>,
    #[serde(flatten)]
    after: &'a After,
}

#[derive(JsonSchema, Serialize)]
struct RefusedRow {
    error: String,
    blocks: usize,
    words: String,
}

#[derive(JsonSchema, Serialize)]
struct StoppedRow {
    why: &'static str,
    words: String,
}

impl<'a> CollapseDocument<'a> {
    pub fn of(
        snapshot: &'a Snapshot,
        plan: &'a BlockPlan,
        asked: &'a Asked,
        done: Option<(&'a Done, &'a After)>,
        not_done: Option<&'a str>,
    ) -> CollapseDocument<'a> {
        let process = &snapshot.os.process;
        let (blocks, growth_bytes) = match asked.direction {
            Direction::Collapse => (&plan.blocks, plan.growth),
            Direction::Split => (&plan.on_2m, 0),
        };
        let bytes = blocks.iter().map(|block| block.range.bytes()).sum();
        CollapseDocument {
            schema: asked.direction.schema(),
            host: Host::here(),
            taken: Taken::of(snapshot),
            process: Process {
                pid: process.pid,
                command: &process.command,
                start_ticks: process.start_ticks,
            },
            dry_run: asked.dry_run,
            asked,
            planned: Planned { blocks: blocks.len(), bytes, growth_bytes },
            areas: plan.areas.iter().map(|area| self::area(area, done.map(|(_, after)| after))).collect(),
            not_done,
            done: done.map(|(done, after)| self::done(asked, done, after)),
            gaps: snapshot.os.gaps.iter().map(GapRow::from).collect(),
        }
    }
}

fn area<'a>(before: &'a AreaBlocks, after: Option<&After>) -> AreaRow<'a> {
    let second = after.and_then(|after| after.areas.as_ref());
    let now = second.map(|areas| areas.iter().find(|one| one.area == before.area));
    let figure = |get: fn(&AreaBlocks) -> Bytes| now.map(|now| now.map_or(0, get));
    let left = |(why, bytes): (&Left, &Bytes)| LeftRow { why: *why, words: why.words(), bytes: *bytes };
    AreaRow {
        before,
        left: before.left.iter().map(left).collect(),
        resident_after_bytes: figure(|now| now.resident),
        on_2m_after_bytes: figure(|now| now.on_2m),
    }
}

fn done<'a>(asked: &Asked, done: &'a Done, after: &'a After) -> DoneRow<'a> {
    let refused = |(refusal, blocks): (&Refusal, &usize)| RefusedRow {
        error: refusal.name(),
        blocks: *blocks,
        words: refused_words(*refusal, *blocks),
    };
    let stopped =
        |stopped| StoppedRow { why: stop_name(stopped), words: stopped_words(stopped, &asked.pace) };
    DoneRow {
        is_all: done.is_all(),
        changed_bytes: done.reached_bytes(),
        done,
        refused: done.refused.iter().map(refused).collect(),
        stopped: done.stopped.as_ref().map(stopped),
        after,
    }
}

fn stop_name(stopped: &Stopped) -> &'static str {
    match stopped {
        Stopped::Signal => "signal",
        Stopped::TargetEnded => "target_ended",
        Stopped::SlowCalls => "slow_calls",
        Stopped::LittleMemory { .. } => "little_memory",
        Stopped::NoPieces { .. } => "no_free_pieces",
        Stopped::Refused(_) => "refused",
        Stopped::Receipt(_) => "receipt",
        Stopped::Unreadable(_) => "unreadable",
    }
}
