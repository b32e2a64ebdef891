//! The account of one moment as every face shows it: owned, without addresses of spans, serialised as `marusa/map/2`.
//!
//! `Account::of` is the only place that decides a figure: what the collector says of the heap's use, whether swap is known, and
//! which gaps follow from others. Text, JSON, HTML and the live view read fields and compute nothing.

mod alike;
mod amounts;
mod buffers;
mod head;
mod jvm;
mod libraries;
mod loaders;
mod malloc;
mod mappings;
mod page_report;
mod pages;
mod read;
mod zeros;

pub use amounts::Amounts;
pub use buffers::BufferAccount;
pub use head::{Process, Taken};
pub use jvm::{CodeHeap, Heap, Jvm};
pub use libraries::LibraryAccount;
pub use loaders::LoaderTotals;
pub use malloc::{ArenaAccount, MallocAccount, MallocSums, OwnerAccount, TagAccount};
pub use mappings::MappingAccount;
pub use page_report::{PageReport, PageUseAccount};
pub use pages::PageSizesAccount;
pub use read::{ReadError, parse};

use super::account::{AreaSum, PartSum, by_area, by_thread};
use super::{Area, Figures, MemoryMap, PaperArea};
use crate::base::{Bytes, Gap, Why};
use crate::jvm::{BufferRow, Compiling, Held, Holders, LoaderGroup, Netty, ThreadKind};
use crate::os::host::Host;
use crate::snapshot::Snapshot;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

pub const SCHEMA: &str = "marusa/map/2";

/// The whole account. What is not known is `None`, with an entry in `gaps`; never 0.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Account {
    pub schema: String,
    #[serde(default)]
    pub taken: Taken,
    /// `None`: the file does not have it.
    pub host: Option<Host>,
    #[serde(default)]
    pub process: Process,
    /// `None`: no runtime could be read.
    pub jvm: Option<Jvm>,
    #[serde(default)]
    pub totals: Totals,
    /// Every area that has a byte of address space, in the order of `Area::ALL`.
    pub areas: Vec<AreaAccount>,
    /// `None`: the allocator could not be read.
    pub malloc: Option<MallocAccount>,
    #[serde(default)]
    pub threads: Vec<ThreadAccount>,
    /// The largest first.
    #[serde(default)]
    pub libraries: Vec<LibraryAccount>,
    #[serde(default)]
    pub gaps: Vec<GapRow>,
    /// Where the sizes of folios were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub page_sizes: Option<PageSizesAccount>,
    /// Who holds the blocks of malloc, the largest first, where it was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holders: Option<Vec<Held>>,
    /// What class loaders hold, alike ones as one; the group with the most metaspace first, where it was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loaders: Option<Vec<LoaderGroup>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loader_totals: Option<LoaderTotals>,
    /// Buffers outside the Java heap by who holds them, the most bytes first, where it was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub buffers: Option<Vec<BufferRow>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub buffer_totals: Option<BufferAccount>,
    /// Netty's pools, where there are any and buffers were asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub netty: Option<Netty>,
}

/// Our sum against the kernel's.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(default)]
pub struct Totals {
    pub reserved_bytes: Bytes,
    pub committed_bytes: Bytes,
    pub resident_bytes: Bytes,
    pub aliased_bytes: Bytes,
    pub kernel_resident_bytes: Option<Bytes>,
    /// The kernel's figure less `resident_bytes` and `aliased_bytes`.
    pub difference_bytes: Option<i64>,
    pub changed_while_reading_bytes: Option<Bytes>,
    pub proportional_bytes: Option<Bytes>,
    pub swapped_bytes: Option<Bytes>,
    pub unattributed_bytes: Bytes,
    pub page_table_bytes: Option<Bytes>,
}

#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(from = "amounts::AreaWire")]
pub struct AreaAccount {
    #[serde(flatten)]
    pub amounts: Amounts,
    pub area: Area,
    pub paper_area: Option<PaperArea>,
    /// Mappings that have a byte of it; `None`: not in the file.
    pub mappings: Option<u64>,
    /// The largest first.
    pub parts: Vec<PartAccount>,
}

#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(from = "amounts::PartWire")]
pub struct PartAccount {
    #[serde(flatten)]
    pub amounts: Amounts,
    pub part: String,
    /// How the label was got; several ways.
    pub how: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct ThreadAccount {
    pub tid: i32,
    pub name: String,
    pub kind: ThreadKind,
    pub stack: Option<Amounts>,
    /// For a compiler thread that compiles.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compiling: Option<Compiling>,
}

/// A gap in words, as all documents have it.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct GapRow {
    pub what: String,
    /// With the address, if any.
    pub why: String,
    pub hint: Option<String>,
}

