//! Which events tell of translation on which processor, as data with the source of each. Every group begins with the cycles,
//! so that a ratio to them stays right when the kernel lets groups take turns on the counters; and no group has more than
//! four events, the fewest counters that a hypervisor gives (AMD without PerfCtrExtCore, Intel with two threads a core).
//!
//! The numbers are those of Linux 6.12, tools/perf/pmu-events/arch: x86/skylakex/virtual-memory.json (Broadwell to Rocket
//! Lake have the same numbers), x86/sapphirerapids/virtual-memory.json, x86/amdzen{1..5}/{memory,load-store,cache,
//! branch-prediction}.json, arm64/common-and-microarch.json, arm64/arm/neoverse-v3/{tlb,stall}.json,
//! arm64/fujitsu/monaka, arm64/ampere/ampereonex.

use self::Side::{Data, Instruction};
use crate::base::{Gap, Known, Why};
use crate::os::cpu::{Cpu, Vendor};
use crate::os::perf::{self, Encoding};

pub const SIZE_4K: u64 = 4 << 10;
pub const SIZE_16K: u64 = 16 << 10;
pub const SIZE_32K: u64 = 32 << 10;
pub const SIZE_2M: u64 = 2 << 20;
pub const SIZE_1G: u64 = 1 << 30;

/// Which of the two first-level TLBs missed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, schemars::JsonSchema, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    Instruction,
    Data,
}

impl Side {
    pub const ALL: [Side; 2] = [Side::Instruction, Side::Data];

    /// As trapstat names the columns.
    pub fn word(self) -> &'static str {
        match self {
            Side::Instruction => "itlb",
            Side::Data => "dtlb",
        }
    }
}

/// What a count is a count of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Meaning {
    Cycles,
    /// Cycles in which at least one walk was under way.
    WalkActive(Side),
    /// Walks under way, summed over the cycles: divided by the walks, how long one takes.
    WalkPending(Side),
    /// Walks that ended with an entry of this page size; `None`: of any.
    Walks(Side, Option<u64>),
    /// Cycles in which nothing was issued because of a miss.
    Stall(Side),
    /// Nothing of translation: what proves the counting where there is no PMU.
    Instructions,
    Other,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// As `perf list` has it.
    pub name: &'static str,
    pub config: u64,
    pub meaning: Meaning,
}

/// How counts become time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, schemars::JsonSchema, serde::Serialize)]
pub enum Model {
    /// Cycles with a walk under way: an upper bound of the stall, for the core goes on with other work.
    #[serde(rename = "upper_bound_walk_active_cycles")]
    WalkActive,
    /// Cycles stalled by a miss.
    #[serde(rename = "stalled_cycles")]
    Stall,
    /// Walks only, whose time is not counted.
    #[serde(skip)]
    Walks,
    /// Nothing of translation.
    #[serde(skip)]
    None,
}

impl Model {
    /// Why the time in translation is not known; `None`: it is counted.
    pub fn untimed(self) -> Option<Gap> {
        let hint = "this processor counts walks of the page tables, not their time; `marusa pages prove` measures on the running \
                    program what larger pages gain";
        (self == Model::Walks).then(|| Gap::new("time in walks", Why::NotInThisKernel).hint(hint))
    }
}

/// What is counted on one kind of processor.
#[derive(Clone, Debug)]
pub struct EventSet {
    pub name: &'static str,
    pub model: Model,
    /// The type that perf_event_open takes for all of them.
    pub kind: u32,
    pub groups: Vec<&'static [Event]>,
    /// What the reader must know of these counts.
    pub notes: Vec<&'static str>,
}

impl EventSet {
    pub fn encoding(&self, event: &Event) -> Encoding {
        Encoding { kind: self.kind, config: event.config }
    }

    /// Whether some event has this meaning.
    pub fn has(&self, meaning: impl Fn(Meaning) -> bool) -> bool {
        self.groups.iter().any(|group| group.iter().any(|event| meaning(event.meaning)))
    }
}

const fn event(name: &'static str, config: u64, meaning: Meaning) -> Event {
    Event { name, config, meaning }
}

