//! All heaps walked: by several threads where the memory allows that, again where a change broke a walk, then the lists.

use super::chunk_map::{Code, HEADER_BYTES};
use super::figures::{self, Sums};
use super::known_links::{Budget, KnownLinks};
use super::layout::Layout;
use super::links::{Linking, Links};
use super::lists::{self, Heads};
use super::mmapped::Mapped;
use super::plan::Common;
use super::region::{KeptLinks, Region};
use super::tcache;
use super::walker::Walker;
use super::window::{BulkSource, MemorySource, Source};
use crate::alloc::types::Arena;
use crate::base::blocks::{Head, Look, Witness, head_of};
use crate::base::{Addr, Bytes, Gap, Range, Why};
use crate::os::Target;
use crate::os::budget;
use crate::os::memory::Fault;
use std::sync::Mutex;
use std::time::Duration;

/// Threads that walk, and below how many bytes of heap one alone is as quick.
const THREADS: usize = 2;
const ALONE_BYTES_MAX: Bytes = 2 << 20;
/// How often a heap is walked again after its walk broke, with pauses of 1, 2, 4, ... ms: a thread that was preempted
/// within malloc leaves the heap torn until it runs again.
const RETRIES_MAX: u64 = 5;
/// Caches that are looked at for the key before the walk.
const KEY_CACHES_MAX: usize = 64;

/// The heaps after the walk.
#[derive(Default)]
pub struct Walked {
    /// Sorted by address.
    pub regions: Vec<Region>,
    /// Sorted by address.
    pub mapped: Vec<Mapped>,
    /// Heaps that were there when the arenas were read and are no more.
    pub gone: u64,
    /// Lists were left because they are too long and too scattered.
    pub lists_left: bool,
}

pub fn read(
    target: &Target,
    layout: &Layout,
    arenas: &[Arena],
    mmapped: &[Range],
    witness: &dyn Witness,
) -> Walked {
    let single = MemorySource(target.memory);
    let bytes: Bytes = arenas.iter().flat_map(|arena| &arena.heaps).map(|heap| heap.in_arena.bytes()).sum();
    let budget = Budget::of(bytes);
    let mut common =
        Common { view: target.view, layout, arenas, witness, key: None, kept: Vec::new(), budget };
    let bulk = target.memory.bulk();
    let units: Vec<(usize, usize)> = (0..arenas.len())
        .flat_map(|arena| (0..arenas[arena].heaps.len()).map(move |heap| (arena, heap)))
        .collect();
    match bulk {
        Some(bulk) => common.prepare(&units, &BulkSource(bulk)),
        None => common.prepare(&units, &single),
    }
    let threads = if bytes > ALONE_BYTES_MAX { THREADS } else { 1 };
    let mut walked = Walked::default();
    let mut pending: Vec<(usize, usize, u64)> =
        units.iter().map(|(arena, heap)| (*arena, *heap, 0)).collect();
    // The largest first, so that no thread is left with one at the end.
    pending.sort_by_key(|(arena, heap, _)| std::cmp::Reverse(arenas[*arena].heaps[*heap].in_arena.bytes()));
    let largest = pending.first().copied().filter(|(arena, heap, _)| {
        Common::is_worth_splitting(arenas[*arena].heaps[*heap].in_arena.bytes(), bytes)
    });
    if let (Some(unit), Some(bulk)) = (largest, bulk)
        && let Some(region) = common.split(unit, &BulkSource(bulk))
    {
        walked.regions.push(region);
        pending.remove(0);
    }
    let work = |pending: &[Unit], is_last| match bulk {
        Some(bulk) => common.work_in_parallel(pending, threads, &BulkSource(bulk), is_last),
        None => common.work(pending, &single, is_last),
    };
    retried(&mut walked, pending, work);
    walked.regions.sort_by_key(|region| (region.plan.arena, region.map.range().start));
    let linking = match bulk {
        Some(bulk) => common.lists_in_parallel(&mut walked, threads, &BulkSource(bulk)),
        None => common.lists(&mut walked, &single),
    };
    walked.regions.iter_mut().for_each(|region| region.links = KnownLinks::default());
    walked.regions.sort_by_key(|region| region.map.range().start);
    let source: &dyn Source = match bulk {
        Some(bulk) => &BulkSource(bulk),
        None => &single,
    };
    if common.key.is_none() {
        tcache::mark(&mut walked.regions, linking, &mut Links::new(source));
    }
    walked.mapped = mmapped.iter().map(|range| common.mapped(*range, source)).collect();
    walked
}

type Unit = (usize, usize, u64);

