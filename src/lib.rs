//! Marusa accounts for every byte of a running JVM on Linux, from outside.
//!
//! This crate is the program. The crates below it read (`marusa-account`, `marusa-observe`), change (`marusa-host`), judge
//! (`marusa-doctor`) and try (`marusa-lab`); `ARCHITECTURE.md` has their rooms, and the path of one figure.

pub mod cmd;
pub mod serve;
pub mod show;
pub mod store;

pub use marusa_account::{alloc, base, jvm, map, os, say, snapshot};
pub use marusa_doctor::{advise, doctor, why};
pub use marusa_host::{act, pages};
pub use marusa_lab::experiment;
pub use marusa_observe::{ledger, measure, record};
