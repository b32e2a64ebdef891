//! The snapshot in JSON: `marusa/map/1`. Keys are stable; unknown is `null` with an entry in `gaps`, never 0.

mod malloc;
mod page_sizes;
pub mod pages;
mod zeros;

use crate::base::{Gap, Known, Why};
use crate::map::account::{AreaSum, by_area, by_library, by_thread};
use crate::map::{Figures, MemoryMap, Owner, Share};
use crate::os::smaps;
use crate::snapshot::Snapshot;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

pub use zeros::zeros;

/// Those of `figures`, and those that are added to it.
const FIGURES_KEYS: usize = 13;

pub const MAP_SCHEMA: &str = "marusa/map/1";

/// The whole account.
pub fn map(snapshot: &Snapshot, map: &MemoryMap) -> Value {
    let mut gaps = map.gaps.clone();
    let areas: Vec<Value> = by_area(map).iter().map(|sum| area(sum, snapshot, &mut gaps)).collect();
    let totals = totals(map, &mut gaps);
    let malloc = malloc::malloc(snapshot, map, &mut gaps);
    let is_swap_known = snapshot.os.status.swapped_bytes.is_some();
    if !is_swap_known {
        gaps.push(Gap::new("swapped_bytes", Why::NotRecorded));
    }
    let mut value = json!({
        "schema": MAP_SCHEMA,
        "taken": {
            "at": snapshot.taken.at,
            "took_ms": (snapshot.taken.took_ms * 100.0).round() / 100.0,
            "target_stopped_ms": 0,
            "attached": snapshot.taken.attached,
            "kernel": snapshot.taken.kernel,
        },
        "process": process(snapshot),
        "jvm": jvm(snapshot),
        "totals": totals,
        "areas": null,
        "malloc": null,
        "threads": null,
        "libraries": null,
        "gaps": gaps.iter().map(gap).collect::<Vec<Value>>(),
    });
    // Moved in: `json!` copies a value that it is given.
    value["areas"] = Value::Array(areas);
    value["malloc"] = malloc;
    value["threads"] = Value::Array(threads(snapshot, map));
    value["libraries"] = Value::Array(libraries(map));
    if let Some(Ok(sizes)) = &snapshot.os.page_sizes {
        value["page_sizes"] = page_sizes::page_sizes(sizes, map);
    }
    if !is_swap_known {
        forget(&mut value, "swapped_bytes");
    }
    value
}

/// Makes every figure of this name `null`.
fn forget(value: &mut Value, key: &str) {
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                if name == key { *member = Value::Null } else { forget(member, key) }
            }
        }
        Value::Array(members) => members.iter_mut().for_each(|member| forget(member, key)),
        _ => {}
    }
}

/// One gap, with the reason as a word and the address, if any, in the text.
pub fn gap(gap: &Gap) -> Value {
    json!({"what": gap.what, "why": gap.why.to_string(), "hint": gap.hint})
}

fn process(snapshot: &Snapshot) -> Value {
    let process = &snapshot.os.process;
    json!({
        "pid": process.pid,
        "namespace_pid": process.namespace_pid,
        "command": process.command,
        "user": process.user,
        "container": process.container,
        "started": process.started,
    })
}

fn jvm(snapshot: &Snapshot) -> Value {
    let Ok(jvm) = &snapshot.jvm else { return Value::Null };
    let java_threads = jvm.threads.iter().filter(|thread| thread.is_java()).count();
    json!({
        "vm": jvm.vm,
        "version": known(&jvm.version),
        "major": known(&jvm.major),
        "gc": jvm.gc.as_ref().ok().map(|gc| gc.name()),
        "nmt": known(&jvm.nmt),
        "java_threads": if jvm.threads.is_empty() { None } else { Some(java_threads) },
        "library": jvm.library,
        "build_id": jvm.build_id,
        "flags": jvm.flags,
        "heap": jvm.heap.as_ref().ok().map(|heap| json!({
            "reserved": heap.reserved.iter().map(|range| range.to_string()).collect::<Vec<_>>(),
            "max_bytes": known(&heap.max_bytes),
            "committed_bytes": known(&heap.committed_bytes),
            "used_bytes": known(&heap.used_bytes),
            "region_bytes": heap.region_bytes,
        })),
        "code_heaps": jvm.code.as_ref().ok().map(|heaps| heaps.iter().map(|heap| json!({
            "name": heap.name,
            "reserved_bytes": heap.reserved.bytes(),
            "committed_bytes": heap.committed.bytes(),
            "used_bytes": known(&heap.used_bytes),
            "blobs": heap.blobs,
        })).collect::<Vec<_>>()),
        "classes": jvm.classes.as_ref().ok().map(|classes| json!({
            "loaders": known(&classes.loaders),
            "classes": known(&classes.classes),
            "metaspace_used_bytes": known(&classes.metaspace_used_bytes),
            "class_space_used_bytes": known(&classes.class_space_used_bytes),
        })),
    })
}

fn known<T: serde::Serialize>(value: &Known<T>) -> Option<&T> {
    value.as_ref().ok()
}

