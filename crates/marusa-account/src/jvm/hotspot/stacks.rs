//! Stacks of all threads, the VM's and all others, by the thread control block that the C library keeps at the top
//! of each. No stop, no register and no right beyond reading memory is needed, and the bounds are exact, guard included.
//!
//! Some blocks are known: `OSThread::_pthread_id` of each Java thread. They teach where in a block the thread id, the
//! stack's bounds and the links of the C library's list of threads lie; then the list leads to every other thread.
//! glibc: nptl/descr.h (`struct pthread`: header.self, list, tid, stackblock, stackblock_size, guardsize),
//! nptl/allocatestack.c and sysdeps/generic/ldsodefs.h (stack_used, stack_cache, stack_user; static in libpthread
//! before 2.34, in `_rtld_global` since). musl: src/internal/pthread_impl.h (self, prev, next, tid, map_base, map_size).
//!
//! A block is known by a pointer into itself: `self`, its first word, on x86-64 and in musl. glibc on aarch64 has none (TLS variant
//! I, `TLS_DTV_AT_TP`: the thread pointer is the block's end), but there the list of robust mutexes begins and ends in the block.

use crate::base::limits::{THREAD_BLOCK_BYTES_MAX, THREAD_SEEDS_MAX, THREADS_MAX};
use crate::base::{Addr, Gap, Known, PAGE, Range, Why};
use crate::os::Memory;
use std::collections::HashSet;

/// The block lies below the end of its stack by less than this: its own size, and alignment to the thread's static data.
const ABOVE_BLOCK_BYTES_MAX: u64 = 64 << 10;
/// Stacks above this are not stacks.
const STACK_BYTES_MAX: u64 = 1 << 40;
/// The heads of the lists of used, user-made and cached stacks lie this near to each other.
const HEADS_NEAR_BYTES: u64 = 256;

/// A Java thread as the VM describes it, which is enough to learn the layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seed {
    /// `pthread_t`, which is the block's address in glibc and musl.
    pub block: Addr,
    /// As the thread sees itself: the id in the innermost pid namespace.
    pub tid: i32,
    /// The VM's `Thread` object.
    pub object: Addr,
    /// Without the C library's guard.
    pub stack: Range,
}

/// A thread control block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    pub at: Addr,
    /// In the innermost pid namespace; 0 when the thread has ended and its stack is kept for the next one.
    pub tid: i32,
    /// Guard included. Empty for the primordial thread, whose stack the kernel made.
    pub stack: Range,
    /// What the thread keeps where the VM's threads keep their `Thread` object.
    pub object: Option<Addr>,
}

/// Where things lie in a block, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Where the pointer into itself lies, and where in the block it leads.
    itself: (u64, u64),
    tid: u64,
    /// The two links.
    list: u64,
    /// Whether a link points to the other block's links (glibc) or to the block itself (musl).
    embedded: bool,
    /// Lowest address, then bytes.
    stack: u64,
    /// The pthread-specific word by which HotSpot finds `Thread::current()` (threadLocalStorage_posix.cpp).
    object: Option<u64>,
}

/// All blocks, in the order in which they were found.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Blocks {
    pub blocks: Vec<Block>,
    /// The lists were followed to their ends.
    pub is_whole: bool,
}

/// Every thread of the process, from some of them.
pub fn read(memory: &dyn Memory, seeds: &[Seed]) -> Known<Blocks> {
    let layout = Layout::learn(memory, seeds)?;
    let mut walk = Walk { memory, layout, seen: HashSet::new(), found: Blocks::default() };
    walk.found.is_whole = true;
    for seed in seeds {
        if !walk.seen.contains(&seed.block) {
            walk.list_of(seed.block);
        }
    }
    Ok(walk.found)
}

