//! The way through a list of blocks, there and back alike: look, call, look again, rest; stop when asked to, when the target
//! ends, or when the host has nothing left to give.

use super::advise::{Advisor, Refusal, opened};
use super::change::{Change, Wanted};
use super::done::{Done, Stopped, Watch};
use super::pace::{Next, Pacer};
use super::price::Histogram;
use super::warm::Warm;
use super::{Block, Pace, PromoteError, Receipt, block_bytes};
use crate::act::signals::{Waiting, Woken};
use crate::base::{Bytes, Range, joined};
use crate::os::cpu_time::of_this_thread;
use crate::os::look::{Look, look};
use crate::os::priority::Eager;
use crate::os::process::Process;
use crate::os::{free_blocks, free_memory};
use std::fs::File;
use std::time::{Duration, Instant};

/// Blocks between two lines of the receipt, and between two readings of the host's memory.
const BATCH_BLOCKS: usize = 16;
/// How often a block is tried whose refusal may be for now, and the rest after the first time; it doubles.
const TRIES_MAX: u32 = 5;
const TRY_REST: Duration = Duration::from_millis(1);
/// How often all blocks are looked at again, and the rest before: the target touches a block that it uses within it.
const PASSES_MAX: u32 = 100;
const PASS_REST: Duration = Duration::from_millis(5);
/// Blocks in a row that are refused because memory is short.
const SHORT_IN_A_ROW_MAX: u32 = 4;
/// What must be left to others.
const FREE_BYTES_MIN: Bytes = 128 << 20;
/// In huge pages.
const FREE_HUGE_MIN: u64 = 8;

impl Change {
    /// Makes it of the blocks, one call each, in the order given. A block that has fewer pages in memory than it must have for a
    /// collapse, now that its turn comes, is left; so no hole is ever filled.
    pub fn make(
        self,
        process: &Process,
        blocks: &[Block],
        pace: Pace,
        receipt: Option<&mut Receipt>,
        watch: &mut dyn Watch,
    ) -> Result<Done, PromoteError> {
        Run::start(process, pace, self)?.through(blocks, receipt, watch)
    }
}

/// What became of a block.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Reached,
    IsSo,
    NoLonger,
    Refused(Refusal),
}

struct Run {
    change: Change,
    advisor: Advisor,
    pagemap: File,
    waiting: Waiting,
    pace: Pace,
    pacer: Pacer,
    warm: Option<Warm>,
    histogram: Histogram,
    /// When the pacer was asked last, and our CPU time then.
    mark: (Instant, Duration),
    short_in_a_row: u32,
    /// One for each block that had its turn, in their order.
    outcomes: Vec<Outcome>,
    reached: usize,
    retries: u64,
    rested: Duration,
}

impl Run {
    fn start(process: &Process, pace: Pace, change: Change) -> Result<Run, PromoteError> {
        let pid = process.pid;
        let failed = |what: &'static str| move |error| PromoteError::Io { pid, what, error };
        let advisor = opened(process, change)?;
        let pagemap = process.open_file("pagemap").map_err(failed("/proc/PID/pagemap"))?;
        let waiting = Waiting::on(process).map_err(failed("it cannot be waited for"))?;
        Ok(Run {
            change,
            advisor,
            pagemap,
            waiting,
            pace,
            pacer: Pacer::new(pace),
            warm: if change.takes_memory() { Warm::new() } else { None },
            histogram: Histogram::new(),
            mark: (Instant::now(), of_this_thread()),
            short_in_a_row: 0,
            outcomes: Vec::new(),
            reached: 0,
            retries: 0,
            rested: Duration::ZERO,
        })
    }

