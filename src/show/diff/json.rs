//! What grew, in JSON: `marusa/diff/1`. Unknown is `null` with an entry in `gaps`, never 0.

use super::{Taken, sentence};
use crate::base::{Gap, Why};
use crate::map::diff::{Cause, Diff, Row, What};
use crate::show::json::gap;
use serde_json::{Value, json};

pub const SCHEMA: &str = "marusa/diff/1";

pub fn json(before: &Taken, now: &Taken, diff: &Diff) -> Value {
    let mut gaps = Vec::new();
    let mut note = |what: &str, is_known: bool| {
        if !is_known {
            gaps.push(gap(&Gap::new(what, Why::NotRecorded).hint("one of the two does not have it")));
        }
    };
    note("kernel_resident_grown_bytes", diff.kernel_resident.is_some());
    note("page_table_grown_bytes", diff.page_tables.is_some());
    note("in_use_grown_bytes of some areas", diff.areas.iter().all(|row| row.in_use.is_some()));
    note("freed_grown_bytes of some arenas", diff.arenas.iter().all(|row| row.freed.is_some()));
    for lost in &diff.lost {
        gaps.push(gap(
            &Gap::new("areas that only one of the two tells apart", Why::NotRecorded).hint(lost.why.clone())
        ));
    }
    json!({
        "schema": SCHEMA,
        "before": taken(before),
        "now": taken(now),
        "answer": sentence(&diff.causes),
        "resident_before_bytes": diff.before,
        "resident_now_bytes": diff.now,
        "resident_grown_bytes": diff.resident(),
        "kernel_resident_grown_bytes": diff.kernel_resident,
        "page_table_grown_bytes": diff.page_tables,
        "causes": diff.causes.causes.iter().map(cause).collect::<Vec<_>>(),
        "rest_grown_bytes": diff.causes.rest,
        "against": diff.causes.against.as_ref().map(cause),
        "areas": diff.areas.iter().map(|area| named(area, json!({"area": area.key.name()}))).collect::<Vec<_>>(),
        "parts": diff.parts.iter().map(|part| {
            named(part, json!({"area": part.key.0.name(), "part": part.key.1}))
        }).collect::<Vec<_>>(),
        "arenas": diff.arenas.iter().map(|arena| {
            let address = format!("{:#x}", arena.row.key.at);
            let name = json!({"arena": arena.row.key.number, "address": address, "freed_grown_bytes": arena.freed});
            named(&arena.row, name)
        }).collect::<Vec<_>>(),
        "libraries": diff.libraries.iter().map(|row| named(row, json!({"path": row.key}))).collect::<Vec<_>>(),
        "threads": diff.threads.iter().map(|thread| {
            let name = json!({
                "threads_named": thread.row.key,
                "threads_before": thread.threads_before,
                "threads_now": thread.threads_now,
            });
            named(&thread.row, name)
        }).collect::<Vec<_>>(),
        "not_compared": diff.lost.iter().map(|lost| {
            json!({"areas": lost.areas.iter().map(|area| area.name()).collect::<Vec<_>>(), "why": lost.why})
        }).collect::<Vec<_>>(),
        "gaps": gaps,
    })
}

fn taken(taken: &Taken) -> Value {
    json!({
        "from": taken.from,
        "at": taken.at,
        "pid": taken.pid,
        "command": taken.command,
        "account_age_ms": taken.account_age_ms.unwrap_or(0),
    })
}

fn named<K>(row: &Row<K>, mut value: Value) -> Value {
    value["resident_before_bytes"] = json!(row.before);
    value["resident_now_bytes"] = json!(row.now);
    value["resident_grown_bytes"] = json!(row.resident);
    value["committed_grown_bytes"] = json!(row.committed);
    value["reserved_grown_bytes"] = json!(row.reserved);
    value["in_use_grown_bytes"] = json!(row.in_use);
    value
}

fn cause(cause: &Cause) -> Value {
    let mut value = match &cause.what {
        What::Area(area) => json!({"kind": "area", "area": area.name()}),
        What::Part(area, part) => json!({"kind": "part", "area": area.name(), "part": part}),
        What::FreedInArena(arena) => {
            json!({"kind": "freed_in_arena", "area": "malloc_freed", "arena": arena})
        }
        What::FreedInArenas(arenas) => {
            json!({"kind": "freed_in_arenas", "area": "malloc_freed", "arenas": arenas})
        }
        What::Threads(name, more) => {
            json!({"kind": "threads", "area": "stack", "threads_named": name, "threads_grown": more})
        }
    };
    value["resident_grown_bytes"] = json!(cause.bytes);
    value
}
