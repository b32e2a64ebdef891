//! What fills a cgroup, or the host: rows that sum to the kernel's own figure, the last of which is what is left over.
//!
//! The figures of the cgroup (`os::group_stat`) decide how much there is of each kind; processes and files say who has it. Where
//! they have more than the cgroup was charged (a page of a library is charged to whoever read it first), their rows are cut to
//! the cgroup's figure, and say what they have in all.

mod host;
mod model;
mod read;
mod rows;

pub use host::read_host;
pub use model::{Item, Ledger, Limit, Part, Reclaim, Row, Socket};
pub use read::{Want, command, read};
pub use rows::{Member, Seen};
