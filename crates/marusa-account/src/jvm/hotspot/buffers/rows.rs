//! The rows: what is there of each kind and holder.

use super::collect::{Memory, Source};
use super::live::{self, Live};
use super::netty::{self, Chunk};
use super::referrers::{Holder, Referrers};
use super::single::Single;
use super::threads::Caches;
use crate::base::{Addr, Bytes, Gap, Range, Why, counted};
use crate::jvm::types::JvmView;
use crate::jvm::{BufferKind, BufferRow, BufferTotals, Buffers, NO_HOLDER, SessionKind};
use std::collections::{BTreeMap, HashSet};

/// The smaller ones are a gap.
const ROWS_MAX: usize = 1_000;
const CACHE: &str = "sun.nio.ch.Util$BufferCache";
const POOL: &str = "io.netty.buffer.PoolChunk";
const ADAPTIVE: &str = "io.netty.buffer.AdaptivePoolingAllocator";

pub fn session_of(class: &str) -> Option<SessionKind> {
    Some(match class.strip_prefix("jdk.internal.foreign.")? {
        "ConfinedSession" | "ConfinedScope" => SessionKind::Confined,
        "SharedSession" | "SharedScope" => SessionKind::Shared,
        "ImplicitSession" | "ResourceScopeImpl$ImplicitScopeImpl" => SessionKind::Auto,
        "GlobalSession" => SessionKind::Global,
        _ => return None,
    })
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    kind: BufferKind,
    holder: String,
    file: Option<String>,
    session: Option<SessionKind>,
}

#[derive(Default)]
struct Sum {
    bytes: Bytes,
    count: u64,
    resident: Bytes,
    live: Bytes,
    is_live_unknown: bool,
    free: Option<Bytes>,
    is_free_unknown: bool,
    pools: HashSet<u64>,
}

pub struct Rows<'a> {
    pub view: &'a JvmView,
    pub live: Option<Live>,
    pub single: &'a Single<'a>,
    pub referrers: &'a Referrers<'a>,
    /// By the number of the object.
    pub holders: Vec<Option<Holder>>,
    pub sessions: Vec<Option<SessionKind>>,
    pub caches: Caches,
}

impl Rows<'_> {
    /// `found`: with the numbers of the objects that lead to each.
    pub fn finish(
        &self,
        found: &[(Memory, Vec<u32>)],
        in_use: super::collect::InUse,
        gaps: Vec<Gap>,
    ) -> Buffers {
        let mut buffers = Buffers { gaps, ..Buffers::default() };
        let (mut sums, mut chunks) = (BTreeMap::<Key, Sum>::new(), Vec::new());
        for (memory, objects) in found {
            let holder = objects.iter().find_map(|object| self.holders[*object as usize]);
            let session = objects.iter().find_map(|object| self.sessions[*object as usize]);
            if !is_there(memory, holder.is_some(), session, self.single.oops.may_be_stale(), in_use) {
                continue;
            }
            count(memory, &mut buffers.totals);
            let key = self.key(memory, holder, session);
            let sum = sums.entry(key.clone()).or_default();
            sum.bytes = sum.bytes.saturating_add(memory.capacity);
            sum.count += 1;
            match self.live.as_ref().and_then(|live| live.is_live(self.single.vm, memory)) {
                Some(true) => sum.live = sum.live.saturating_add(memory.capacity),
                Some(false) => {}
                None => sum.is_live_unknown = true,
            }
            let range = Range::sized(Addr(memory.base), memory.capacity);
            sum.resident += self.single.vm.target.view.resident_bytes(range);
            if let (BufferKind::NettyPool | BufferKind::NettyAdaptive, Some(holder)) = (key.kind, holder)
                && sum.pools.insert(holder.object)
            {
                let chunk = Chunk::read(self.single, key.kind, holder.object, memory.capacity);
                chunks.push(chunk);
                match chunk.free {
                    Some(free) => sum.free = Some(sum.free.unwrap_or(0).saturating_add(free)),
                    None => sum.is_free_unknown = true,
                }
            }
        }
        let is_resident_known = self.single.vm.target.view.pages.is_ok();
        buffers.rows = sums.into_iter().map(|(key, sum)| row(key, sum, is_resident_known)).collect();
        if self.live.is_some() && buffers.rows.iter().any(|row| row.live_bytes.is_none()) {
            let hint = "the collector has marked, or moved these buffers' objects, while they were read";
            buffers.gaps.push(Gap::new(live::WHAT, Why::Torn).hint(hint));
        }
        buffers.netty = netty::read(self.single, self.view, &chunks, &mut buffers.gaps);
        cut(&mut buffers);
        buffers
    }

    fn key(&self, memory: &Memory, holder: Option<Holder>, session: Option<SessionKind>) -> Key {
        let name = holder.map_or(NO_HOLDER, |holder| &self.referrers.names[holder.name as usize]);
        let of_source = match memory.source {
            Source::Direct => BufferKind::Direct,
            Source::Mapped => BufferKind::Mapped,
            Source::Arena | Source::Segment => BufferKind::Ffm,
            Source::Buffer => BufferKind::Unsafe,
        };
        let kind = match name {
            _ if of_source == BufferKind::Mapped => of_source,
            _ if name.starts_with(CACHE) => BufferKind::NioCache,
            _ if name.starts_with(POOL) => BufferKind::NettyPool,
            _ if name.starts_with(ADAPTIVE) => BufferKind::NettyAdaptive,
            _ => of_source,
        };
        let holder = match holder.filter(|_| kind == BufferKind::NioCache) {
            Some(holder) => match self.caches.thread_of(holder.object) {
                Some(thread) => format!("{CACHE} of thread {thread}"),
                None => format!("{CACHE} of no thread"),
            },
            None => name.to_string(),
        };
        let mapping = self.single.vm.target.mapping(Addr(memory.base));
        let file = mapping.filter(|_| kind == BufferKind::Mapped).map(|it| it.file_path().to_string());
        let is_arena = matches!(memory.source, Source::Arena | Source::Segment);
        let session = match memory.source {
            // The clean-up of an arena leads to its session; what has none is never freed.
            Source::Segment => Some(SessionKind::Global),
            _ => session,
        };
        Key { kind, holder, file, session: session.filter(|_| is_arena && kind == BufferKind::Ffm) }
    }
}