impl Layout {
    /// Offsets that fit every seed.
    pub fn learn(memory: &dyn Memory, seeds: &[Seed]) -> Known<Layout> {
        let missing = |what: &str| {
            Gap::new(format!("thread control blocks ({what})"), Why::NotInThisRuntime)
                .hint("stacks of threads that the VM does not know are not found under this C library")
        };
        let samples: Vec<Sample> =
            seeds.iter().filter_map(|seed| Sample::read(memory, seed)).take(THREAD_SEEDS_MAX).collect();
        let words = samples.iter().map(|sample| sample.words.len()).min().unwrap_or(0);
        let all = |fits: &dyn Fn(&Sample) -> bool| samples.iter().all(fits);
        let itself = samples.first().and_then(|first| {
            let inner = |at: usize| Some((at, first.inner(at)?));
            (0..words).filter_map(inner).find(|(at, to)| all(&|sample| sample.inner(*at) == Some(*to)))
        });
        let itself = itself.ok_or_else(|| missing("no pthread_t of a Java thread points into itself"))?;
        let tid = (4..words * 2).find(|half| all(&|sample| sample.half(*half) == sample.seed.tid as u32));
        let stack = (2..words.saturating_sub(2)).find(|at| all(&|sample| sample.is_stack(*at)));
        let mut list = None;
        for embedded in [true, false] {
            let at =
                (2..words.saturating_sub(1)).find(|at| all(&|sample| sample.is_list(memory, *at, embedded)));
            list = list.or(at.map(|at| (at, embedded)));
        }
        let object = (2..words).find(|at| all(&|sample| sample.words[*at] == sample.seed.object.0));
        let (list, embedded) = list.ok_or_else(|| missing("list of threads"))?;
        let learned = [Some(itself.0), tid.map(|half| half / 2), stack, stack.map(|at| at + 1), object];
        let learned = learned.into_iter().flatten().chain([list, list + 1]);
        samples.iter().for_each(|sample| sample.note(memory, learned.clone()));
        Ok(Layout {
            itself: (itself.0 as u64 * 8, itself.1),
            tid: tid.ok_or_else(|| missing("thread id"))? as u64 * 4,
            list: list as u64 * 8,
            embedded,
            stack: stack.ok_or_else(|| missing("stack bounds"))? as u64 * 8,
            object: object.map(|at| at as u64 * 8),
        })
    }

    /// The address in a link that leads to `block`.
    fn link_to(&self, block: Addr) -> Addr {
        if self.embedded { block.plus(self.list) } else { block }
    }
    fn block_of(&self, link: Addr) -> Addr {
        if self.embedded { link.minus(self.list) } else { link }
    }
}

/// A seed and the first words of its block.
struct Sample {
    seed: Seed,
    words: Vec<u64>,
}

impl Sample {
    fn read(memory: &dyn Memory, seed: &Seed) -> Option<Sample> {
        // musl has a stack's end below the block; there the page's end bounds the read.
        let stack_end = seed.stack.end;
        let end = if stack_end > seed.block { stack_end } else { seed.block.plus(1).up_to(PAGE) };
        let bytes = end.offset_from(seed.block)?.min(THREAD_BLOCK_BYTES_MAX);
        let is_near = seed.block.minus(ABOVE_BLOCK_BYTES_MAX) < stack_end && seed.block.is_aligned(8);
        if bytes < 64 || !is_near {
            return None;
        }
        Some(Sample { seed: *seed, words: memory.peek_words(seed.block, bytes as usize / 8).ok()? })
    }
    /// Notes the words that the layout was learned from. Others are the C library's: `struct pthread` holds the state of the
    /// resolver with names of domains (nptl/descr.h, `res`).
    fn note(&self, memory: &dyn Memory, words: impl IntoIterator<Item = usize>) {
        for at in words {
            if let Some(word) = self.words.get(at) {
                memory.used(self.seed.block.plus(at as u64 * 8), &word.to_le_bytes());
            }
        }
    }
    /// Where in the block the word leads.
    fn inner(&self, at: usize) -> Option<u64> {
        let to = self.words[at].checked_sub(self.seed.block.0)?;
        (to.is_multiple_of(8) && to < self.words.len() as u64 * 8).then_some(to)
    }
    fn half(&self, index: usize) -> u32 {
        (self.words[index / 2] >> (32 * (index % 2))) as u32
    }
    fn is_stack(&self, at: usize) -> bool {
        let (start, bytes) = (self.words[at], self.words[at + 1]);
        let is_aligned = start.is_multiple_of(PAGE) && bytes.is_multiple_of(PAGE);
        is_aligned && stack_around(self.seed.block, start, bytes).is_some()
    }
    /// Both neighbours' links must lead back.
    fn is_list(&self, memory: &dyn Memory, at: usize, embedded: bool) -> bool {
        let offset = at as u64 * 8;
        let me = if embedded { self.seed.block.plus(offset) } else { self.seed.block };
        let (first, second) = (Addr(self.words[at]), Addr(self.words[at + 1]));
        let links = |link: Addr| if embedded { link } else { link.plus(offset) };
        first != me
            && first.is_aligned(8)
            && second.is_aligned(8)
            && memory.addr(links(first).plus(8)) == Ok(me)
            && memory.addr(links(second)) == Ok(me)
    }
}

