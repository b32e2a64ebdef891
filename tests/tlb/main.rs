//! `marusa tlb`: the counting against `perf stat`, threads that come and go, and what is said where nothing can be counted.

#[path = "../common/mod.rs"]
mod common;

mod counting;