/// Heaps that changed while they were walked are walked again, after a pause.
fn retried(
    walked: &mut Walked,
    mut pending: Vec<Unit>,
    mut work: impl FnMut(&[Unit], bool) -> Vec<(Unit, Outcome)>,
) {
    for attempt in 0..=RETRIES_MAX {
        let outcomes = work(&pending, attempt == RETRIES_MAX);
        pending = Vec::new();
        for (unit, outcome) in outcomes {
            match outcome {
                Outcome::Walked(region) => walked.regions.push(*region),
                Outcome::Gone => walked.gone += 1,
                Outcome::Broken => pending.push((unit.0, unit.1, unit.2 + 1)),
            }
        }
        if pending.is_empty() {
            return;
        }
        std::thread::sleep(Duration::from_millis(1 << attempt));
    }
}

enum Outcome {
    Walked(Box<Region>),
    Gone,
    Broken,
}

impl Common<'_> {
    fn work(&self, units: &[Unit], source: &dyn Source, is_last: bool) -> Vec<(Unit, Outcome)> {
        let mut walker = self.walker(source);
        units.iter().map(|unit| (*unit, self.walk(*unit, &mut walker, is_last))).collect()
    }

    fn work_in_parallel(
        &self,
        units: &[Unit],
        threads: usize,
        source: &(dyn Source + Sync),
        is_last: bool,
    ) -> Vec<(Unit, Outcome)> {
        let worker = || {
            let mut walker = self.walker(source);
            move |index: usize| Ok((units[index], self.walk(units[index], &mut walker, is_last)))
        };
        let is_large = threads > 1 && units.len() > 1;
        budget::divided(units.len(), is_large, helper_failed(), worker).unwrap_or_default()
    }

    /// What is to be walked at this moment; `None` when it is no more.
    fn region(&self, (arena, heap, retries): Unit, source: &dyn Source) -> Option<Region> {
        let plan = self.plan(arena, heap, source)?;
        let range = plan.ranges.in_arena;
        let mut region = Region::new(plan, Vec::new());
        region.pieces = self.pieces(range);
        region.pieces.extend(self.pieces(Range::new(range.end, region.plan.ranges.reserved.end)));
        region.resident = self.resident(source, range);
        region.retries = retries;
        Some(region)
    }

    /// The unit walked by two threads, if that went well.
    fn split(&self, unit: Unit, source: &(dyn Source + Sync)) -> Option<Region> {
        let mut region = self.region(unit, source)?;
        let is_walked = self.walk_split(&mut region, source);
        if !is_walked {
            region.links.give_back(&self.budget);
        }
        is_walked.then_some(region)
    }

    fn walk(&self, (arena, heap, retries): Unit, walker: &mut Walker, is_last: bool) -> Outcome {
        let source = walker.window.source();
        let Some(mut region) = self.region((arena, heap, retries), source) else { return Outcome::Gone };
        match walker.walk(&mut region, is_last) {
            Ok(()) => Outcome::Walked(Box::new(region)),
            Err(broken) if is_last || source.is_live() || !is_absent(broken) => {
                region.links.give_back(&self.budget);
                Outcome::Broken
            }
            // What is not in memory will not be there a millisecond later either.
            Err(_) => {
                region.links.give_back(&self.budget);
                self.walk((arena, heap, retries), walker, true)
            }
        }
    }

    /// What is known before the walk: the key of the threads' caches, and which lists have chunks.
    fn prepare(&mut self, units: &[(usize, usize)], source: &dyn Source) {
        let plans = units.iter().filter_map(|(arena, heap)| self.plan(*arena, *heap, source));
        let firsts: Vec<Addr> = plans.take(KEY_CACHES_MAX).map(|plan| plan.first_chunk).collect();
        self.key = tcache::key(&firsts, &|at, into| self.read(source, at, into));
        if source.keeps() {
            // A recording keeps a link only when a list is followed.
            return;
        }
        let heads: Vec<Heads> = (0..self.arenas.len()).map(|arena| self.heads(arena, source)).collect();
        let first_link = |head: Addr| {
            let [word] = self.words(source, head.plus(16))?;
            Some((head, word))
        };
        let fast = heads.iter().flat_map(|heads| &heads.fast).filter(|head| !head.is_null());
        let linking = fast
            .filter_map(|head| first_link(*head))
            .find_map(|(head, word)| lists::likely_linking(head, word));
        let kept = |heads: &Heads| KeptLinks {
            unsorted: heads.unsorted.is_some_and(|(first, _, bin)| first != bin),
            fast: linking.filter(|_| heads.fast.iter().any(|head| !head.is_null())),
        };
        self.kept = heads.iter().map(kept).collect();
    }

    /// Where the lists of `arena` begin at this moment.
    fn heads(&self, arena: usize, source: &dyn Source) -> Heads {
        let mut state = vec![0; self.layout.state_bytes() as usize];
        let at = self.arenas[arena].at;
        match self.read(source, at, &mut state) {
            Some(()) => Heads::of(self.layout, at, &state),
            None => Heads::default(),
        }
    }

    fn linking(&self, regions: &[Region], source: &dyn Source) -> Option<Linking> {
        let mut links = Links::new(source);
        regions.chunk_by(same_arena).find_map(|regions| {
            lists::linking(regions, &self.heads(regions[0].plan.arena, source), &mut links)
        })
    }

    fn mark(&self, regions: &mut [Region], linking: Option<Linking>, links: &mut Links, source: &dyn Source) {
        let heads = self.heads(regions[0].plan.arena, source);
        // Without any list of two the linking is not known, and makes no difference.
        lists::mark(regions, &heads, linking.unwrap_or(Linking::Safe), links);
    }

    fn lists(&self, walked: &mut Walked, source: &dyn Source) -> Option<Linking> {
        let linking = self.linking(&walked.regions, source);
        let mut links = Links::new(source);
        for regions in walked.regions.chunk_by_mut(same_arena) {
            self.mark(regions, linking, &mut links, source);
        }
        walked.lists_left |= links.is_exhausted();
        linking
    }

    fn lists_in_parallel(
        &self,
        walked: &mut Walked,
        threads: usize,
        source: &(dyn Source + Sync),
    ) -> Option<Linking> {
        if threads < 2 {
            return self.lists(walked, source);
        }
        let linking = self.linking(&walked.regions, source);
        let queue = Mutex::new(walked.regions.chunk_by_mut(same_arena));
        let work = || {
            let mut links = Links::new(source);
            loop {
                let next = queue.lock().ok().and_then(|mut queue| queue.next());
                match next {
                    Some(regions) => self.mark(regions, linking, &mut links, source),
                    None => return links.is_exhausted(),
                }
            }
        };
        let left = std::thread::scope(|scope| {
            let helpers: Vec<_> = (1..threads).map(|_| scope.spawn(budget::inherit(work))).collect();
            let mine = work();
            helpers.into_iter().fold(mine, |left, helper| left | helper.join().unwrap_or(true))
        });
        walked.lists_left |= left;
        linking
    }

    /// A mapped chunk is one block; the witness is asked as for any other.
    fn mapped(&self, range: Range, source: &dyn Source) -> Mapped {
        let payload = Range::new(range.start.plus(2 * HEADER_BYTES), range.end);
        let mut raw = [0; size_of::<Head>()];
        let is_read = self.view.is_resident(range.start) && source.read(payload.start, &mut raw).is_ok();
        let mut look = Look::default();
        if is_read {
            let head = head_of(&raw);
            look = self.witness.look(payload, &head);
            if look.label != 0 {
                source.used(payload.start, self.witness.evidence(&head).map(u64::to_le_bytes).as_flattened());
            }
        }
        let slack = look.requested_bytes.map_or(0, |requested| payload.bytes().saturating_sub(requested));
        let label = Code::in_use(look.label).label().unwrap_or_default();
        Mapped { range, label, slack, pieces: self.pieces(range) }
    }
}

