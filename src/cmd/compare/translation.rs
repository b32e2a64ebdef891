//! The share of CPU time that the JVM of a run spends in address translation, where this machine counts it: the counters run from
//! when the JVM was found until it ended.

use crate::base::{Gap, Known, Why};
use crate::measure::counters::Counters;
use crate::measure::events::{self, EventSet};
use crate::measure::kinds::Kinds;
use crate::measure::tlb::{self, By, Context};
use crate::os::cpu;
use crate::os::perf::Mode;
use crate::os::process::Process;

pub struct Translation<'a> {
    set: EventSet,
    counters: Counters<'a>,
    context: Context,
}

impl<'a> Translation<'a> {
    pub fn open(jvm: &'a Process) -> Known<Translation<'a>> {
        let cpu = cpu::read();
        let set = events::choose(&cpu)?;
        if let Some(untimed) = set.model.untimed() {
            return Err(untimed);
        }
        let counters = Counters::open(jvm, set.clone(), &[Mode::User, Mode::Kernel])?;
        let mapped = Err(Gap::new("mapped page sizes", Why::NotRead));
        let context = Context { mapped, has_hypervisor: cpu.has_hypervisor };
        Ok(Translation { set, counters, context })
    }

    /// In percent of CPU time.
    pub fn percent(mut self) -> Known<f64> {
        let slots = self.counters.slots().to_vec();
        let interval = self.counters.turn();
        let report = tlb::report(&interval, &self.set, &slots, &Kinds::default(), By::Kind, &self.context);
        report.total.time.map(|share| share * 100.0)
    }
}
