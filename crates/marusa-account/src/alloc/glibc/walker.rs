//! One heap walked from its first chunk to its end: each header says where the next one lies, and whether its chunk is in
//! use is in the next one's PREV_INUSE (malloc/malloc.c, "malloc_chunk details"). Nothing is stopped in the meantime, so a
//! walk may break where the heap changed; it goes back and reads again, and what stays broken is reported as unresolved.

use super::chunk_map::{CHUNK_BYTES_MIN, Code};
use super::known_links::Budget;
use super::region::Region;
use super::tcache;
use super::window::{BODY_BYTES, Window};
use crate::base::blocks::{Head, Look, Witness, head_of};
use crate::base::limits::RESYNCS_MAX;
use crate::base::{Addr, Range, Why};
use crate::os::budget;
use crate::os::memory::Fault;

pub const PREVIOUS_IN_USE: u64 = 1;
pub const IS_MMAPPED: u64 = 2;
pub const FLAGS: u64 = 7;
/// `SIZE_SZ * 2`: the size of the chunks that fence a segment off.
pub(super) const FENCE_BYTES: u64 = 16;
/// `MIN_LARGE_SIZE`: chunks below it lie in small bins.
const LARGE_CHUNK_BYTES_MIN: u64 = 1024;
/// `MAX_FAST_SIZE` as a chunk: the last of ten fastbins.
const FAST_CHUNK_BYTES_MAX: u64 = 176;
/// No chunk is so large; a word at or above it may be text.
const SIZE_END: u64 = 1 << 40;
/// How often a broken walk goes back, by twice as many checkpoints each time.
const REWINDS_MAX: u32 = 6;

enum Stop {
    End,
    Fence(Addr),
    /// At or past the place where another thread began.
    Join(Addr),
}

pub struct Walker<'a> {
    pub window: Window<'a>,
    pub(super) probe: Window<'a>,
    witness: &'a dyn Witness,
    /// What marks a cached chunk, where that is one word for the whole process (2.34 on).
    key: Option<u64>,
    budget: &'a Budget,
    /// Where another thread began to walk the rest; `None` once this walk went past it.
    pub join: Option<Addr>,
}

fn free_code(bytes: u64) -> Code {
    if bytes < LARGE_CHUNK_BYTES_MIN { Code::SMALL } else { Code::LARGE }
}

/// Words from `offset` on, if all are there.
#[inline(always)]
fn words<const COUNT: usize>(bytes: &[u8], offset: u64) -> Option<[u64; COUNT]> {
    let words = bytes.get(offset as usize..)?.as_chunks::<8>().0.first_chunk::<COUNT>()?;
    Some(words.map(u64::from_le_bytes))
}

/// Whether a chunk with this size field may begin `left` bytes before the end.
pub(super) fn is_size(size: u64, left: u64) -> bool {
    let bytes = size & !FLAGS;
    bytes >= CHUNK_BYTES_MIN && bytes.is_multiple_of(16) && bytes <= left && size & IS_MMAPPED == 0
}

impl<'a> Walker<'a> {
    pub fn new(
        [window, probe]: [Window<'a>; 2],
        witness: &'a dyn Witness,
        key: Option<u64>,
        budget: &'a Budget,
    ) -> Walker<'a> {
        Walker { window, probe, witness, key, budget, join: None }
    }

    /// Walks the whole region. Where it breaks: the first such place is the error, or, with `is_last`, is noted, and the
    /// walk goes on where it finds back.
    pub fn walk(&mut self, region: &mut Region, is_last: bool) -> Result<(), Fault> {
        self.window.restart(region.resident.clone());
        self.probe.restart(region.resident.clone());
        let range = region.map.range();
        if region.plan.first_chunk > range.start {
            region.map.put(range.start, Code::OVERHEAD);
        }
        let mut at = region.plan.first_chunk;
        if region.plan.arena == 0 && !self.size(at).is_ok_and(|size| is_size(size, range.end.0 - at.0)) {
            // Other code used sbrk before malloc did.
            if let Some(next) = self.resync(at, range.end) {
                region.map.put(at, Code::OVERHEAD);
                region.plan.first_chunk = next;
                at = next;
            }
        }
        self.go_on(region, at, is_last)
    }

    /// Walks what another thread joins its walk to, from `first_chunk` on; whether it came to the end.
    pub fn walk_part(&mut self, region: &mut Region) -> bool {
        self.window.restart(region.resident.clone());
        self.probe.restart(region.resident.clone());
        self.go_on(region, region.plan.first_chunk, false).is_ok()
    }

