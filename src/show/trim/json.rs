//! `marusa trim` in JSON: `marusa/trim/1`. Unknown is `null` with an entry in `gaps`, never 0.

use super::{Price, gaps, words};
use crate::base::Known;
use crate::map::trim::{Advice, ArenaPrediction, Held, Outcome, Prediction};
use crate::map::{Account, MemoryMap};
use crate::show::json;
use crate::snapshot::Snapshot;
use serde_json::{Value, json};

const SCHEMA: &str = "marusa/trim/1";

/// What is known before, with `null` where the rest is filled in.
pub fn json(
    snapshot: &Snapshot,
    map: &MemoryMap,
    prediction: &Known<Prediction>,
    advice: &[Advice],
) -> Value {
    let account = Account::of(snapshot, map);
    let gaps = gaps(snapshot, prediction);
    json!({
        "schema": SCHEMA,
        "taken": account.taken,
        "process": account.process,
        "jvm": account.jvm,
        "totals": account.totals,
        "predicted": prediction.as_ref().ok().map(prediction_json),
        "dry_run": false,
        "way": null,
        "not_done": null,
        "receipt": null,
        "outcome": null,
        "advice": advice.iter().map(advice_json).collect::<Vec<_>>(),
        "gaps": gaps.iter().map(json::gap).collect::<Vec<_>>(),
    })
}

/// One round of `--every`, on one line: the arenas are left out.
pub fn round_json(snapshot: &Snapshot, prediction: &Known<Prediction>) -> Value {
    json!({
        "schema": SCHEMA,
        "taken": {"at": snapshot.taken.at, "took_ms": snapshot.taken.took_ms},
        "process": {"pid": snapshot.os.process.pid},
        "predicted": prediction.as_ref().ok().map(|prediction| held_json(&prediction.total)),
        "receipt": null,
        "outcome": null,
    })
}

fn prediction_json(prediction: &Prediction) -> Value {
    let mut value = held_json(&prediction.total);
    value["allocator"] = json!(prediction.allocator);
    value["answer_buffer_bytes"] = json!(prediction.answer_buffer_bytes);
    value["arenas_not_read"] = json!(prediction.unread);
    value["arenas"] = prediction.arenas.iter().map(arena_json).collect();
    value
}

fn arena_json(arena: &ArenaPrediction) -> Value {
    let mut value = match &arena.held {
        Ok(held) => held_json(held),
        Err(gap) => json!({"gap": json::gap(gap)}),
    };
    value["number"] = json!(arena.number);
    value["at"] = json!(arena.at.to_string());
    value["attached_threads"] = json!(arena.attached_threads);
    value["system_bytes"] = json!(arena.system_bytes);
    value
}

fn held_json(held: &Held) -> Value {
    json!({
        "in_use_bytes": held.in_use_bytes,
        "free_bytes": held.free_bytes,
        "free_resident_bytes": held.free_resident_bytes,
        "trimmable_bytes": held.trimmable_bytes,
        "top_kept_bytes": held.top_kept_bytes,
        "scattered_bytes": held.scattered_bytes(),
    })
}

pub fn outcome_json(outcome: &Outcome, price: &Price) -> Value {
    json!({
        "predicted_bytes": outcome.predicted_bytes.as_ref().ok(),
        "returned_bytes": outcome.returned_bytes(),
        "error_share": outcome.error_share(),
        "resident_before_bytes": outcome.resident_before_bytes,
        "resident_after_bytes": outcome.resident_after_bytes,
        "resident_later_bytes": price.resident_later_bytes,
        "call_ms": price.call_ms,
        "page_faults_during": price.faults_during,
        "page_faults_after": price.faults_after,
        "watched_seconds": price.watched_seconds,
        "arenas": outcome.arenas.iter().map(|arena| json!({
            "number": arena.number,
            "predicted_bytes": arena.predicted_bytes,
            "returned_bytes": arena.returned_bytes(),
            "free_resident_before_bytes": arena.free_resident_before_bytes,
            "free_resident_after_bytes": arena.free_resident_after_bytes,
        })).collect::<Vec<_>>(),
    })
}

fn advice_json(advice: &Advice) -> Value {
    let (option, why) = words(advice);
    json!({"option": option, "why": why})
}