/// `CPU_CLK_UNHALTED.THREAD_P`, which the kernel puts on the fixed counter.
const INTEL_CYCLES: Event = event("cpu-cycles", 0x3c, Meaning::Cycles);
/// `ls_not_halted_cyc`.
const AMD_CYCLES: Event = event("ls_not_halted_cyc", 0x76, Meaning::Cycles);
const ARM_CYCLES: Event = event("cpu_cycles", 0x11, Meaning::Cycles);

/// The counter mask of 1 (bits 24 to 31) turns "walks each cycle" into "cycles with a walk".
const ACTIVE: u64 = 1 << 24 | 0x1000;
const PENDING: u64 = 0x1000;

/// The groups of Intel, whose generations differ in the event numbers and in whether code has 1 GiB pages.
macro_rules! intel {
    ($load:literal, $store:literal, $code:literal $(, $code_1g:expr)?) => {
        &[
            &[
                INTEL_CYCLES,
                event("dtlb_load_misses.walk_active", ACTIVE | $load, Meaning::WalkActive(Data)),
                event("dtlb_store_misses.walk_active", ACTIVE | $store, Meaning::WalkActive(Data)),
                event("itlb_misses.walk_active", ACTIVE | $code, Meaning::WalkActive(Instruction)),
            ],
            &[
                INTEL_CYCLES,
                event("dtlb_load_misses.walk_completed_4k", 0x200 | $load, Meaning::Walks(Data, Some(SIZE_4K))),
                event("dtlb_load_misses.walk_completed_2m_4m", 0x400 | $load, Meaning::Walks(Data, Some(SIZE_2M))),
                event("dtlb_load_misses.walk_completed_1g", 0x800 | $load, Meaning::Walks(Data, Some(SIZE_1G))),
            ],
            &[
                INTEL_CYCLES,
                event("dtlb_store_misses.walk_completed_4k", 0x200 | $store, Meaning::Walks(Data, Some(SIZE_4K))),
                event("dtlb_store_misses.walk_completed_2m_4m", 0x400 | $store, Meaning::Walks(Data, Some(SIZE_2M))),
                event("dtlb_store_misses.walk_completed_1g", 0x800 | $store, Meaning::Walks(Data, Some(SIZE_1G))),
            ],
            &[
                INTEL_CYCLES,
                event("itlb_misses.walk_completed_4k", 0x200 | $code, Meaning::Walks(Instruction, Some(SIZE_4K))),
                event("itlb_misses.walk_completed_2m_4m", 0x400 | $code, Meaning::Walks(Instruction, Some(SIZE_2M))),
                $(event("itlb_misses.walk_completed_1g", $code_1g, Meaning::Walks(Instruction, Some(SIZE_1G))),)?
            ],
            &[
                INTEL_CYCLES,
                event("dtlb_load_misses.walk_pending", PENDING | $load, Meaning::WalkPending(Data)),
                event("dtlb_store_misses.walk_pending", PENDING | $store, Meaning::WalkPending(Data)),
                event("itlb_misses.walk_pending", PENDING | $code, Meaning::WalkPending(Instruction)),
            ],
        ]
    };
}

const SKYLAKE: &[&[Event]] = intel!(0x08, 0x49, 0x85, 0x885);
const GOLDEN_COVE: &[&[Event]] = intel!(0x12, 0x13, 0x11);

const AMD_DATA_4K: Event =
    event("ls_l1_d_tlb_miss.tlb_reload_4k_l2_miss", 0x1045, Meaning::Walks(Data, Some(SIZE_4K)));
const AMD_DATA_2M: Event =
    event("ls_l1_d_tlb_miss.tlb_reload_2m_l2_miss", 0x4045, Meaning::Walks(Data, Some(SIZE_2M)));
const AMD_DATA_1G: Event =
    event("ls_l1_d_tlb_miss.tlb_reload_1g_l2_miss", 0x8045, Meaning::Walks(Data, Some(SIZE_1G)));
/// Zen 2 and later: four pages in a row as one entry.
const AMD_DATA_16K: Event =
    event("ls_l1_d_tlb_miss.tlb_reload_coalesced_page_miss", 0x2045, Meaning::Walks(Data, Some(SIZE_16K)));
const AMD_DATA_32K: Event =
    event("ls_l1_d_tlb_miss.tlb_reload_32k_l2_miss", 0x2045, Meaning::Walks(Data, Some(SIZE_32K)));
const AMD_CODE_4K: Event =
    event("bp_l1_tlb_miss_l2_tlb_miss.if4k", 0x0185, Meaning::Walks(Instruction, Some(SIZE_4K)));