    /// Runs at a higher priority: who is put off while it holds the target's lock makes the target wait.
    fn through(
        mut self,
        blocks: &[Block],
        mut receipt: Option<&mut Receipt>,
        watch: &mut dyn Watch,
    ) -> Result<Done, PromoteError> {
        let _eager = Eager::start();
        let (started, cpu_started) = (Instant::now(), of_this_thread());
        watch.step(0, 0, blocks.len());
        let all = blocks.chunks(BATCH_BLOCKS);
        let ended = all.map(|batch| self.batch(batch, receipt.as_deref_mut(), watch, blocks.len()));
        let ended = ended.collect::<Result<(), Stopped>>().and_then(|()| self.those_that_came_back(blocks));
        let mut done = Done { stopped: ended.err(), ..Done::default() };
        done.not_tried = blocks.len() - self.outcomes.len();
        for (block, outcome) in blocks.iter().zip(&self.outcomes) {
            match outcome {
                Outcome::Reached => done.reached.push(block.range),
                Outcome::IsSo => done.were_so += 1,
                Outcome::NoLonger => done.no_longer += 1,
                Outcome::Refused(refusal) => *done.refused.entry(*refusal).or_default() += 1,
            }
        }
        done.reached = joined(done.reached);
        done.price.wall_ms = started.elapsed().as_secs_f64() * 1e3;
        done.price.cpu_ms = of_this_thread().saturating_sub(cpu_started).as_secs_f64() * 1e3;
        done.price.rested_ms = self.rested.as_secs_f64() * 1e3;
        done.price.calls = self.histogram.times();
        done.price.over_budget = self.pacer.over_budget;
        done.price.retries = self.retries;
        Ok(done)
    }

    fn batch(
        &mut self,
        batch: &[Block],
        mut receipt: Option<&mut Receipt>,
        watch: &mut dyn Watch,
        of: usize,
    ) -> Result<(), Stopped> {
        self.is_memory_left()?;
        let failed = |error: std::io::Error| Stopped::Receipt(error.to_string());
        if let Some(receipt) = receipt.as_mut() {
            receipt.going(batch.iter().map(|block| block.range)).map_err(failed)?;
        }
        let first = self.outcomes.len();
        let mut ended = Ok(());
        for block in batch {
            ended = self.turn(block);
            watch.step(self.outcomes.len(), self.reached, of);
            if ended.is_err() {
                break;
            }
        }
        if let Some(receipt) = receipt {
            let turns = batch.iter().zip(&self.outcomes[first..]);
            let reached = turns.filter(|(_, outcome)| **outcome == Outcome::Reached);
            let reached: Vec<Range> = reached.map(|(block, _)| block.range).collect();
            receipt.reached(&reached).map_err(failed)?;
        }
        ended
    }

    /// More turns, for what is as before when it is looked at again; what does not stay in any of them is reported.
    fn those_that_came_back(&mut self, blocks: &[Block]) -> Result<(), Stopped> {
        let mut left: Vec<usize> = (0..blocks.len()).collect();
        for pass in 1..=PASSES_MAX {
            if !self.change.may_come_back() {
                break;
            }
            self.rest_until(Instant::now() + PASS_REST)?;
            let looks = left.iter().map(|at| Ok((*at, self.look(&blocks[*at])?)));
            let looks = looks.collect::<Result<Vec<(usize, Look)>, Stopped>>()?;
            let is_back = |at: usize, now: &Look| self.change.wanted(&blocks[at], now) == Wanted::Yes;
            let back: Vec<usize> =
                looks.iter().filter(|(at, now)| is_back(*at, now)).map(|(at, _)| *at).collect();
            if back.is_empty() {
                break;
            }
            // What is mapped nowhere is not known yet.
            left = looks
                .iter()
                .filter(|(at, now)| now.resident == 0 || is_back(*at, now))
                .map(|it| it.0)
                .collect();
            for at in back {
                self.outcomes[at] = match pass {
                    PASSES_MAX => Outcome::Refused(Refusal::NoEffect),
                    _ => self.again(&blocks[at])?,
                };
            }
        }
        Ok(())
    }

    fn again(&mut self, block: &Block) -> Result<Outcome, Stopped> {
        let mut longest = Duration::ZERO;
        let outcome = self.change(block, &mut longest)?;
        self.retries += 1;
        self.keep_pace(longest)?;
        Ok(outcome)
    }

    fn is_memory_left(&self) -> Result<(), Stopped> {
        if !self.change.takes_memory() {
            return Ok(());
        }
        is_enough(free_memory::available_bytes().ok(), free_blocks::free_huge_bytes().ok(), self.pace.compact)
    }

