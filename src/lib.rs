//! Marusa accounts for every byte of a running JVM on Linux, from outside.
//!
//! The rooms of the house, and who may name whom (`tests/fast/tidy.rs` keeps it):
//!
//! ```text
//! cmd ──> show ──> { experiment | doctor | record } ──> pages ──> measure ──> map ──> snapshot ──> { jvm | alloc } ──> os ──> base
//!               └──> why ──> doctor
//!  └────────────> { experiment | pages } ──> act ──> os      act: the one door by which anything is changed or asked
//! { cmd | show | doctor | record } ──> ledger ──> map
//! { cmd | show } ──> serve ──> { doctor | record }
//! { cmd | show } ──> store ──> { doctor | record }
//! { cmd | show } ──> advise ──> record
//! ```
//!
//! `ARCHITECTURE.md` has what each room is for, and the path of one figure.

pub mod act;
pub mod advise;
pub mod cmd;
pub mod doctor;
pub mod experiment;
pub mod ledger;
pub mod measure;
pub mod pages;
pub mod record;
pub mod serve;
pub mod show;
pub mod store;
pub mod why;

pub use marusa_account::{alloc, base, jvm, map, os, say, snapshot};
