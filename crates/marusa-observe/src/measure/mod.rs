//! What the processor counted while the target ran, and what it means in time. (last, now) makes a rate; a rate and a
//! model make a share of CPU time. Counts that were not made are gaps, and an uncertain figure is an interval.

pub mod counters;
pub mod effective;
pub mod events;
pub mod gc_log;
pub mod growth;
pub mod heap_tables;
pub mod history;
pub mod interval;
pub mod kinds;
pub mod look;
pub mod peak;
pub mod stalls;
pub mod tlb;
