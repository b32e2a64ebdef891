//! Netty's pools by their fields' names: from the chunks that were found to their arenas and allocators, and from each thread to
//! its cache. buffer/src/main/java/io/netty/buffer/{PoolArena,PoolChunk,PoolThreadCache,AdaptivePoolingAllocator}.java, 4.1.118 to
//! 4.2.20; common/src/main/java/io/netty/util/{internal/InternalThreadLocalMap,concurrent/MpscIntQueue}.java.

use super::single::Single;
use super::threads;
use crate::base::alike::group_of;
use crate::base::{Addr, Bytes, Gap, Known, Why};
use crate::jvm::types::JvmView;
use crate::jvm::{BufferKind, ChunkSums, Netty, NettyAdaptive, NettyArena, NettyThreadCaches};
use crate::os::budget;
use std::collections::{BTreeMap, HashMap, HashSet};

const CACHE: &str = "io/netty/buffer/PoolThreadCache";
/// The first was there up to 4.1.51.
const CACHES: [&str; 3] = ["tinySubPageDirectCaches", "smallSubPageDirectCaches", "normalDirectCaches"];
const CACHED: &str = "netty.thread_caches";
const ARENAS_MAX: usize = 10_000;
const CACHED_MAX: u64 = 1_000_000;
/// Sizes that a cache keeps; there are some 70.
const REGIONS_MAX: usize = 256;
/// Freed parts of a chunk that are not merged yet.
const QUEUED_MAX: i64 = 1 << 16;

/// A chunk that memory belongs to.
#[derive(Clone, Copy, Debug)]
pub struct Chunk {
    pub kind: BufferKind,
    /// Its plain address.
    pub object: u64,
    pub bytes: Bytes,
    pub free: Option<Bytes>,
}

impl Chunk {
    pub fn read(single: &Single, kind: BufferKind, object: u64, bytes: Bytes) -> Chunk {
        let free = free_of(single, kind, object).filter(|free| *free <= bytes);
        Chunk { kind, object, bytes, free }
    }
}

/// What no buffer uses of a chunk.
fn free_of(single: &Single, kind: BufferKind, chunk: u64) -> Option<Bytes> {
    let number = |name| unsigned(single, chunk, name);
    if kind == BufferKind::NettyPool {
        return number("freeBytes");
    }
    let capacity = number("capacity")?;
    if let Some(segment) = number("segmentSize") {
        // Its owner's free segments are on a stack, the ones that other threads freed in a queue; older ones have only that.
        let queue = ["externalFreeList", "freeList"].iter().find_map(|name| single.reference(chunk, name))?;
        let stack = single.reference(chunk, "localFreeList");
        let in_stack = stack.map_or(Some(0), |stack| Some(single.number(stack, "top")? + 1))?;
        let free = queued(single, queue)?.checked_add(in_stack)?;
        let in_use = (capacity / segment.max(1)).checked_sub(u64::try_from(free).ok()?)?;
        return capacity.checked_sub(in_use.checked_mul(segment)?);
    }
    let left = capacity.checked_sub(number("allocatedBytes")?)?;
    match single.reference(chunk, "freeList") {
        Some(queue) => left.checked_add(freed_buddies(single, chunk, queue)?),
        None => Some(left),
    }
}

fn unsigned(single: &Single, object: u64, name: &str) -> Option<u64> {
    single.number(object, name).and_then(|number| u64::try_from(number).ok())
}

fn queued(single: &Single, queue: u64) -> Option<i64> {
    let index = |name| single.number(queue, name);
    let queued = index("producerIndex")?.checked_sub(index("consumerIndex")?)?;
    (0..=QUEUED_MAX).contains(&queued).then_some(queued)
}

/// A `BuddyChunk` counts freed parts once it allocates again. Each entry of its queue has the number of smallest parts, as a
/// binary logarithm, above the place.
fn freed_buddies(single: &Single, chunk: u64, queue: u64) -> Option<Bytes> {
    let (_, class) = single.object(chunk)?;
    let constant = |name| {
        let field = single.field(class, name).filter(|field| field.is_static)?;
        single.number_at(single.mirror(class)?.plus(u64::from(field.offset)), field.kind())
    };
    let (smallest, shift) = (constant("MIN_BUDDY_SIZE")?, constant("PACK_SIZE_SHIFT")?);
    let (first, count) = (single.number(queue, "consumerIndex")?, queued(single, queue)?);
    let entries = single.numbers(single.reference(queue, "array")?);
    let entry =
        |place: i64| entries.get(usize::try_from(place).ok()? & entries.len().checked_sub(1)?).copied();
    let bytes = |place: i64| match entry(place)? {
        // It is being put there.
        packed if packed < 0 => Some(0),
        packed => {
            u64::try_from(smallest).ok()?.checked_shl(packed.checked_shr(u32::try_from(shift).ok()?)? as u32)
        }
    };
    (first..first.checked_add(count)?).try_fold(0_u64, |sum, place| sum.checked_add(bytes(place)?))
}

