//! The one door by which a target is asked to do something. What goes through it leaves a receipt.

pub mod as_target;
pub mod ask_jdk;
pub mod attach;
pub mod command;
pub mod dialogue;
pub mod door;
pub mod file_lock;
pub mod first_touch;
pub mod fork_price;
pub mod fragments;
mod launched;
pub mod programs;
pub mod promote;
pub mod server;
pub mod signals;
pub mod staged;
pub mod tracing;
pub mod trial;
pub mod trim;
pub mod watchdog;
