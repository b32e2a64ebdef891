//! Time that threads lose to the kernel's work on pages: compaction, reclaim, huge pages that are zeroed and collapsed. From
//! the kernel's own trace of each begin and end (`pairs`), put into rows by process or kind of thread (`table`), next to what the
//! host's counters say (`host`), which is all that is left where nothing may be traced.

pub mod histogram;
pub mod host;
pub mod interval;
pub mod pairs;
mod spans;
pub mod table;
pub mod who;

pub use spans::Stall;

use crate::base::{Gap, Known};
use crate::os::taskstats::Delays;
use host::HostFigures;
use table::Traced;

/// What the kernel counted of one process, where nothing could be traced.
#[derive(Clone, Debug, PartialEq, schemars::JsonSchema, serde::Serialize)]
pub struct Delayed {
    pub pid: i32,
    pub name: String,
    pub is_jvm: bool,
    #[serde(skip)]
    pub delays: Delays,
}

/// One interval.
#[derive(Clone, Debug)]
pub struct Report {
    pub seconds: f64,
    pub traced: Known<Traced>,
    /// `None`: not asked for, since all is traced.
    pub delayed: Option<Known<Vec<Delayed>>>,
    pub host: HostFigures,
    /// The target ended: the interval is shorter than asked for.
    pub is_last: bool,
    pub gaps: Vec<Gap>,
}