/// `None`: there is no Netty.
pub fn read(single: &Single, view: &JvmView, chunks: &[Chunk], gaps: &mut Vec<Gap>) -> Option<Netty> {
    if chunks.is_empty() {
        return None;
    }
    let of = |kind| chunks.iter().copied().filter(move |chunk| chunk.kind == kind);
    let arenas = arenas(single, of(BufferKind::NettyPool));
    let adaptive = adaptive(single, of(BufferKind::NettyAdaptive));
    let thread_caches = match arenas.is_empty() {
        true => Ok(Vec::new()),
        false => thread_caches(single, view),
    };
    let thread_caches = thread_caches.unwrap_or_else(|gap| {
        gaps.push(gap);
        Vec::new()
    });
    Some(Netty { arenas, thread_caches, adaptive })
}

/// Each of these, and its number: the one with the most bytes first.
fn numbered(bytes: &HashMap<u64, Bytes>) -> Vec<(u32, u64)> {
    let mut all: Vec<(u64, Bytes)> = bytes.iter().map(|(object, bytes)| (*object, *bytes)).collect();
    all.sort_unstable_by_key(|(object, bytes)| (std::cmp::Reverse(*bytes), *object));
    (0..).zip(all).map(|(number, (object, _))| (number, object)).collect()
}

fn arenas(single: &Single, chunks: impl Iterator<Item = Chunk>) -> Vec<NettyArena> {
    let mut by_arena: BTreeMap<u64, Vec<Chunk>> = BTreeMap::new();
    for chunk in chunks {
        let arena = single.reference(chunk.object, "arena").unwrap_or(0);
        by_arena.entry(arena).or_default().push(chunk);
    }
    let mut allocators: HashMap<u64, Bytes> = HashMap::new();
    for (arena, chunks) in &by_arena {
        let allocator = single.reference(*arena, "parent").unwrap_or(0);
        let sum = allocators.entry(allocator).or_default();
        *sum = chunks.iter().fold(*sum, |sum, chunk| sum.saturating_add(chunk.bytes));
    }
    let mut rows = Vec::new();
    for (number, allocator) in numbered(&allocators) {
        let listed = single.reference(allocator, "directArenas").map(|list| single.elements(list));
        let listed =
            listed.unwrap_or_default().into_iter().zip(0..).map(|(arena, place)| (arena, Some(place)));
        let others: Vec<u64> = by_arena.keys().copied().collect();
        let others =
            others.into_iter().filter(|arena| single.reference(*arena, "parent").unwrap_or(0) == allocator);
        let mut met = HashSet::new();
        for (arena, place) in listed.chain(others.map(|arena| (arena, None))).take(ARENAS_MAX) {
            if met.insert(arena) {
                let chunks = by_arena.remove(&arena).unwrap_or_default();
                rows.push(NettyArena { allocator: number, arena: place, ..arena_of(single, arena, &chunks) });
            }
        }
    }
    rows
}

fn arena_of(single: &Single, arena: u64, chunks: &[Chunk]) -> NettyArena {
    let is_huge = |chunk: &&Chunk| single.number(chunk.object, "unpooled") == Some(1);
    let (huge, pooled): (Vec<&Chunk>, Vec<&Chunk>) = chunks.iter().partition(is_huge);
    let threads = single.reference(arena, "numThreadCaches");
    NettyArena {
        chunks: ChunkSums::of(pooled.iter().map(|chunk| (chunk.bytes, chunk.free))),
        huge: huge.len() as u64,
        huge_bytes: huge.iter().fold(0, |sum, chunk| sum.saturating_add(chunk.bytes)),
        thread_caches: threads.and_then(|threads| unsigned(single, threads, "value")),
        ..NettyArena::default()
    }
}

