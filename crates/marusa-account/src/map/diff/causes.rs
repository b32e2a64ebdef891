//! The few causes that say most of what changed: areas first, each named by what in it did it, where one thing did: the arena that
//! holds freed memory, the part, the threads.

use super::{Diff, Row};
use crate::map::area::Area;
use schemars::JsonSchema;
use serde::Serialize;

/// Causes that are named, and how much of what goes their way they must say.
const CAUSES_MAX: usize = 4;
const SAID_PERCENT: i64 = 97;
/// What is less than this share of the change is crumbs.
const CRUMB_PERCENT: i64 = 2;
/// One part, or one arena, is the cause where it alone makes this share of its area's change.
const ALONE_PERCENT: i64 = 60;
/// What goes the other way is reported from this share on.
const AGAINST_PERCENT: i64 = 10;

/// What did it.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum What {
    Area {
        area: Area,
    },
    Part {
        area: Area,
        part: String,
    },
    /// Freed memory that one arena of malloc holds.
    FreedInArena {
        area: Area,
        arena: u64,
    },
    /// Freed memory in a number of arenas.
    FreedInArenas {
        area: Area,
        arenas: usize,
    },
    /// Stacks of threads of one name, and how many threads more.
    Threads {
        area: Area,
        threads_named: String,
        threads_grown: i64,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize)]
pub struct Cause {
    #[serde(flatten)]
    pub what: What,
    #[serde(rename = "resident_grown_bytes")]
    pub bytes: i64,
}

/// "of +412 MB: 380 MB ..., 32 MB ..."
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Causes {
    /// Resident bytes more, of all.
    pub total: i64,
    /// In the direction of the total, biggest first.
    pub causes: Vec<Cause>,
    /// The part of the change in that direction that the causes do not explain.
    pub rest: i64,
    /// The biggest that goes the other way, where it is worth a word.
    pub against: Option<Cause>,
}

pub fn causes(diff: &Diff) -> Causes {
    let total = diff.resident();
    // Nothing in all may still be much each way: then what grew is reported first.
    let sign = if total < 0 { -1 } else { 1 };
    let mut along: Vec<&Row<Area>> = diff.areas.iter().filter(|row| row.grown.resident * sign > 0).collect();
    along.sort_by_key(|row| -row.grown.resident * sign);
    let sum: i64 = along.iter().map(|row| row.grown.resident).sum();
    let mut causes = Causes { total, rest: sum, ..Causes::default() };
    for row in along {
        let is_crumb =
            row.grown.resident.saturating_mul(100 * sign) < sum.saturating_mul(CRUMB_PERCENT * sign);
        let is_said =
            causes.rest.saturating_mul(100 * sign) <= sum.saturating_mul((100 - SAID_PERCENT) * sign);
        if causes.causes.len() == CAUSES_MAX || is_crumb || is_said {
            break;
        }
        causes.rest -= row.grown.resident;
        causes.causes.push(Cause { bytes: row.grown.resident, what: what(diff, row, sign) });
    }
    let against = diff
        .areas
        .iter()
        .filter(|row| row.grown.resident * sign < 0)
        .max_by_key(|row| -row.grown.resident * sign);
    causes.against = against
        .filter(|row| {
            -row.grown.resident.saturating_mul(100 * sign)
                >= total.saturating_mul(AGAINST_PERCENT * sign).max(1)
        })
        .map(|row| Cause { bytes: row.grown.resident, what: what(diff, row, -sign) });
    causes
}

/// The one thing in an area that did it, or the area.
fn what(diff: &Diff, row: &Row<Area>, sign: i64) -> What {
    let alone = |bytes: i64| {
        bytes.saturating_mul(100 * sign) >= row.grown.resident.saturating_mul(ALONE_PERCENT * sign)
    };
    let area = row.key;
    if area == Area::MallocFreed {
        let freed = |row: &super::ArenaRow| row.freed.unwrap_or(0) * sign;
        let grown = diff.arenas.iter().filter(|arena| freed(arena) > 0);
        return match grown.clone().max_by_key(|arena| freed(arena)) {
            Some(arena) if alone(freed(arena) * sign) => {
                What::FreedInArena { area, arena: arena.row.key.number }
            }
            Some(_) => What::FreedInArenas { area, arenas: grown.count() },
            None => What::Area { area },
        };
    }
    if area == Area::Stack {
        let grown = diff.threads.iter().max_by_key(|thread| thread.row.grown.resident * sign);
        return match grown {
            Some(thread) if alone(thread.row.grown.resident) => What::Threads {
                area,
                threads_named: thread.row.key.clone(),
                threads_grown: super::difference(thread.threads_before, thread.threads_now),
            },
            _ => What::Area { area },
        };
    }
    let parts = diff.parts.iter().filter(|part| part.key.0 == area);
    match parts.max_by_key(|part| part.grown.resident * sign) {
        Some(part) if alone(part.grown.resident) => What::Part { area, part: part.key.1.clone() },
        _ => What::Area { area },
    }
}
