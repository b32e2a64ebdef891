//! What is read between two accounts: the kernel's sums of the process and the runtime's counters, some tenths of a
//! millisecond where an account takes tens. The VM brings its counters up to date at collections and class loads, so what
//! they say of the heap is what was left by the last collection.

use crate::base::{Bytes, Known, Range};
use crate::jvm::JvmView;
use crate::jvm::hotspot::perf_memory::{self, PerfMemory};
use crate::jvm::hotspot::vm_work::PERF_MEMORY;
use crate::os::peek::Peek;
use crate::os::process::Process;
use crate::os::status::Status;

/// Generations, spaces of one and collectors that are asked for. HotSpot has at most three, five and three.
const GENERATIONS_MAX: usize = 4;
const SPACES_MAX: usize = 6;
const COLLECTORS_MAX: usize = 4;

/// The runtime's counters; what this VM does not keep is `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// As the last collection left it.
    pub heap_used_bytes: Option<Bytes>,
    pub heap_capacity_bytes: Option<Bytes>,
    pub metaspace_used_bytes: Option<Bytes>,
    pub metaspace_capacity_bytes: Option<Bytes>,
    pub classes_loaded: Option<u64>,
    pub classes_unloaded: Option<u64>,
    pub collections: Option<u64>,
    /// Those of all collectors except the first, which collects the young generation where there are generations.
    pub old_collections: Option<u64>,
    pub collection_time_us: Option<u64>,
    pub java_threads: Option<u64>,
}

/// What one sample saw.
pub struct Glance {
    pub status: Status,
    pub counters: Known<Counters>,
}

/// Where the counters of a VM lie; `None`: with -XX:-UsePerfData it has none.
pub fn counters_of(jvm: &JvmView) -> Option<Range> {
    jvm.extents.iter().find(|extent| extent.part == PERF_MEMORY).map(|extent| extent.range)
}

/// Fails when the process is gone.
pub fn take(process: &Process, peek: &Known<Peek>, counters: Option<Range>) -> Known<Glance> {
    let status = process.status()?;
    let read = |peek: &Peek| {
        let range = counters.ok_or_else(|| missing("-XX:-UsePerfData"))?;
        let block = peek.read(range)?;
        let counters = perf_memory::parse(&block).ok_or_else(|| missing("they make no sense"))?;
        Ok(Counters::of(&counters))
    };
    let counters = peek.as_ref().map_err(Clone::clone).and_then(read);
    Ok(Glance { status, counters })
}

fn missing(hint: &str) -> crate::base::Gap {
    crate::base::Gap::new("performance counters", crate::base::Why::NotInThisRuntime).hint(hint)
}

impl Counters {
    fn of(counters: &PerfMemory) -> Counters {
        let number = |name: &str| u64::try_from(counters.number(name)?).ok();
        let sum = |names: &mut dyn Iterator<Item = String>| {
            let known: Vec<u64> = names.filter_map(|name| number(&name)).collect();
            (!known.is_empty()).then(|| known.iter().fold(0_u64, |sum, more| sum.saturating_add(*more)))
        };
        let spaces = |what: &'static str| {
            let spaces = (0..GENERATIONS_MAX)
                .flat_map(|generation| (0..SPACES_MAX).map(move |space| (generation, space)));
            spaces.map(move |(generation, space)| {
                format!("sun.gc.generation.{generation}.space.{space}.{what}")
            })
        };
        let collectors = |what: &'static str| {
            (0..COLLECTORS_MAX).map(move |collector| format!("sun.gc.collector.{collector}.{what}"))
        };
        let microseconds = |ticks: u64| {
            let each_second = number("sun.os.hrt.frequency").filter(|ticks| *ticks > 0)?;
            u64::try_from(u128::from(ticks) * 1_000_000 / u128::from(each_second)).ok()
        };
        Counters {
            heap_used_bytes: sum(&mut spaces("used")),
            heap_capacity_bytes: sum(&mut spaces("capacity")),
            metaspace_used_bytes: number("sun.gc.metaspace.used"),
            metaspace_capacity_bytes: number("sun.gc.metaspace.capacity"),
            classes_loaded: number("java.cls.loadedClasses"),
            classes_unloaded: number("java.cls.unloadedClasses"),
            collections: sum(&mut collectors("invocations")),
            old_collections: sum(&mut collectors("invocations").skip(1)),
            collection_time_us: sum(&mut collectors("time")).and_then(microseconds),
            java_threads: number("java.threads.live"),
        }
    }
}