    fn go_on(&mut self, region: &mut Region, mut at: Addr, is_last: bool) -> Result<(), Fault> {
        let range = region.map.range();
        let mut rewinds = 0;
        for _ in 0..RESYNCS_MAX {
            let broken = match self.run(region, at, range.end) {
                Ok(Stop::End) => return Ok(()),
                Ok(Stop::Join(reached)) if self.join == Some(reached) => return Ok(()),
                Ok(Stop::Join(reached)) => {
                    (self.join, at) = (None, reached);
                    continue;
                }
                Ok(Stop::Fence(fence)) => match self.past_fence(region, fence, range.end) {
                    Ok(None) => return Ok(()),
                    Ok(Some(next)) => {
                        at = next;
                        continue;
                    }
                    Err(broken) => broken,
                },
                Err(broken) => broken,
            };
            if let Err(why) = budget::check_now() {
                region.map.put(broken.at, Code::UNRESOLVED);
                return Err(Fault { at: broken.at, why });
            }
            // What changed since its window was read is read again, from further and further back.
            let now = self.window.source().resident(range).filter(|_| rewinds < REWINDS_MAX);
            if let Some(resident) = now {
                at = region.rewind(1 << rewinds);
                rewinds += 1;
                region.resident = resident;
                self.window.restart(region.resident.clone());
                continue;
            }
            if !is_last {
                return Err(broken);
            }
            region.broken = region.broken.or(Some(broken));
            region.map.put(broken.at, Code::UNRESOLVED);
            match self.resync(broken.at.plus(CHUNK_BYTES_MIN), range.end) {
                Some(next) => at = next,
                None => return Ok(()),
            }
        }
        region.map.put(at, Code::UNRESOLVED);
        Ok(())
    }

    /// The chunks from `at` on, up to the end, a fence, or where it breaks.
    fn run(&mut self, region: &mut Region, mut at: Addr, end: Addr) -> Result<Stop, Fault> {
        let mut size = self.size(at)?;
        let join = self.join.unwrap_or(Addr(u64::MAX));
        let mut last_free = Addr::NULL;
        loop {
            if !self.window.keeps() {
                (at, size) = self.run_near(region, (at, size), join.min(end), &mut last_free);
            }
            if at >= join {
                return Ok(Stop::Join(at));
            }
            let bytes = size & !FLAGS;
            let left = end.0 - at.0;
            if bytes <= FENCE_BYTES && (bytes == FENCE_BYTES || left == FENCE_BYTES) {
                return Ok(Stop::Fence(at));
            }
            if !is_size(size, left) {
                return Err(Fault { at, why: Why::BadData(at) });
            }
            if bytes == left {
                region.map.put(at, Code::TOP);
                return Ok(Stop::End);
            }
            let next = Addr(at.0 + bytes);
            // The window may move on before it is known whether the block is in use.
            let far_head = if self.window.has(next.plus(8), 8) {
                None
            } else {
                region.set_checkpoint(at);
                Some(self.head(at, bytes))
            };
            let next_size = self.size(next).map_err(|broken| Fault { at, ..broken })?;
            let code = match next_size & PREVIOUS_IN_USE {
                0 => {
                    if region.plan.kept.unsorted {
                        let link = far_head.map_or_else(|| self.near_head(at, bytes)[0], |head| head[0]);
                        self.keep_link(region, at, link, &mut last_free);
                    }
                    free_code(bytes)
                }
                _ => {
                    let range = Range { start: at, end: next };
                    match far_head {
                        Some(head) => self.used(region, range, &head),
                        None => self.used(region, range, &self.near_head(at, bytes)),
                    }
                }
            };
            region.map.put(at, code);
            (at, size) = (next, next_size);
        }
    }

    /// The chunks from `at` on, as long as they lie in the window with the size field behind them and end before `end`: nearly
    /// all chunks of a heap. The first that does not, or that no chunk looks like, with its size field.
    #[inline]
    fn run_near(
        &mut self,
        region: &mut Region,
        (first, mut size): (Addr, u64),
        end: Addr,
        last_free: &mut Addr,
    ) -> (Addr, u64) {
        let (start, buffer) = self.window.filled();
        let (mut chunks, mut body_bytes) = (0, 0);
        // Below it a size field is whole, and its chunk is not the last one.
        let limit = (buffer.len().saturating_sub(15) as u64).min(end.0.saturating_sub(start.0));
        let mut offset = first.0.wrapping_sub(start.0);
        while offset < limit {
            let bytes = size & !FLAGS;
            let is_plain = bytes >= CHUNK_BYTES_MIN && size & (IS_MMAPPED | 8) == 0;
            if !is_plain || bytes >= limit - offset {
                break;
            }
            let next = offset + bytes;
            let Some(head) = words::<4>(buffer, offset + 16) else { break };
            let Some([next_size]) = words::<1>(buffer, next + 8) else { break };
            let at = start.plus(offset);
            let code = if next_size & PREVIOUS_IN_USE == 0 {
                if region.plan.kept.unsorted {
                    self.keep_link(region, at, head[0], last_free);
                }
                free_code(bytes)
            } else {
                // The size of the next chunk comes after the smallest block.
                let last = if bytes > CHUNK_BYTES_MIN { head[3] } else { 0 };
                let range = Range { start: at, end: start.plus(next) };
                self.used(region, range, &[head[0], head[1], head[2], last])
            };
            region.map.put(at, code);
            chunks += 1;
            body_bytes += if bytes >= BODY_BYTES { bytes } else { 0 };
            (offset, size) = (next, next_size);
        }
        if chunks == 0 {
            return (first, size);
        }
        let at = start.plus(offset);
        self.window.passed(chunks, body_bytes, at.plus(8));
        (at, size)
    }

