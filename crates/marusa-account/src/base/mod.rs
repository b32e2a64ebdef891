//! The words that every room shares: addresses, ranges, byte counts, and the way to say "not known".
//!
//! Nothing here does any input or output, and nothing here knows Java or malloc.

mod addr;
pub mod alike;
mod allowance;
pub mod blocks;
mod clock;
mod covered;
mod gap;
pub mod limits;
pub mod printable;
pub mod redact;
mod refused;
pub mod style;
mod units;
pub mod varint;

pub use crate::refuse;
pub use addr::{Addr, Range, USER_END, holding, joined, overlapping, place_of};
pub use allowance::Allowance;
pub use clock::{days_since_1970, rfc3339};
pub use covered::Covered;
pub use gap::{Gap, Known, Why, or_null};
pub use refused::Refused;
pub use units::{bytes_of, counted, human, size, tally, word_of};

/// A number of bytes.
pub type Bytes = u64;

/// The unit in which the kernel's page tables and our residency are kept, in bytes.
/// x86-64 has no other base page size; see `os::host` for the check at start-up.
pub const PAGE: Bytes = 4096;