/// The stack of `block`, if it lies at the end of it.
fn stack_around(block: Addr, start: u64, bytes: u64) -> Option<Range> {
    let end = start.checked_add(bytes)?;
    let above = end.checked_sub(block.0)?;
    let is_stack = start != 0 && start < block.0 && bytes < STACK_BYTES_MAX;
    (is_stack && above > 0 && above < ABOVE_BLOCK_BYTES_MAX).then(|| Range::of(start, end))
}

struct Walk<'a> {
    memory: &'a dyn Memory,
    layout: Layout,
    /// Blocks and heads of lists.
    seen: HashSet<Addr>,
    found: Blocks,
}

impl Walk<'_> {
    /// Follows the list that `block` is on, all round, and the lists whose heads lie next to its head.
    fn list_of(&mut self, block: Addr) {
        let head = self.follow(self.layout.link_to(block));
        let Some(head) = head else { return };
        let mut near = head.minus(HEADS_NEAR_BYTES);
        while near < head.plus(HEADS_NEAR_BYTES) {
            if !self.seen.contains(&near) && self.is_head(near) {
                self.follow(near);
            }
            near = near.plus(8);
        }
    }

    /// Walks a ring of links and keeps its blocks; the address of its head, which is not a block (musl has none).
    fn follow(&mut self, start: Addr) -> Option<Addr> {
        let mut head = None;
        let mut link = start;
        for _ in 0..THREADS_MAX * 2 {
            let block = self.layout.block_of(link);
            let links = if self.layout.embedded { link } else { link.plus(self.layout.list) };
            match self.block(block) {
                Some(found) => {
                    // Back on the ring, but not where it was entered: that block has left it in the meantime.
                    if !self.seen.insert(block) {
                        break;
                    }
                    self.found.blocks.push(found);
                }
                None if head.is_none() => {
                    head = Some(link);
                    self.seen.insert(link);
                }
                // A ring has one head: a second one means that the list changed under the walk.
                None => break,
            }
            match self.memory.addr(links) {
                Ok(next) if next == start => return head,
                Ok(next) if next.is_aligned(8) => link = next,
                _ => break,
            }
        }
        self.found.is_whole = false;
        head
    }

    /// Two links at `at` that lead to blocks, or to itself, and back.
    fn is_head(&self, at: Addr) -> bool {
        let next = self.memory.addr(at);
        let previous = self.memory.addr(at.plus(8));
        let (Ok(next), Ok(previous)) = (next, previous) else { return false };
        let leads_back =
            self.memory.addr(next.plus(8)) == Ok(at) && self.memory.addr(previous) == Ok(at) && next != at;
        leads_back && self.block(self.layout.block_of(next)).is_some()
    }

    /// The block at `at`, if there is one.
    fn block(&self, at: Addr) -> Option<Block> {
        let layout = &self.layout;
        let (from, to) = layout.itself;
        if !at.is_aligned(8) || self.memory.addr(at.plus(from)).ok()? != at.plus(to) {
            return None;
        }
        let bounds = self.memory.words(at.plus(layout.stack), 2).ok()?;
        let stack = stack_around(at, bounds[0], bounds[1]);
        let object = layout.object.and_then(|offset| self.memory.addr(at.plus(offset)).ok());
        Some(Block {
            at,
            tid: self.memory.i32(at.plus(layout.tid)).ok()?,
            stack: stack.unwrap_or_default(),
            object: object.filter(|object| !object.is_null()),
        })
    }
}

#[cfg(test)]
#[path = "stacks_tests.rs"]
mod tests;
