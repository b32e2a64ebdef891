//! A trace that runs, and what came of it so far: for the tables of `marusa stalls`, and for whoever measures something else at
//! the same time.

use crate::act::tracing::{Tracing, Wanted};
use crate::base::{Bytes, Gap, Known};
use crate::measure::stalls::pairs::Pairs;
use crate::os::cpu_time::Daemon;
use crate::os::machine::base_page;
use std::collections::BTreeMap;

pub struct Trace {
    pub tracing: Tracing,
    pub pairs: Pairs,
}

impl Trace {
    /// The first reading is thrown away: it says from when on all is read.
    pub fn begin(
        wanted: &Wanted,
        daemons: &BTreeMap<i32, Daemon>,
        huge_bytes: Bytes,
        gaps: &mut Vec<Gap>,
    ) -> Known<Trace> {
        let mut tracing = Tracing::start(wanted)?;
        let from_ns = tracing.read()?.until_ns;
        gaps.extend(tracing.gaps().iter().cloned());
        let fault_times = tracing.fault_times();
        gaps.extend(fault_times.as_ref().err().cloned());
        let huge_order = (huge_bytes / base_page()).max(1).ilog2();
        let pairs = Pairs::new(from_ns, daemons.clone(), huge_order, fault_times.is_ok());
        Ok(Trace { tracing, pairs })
    }

    /// What happened since the last reading.
    pub fn read(&mut self) -> Known<()> {
        self.tracing.read().map(|batch| self.pairs.feed(batch))
    }
}