impl From<&Gap> for GapRow {
    fn from(gap: &Gap) -> GapRow {
        GapRow { what: gap.what.clone(), why: gap.why.to_string(), hint: gap.hint.clone() }
    }
}

impl GapRow {
    /// Whether the gap is that of a key that only JSON has, or of an area's use, which the "-" of a table shows.
    pub fn is_for_json(&self) -> bool {
        self.what == "host" || self.what.starts_with("areas.") && self.what.ends_with(".in_use_bytes")
    }
}

impl Account {
    pub fn of(snapshot: &Snapshot, map: &MemoryMap) -> Account {
        let mut gaps: Vec<Gap> = map.gaps.clone();
        let known = Knowledge::of(snapshot);
        let areas: Vec<AreaAccount> =
            by_area(map).into_iter().map(|sum| area(sum, known, &mut gaps)).collect();
        if map.balance.proportional.is_none() {
            gaps.push(Gap::new("totals.proportional_bytes", Why::Denied).hint(
                "how often pages are mapped is in /proc/kpagecount, which is visible only with CAP_SYS_ADMIN",
            ));
        }
        let malloc = malloc::malloc(snapshot, map, &mut gaps);
        if !known.is_swap_known {
            gaps.push(Gap::new("swapped_bytes", Why::NotRecorded));
        }
        if snapshot.taken.host.is_none() {
            gaps.push(Gap::new("host", Why::NotRecorded));
        }
        let holders = snapshot.jvm.as_ref().ok().and_then(|jvm| jvm.holders.as_ref());
        gaps.extend(holders.iter().flat_map(|holders| holders.gaps.iter().cloned()));
        let loaders = snapshot.jvm.as_ref().ok().and_then(|jvm| jvm.loaders.as_ref());
        gaps.extend(loaders.iter().flat_map(|loaders| loaders.gaps.iter().cloned()));
        let holders = holders.and_then(Holders::complete);
        let buffers = snapshot.jvm.as_ref().ok().and_then(|jvm| jvm.buffers.as_ref());
        gaps.extend(buffers.iter().flat_map(|buffers| buffers.gaps.iter().cloned()));
        let direct = areas.iter().find(|it| it.area == Area::DirectBuffers);
        let direct = direct.map_or(0, |area| area.amounts.resident_bytes);
        let page_sizes = snapshot.os.page_sizes.as_ref().and_then(|sizes| sizes.as_ref().ok());
        Account {
            schema: SCHEMA.to_string(),
            taken: Taken::of(snapshot),
            host: snapshot.taken.host.clone(),
            process: Process::of(snapshot),
            jvm: snapshot.jvm.as_ref().ok().map(Jvm::of),
            totals: Totals::of(map, known),
            malloc,
            threads: threads(snapshot, map, known),
            libraries: libraries::libraries(map, known, holders),
            gaps: gaps.iter().map(GapRow::from).collect(),
            holders: holders.map(|holders| holders.rows.clone()),
            loader_totals: loaders.and_then(|loaders| LoaderTotals::of(loaders, &areas)),
            loaders: loaders.map(|loaders| loaders.rows.clone()),
            buffers: buffers.map(|buffers| buffers.rows.clone()),
            buffer_totals: buffers.map(|buffers| BufferAccount::of(buffers, direct)),
            netty: buffers.and_then(|buffers| buffers.netty.clone()),
            page_sizes: page_sizes.map(|sizes| PageSizesAccount::of(sizes, whole(&areas))),
            areas,
        }
    }

    /// `None`: it has no byte of address space.
    pub fn area(&self, area: Area) -> Option<&AreaAccount> {
        self.areas.iter().find(|it| it.area == area)
    }

    pub fn resident_bytes_of(&self, area: Area) -> Bytes {
        self.area(area).map_or(0, |area| area.amounts.resident_bytes)
    }

    /// `None`: malloc-then-freed where the chunks of malloc were not read.
    pub fn known_resident_bytes_of(&self, area: Area) -> Option<Bytes> {
        (area != Area::MallocFreed || self.trimmable_bytes().is_some()).then(|| self.resident_bytes_of(area))
    }

    /// The sum of these areas; `None`: one of them is not known.
    pub fn known_sum(&self, areas: &[Area]) -> Option<Bytes> {
        areas.iter().map(|area| self.known_resident_bytes_of(*area)).sum()
    }

    /// What malloc_trim(0) would give back now; `None`: the chunks of malloc were not read.
    pub fn trimmable_bytes(&self) -> Option<Bytes> {
        self.malloc.as_ref()?.sums.trimmable_bytes
    }

    pub fn classes(&self) -> Option<u64> {
        self.jvm.as_ref()?.classes.as_ref()?.classes
    }

