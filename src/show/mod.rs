//! The faces of the account. Nothing here reads the machine or computes a figure that is not in what it is given.

pub mod advise;
pub mod audit;
pub mod bench;
pub mod compare;
pub mod container;
pub mod diff;
pub mod doctor;
pub mod heap;
pub mod html;
pub mod json;
pub mod leaks;
pub mod list;
pub mod look;
pub mod others;
pub mod pages;
pub mod paint;
pub mod plot;
pub mod record;
pub mod rows;
pub mod schemas;
pub mod serve;
pub mod stalls;
pub mod table;
pub mod text;
pub mod tlb;
pub mod trim;
pub mod tui;
pub mod units;
pub mod why;
pub mod width;

#[cfg(test)]
mod narrow_tests;