const AMD_CODE_2M: Event =
    event("bp_l1_tlb_miss_l2_tlb_miss.if2m", 0x0285, Meaning::Walks(Instruction, Some(SIZE_2M)));
const AMD_CODE_1G: Event =
    event("bp_l1_tlb_miss_l2_tlb_miss.if1g", 0x0485, Meaning::Walks(Instruction, Some(SIZE_1G)));
const AMD_CODE_16K: Event =
    event("bp_l1_tlb_miss_l2_tlb_miss.coalesced_4k", 0x0885, Meaning::Walks(Instruction, Some(SIZE_16K)));

/// The instruction side has no sizes.
const ZEN_1: &[&[Event]] = &[
    &[AMD_CYCLES, AMD_DATA_4K, AMD_DATA_32K, AMD_DATA_2M],
    &[AMD_CYCLES, AMD_DATA_1G, event("bp_l1_tlb_miss_l2_miss", 0x85, Meaning::Walks(Instruction, None))],
];
const ZEN_2: &[&[Event]] = &[
    &[AMD_CYCLES, AMD_DATA_4K, AMD_DATA_16K, AMD_DATA_2M],
    &[AMD_CYCLES, AMD_DATA_1G, AMD_CODE_4K, AMD_CODE_2M],
    &[AMD_CYCLES, AMD_CODE_1G],
];
const ZEN_4: &[&[Event]] = &[
    &[AMD_CYCLES, AMD_DATA_4K, AMD_DATA_16K, AMD_DATA_2M],
    &[AMD_CYCLES, AMD_DATA_1G, AMD_CODE_4K, AMD_CODE_2M],
    &[AMD_CYCLES, AMD_CODE_1G, AMD_CODE_16K],
];

const ARM_DATA: Event = event("dtlb_walk", 0x34, Meaning::Walks(Data, None));
const ARM_CODE: Event = event("itlb_walk", 0x35, Meaning::Walks(Instruction, None));
const ARM_STALLS: &[Event] = &[
    ARM_CYCLES,
    event("stall_backend_tlb", 0x8167, Meaning::Stall(Data)),
    event("stall_frontend_tlb", 0x815c, Meaning::Stall(Instruction)),
];
/// "Large" is 2 MiB and above, "small" what is below (arm64/arm/neoverse-v3/tlb.json).
const ARM_SIZES: &[&[Event]] = &[
    ARM_STALLS,
    &[
        ARM_CYCLES,
        event("dtlb_walk_small", 0x813a, Meaning::Walks(Data, Some(SIZE_4K))),
        event("dtlb_walk_large", 0x8138, Meaning::Walks(Data, Some(SIZE_2M))),
    ],
    &[
        ARM_CYCLES,
        event("itlb_walk_small", 0x813b, Meaning::Walks(Instruction, Some(SIZE_4K))),
        event("itlb_walk_large", 0x8139, Meaning::Walks(Instruction, Some(SIZE_2M))),
    ],
];
const ARM_STALLS_AND_WALKS: &[&[Event]] = &[ARM_STALLS, &[ARM_CYCLES, ARM_DATA, ARM_CODE]];
const ARM_WALKS: &[&[Event]] = &[&[ARM_CYCLES, ARM_DATA, ARM_CODE]];

/// What needs no PMU: `PERF_COUNT_SW_*` of include/uapi/linux/perf_event.h. Groups of one, as `perf stat` opens them.
pub fn software() -> EventSet {
    const GROUPS: &[&[Event]] = &[
        &[event("task-clock", 1, Meaning::Other)],
        &[event("page-faults", 2, Meaning::Other)],
        &[event("context-switches", 3, Meaning::Other)],
        &[event("cpu-migrations", 4, Meaning::Other)],
    ];
    set("software", Model::None, perf::SOFTWARE, GROUPS, &[])
}

/// Cycles and instructions, by the kernel's own names, which every PMU has: how long the same work takes, whatever makes it slow.
pub fn cycles_per_instruction() -> EventSet {
    const GROUPS: &[&[Event]] =
        &[&[event("cycles", 0, Meaning::Cycles), event("instructions", 1, Meaning::Instructions)]];
    set("cycles per instruction", Model::None, perf::HARDWARE, GROUPS, &[])
}