fn totals(map: &MemoryMap, gaps: &mut Vec<Gap>) -> Value {
    let balance = &map.balance;
    if balance.proportional.is_none() {
        gaps.push(Gap::new("totals.proportional_bytes", Why::Denied).hint(
            "how often pages are mapped is in /proc/kpagecount, which is visible only with CAP_SYS_ADMIN",
        ));
    }
    json!({
        "reserved_bytes": balance.total.reserved,
        "committed_bytes": balance.total.committed,
        "resident_bytes": balance.total.resident,
        "aliased_bytes": balance.total.aliased,
        "kernel_resident_bytes": balance.kernel_resident,
        "changed_while_reading_bytes": balance.changed_while_reading,
        "proportional_bytes": balance.proportional,
        "swapped_bytes": balance.total.swapped,
        "unattributed_bytes": balance.unattributed,
        "page_table_bytes": balance.page_tables,
    })
}

fn area(sum: &AreaSum, snapshot: &Snapshot, gaps: &mut Vec<Gap>) -> Value {
    let heap_used =
        snapshot.jvm.as_ref().ok().and_then(|jvm| jvm.heap.as_ref().ok()?.used_bytes.clone().ok());
    let in_use = match sum.area {
        crate::map::Area::JavaHeap => heap_used.or(sum.in_use),
        _ => sum.in_use,
    };
    if in_use.is_none() {
        let what = format!("areas.{}.in_use_bytes", sum.area.name());
        gaps.push(Gap::new(what, Why::NotInThisRuntime));
    }
    let mut value = figures(&sum.figures, in_use);
    value["area"] = json!(sum.area.name());
    value["paper_area"] = json!(sum.area.paper());
    value["parts"] = sum
        .parts
        .iter()
        .map(|part| {
            let mut value = figures(&part.figures, part.in_use);
            value["part"] = json!(part.part);
            value["how"] = json!(part.how);
            value
        })
        .collect();
    value
}

/// The keys that areas, parts, threads and libraries share.
pub fn figures(figures: &Figures, in_use: Option<u64>) -> Value {
    // In the order of their texts.
    let sizes: BTreeMap<String, &u64> =
        figures.by_page_size.iter().map(|(size, bytes)| (size.to_string(), bytes)).collect();
    let sizes: Map<String, Value> = sizes.into_iter().map(|(size, bytes)| (size, (*bytes).into())).collect();
    // Not by `json!`: there are thousands of these, and a table that grows is built several times.
    let mut value = Map::with_capacity(FIGURES_KEYS);
    let mut add = |key: &str, bytes: Value| value.insert(key.to_string(), bytes);
    add("reserved_bytes", figures.reserved.into());
    add("committed_bytes", figures.committed.into());
    add("resident_bytes", figures.resident.into());
    add("aliased_bytes", figures.aliased.into());
    add("in_use_bytes", in_use.into());
    add("swapped_bytes", figures.swapped.into());
    add("proportional_bytes", (figures.sharing_unknown == 0).then_some(figures.proportional).into());
    add("by_page_size", sizes.into());
    if !figures.by_page_kind.is_empty() {
        add("by_page_kind", page_sizes::kinds(figures));
    }
    value.into()
}

fn threads(snapshot: &Snapshot, map: &MemoryMap) -> Vec<Value> {
    let Ok(jvm) = &snapshot.jvm else { return Vec::new() };
    let stacks: BTreeMap<i32, Figures> =
        by_thread(map).into_iter().map(|(tid, _, figures)| (tid, figures)).collect();
    jvm.threads
        .iter()
        .map(|thread| {
            let mut value =
                json!({"tid": thread.tid, "name": thread.name, "kind": thread.kind, "stack": null});
            if let Some(sum) = stacks.get(&thread.tid) {
                value["stack"] = figures(sum, None);
            }
            value
        })
        .collect()
}

/// `--by mapping`: every span, in the order of addresses. One of several owners names them in `shares`, biggest first.
pub fn mappings(snapshot: &Snapshot, map: &MemoryMap) -> Vec<Value> {
    map.spans
        .iter()
        .map(|span| {
            let mapping = &snapshot.os.mappings[span.mapping];
            let span_figures = span.figures();
            let mut value = figures(&span_figures, None);
            value["start"] = json!(span.range.start.to_string());
            value["end"] = json!(span.range.end.to_string());
            value["rights"] = json!(mapping.rights.text());
            value["path"] = json!(mapping.path);
            if let Some(smaps) = &snapshot.os.smaps {
                let smap = smaps.as_ref().ok().and_then(|smaps| smaps::find(smaps, mapping.range.start));
                value["anonymous_bytes"] = json!(span_figures.anonymous);
                value["mapping"] = page_sizes::mapping(mapping, smap);
            }
            value["area"] = Value::Null;
            value["part"] = Value::Null;
            value["how"] = Value::Null;
            match &span.shares[..] {
                [only] => name_owner(&mut value, &map.owners[only.owner]),
                several => value["shares"] = shares(map, several),
            }
            value
        })
        .collect()
}

fn name_owner(value: &mut Value, owner: &Owner) {
    value["area"] = json!(owner.area.name());
    value["part"] = json!(owner.part);
    value["how"] = json!(owner.how);
}

fn shares(map: &MemoryMap, shares: &[Share]) -> Value {
    let mut sorted: Vec<&Share> = shares.iter().collect();
    sorted.sort_by_key(|share| std::cmp::Reverse(share.figures.reserved));
    let value = |share: &&Share| {
        let mut value = figures(&share.figures, None);
        name_owner(&mut value, &map.owners[share.owner]);
        value
    };
    sorted.iter().map(value).collect()
}

fn libraries(map: &MemoryMap) -> Vec<Value> {
    by_library(map)
        .into_iter()
        .map(|(path, _, sum)| {
            let mut value = figures(&sum, None);
            value["path"] = json!(path);
            value
        })
        .collect()
}
