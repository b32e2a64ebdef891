//! What grew, for programs: schema marusa/diff/2.

use super::{Taken, sentence};
use crate::base::{Bytes, Gap, Why};
use crate::map::Area;
use crate::map::diff::{Cause, Diff, HolderRow, Row, What};
use crate::map::model::GapRow;
use crate::show::json::Head;
use schemars::JsonSchema;
use serde::Serialize;

pub const SCHEMA: &str = "marusa/diff/2";

#[derive(JsonSchema, Serialize)]
pub struct DiffDocument<'a> {
    #[serde(flatten)]
    head: Head,
    before: Side<'a>,
    now: Side<'a>,
    answer: Option<String>,
    /// `None`, as all sums: one of the two is a document of `marusa heap`, which has only classes.
    resident_before_bytes: Option<Bytes>,
    resident_now_bytes: Option<Bytes>,
    resident_grown_bytes: Option<i64>,
    kernel_resident_grown_bytes: Option<i64>,
    page_table_grown_bytes: Option<i64>,
    causes: Vec<CauseRow<'a>>,
    rest_grown_bytes: Option<i64>,
    against: Option<CauseRow<'a>>,
    areas: Vec<Grown<AreaName>>,
    parts: Vec<Grown<PartName<'a>>>,
    arenas: Vec<Grown<ArenaName>>,
    libraries: Vec<Grown<LibraryName<'a>>>,
    threads: Vec<Grown<ThreadsName<'a>>>,
    named: Vec<Grown<NamedName<'a>>>,
    /// `None`: one of the two has no holders.
    holders: Option<Vec<HolderGrown<'a>>>,
    /// `None`: one of the two has no class loaders.
    loaders: Option<Vec<LoaderGrown<'a>>>,
    /// `None`: one of the two has no classes of the heap's objects.
    classes: Option<Vec<ClassGrown<'a>>>,
    not_compared: Vec<NotCompared<'a>>,
    gaps: Vec<GapRow>,
}

#[derive(JsonSchema, Serialize)]
struct Side<'a> {
    from: &'a str,
    at: Option<&'a str>,
    pid: Option<i32>,
    command: Option<&'a str>,
    account_age_ms: u64,
    /// For a recording: when the holders were read.
    holders_at: Option<&'a str>,
    /// When the classes of the heap's objects were counted.
    classes_at: Option<&'a str>,
}

/// A holder of malloc's blocks; `None`: not known at that moment.
#[derive(JsonSchema, Serialize)]
struct HolderGrown<'a> {
    holder: &'a str,
    in_use_before_bytes: Option<Bytes>,
    in_use_now_bytes: Option<Bytes>,
    in_use_grown_bytes: Option<i64>,
    blocks_before: Option<u64>,
    blocks_now: Option<u64>,
    blocks_grown: Option<i64>,
}

/// A group of alike class loaders; `None`: not known at that moment.
#[derive(JsonSchema, Serialize)]
struct LoaderGrown<'a> {
    loader: &'a str,
    metaspace_committed_before_bytes: Option<Bytes>,
    metaspace_committed_now_bytes: Option<Bytes>,
    metaspace_committed_grown_bytes: Option<i64>,
    loaders_before: Option<u64>,
    loaders_now: Option<u64>,
    loaders_grown: Option<i64>,
}

/// A class of the heap's objects, the dead included; `None`: not known at that moment.
#[derive(JsonSchema, Serialize)]
struct ClassGrown<'a> {
    class: &'a str,
    before_bytes: Option<Bytes>,
    now_bytes: Option<Bytes>,
    grown_bytes: Option<i64>,
    instances_before: Option<u64>,
    instances_now: Option<u64>,
    instances_grown: Option<i64>,
}

/// What a row is of, and how it changed.
#[derive(JsonSchema, Serialize)]
struct Grown<N> {
    #[serde(flatten)]
    name: N,
    resident_before_bytes: Option<Bytes>,
    resident_now_bytes: Option<Bytes>,
    resident_grown_bytes: i64,
    committed_grown_bytes: i64,
    reserved_grown_bytes: i64,
    in_use_grown_bytes: Option<i64>,
}