fn helper_failed() -> Gap {
    Gap::new("heaps of malloc", Why::Torn)
}

fn is_absent(broken: Fault) -> bool {
    matches!(broken.why, Why::NotResident(_) | Why::NotRecorded)
}

fn same_arena(one: &Region, other: &Region) -> bool {
    one.plan.arena == other.plan.arena
}

impl Walked {
    /// The sums of every region, in the order of `regions`.
    pub fn sums(&self) -> Vec<Sums> {
        let bytes: Bytes = self.regions.iter().map(|region| region.map.range().bytes()).sum();
        if bytes <= ALONE_BYTES_MAX {
            let sums: Vec<Sums> = self.regions.iter().map(figures::sum).collect();
            #[cfg(test)]
            assert_eq!(sums, self.regions.iter().map(figures::sum_by_two).collect::<Vec<_>>());
            return sums;
        }
        let alone = self
            .regions
            .iter()
            .position(|region| Common::is_worth_splitting(region.map.range().bytes(), bytes));
        let mut first = alone.map(|index| figures::sum_by_two(&self.regions[index]));
        let sum = |index: usize| Ok((Some(index) != alone).then(|| figures::sum(&self.regions[index])));
        let others = budget::divided(self.regions.len(), true, helper_failed(), || sum);
        others.unwrap_or_default().into_iter().filter_map(|sums| sums.or_else(|| first.take())).collect()
    }
}