    /// Keeps where the free chunk at `at` leads to, except for what a missing link means.
    #[inline]
    fn keep_link(&self, region: &mut Region, at: Addr, link: u64, last_free: &mut Addr) {
        if link != last_free.0 || last_free.is_null() {
            region.links.put(at, Addr(link), self.budget);
        }
        *last_free = at;
    }

    #[inline]
    fn size(&mut self, at: Addr) -> Result<u64, Fault> {
        let field = at.plus(8);
        let size = self.window.word(field).map_err(|fault| Fault { at, ..fault })?;
        if self.window.keeps() && size < SIZE_END {
            self.window.source().used(field, &size.to_le_bytes());
        }
        Ok(size)
    }

    /// The first words of the block in the chunk at `at` while the header of the next one is in the window, too. Word by
    /// word: the processor stalls where it loads at once what was just stored in parts.
    #[inline(always)]
    fn near_head(&self, at: Addr, bytes: u64) -> Head {
        let words = self.window.bytes(at.plus(16)).as_chunks::<8>().0;
        let word = |index: usize| words.get(index).map_or(0, |word| u64::from_le_bytes(*word));
        // The size of the next chunk comes after the smallest block.
        [word(0), word(1), word(2), if bytes > CHUNK_BYTES_MIN { word(3) } else { 0 }]
    }

    /// The same from wherever they are.
    fn head(&mut self, at: Addr, bytes: u64) -> Head {
        let wanted = ((bytes - 8) as usize).min(size_of::<Head>());
        let mut raw = [0; size_of::<Head>()];
        self.window.copy(at.plus(16), &mut raw[..wanted]);
        head_of(&raw)
    }

    /// A chunk that is not free for malloc's arenas: a block of the program's, or one in a thread's cache.
    #[inline(always)]
    fn used(&self, region: &mut Region, chunk: Range, head: &Head) -> Code {
        if let Some(linking) = region.plan.kept.fast
            && chunk.bytes() <= FAST_CHUNK_BYTES_MAX
            && head[0] != 0
        {
            let next = linking.follow(chunk.start.plus(16), head[0]);
            region.links.put(chunk.start, next, self.budget);
        }
        match self.key {
            Some(key) if head[1] == key => {
                self.keep(chunk, [head[0], head[1]]);
                return Code::TCACHE;
            }
            None if tcache::has_size(chunk.bytes()) => region.caches.push(chunk.start),
            _ => {}
        }
        let payload = Range { start: chunk.start.plus(16), end: chunk.end.plus(8) };
        let Look { label, requested_bytes } = self.witness.look(payload, head);
        if let Some(requested) = requested_bytes {
            let slack = payload.bytes().saturating_sub(requested);
            region.round_up(Range::new(chunk.end.minus(slack), chunk.end), label);
        }
        if label != 0 && self.window.keeps() {
            self.keep(chunk, self.witness.evidence(head));
        }
        Code::in_use(label)
    }

    /// The evidence for the block's owner, for a recording.
    #[inline]
    fn keep(&self, chunk: Range, words: [u64; 2]) {
        if self.window.keeps() {
            self.window.source().used(chunk.start.plus(16), words.map(u64::to_le_bytes).as_flattened());
        }
    }

    /// Behind the fence posts at `at`: the next segment of this heap, or `None` at its end. What other code took with
    /// sbrk between the two is a gap of any length (malloc/malloc.c, `sysmalloc`, "foreign sbrk").
    fn past_fence(&mut self, region: &mut Region, at: Addr, end: Addr) -> Result<Option<Addr>, Fault> {
        region.map.put(at, Code::OVERHEAD);
        let mut behind = at;
        while behind < end {
            let left = end.0 - behind.0;
            match self.size(behind)? & !FLAGS {
                FENCE_BYTES if left >= FENCE_BYTES => behind = behind.plus(FENCE_BYTES),
                // The last one of a full heap has the size 0.
                0 if left == FENCE_BYTES => behind = end,
                _ => break,
            }
        }
        if behind >= end {
            return Ok(None);
        }
        match self.resync(behind, end) {
            Some(next) => Ok(Some(next)),
            None => Err(Fault { at: behind, why: Why::BadData(behind) }),
        }
    }
}
