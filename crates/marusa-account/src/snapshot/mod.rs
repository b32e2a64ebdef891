//! One pass over a target, in a fixed order, and the file that keeps it.
//!
//! Raw views side by side, unjoined: of the kernel, of the runtime, of malloc.

pub mod anonymise;
pub mod core;
pub mod discover;
pub mod file;
pub mod forks;
mod frozen_check;
mod held;
pub mod hidden;
pub mod images;
mod late;
mod launched;
pub mod links;
mod moved;
pub mod page_settings;
mod release;
pub mod resolve;
pub mod take;
pub mod types;

pub use take::{take, take_once};
pub use types::*;