    fn turn(&mut self, block: &Block) -> Result<(), Stopped> {
        self.rest_until(Instant::now())?;
        let mut longest = Duration::ZERO;
        let outcome = self.change(block, &mut longest)?;
        self.outcomes.push(outcome);
        self.reached += usize::from(outcome == Outcome::Reached);
        match outcome {
            Outcome::Refused(refusal @ (Refusal::NoHugePage | Refusal::GroupLimit)) => {
                self.short_in_a_row += 1;
                if self.short_in_a_row >= SHORT_IN_A_ROW_MAX {
                    return Err(Stopped::Refused(refusal));
                }
            }
            _ => self.short_in_a_row = 0,
        }
        self.keep_pace(longest)
    }

    fn keep_pace(&mut self, longest: Duration) -> Result<(), Stopped> {
        let (wall, cpu) = (Instant::now(), of_this_thread());
        let since = (wall - self.mark.0, cpu.saturating_sub(self.mark.1));
        self.mark = (wall, cpu);
        match self.pacer.after(longest, since.1, since.0) {
            Next::Go => Ok(()),
            Next::Rest(rest) => self.rest_until(wall + rest),
            Next::Stop => Err(Stopped::SlowCalls),
        }
    }

    /// One block, tried again where that may help.
    fn change(&mut self, block: &Block, longest: &mut Duration) -> Result<Outcome, Stopped> {
        let mut rest = TRY_REST;
        for tries in 1..=TRIES_MAX {
            let now = self.look(block)?;
            match self.change.wanted(block, &now) {
                Wanted::IsSo => return Ok(Outcome::IsSo),
                Wanted::NoLonger => return Ok(Outcome::NoLonger),
                Wanted::Yes => {}
            }
            let refusal = match self.call(block, longest) {
                Ok(()) if self.change.is_reached(&self.look(block)?) != Some(false) => {
                    return Ok(Outcome::Reached);
                }
                Ok(()) => Refusal::NoEffect,
                Err(Refusal::Gone) => return Err(Stopped::TargetEnded),
                Err(refusal) if refusal.is_for_all() => return Err(Stopped::Refused(refusal)),
                Err(refusal) => refusal,
            };
            // The target may have changed it in between: then that is the reason.
            let now = self.look(block)?;
            match self.change.wanted(block, &now) {
                Wanted::Yes if !refusal.is_for_now() || tries == TRIES_MAX => {
                    return Ok(Outcome::Refused(refusal));
                }
                Wanted::Yes => {}
                Wanted::IsSo => return Ok(Outcome::Reached),
                Wanted::NoLonger => return Ok(Outcome::NoLonger),
            }
            self.retries += 1;
            self.rest_until(Instant::now() + rest)?;
            rest *= 2;
        }
        Ok(Outcome::NoLonger)
    }

    fn look(&self, block: &Block) -> Result<Look, Stopped> {
        look(&self.pagemap, block.range).map_err(|gap| match gap.why {
            crate::base::Why::Gone => Stopped::TargetEnded,
            _ => Stopped::Unreadable(gap.to_string()),
        })
    }

    fn call(&mut self, block: &Block, longest: &mut Duration) -> Result<(), Refusal> {
        let _on_this_cpu = self.warm.as_ref().map(Warm::prepare);
        let started = Instant::now();
        let answer = self.advisor.advise(self.change.range(block), self.change);
        let took = started.elapsed();
        self.histogram.add(took);
        *longest = took.max(*longest);
        answer
    }

    /// Rests, unless a signal or the target's end comes first.
    fn rest_until(&mut self, deadline: Instant) -> Result<(), Stopped> {
        let started = Instant::now();
        let woken = self.waiting.until(deadline);
        if deadline > started {
            self.rested += started.elapsed();
        }
        match woken {
            Woken::Time => Ok(()),
            Woken::Ended => Err(Stopped::TargetEnded),
            Woken::Signal => Err(Stopped::Signal),
        }
    }
}

