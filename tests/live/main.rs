//! Real JVMs, every JDK and collector that installs here: the account closes, agrees with what the JVM itself says, and
//! leaves no trace in the target.

#[path = "../common/mod.rs"]
mod common;

mod account;
mod audit;
mod larger_pages;
mod nmt;
mod owners;
mod trim;
mod unsafe_memory;
mod zero_touch;