#[derive(JsonSchema, Serialize)]
struct AreaName {
    area: Area,
}

#[derive(JsonSchema, Serialize)]
struct PartName<'a> {
    area: Area,
    part: &'a str,
}

#[derive(JsonSchema, Serialize)]
struct ArenaName {
    arena: u64,
    address: String,
    freed_grown_bytes: Option<i64>,
}

#[derive(JsonSchema, Serialize)]
struct LibraryName<'a> {
    path: &'a str,
}

#[derive(JsonSchema, Serialize)]
struct ThreadsName<'a> {
    threads_named: &'a str,
    threads_before: u64,
    threads_now: u64,
}

#[derive(JsonSchema, Serialize)]
struct NamedName<'a> {
    subject: &'static str,
    name: &'a str,
}

#[derive(JsonSchema, Serialize)]
struct NotCompared<'a> {
    areas: Vec<Area>,
    why: &'a str,
}

#[derive(JsonSchema, Serialize)]
struct CauseRow<'a> {
    #[serde(flatten)]
    what: CauseKind<'a>,
    resident_grown_bytes: i64,
}

#[derive(JsonSchema, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum CauseKind<'a> {
    Area { area: Area },
    Part { area: Area, part: &'a str },
    FreedInArena { area: Area, arena: u64 },
    FreedInArenas { area: Area, arenas: usize },
    Threads { area: Area, threads_named: &'a str, threads_grown: i64 },
}

impl<'a> DiffDocument<'a> {
    pub fn of(before: &'a Taken, now: &'a Taken, diff: &'a Diff) -> DiffDocument<'a> {
        let arena = |arena: &crate::map::diff::ArenaRow| {
            let key = arena.row.key;
            let address = format!("{:#x}", key.at);
            grown(&arena.row, ArenaName { arena: key.number, address, freed_grown_bytes: arena.freed })
        };
        let has_account = !before.has_only_classes && !now.has_only_classes;
        DiffDocument {
            head: Head::now(SCHEMA),
            before: side(before),
            now: side(now),
            answer: has_account.then(|| sentence(&diff.causes)),
            resident_before_bytes: has_account.then_some(diff.before),
            resident_now_bytes: has_account.then_some(diff.now),
            resident_grown_bytes: has_account.then(|| diff.resident()),
            kernel_resident_grown_bytes: diff.kernel_resident,
            page_table_grown_bytes: diff.page_tables,
            causes: diff.causes.causes.iter().map(cause).collect(),
            rest_grown_bytes: has_account.then_some(diff.causes.rest),
            against: diff.causes.against.as_ref().map(cause),
            areas: diff.areas.iter().map(|row| grown(row, AreaName { area: row.key })).collect(),
            parts: diff.parts.iter().map(|row| grown(row, part(&row.key))).collect(),
            arenas: diff.arenas.iter().map(arena).collect(),
            libraries: diff.libraries.iter().map(|row| grown(row, LibraryName { path: &row.key })).collect(),
            threads: diff.threads.iter().map(threads).collect(),
            named: diff.named.iter().map(|row| grown(row, named(&row.key))).collect(),
            holders: diff.holders.as_ref().map(|rows| rows.iter().map(holder).collect()),
            loaders: diff.loaders.as_ref().map(|rows| rows.iter().map(loader).collect()),
            classes: diff.classes.as_ref().map(|rows| rows.iter().map(class).collect()),
            not_compared: diff.lost.iter().map(not_compared).collect(),
            gaps: gaps(diff, has_account),
        }
    }
}

fn side(taken: &Taken) -> Side<'_> {
    Side {
        from: &taken.from,
        at: taken.at.as_deref(),
        pid: taken.pid,
        command: taken.command.as_deref(),
        account_age_ms: taken.account_age_ms.unwrap_or(0),
        holders_at: taken.holders_at.as_deref(),
        classes_at: taken.classes_at.as_deref(),
    }
}

fn grown<K, N>(row: &Row<K>, name: N) -> Grown<N> {
    Grown {
        name,
        resident_before_bytes: row.before,
        resident_now_bytes: row.now,
        resident_grown_bytes: row.resident,
        committed_grown_bytes: row.committed,
        reserved_grown_bytes: row.reserved,
        in_use_grown_bytes: row.in_use,
    }
}

fn holder(row: &HolderRow) -> HolderGrown<'_> {
    HolderGrown {
        holder: &row.holder,
        in_use_before_bytes: row.before,
        in_use_now_bytes: row.now,
        in_use_grown_bytes: row.grown(),
        blocks_before: row.count_before,
        blocks_now: row.count_now,
        blocks_grown: row.count_grown(),
    }
}

