//! The machine that an experiment runs on, as its results name it.

use crate::experiment::bench::Machine;
use crate::os::{cpu, cpus, host, meminfo, process::Process};

pub fn here() -> Machine {
    let processor = cpu::read();
    let memory = meminfo::parse(&host::text("/proc/meminfo").unwrap_or_default());
    let processors = Process::own().ok().and_then(|me| Some(cpus::of(&me, true).ok()?.count()));
    Machine {
        processor: processor.describe(),
        processors: processors.unwrap_or(0),
        memory_bytes: memory.map_or(0, |memory| memory.total_bytes),
        kernel: host::kernel_release(),
        is_virtual: processor.has_hypervisor,
    }
}