fn adaptive(single: &Single, chunks: impl Iterator<Item = Chunk>) -> Vec<NettyAdaptive> {
    let mut allocators: HashMap<u64, Bytes> = HashMap::new();
    let mut alike: BTreeMap<(u64, Option<u64>), Vec<Chunk>> = BTreeMap::new();
    for chunk in chunks {
        let allocator = single.reference(chunk.object, "allocator").unwrap_or(0);
        let sum = allocators.entry(allocator).or_default();
        *sum = sum.saturating_add(chunk.bytes);
        alike.entry((allocator, unsigned(single, chunk.object, "segmentSize"))).or_default().push(chunk);
    }
    let numbers: HashMap<u64, u32> =
        numbered(&allocators).into_iter().map(|(number, object)| (object, number)).collect();
    let row = |((allocator, segment_bytes), chunks): ((u64, Option<u64>), Vec<Chunk>)| {
        let magazines: HashSet<u64> =
            chunks.iter().filter_map(|chunk| single.reference(chunk.object, "magazine")).collect();
        NettyAdaptive {
            allocator: numbers[&allocator],
            segment_bytes,
            chunks: ChunkSums::of(chunks.iter().map(|chunk| (chunk.bytes, chunk.free))),
            magazines: magazines.len() as u64,
        }
    };
    let mut rows: Vec<NettyAdaptive> = alike.into_iter().map(row).collect();
    rows.sort_by_key(|row| (row.allocator, row.segment_bytes.unwrap_or(Bytes::MAX)));
    rows
}

fn thread_caches(single: &Single, view: &JvmView) -> Known<Vec<NettyThreadCaches>> {
    let named = single.classes.named(single.vm, single.windows, |name| name == CACHE)?;
    let classes: HashSet<Addr> = named.into_iter().map(|(class, _)| class).collect();
    let is_cache = |object: &u64| single.object(*object).is_some_and(|(_, class)| classes.contains(&class));
    let mut groups: BTreeMap<Option<String>, NettyThreadCaches> = BTreeMap::new();
    let (mut buffers, mut met) = (0, HashSet::new());
    for thread in &view.threads {
        budget::check_now().map_err(|why| Gap::new(CACHED, why))?;
        let Some(object) = threads::object_of(single, thread) else { continue };
        // `FastThreadLocalThread` has them in a field.
        let maps: Vec<u64> = match single.reference(object, "threadLocalMap") {
            Some(map) => vec![map],
            None => threads::locals(single, object),
        };
        let variables = maps.into_iter().filter_map(|map| single.reference(map, "indexedVariables"));
        let caches = variables.flat_map(|it| single.elements(it)).filter(is_cache);
        for cache in caches.filter(|cache| met.insert(*cache)) {
            let name = Some(group_of(&thread.name)).filter(|name| !name.is_empty());
            let new = NettyThreadCaches { threads: name.clone(), bytes: Some(0), ..Default::default() };
            let group = groups.entry(name).or_insert(new);
            let cached = cached(single, cache);
            group.caches += 1;
            group.buffers += cached.len() as u64;
            let add = |sum: Bytes, bytes: &Option<Bytes>| Some(sum.saturating_add((*bytes)?));
            group.bytes = group.bytes.and_then(|sum| cached.iter().try_fold(sum, add));
            buffers += cached.len() as u64;
            if buffers > CACHED_MAX {
                return Err(Gap::new(CACHED, Why::OverLimit));
            }
        }
    }
    let mut groups: Vec<NettyThreadCaches> = groups.into_values().collect();
    groups.sort_by_key(|group| std::cmp::Reverse(group.bytes));
    Ok(groups)
}

/// The sizes of the buffers that a `PoolThreadCache` keeps.
fn cached(single: &Single, cache: u64) -> Vec<Option<Bytes>> {
    let lists = CACHES.iter().filter_map(|name| single.reference(cache, name));
    let regions = lists.flat_map(|it| single.elements(it)).take(REGIONS_MAX);
    let queues = regions.filter_map(|it| single.reference(it, "queue"));
    let places = queues.filter_map(|queue| {
        let buffer = single.reference(queue, "buffer")?;
        // Without `Unsafe` it is an `AtomicReferenceArray`.
        Some(single.reference(buffer, "array").unwrap_or(buffer))
    });
    places.flat_map(|it| single.elements(it)).map(|entry| unsigned(single, entry, "normCapacity")).collect()
}