/// Whether the host may give more; what is not known does not stop it, as the kernel refuses in the end.
fn is_enough(available: Option<Bytes>, in_pieces: Option<Bytes>, compact: bool) -> Result<(), Stopped> {
    match (available, in_pieces) {
        (Some(available_bytes), _) if available_bytes < FREE_BYTES_MIN => {
            Err(Stopped::LittleMemory { available_bytes })
        }
        (_, Some(free_bytes)) if free_bytes < FREE_HUGE_MIN * block_bytes() && !compact => {
            Err(Stopped::NoPieces { free_bytes })
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_stops_before_others_want_memory() {
        let much = Some(1 << 30);
        assert_eq!(is_enough(much, much, false), Ok(()));
        assert_eq!(is_enough(None, None, false), Ok(()));
        assert_eq!(is_enough(Some(7), much, true), Err(Stopped::LittleMemory { available_bytes: 7 }));
        assert_eq!(is_enough(much, Some(7), false), Err(Stopped::NoPieces { free_bytes: 7 }));
        assert_eq!(is_enough(much, Some(7), true), Ok(()));
    }

    /// A block of our own: there, back, there again with its zeros, and left when it has lost a page.
    #[test]
    fn our_own_memory_goes_there_and_back() {
        let length = 2 * block_bytes() as usize;
        let (rights, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: a new mapping of our own, two blocks long: a whole one begins in it.
        let (mapping, block) = unsafe {
            let mapping = libc::mmap(std::ptr::null_mut(), length, rights, kind, -1, 0).cast::<u8>();
            assert!(mapping as isize != -1);
            libc::madvise(mapping.cast(), length, libc::MADV_NOHUGEPAGE);
            let block = mapping.add(mapping.align_offset(block_bytes() as usize));
            std::ptr::write_bytes(block, 7, block_bytes() as usize / 2);
            std::ptr::write_bytes(block.add(block_bytes() as usize / 2), 0, block_bytes() as usize / 2);
            (mapping, block)
        };
        let range = Range::sized(crate::base::Addr(block as u64), block_bytes());
        let me = Process::open(std::process::id() as i32).expect("myself");
        if let Err(error) = Change::Collapse.is_allowed(&me) {
            return println!("skipped: {error}");
        }
        let whole = Block { range, resident_min: block_bytes(), fills_zeros: false };
        let pace = Pace { cpu_share: 1.0, stall_budget: Duration::from_secs(10), compact: true };
        let there = |block| Change::Collapse.make(&me, &[block], pace, None, &mut ()).expect("it may");
        let back = || Change::Split.make(&me, &[whole], pace, None, &mut ()).expect("it may");
        let refused = there(whole);
        assert_eq!(
            refused.refused.get(&Refusal::NotHere),
            Some(&1),
            "no huge page is allowed here: {refused:?}"
        );
        // SAFETY: the mapping made above.
        unsafe { libc::madvise(mapping.cast(), length, libc::MADV_HUGEPAGE) };
        // The first advice wakes khugepaged, which may be there before us; it comes again in ten seconds.
        let mut done = there(whole);
        if done.were_so == 1 {
            back();
            done = there(Block { fills_zeros: true, ..whole });
        }
        assert_eq!((done.reached_bytes(), done.is_all()), (block_bytes(), true), "{done:?}");
        assert_eq!(there(whole).were_so, 1);
        let small = back();
        assert_eq!((small.reached_bytes(), small.is_all()), (block_bytes(), true), "{small:?}");
        assert_eq!(there(Block { fills_zeros: true, ..whole }).reached_bytes(), block_bytes());
        // SAFETY: the block is ours; its first half was written.
        unsafe {
            assert!((0..block_bytes() as usize / 2).step_by(511).all(|at| block.add(at).read() == 7));
            back();
            libc::madvise(block.cast(), 4096, libc::MADV_DONTNEED);
        }
        assert_eq!(there(Block { fills_zeros: true, ..whole }).no_longer, 1, "a hole is not filled");
        // SAFETY: the mapping made above; nothing refers to it any more.
        unsafe { libc::munmap(mapping.cast(), length) };
    }
}
