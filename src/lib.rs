//! Marusa accounts for every byte of a running JVM on Linux, from outside.
//!
//! The rooms of the house, and who may name whom (`tests/tidy.rs` keeps it):
//!
//! ```text
//!   cmd ──> show ──> measure ──> map ──> snapshot ──> { jvm | alloc } ──> os ──> base
//!    └────> act (attach: the one door by which a target is asked to work) ──> os
//! ```
//!
//! `ARCHITECTURE.md` tells what happens when `marusa map` runs.

pub mod act;
pub mod alloc;
pub mod base;
pub mod cmd;
pub mod jvm;
pub mod map;
pub mod measure;
pub mod os;
pub mod show;
pub mod snapshot;
