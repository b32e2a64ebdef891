//! The self-test behind `marusa tlb --calibrate`: loads that each need a walk of the page tables, in memory of our own, timed.
//! AMD's counters and older Arm cores count walks but not their time, and many virtual machines have no counters at all;
//! a clock is everywhere.
//!
//! A chase follows pointers, one node to a 4 KiB page, in random order: each step misses the TLB once more pages are visited
//! than it holds. One chain waits for every walk; eight independent chains hide most of them behind each other. The same
//! nodes packed line by line need next to no walks: what is left is the cost of the walks. `measure::calibration` makes
//! costs of the times.

mod chase;
mod clock;
mod jumps;
mod order;
mod own;

pub use chase::Field;
pub use clock::CycleClock;
pub use jumps::JumpField;
pub use own::Pages;

/// Bytes of a cache line: a node has one to itself. 64 on x86-64 and on nearly all of aarch64.
const LINE: u64 = 64;

/// How the nodes of a field lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// One to a page, each on another line of its page so that they do not fight for the same sets of the caches.
    OneToAPage,
    /// As many of them as there would be pages, packed line by line.
    Dense,
}
