//! A running process is put on huge pages, block by block, and taken off them again, from outside: the process is not
//! stopped, not changed, and needs no flag.
//!
//! `process_madvise(pidfd, MADV_COLLAPSE)` copies the 512 small pages of a block onto a huge one and maps that instead
//! (Linux 6.1; mm/khugepaged.c, `madvise_collapse`). It asks neither the settings of transparent huge pages nor the
//! process, and it charges the caller's CPU. `MADV_COLD` for one small page within a huge one splits that: the kernel can
//! call only whole pages cold (mm/madvise.c, `madvise_cold_or_pageout_pte_range`). The one small page goes to the end of
//! the list of pages to be reclaimed, which harms nothing, also with swap; `MADV_PAGEOUT`, which would split as well,
//! writes it to swap and is never used.
//!
//! What is done leaves a receipt (`receipt`), which is written before the doing.

mod advise;
mod change;
mod done;
mod pace;
mod price;
pub mod receipt;
mod run;
mod warm;

pub use advise::Refusal;
pub use change::Change;
pub use done::{Done, Stopped, Watch};
pub use pace::Pace;
pub use price::{CallTimes, Price};
pub use receipt::Receipt;

use crate::base::{Bytes, Range};

/// What one huge page holds.
pub fn block_bytes() -> Bytes {
    crate::os::machine::huge_page()
}

/// One aligned range of `block_bytes` within one mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Block {
    pub range: Range,
    /// Collapse it only if at least this much of it is in memory just before: a collapse fills the rest.
    pub resident_min: Bytes,
    /// Whether pages that are mapped to the zero page count as in memory. A split turns pages of zeros into it (`split`),
    /// so who goes there and back must count them, and gets them filled again.
    pub fills_zeros: bool,
}

/// Why nothing could be begun.
#[derive(Debug, thiserror::Error)]
pub enum PromoteError {
    #[error("pid {pid}: {}", .refusal.words())]
    Refused { pid: i32, refusal: Refusal },
    #[error("pid {pid}: {what}: {error}")]
    Io { pid: i32, what: &'static str, error: std::io::Error },
}

impl PromoteError {
    /// Whether other rights would have helped.
    pub fn is_denied(&self) -> bool {
        match self {
            PromoteError::Refused { refusal, .. } => refusal.is_denied(),
            PromoteError::Io { error, .. } => error.kind() == std::io::ErrorKind::PermissionDenied,
        }
    }
    pub fn is_gone(&self) -> bool {
        match self {
            PromoteError::Refused { refusal, .. } => *refusal == Refusal::Gone,
            PromoteError::Io { error, .. } => error.raw_os_error() == Some(libc::ESRCH),
        }
    }
}