    /// The blocks of all holders; 0 where they were not read.
    pub fn held_bytes(&self) -> Bytes {
        self.holders.iter().flatten().fold(0, |sum, held| sum.saturating_add(held.bytes))
    }

    /// The kernel's figure where it is known, else ours.
    pub fn kernel_or_resident_bytes(&self) -> Bytes {
        self.totals.kernel_resident_bytes.unwrap_or(self.totals.resident_bytes)
    }

    /// Threads whose stack was found, the largest first.
    pub fn stacks(&self) -> Vec<(&ThreadAccount, &Amounts)> {
        let found = self.threads.iter().filter_map(|thread| Some((thread, thread.stack.as_ref()?)));
        let mut stacks: Vec<_> = found.collect();
        stacks.sort_by_key(|(thread, stack)| (std::cmp::Reverse(stack.resident_bytes), thread.tid));
        stacks
    }

    /// The compiler threads that compile, and what.
    pub fn compilations(&self) -> impl Iterator<Item = (&ThreadAccount, &Compiling)> {
        self.threads.iter().filter_map(|thread| Some((thread, thread.compiling.as_ref()?)))
    }

    /// All areas together.
    pub fn whole(&self) -> Amounts {
        whole(&self.areas)
    }

    /// The areas for which `is_it` holds together.
    pub fn sum_of(&self, is_it: impl Fn(Area) -> bool) -> Amounts {
        Amounts::sum(self.areas.iter().filter(|area| is_it(area.area)).map(|area| &area.amounts))
    }
}

fn whole(areas: &[AreaAccount]) -> Amounts {
    Amounts::sum(areas.iter().map(|area| &area.amounts))
}

/// What a figure is known by, besides its spans.
#[derive(Clone, Copy)]
struct Knowledge {
    heap_used: Option<Bytes>,
    is_swap_known: bool,
}

impl Knowledge {
    fn of(snapshot: &Snapshot) -> Knowledge {
        let heap = snapshot.jvm.as_ref().ok().and_then(|jvm| jvm.heap.as_ref().ok());
        Knowledge {
            heap_used: heap.and_then(|heap| heap.used_bytes.clone().ok()),
            is_swap_known: snapshot.os.status.swapped_bytes.is_some(),
        }
    }

    fn amounts(self, figures: Figures, in_use: Option<Bytes>) -> Amounts {
        Amounts::of(figures, in_use, self.is_swap_known)
    }
}

impl Totals {
    fn of(map: &MemoryMap, known: Knowledge) -> Totals {
        let (balance, total) = (&map.balance, &map.balance.total);
        Totals {
            reserved_bytes: total.reserved,
            committed_bytes: total.committed,
            resident_bytes: total.resident,
            aliased_bytes: total.aliased,
            kernel_resident_bytes: balance.kernel_resident,
            difference_bytes: balance.difference(),
            changed_while_reading_bytes: balance.changed_while_reading,
            proportional_bytes: balance.proportional,
            swapped_bytes: known.is_swap_known.then_some(total.swapped),
            unattributed_bytes: balance.unattributed,
            page_table_bytes: balance.page_tables,
        }
    }
}

fn area(sum: AreaSum, known: Knowledge, gaps: &mut Vec<Gap>) -> AreaAccount {
    // What the collector counts, since objects are not in pages of their own.
    let heap_used = known.heap_used.filter(|_| sum.area == Area::JavaHeap);
    let in_use = heap_used.or(sum.in_use);
    if in_use.is_none() {
        gaps.push(Gap::new(format!("areas.{}.in_use_bytes", sum.area.name()), Why::NotInThisRuntime));
    }
    let part = |part: PartSum| PartAccount {
        amounts: known.amounts(part.figures, part.in_use),
        part: part.part,
        how: part.how,
    };
    AreaAccount {
        amounts: known.amounts(sum.figures, in_use),
        area: sum.area,
        paper_area: sum.area.paper(),
        mappings: Some(sum.mappings),
        parts: sum.parts.into_iter().map(part).collect(),
    }
}

fn threads(snapshot: &Snapshot, map: &MemoryMap, known: Knowledge) -> Vec<ThreadAccount> {
    let Ok(jvm) = &snapshot.jvm else { return Vec::new() };
    let mut stacks: BTreeMap<i32, Figures> =
        by_thread(map).into_iter().map(|(tid, _, figures)| (tid, figures)).collect();
    let thread = |thread: &crate::jvm::JvmThread| ThreadAccount {
        tid: thread.tid,
        name: thread.name.clone(),
        kind: thread.kind,
        stack: stacks.remove(&thread.tid).map(|stack| known.amounts(stack, None)),
        compiling: thread.compiling.clone(),
    };
    jvm.threads.iter().map(thread).collect()
}
