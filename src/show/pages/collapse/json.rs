//! `marusa/pages-collapse/1` and `marusa/pages-split/1`. Unknown is `null`, never 0.

use super::{After, Asked, Direction, refused_words, stopped_words};
use crate::pages::blocks::{AreaBlocks, BlockPlan, Done, Left, Stopped};
use crate::show::json;
use crate::snapshot::Snapshot;
use serde_json::{Value, json};

impl Direction {
    fn schema(self) -> &'static str {
        match self {
            Direction::Collapse => "marusa/pages-collapse/1",
            Direction::Split => "marusa/pages-split/1",
        }
    }
}

/// `why_not`: what kept it from being done.
pub fn json(
    snapshot: &Snapshot,
    plan: &BlockPlan,
    asked: &Asked,
    done: Option<(&Done, &After)>,
    why_not: Option<&str>,
) -> Value {
    let process = &snapshot.os.process;
    let is_split = asked.direction == Direction::Split;
    let blocks = if is_split { &plan.on_2m } else { &plan.blocks };
    let bytes: u64 = blocks.iter().map(|block| block.range.bytes()).sum();
    json!({
        "schema": asked.direction.schema(),
        "taken": {"at": snapshot.taken.at, "took_ms": snapshot.taken.took_ms, "kernel": snapshot.taken.kernel},
        "process": {"pid": process.pid, "command": process.command, "start_ticks": process.start_ticks},
        "dry_run": asked.dry_run,
        "asked": {
            "areas": asked.areas,
            "density": asked.wanted.density,
            "growth": asked.wanted.growth,
            "cpu_budget": asked.pace.cpu_share,
            "stall_budget_ms": asked.pace.stall_budget.as_secs_f64() * 1e3,
            "compact": asked.pace.compact,
        },
        "planned": {
            "blocks": blocks.len(),
            "bytes": bytes,
            "growth_bytes": if is_split { 0 } else { plan.growth },
        },
        "areas": plan.areas.iter().map(|area| self::area(area, done.map(|(_, after)| after))).collect::<Vec<_>>(),
        "not_done": why_not,
        "done": done.map(|(done, after)| self::done(asked, done, after)),
        "gaps": snapshot.os.gaps.iter().map(json::gap).collect::<Vec<_>>(),
    })
}

fn area(area: &AreaBlocks, after: Option<&After>) -> Value {
    let second = after.and_then(|after| after.areas.as_ref());
    let now = second.map(|areas| areas.iter().find(|one| one.area == area.area));
    let figure = |get: fn(&AreaBlocks) -> u64| now.map(|now| now.map_or(0, get));
    let left = |(why, bytes): (&Left, &u64)| json!({"why": why, "words": why.words(), "bytes": bytes});
    json!({
        "area": area.area.name(),
        "resident_bytes": area.resident,
        "on_2m_bytes": area.on_2m,
        "fit_bytes": area.planned,
        "left": area.left.iter().map(left).collect::<Vec<_>>(),
        "resident_after_bytes": figure(|now| now.resident),
        "on_2m_after_bytes": figure(|now| now.on_2m),
    })
}

fn done(asked: &Asked, done: &Done, after: &After) -> Value {
    let refused = done.refused.iter().map(|(refusal, blocks)| {
        json!({"error": refusal.name(), "blocks": blocks, "words": refused_words(*refusal, *blocks)})
    });
    let stopped = done
        .stopped
        .as_ref()
        .map(|stopped| json!({"why": stop_name(stopped), "words": stopped_words(stopped, &asked.pace)}));
    json!({
        "is_all": done.is_all(),
        "changed_bytes": done.reached_bytes(),
        "blocks_were_so": done.were_so,
        "blocks_no_longer_fit": done.no_longer,
        "blocks_not_tried": done.not_tried,
        "refused": refused.collect::<Vec<_>>(),
        "stopped": stopped,
        "price": done.price,
        "resident_before_bytes": after.resident_before,
        "resident_after_bytes": after.resident_after,
        "page_faults": after.faults,
        "receipt": after.receipt,
        "note": after.note,
    })
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