/// Whether the memory is there: what its objects say may be over.
fn is_there(
    memory: &Memory,
    has_holder: bool,
    session: Option<SessionKind>,
    may_be_stale: bool,
    in_use: super::collect::InUse,
) -> bool {
    let in_use = || in_use(memory.base, memory.size);
    match memory.source {
        Source::Direct | Source::Mapped => true,
        // The list of a session that was closed leads to nothing.
        Source::Arena => session.is_some() || may_be_stale && in_use() == Some(true),
        Source::Segment => in_use() == Some(true),
        Source::Buffer => in_use().unwrap_or(has_holder),
    }
}

fn count(memory: &Memory, totals: &mut BufferTotals) {
    let pool = match memory.source {
        Source::Mapped => &mut totals.mapped_found,
        _ if memory.is_counted => &mut totals.direct_found,
        _ => return,
    };
    pool.reserved_bytes = pool.reserved_bytes.saturating_add(memory.size);
    pool.capacity_bytes = pool.capacity_bytes.saturating_add(memory.capacity);
    pool.count += 1;
}

fn row(key: Key, sum: Sum, is_resident_known: bool) -> BufferRow {
    BufferRow {
        kind: key.kind,
        holder: key.holder,
        bytes: sum.bytes,
        count: sum.count,
        live_bytes: (!sum.is_live_unknown).then_some(sum.live),
        resident_bytes: is_resident_known.then_some(sum.resident),
        free_bytes: sum.free.filter(|_| !sum.is_free_unknown),
        file: key.file,
        session: key.session,
    }
}

fn cut(buffers: &mut Buffers) {
    let rows = &mut buffers.rows;
    rows.sort_by_key(|row| (std::cmp::Reverse(row.bytes), row.kind, row.holder.clone()));
    if rows.len() <= ROWS_MAX {
        return;
    }
    let left = rows.split_off(ROWS_MAX);
    let (bytes, count) = left
        .iter()
        .fold((0_u64, 0), |(bytes, count), row| (bytes.saturating_add(row.bytes), count + row.count));
    let what =
        format!("{} of {} with {bytes} bytes", counted(left.len(), "holder"), counted(count, "buffer"));
    buffers.gaps.push(Gap::new(what, Why::OverLimit));
}
