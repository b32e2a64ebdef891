//! One reading of a JVM for programs: a line of JSON, schema marusa/top/2.

use crate::base::Bytes;
use crate::map::Area;
use crate::map::model::{Account, AreaAccount, GapRow};
use crate::measure::look::{Look, MemoryLimit};
use crate::show::json::Head;
use schemars::JsonSchema;
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::BTreeMap;

#[derive(JsonSchema, Serialize)]
pub struct TopDocument<'a> {
    #[serde(flatten)]
    head: Head,
    pid: i32,
    name: &'a str,
    runtime: &'a str,
    at_seconds: f64,
    took_ms: f64,
    kernel_resident_bytes: Option<Bytes>,
    resident_bytes: Option<Bytes>,
    swapped_bytes: Option<Bytes>,
    memory_limit: Option<MemoryLimit>,
    areas: Option<Vec<AreaLine<'a>>>,
    page_sizes: Option<Vec<SizeLine>>,
    threads: Option<usize>,
    arenas: Option<Vec<ArenaLine>>,
    gaps: Vec<GapRow>,
}

#[derive(JsonSchema, Serialize)]
struct AreaLine<'a> {
    area: Area,
    resident_bytes: Bytes,
    in_use_bytes: Option<Bytes>,
    parts: Vec<PartLine<'a>>,
}

#[derive(JsonSchema, Serialize)]
struct PartLine<'a> {
    part: &'a str,
    resident_bytes: Bytes,
}

#[derive(JsonSchema, Serialize)]
struct SizeLine {
    page_bytes: Bytes,
    resident_bytes: Bytes,
    resident_bytes_by_area: BTreeMap<&'static str, Bytes>,
}

#[derive(JsonSchema, Serialize)]
struct ArenaLine {
    arena: String,
    resident_bytes: Bytes,
}

impl<'a> TopDocument<'a> {
    pub fn of(look: &'a Look) -> TopDocument<'a> {
        let account = look.account.as_ref().ok();
        TopDocument {
            head: Head::now("marusa/top/2"),
            pid: look.pid,
            name: &look.name,
            runtime: &look.runtime,
            at_seconds: look.at,
            took_ms: look.took_ms,
            kernel_resident_bytes: look.kernel_resident_bytes,
            resident_bytes: account.map(|account| account.totals.resident_bytes),
            swapped_bytes: account.and_then(|account| account.totals.swapped_bytes),
            memory_limit: look.memory_limit,
            areas: account.map(areas),
            page_sizes: account.map(page_sizes),
            threads: account.map(|account| account.stacks().len()),
            arenas: account.map(arenas),
            gaps: match &look.account {
                Ok(account) => account.gaps.clone(),
                Err(gap) => vec![GapRow::from(gap)],
            },
        }
    }
}

/// The ones that have something, the largest first.
fn areas(account: &Account) -> Vec<AreaLine<'_>> {
    let is_there = |area: &&AreaAccount| area.amounts.resident_bytes > 0;
    let mut areas: Vec<&AreaAccount> = account.areas.iter().filter(is_there).collect();
    areas.sort_by_key(|area| Reverse(area.amounts.resident_bytes));
    areas.into_iter().map(AreaLine::of).collect()
}

impl<'a> AreaLine<'a> {
    fn of(area: &'a AreaAccount) -> AreaLine<'a> {
        let parts = area.parts.iter();
        AreaLine {
            area: area.area,
            resident_bytes: area.amounts.resident_bytes,
            in_use_bytes: area.amounts.in_use_bytes,
            parts: parts
                .map(|part| PartLine { part: &part.part, resident_bytes: part.amounts.resident_bytes })
                .collect(),
        }
    }
}

fn page_sizes(account: &Account) -> Vec<SizeLine> {
    let on = |area: &AreaAccount, size: Bytes| {
        let bytes = area.amounts.by_page_size.get(&size).copied().filter(|bytes| *bytes > 0)?;
        Some((area.area.name(), bytes))
    };
    let line = |(size, bytes): (Bytes, Bytes)| SizeLine {
        page_bytes: size,
        resident_bytes: bytes,
        resident_bytes_by_area: account.areas.iter().filter_map(|area| on(area, size)).collect(),
    };
    account.whole().by_page_size.into_iter().map(line).collect()
}

fn arenas(account: &Account) -> Vec<ArenaLine> {
    let arenas = account.malloc.iter().flat_map(|malloc| &malloc.arenas);
    arenas.map(|arena| ArenaLine { arena: arena.title(), resident_bytes: arena.resident_bytes }).collect()
}