fn set(
    name: &'static str,
    model: Model,
    kind: u32,
    groups: &[&'static [Event]],
    notes: &[&'static str],
) -> EventSet {
    EventSet { name, model, kind, groups: groups.to_vec(), notes: notes.to_vec() }
}

/// The events of this processor. Without a PMU, or for a processor whose events are not known, a gap.
pub fn choose(cpu: &Cpu) -> Known<EventSet> {
    let Some(pmu) = cpu.core_pmu() else {
        return Err(Gap::new("counters of the processor (PMU)", Why::NotInThisKernel).hint(perf::NO_PMU_HINT));
    };
    let chosen = match &cpu.vendor {
        Vendor::Intel => intel(cpu, pmu.kind),
        Vendor::Amd => amd(cpu, pmu.kind),
        Vendor::Arm { implementer } => Some(arm(*implementer, cpu.model, pmu.kind)),
        Vendor::Other(_) => None,
    };
    let mut chosen = chosen.ok_or_else(|| {
        Gap::new(format!("events of {}", cpu.describe()), Why::NotRead)
            .hint("known are Intel Core and Xeon from Broadwell, AMD Zen 1 to 5, and 64-bit Arm: please report this processor")
    })?;
    if cpu.is_hybrid() {
        chosen.notes.push("large and small cores: time on cores of the other kind is not counted");
    }
    Ok(chosen)
}

/// By model numbers as in tools/perf/pmu-events/arch/x86/mapfile.csv.
fn intel(cpu: &Cpu, kind: u32) -> Option<EventSet> {
    const UNTIL_ICE_LAKE: &[&str] =
        &["time in the hypervisor's own page tables (EPT) is not in the walks' cycles of this processor"];
    let is_virtual = cpu.has_hypervisor == Some(true);
    match (cpu.family, cpu.model) {
        (6, 0x3d | 0x47 | 0x4f | 0x56 | 0x4e | 0x5e | 0x55 | 0x8e | 0x9e | 0xa5 | 0xa6 | 0x66) => {
            let notes = if is_virtual { UNTIL_ICE_LAKE } else { &[] };
            Some(set("Intel, Broadwell to Comet Lake", Model::WalkActive, kind, SKYLAKE, notes))
        }
        (6, 0x6a | 0x6c | 0x7d | 0x7e | 0x8c | 0x8d | 0xa7) => {
            Some(set("Intel, Ice Lake to Rocket Lake", Model::WalkActive, kind, SKYLAKE, &[]))
        }
        (6, 0x8f | 0xcf | 0xad | 0xae | 0x97 | 0x9a | 0xb7 | 0xba | 0xbf) => {
            Some(set("Intel, Alder Lake and Sapphire Rapids on", Model::WalkActive, kind, GOLDEN_COVE, &[]))
        }
        _ => None,
    }
}

/// Families of arch/x86/kernel/cpu/amd.c, Linux 6.12.
fn amd(cpu: &Cpu, kind: u32) -> Option<EventSet> {
    let set = |name, groups| Some(set(name, Model::Walks, kind, groups, &[]));
    match (cpu.family, cpu.model) {
        (0x17, 0x00..=0x2f) | (0x18, _) => set("AMD, Zen 1", ZEN_1),
        (0x17, _) => set("AMD, Zen 2", ZEN_2),
        (0x19, 0x00..=0x0f | 0x20..=0x5f) => set("AMD, Zen 3", ZEN_2),
        (0x19, _) => set("AMD, Zen 4", ZEN_4),
        (0x1a, _) => set("AMD, Zen 5", ZEN_4),
        _ => None,
    }
}

/// An Arm processor counts 0 for an event that it does not have, so the events are chosen by the part, not by trying.
fn arm(implementer: u32, part: u32, kind: u32) -> EventSet {
    match (implementer, part) {
        // Neoverse V3, V3AE and N3.
        (0x41, 0xd83 | 0xd84 | 0xd8e) => set("Arm, Neoverse V3 and N3", Model::Stall, kind, ARM_SIZES, &[]),
        // Fujitsu Monaka, AmpereOne X.
        (0x46, 0x003) | (0xc0, 0xac4) => {
            set("Arm, Monaka and AmpereOne X", Model::Stall, kind, ARM_STALLS_AND_WALKS, &[])
        }
        _ => set("Arm, walks only", Model::Walks, kind, ARM_WALKS, &["walks are not counted by page size"]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::os::cpu::Pmu;

    fn cpu(vendor: Vendor, family: u32, model: u32) -> Cpu {
        let pmus = vec![Pmu { name: "cpu".to_string(), kind: 4 }];
        Cpu { vendor, family, model, has_hypervisor: Some(true), pmus, ..Cpu::default() }
    }

    fn config(set: &EventSet, name: &str) -> u64 {
        let mut events = set.groups.iter().flat_map(|group| group.iter());
        events.find(|event| event.name == name).unwrap_or_else(|| panic!("no {name}")).config
    }

    #[test]
    fn raw_numbers_as_perf_encodes_them() {
        let skylake = choose(&cpu(Vendor::Intel, 6, 0x55)).expect("Skylake");
        assert_eq!(config(&skylake, "dtlb_load_misses.walk_active"), 0x1001008);
        assert_eq!(config(&skylake, "dtlb_store_misses.walk_completed_2m_4m"), 0x449);
        assert_eq!(config(&skylake, "itlb_misses.walk_completed_1g"), 0x885);
        assert_eq!(skylake.notes.len(), 1, "EPT in a virtual machine");
        let sapphire = choose(&cpu(Vendor::Intel, 6, 0x8f)).expect("Sapphire Rapids");
        assert_eq!(config(&sapphire, "dtlb_load_misses.walk_active"), 0x1001012);
        assert_eq!(config(&sapphire, "itlb_misses.walk_pending"), 0x1011);
        assert!(!sapphire.has(|meaning| meaning == Meaning::Walks(Instruction, Some(SIZE_1G))));
        let zen_3 = choose(&cpu(Vendor::Amd, 0x19, 0x01)).expect("Zen 3");
        assert_eq!(
            (zen_3.name, config(&zen_3, "ls_l1_d_tlb_miss.tlb_reload_2m_l2_miss")),
            ("AMD, Zen 3", 0x4045)
        );
        assert_eq!(choose(&cpu(Vendor::Amd, 25, 17)).map(|set| set.name), Ok("AMD, Zen 4"));
        assert_eq!(choose(&cpu(Vendor::Amd, 0x17, 0x31)).map(|set| set.name), Ok("AMD, Zen 2"));
        let zen_1 = choose(&cpu(Vendor::Amd, 0x17, 0x01)).expect("Zen 1");
        assert!(zen_1.has(|meaning| meaning == Meaning::Walks(Instruction, None)));
        let v3 = choose(&cpu(Vendor::Arm { implementer: 0x41 }, 0, 0xd84)).expect("V3");
        assert_eq!((v3.model, config(&v3, "stall_frontend_tlb")), (Model::Stall, 0x815c));
        let n1 = choose(&cpu(Vendor::Arm { implementer: 0x41 }, 0, 0xd0c)).expect("N1");
        assert!(n1.model == Model::Walks && !n1.has(|meaning| matches!(meaning, Meaning::Stall(_))));
    }

    #[test]
    fn every_group_begins_with_the_cycles_and_fits_four_counters() {
        for groups in [SKYLAKE, GOLDEN_COVE, ZEN_1, ZEN_2, ZEN_4, ARM_SIZES, ARM_STALLS_AND_WALKS, ARM_WALKS]
        {
            let mut seen = std::collections::HashSet::new();
            for group in groups {
                assert!(group.len() <= 4 && group[0].meaning == Meaning::Cycles, "{group:?}");
                assert!(
                    group[1..].iter().all(|event| seen.insert(event.config)),
                    "an event twice in {group:?}"
                );
            }
        }
    }

    #[test]
    fn what_is_not_known_is_a_gap_that_says_what_gives_it() {
        let mut none = cpu(Vendor::Amd, 0x19, 0x11);
        none.pmus.clear();
        let gap = choose(&none).expect_err("no PMU");
        assert!(gap.why == Why::NotInThisKernel && gap.to_string().contains("bare metal"), "{gap}");
        for unknown in
            [cpu(Vendor::Intel, 6, 0x5c), cpu(Vendor::Amd, 0x15, 2), cpu(Vendor::Other("x".into()), 0, 0)]
        {
            assert_eq!(choose(&unknown).expect_err("unknown").why, Why::NotRead);
        }
    }
}
