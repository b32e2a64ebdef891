//! The join: the kernel's view laid down, the runtime and the allocator claim, and every byte gets one owner.
//!
//! Pure: nothing here reads the machine or the clock, so a frozen snapshot gives the same account as a live one.

pub mod account;
pub mod area;
pub mod audit;
pub mod bloat;
pub mod claim;
pub mod claims;
pub mod diff;
pub mod grid;
pub mod heap;
pub mod join;
pub mod law;
#[cfg(any(test, feature = "made-up"))]
#[path = "made_up_tests.rs"]
pub mod made_up;
pub mod malloc;
pub mod model;
pub mod page_claims;
pub mod page_use;
pub mod require;
pub mod residency;
pub mod rows;
pub mod split;
pub mod sums;
pub mod trim;
pub mod types;
pub mod why;

pub use area::{Area, PaperArea};
pub use join::join;
pub use model::Account;
pub use sums::Sums;
pub use types::*;