fn loader(row: &HolderRow) -> LoaderGrown<'_> {
    LoaderGrown {
        loader: &row.holder,
        metaspace_committed_before_bytes: row.before,
        metaspace_committed_now_bytes: row.now,
        metaspace_committed_grown_bytes: row.grown(),
        loaders_before: row.count_before,
        loaders_now: row.count_now,
        loaders_grown: row.count_grown(),
    }
}

fn class(row: &HolderRow) -> ClassGrown<'_> {
    ClassGrown {
        class: &row.holder,
        before_bytes: row.before,
        now_bytes: row.now,
        grown_bytes: row.grown(),
        instances_before: row.count_before,
        instances_now: row.count_now,
        instances_grown: row.count_grown(),
    }
}

fn part((area, part): &(Area, String)) -> PartName<'_> {
    PartName { area: *area, part }
}

fn named((kind, name): &(crate::map::rows::Named, String)) -> NamedName<'_> {
    NamedName { subject: kind.word(), name }
}

fn threads(threads: &crate::map::diff::ThreadRow) -> Grown<ThreadsName<'_>> {
    let name = ThreadsName {
        threads_named: &threads.row.key,
        threads_before: threads.threads_before,
        threads_now: threads.threads_now,
    };
    grown(&threads.row, name)
}

fn not_compared(lost: &crate::map::diff::Lost) -> NotCompared<'_> {
    NotCompared { areas: lost.areas.iter().copied().collect(), why: &lost.why }
}

fn cause(cause: &Cause) -> CauseRow<'_> {
    let what = match &cause.what {
        What::Area(area) => CauseKind::Area { area: *area },
        What::Part(area, part) => CauseKind::Part { area: *area, part },
        What::FreedInArena(arena) => CauseKind::FreedInArena { area: Area::MallocFreed, arena: *arena },
        What::FreedInArenas(arenas) => CauseKind::FreedInArenas { area: Area::MallocFreed, arenas: *arenas },
        What::Threads(name, more) => {
            CauseKind::Threads { area: Area::Stack, threads_named: name, threads_grown: *more }
        }
    };
    CauseRow { what, resident_grown_bytes: cause.bytes }
}

fn gaps(diff: &Diff, has_account: bool) -> Vec<GapRow> {
    let missing = [
        ("the account", has_account),
        ("kernel_resident_grown_bytes", diff.kernel_resident.is_some()),
        ("page_table_grown_bytes", diff.page_tables.is_some()),
        ("in_use_grown_bytes of some areas", diff.areas.iter().all(|row| row.in_use.is_some())),
        ("holders", diff.holders.is_some()),
        ("loaders", diff.loaders.is_some()),
        ("classes", diff.classes.is_some()),
        ("freed_grown_bytes of some arenas", diff.arenas.iter().all(|row| row.freed.is_some())),
    ];
    let missing = missing
        .into_iter()
        .filter(|(_, is_known)| !is_known)
        .map(|(what, _)| Gap::new(what, Why::NotRecorded).hint("one of the two does not have it"));
    let lost = diff.lost.iter().map(|lost| {
        Gap::new("areas that only one of the two accounts distinguishes", Why::NotRecorded)
            .hint(lost.why.clone())
    });
    missing.chain(lost).map(|gap| GapRow::from(&gap)).collect()
}
