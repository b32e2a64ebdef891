//! What grew, for programs: schema marusa/diff/2.

use super::{Taken, sentence};
use crate::base::{Bytes, Gap, Why};
use crate::map::Area;
use crate::map::diff::{ArenaRow, Cause, Diff, Grown, HolderRow, Lost, Row, ThreadRow};
use crate::map::model::GapRow;
use crate::show::json::Head;
use schemars::JsonSchema;
use serde::Serialize;

pub const SCHEMA: &str = "marusa/diff/2";

#[derive(JsonSchema, Serialize)]
pub struct DiffDocument<'a> {
    #[serde(flatten)]
    head: Head,
    before: &'a Taken,
    now: &'a Taken,
    answer: Option<String>,
    /// `None`, as all sums: one of the two is a document of `marusa heap`, which has only classes.
    resident_before_bytes: Option<Bytes>,
    resident_now_bytes: Option<Bytes>,
    resident_grown_bytes: Option<i64>,
    kernel_resident_grown_bytes: Option<i64>,
    page_table_grown_bytes: Option<i64>,
    causes: &'a [Cause],
    rest_grown_bytes: Option<i64>,
    against: Option<&'a Cause>,
    areas: Vec<Line<AreaName>>,
    parts: Vec<Line<PartName<'a>>>,
    arenas: Vec<Line<ArenaName>>,
    libraries: Vec<Line<LibraryName<'a>>>,
    threads: Vec<Line<ThreadsName<'a>>>,
    named: Vec<Line<NamedName<'a>>>,
    /// `None`: one of the two has no holders.
    holders: Option<Vec<HolderGrown<'a>>>,
    /// `None`: one of the two has no class loaders.
    loaders: Option<Vec<LoaderGrown<'a>>>,
    /// `None`: one of the two has no classes of the heap's objects.
    classes: Option<Vec<ClassGrown<'a>>>,
    not_compared: &'a [Lost],
    gaps: Vec<GapRow>,
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
struct Line<N> {
    #[serde(flatten)]
    name: N,
    #[serde(flatten)]
    grown: Grown,
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

impl<'a> DiffDocument<'a> {
    pub fn of(before: &'a Taken, now: &'a Taken, diff: &'a Diff) -> DiffDocument<'a> {
        let has_account = !before.has_only_classes && !now.has_only_classes;
        DiffDocument {
            head: Head::now(SCHEMA),
            before,
            now,
            answer: has_account.then(|| sentence(&diff.causes)),
            resident_before_bytes: has_account.then_some(diff.before),
            resident_now_bytes: has_account.then_some(diff.now),
            resident_grown_bytes: has_account.then(|| diff.resident()),
            kernel_resident_grown_bytes: diff.kernel_resident,
            page_table_grown_bytes: diff.page_tables,
            causes: &diff.causes.causes,
            rest_grown_bytes: has_account.then_some(diff.causes.rest),
            against: diff.causes.against.as_ref(),
            areas: lines(&diff.areas, |area| AreaName { area: *area }),
            parts: lines(&diff.parts, |(area, part)| PartName { area: *area, part }),
            arenas: diff.arenas.iter().map(arena).collect(),
            libraries: lines(&diff.libraries, |path| LibraryName { path }),
            threads: diff.threads.iter().map(threads).collect(),
            named: lines(&diff.named, |(kind, name)| NamedName { subject: kind.word(), name }),
            holders: diff.holders.as_ref().map(|rows| rows.iter().map(holder).collect()),
            loaders: diff.loaders.as_ref().map(|rows| rows.iter().map(loader).collect()),
            classes: diff.classes.as_ref().map(|rows| rows.iter().map(class).collect()),
            not_compared: &diff.lost,
            gaps: gaps(diff, has_account),
        }
    }
}

fn lines<'a, K, N>(rows: &'a [Row<K>], name: impl Fn(&'a K) -> N) -> Vec<Line<N>> {
    rows.iter().map(|row| Line { name: name(&row.key), grown: row.grown }).collect()
}

fn arena(arena: &ArenaRow) -> Line<ArenaName> {
    let key = arena.row.key;
    let address = format!("{:#x}", key.at);
    let name = ArenaName { arena: key.number, address, freed_grown_bytes: arena.freed };
    Line { name, grown: arena.row.grown }
}

fn threads(threads: &ThreadRow) -> Line<ThreadsName<'_>> {
    let name = ThreadsName {
        threads_named: &threads.row.key,
        threads_before: threads.threads_before,
        threads_now: threads.threads_now,
    };
    Line { name, grown: threads.row.grown }
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

fn gaps(diff: &Diff, has_account: bool) -> Vec<GapRow> {
    let missing = [
        ("the account", has_account),
        ("kernel_resident_grown_bytes", diff.kernel_resident.is_some()),
        ("page_table_grown_bytes", diff.page_tables.is_some()),
        ("in_use_grown_bytes of some areas", diff.areas.iter().all(|row| row.grown.in_use.is_some())),
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
