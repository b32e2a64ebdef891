//! Whether a fault of `known_fixes` shows on a JVM now. Sizes are such that to lose them matters: small ones are not worth a change
//! of the JDK.

use super::known_fixes::Held;
use crate::base::Bytes;
use crate::doctor::facts::GroupMemory;
use crate::doctor::{Evidence, Facts, JvmFacts};
use crate::jvm::Gc;
use crate::jvm::hotspot::version;
use crate::map::Area;
use crate::map::model::ThreadAccount;

const M: Bytes = 1 << 20;

fn held(bytes: impl Into<Option<Bytes>>, evidence: impl Into<Vec<Evidence>>) -> Option<Held> {
    Some(Held { evidence: evidence.into(), bytes: bytes.into() })
}
fn is_half(part: Bytes, whole: Bytes) -> bool {
    part.saturating_mul(2) >= whole
}

/// The flag that the fix came with is not there, and most of the stacks is resident.
pub fn stacks_resident(facts: &Facts, jvm: &JvmFacts) -> Option<Held> {
    let stacks = jvm.area(Area::Stack);
    let is_bad = facts.host.thp_mode() == "always" && jvm.flag("THPStackMitigation").is_none();
    let is_large = stacks.resident_bytes >= 64 * M && is_half(stacks.resident_bytes, stacks.committed_bytes);
    if !is_bad || !is_large {
        return None;
    }
    let threads = jvm.snapshot.os.status.threads.unwrap_or(0);
    let evidence = [
        Evidence::bytes("stacks, resident", stacks.resident_bytes, "account: stack"),
        Evidence::bytes("stacks, committed", stacks.committed_bytes, "account: stack"),
        Evidence::count("threads", threads, "/proc/PID/status"),
        Evidence::state("transparent huge pages", "always", "/sys/kernel/mm/transparent_hugepage/enabled"),
    ];
    held(stacks.resident_bytes, evidence)
}

/// The cgroup that allows less memory than the host has.
pub fn memory_limit<'a>(facts: &Facts, jvm: &'a JvmFacts) -> Option<&'a GroupMemory> {
    let group = jvm.group.as_ref().ok()?.as_ref()?;
    facts.host.memory_bytes().is_none_or(|host| group.limit_bytes < host).then_some(group)
}

/// What limits it: memory that is less than the host's, or CPUs fewer than it may run on.
pub fn limits(facts: &Facts, jvm: &JvmFacts) -> Vec<Evidence> {
    let mut evidence = Vec::new();
    if let Some(group) = memory_limit(facts, jvm) {
        evidence.push(Evidence::bytes("memory that the cgroup may use", group.limit_bytes, &group.path));
        let heap = jvm.number("MaxHeapSize");
        evidence.extend(heap.map(|heap| Evidence::bytes("largest heap", heap, "flag MaxHeapSize")));
    }
    if let Some(quota) =
        jvm.cpus.as_ref().ok().filter(|cpus| cpus.count() < cpus.allowed).and_then(|cpus| cpus.quota)
    {
        evidence.push(super::vm_threads::quota_of(quota, &jvm.bounds));
    }
    evidence
}

pub fn limits_unseen(facts: &Facts, jvm: &JvmFacts) -> Option<Held> {
    let evidence = limits(facts, jvm);
    let is_unseen = jvm.flag("UseContainerSupport").is_none() && !evidence.is_empty();
    held(None, evidence).filter(|_| is_unseen)
}

pub fn unified_limits_unseen(facts: &Facts, jvm: &JvmFacts) -> Option<Held> {
    let mut evidence = limits(facts, jvm);
    if !jvm.bounds.is_unified || evidence.is_empty() || jvm.flag("UseContainerSupport").is_none() {
        return None;
    }
    evidence.push(Evidence::state("cgroups", "version 2", "/proc/PID/cgroup"));
    held(None, evidence)
}

/// Controllers that the JVM looks up in /proc/cgroups, before it asks for the version of the cgroups: without one of them it takes
/// itself for not limited (cgroupSubsystem_linux.cpp, `CgroupSubsystemFactory::determine_type`).
const LOOKED_UP: [&str; 3] = ["cpu", "cpuacct", "memory"];
/// The first updates that know version 2 at all: others have JDK-8230305.
const KNOWS_VERSION_2: [(u32, u32); 2] = [(8, 372), (11, 16)];

pub fn controllers_unlisted(facts: &Facts, jvm: &JvmFacts) -> Option<Held> {
    let mut evidence = limits(facts, jvm);
    let listed = facts.host.v1_controllers.as_ref()?;
    let missing: Vec<&str> = LOOKED_UP.into_iter().filter(|name| !listed.contains(*name)).collect();
    let update = jvm.jvm()?.version.as_deref().ok().and_then(version::update)?;
    let is_older =
        KNOWS_VERSION_2.iter().any(|(major, first)| jvm.major() == Some(*major) && update < *first);
    let is_seen = !jvm.bounds.is_unified || !jvm.is_on("UseContainerSupport") || missing.is_empty();
    if is_seen || is_older || evidence.is_empty() {
        return None;
    }
    evidence.push(Evidence::state("not enabled for version 1", missing.join(", "), "/proc/cgroups"));
    held(None, evidence)
}

/// What Native Memory Tracking counts as Tracing is Flight Recorder's: buffers of some 20 MiB, and data of threads and classes.
pub fn recorder_leaks(_: &Facts, jvm: &JvmFacts) -> Option<Held> {
    let bytes = jvm.resident_bytes_of_parts(Area::JvmWork, "tracing");
    let is_recorder = |thread: &ThreadAccount| thread.name.starts_with("JFR Recorder");
    if bytes < 128 * M || !jvm.account.threads.iter().any(is_recorder) {
        return None;
    }
    held(bytes, [Evidence::bytes("Flight Recorder, resident", bytes, "account: jvm_work, tracing")])
}

/// 1024 shares were a CPU, and 1024 itself no limit (osContainer_linux.cpp, `OSContainer::active_processor_count`).
pub fn shares_taken_for_cpus(_: &Facts, jvm: &JvmFacts) -> Option<Held> {
    let cpus = jvm.cpus.as_ref().ok().filter(|cpus| cpus.quota.is_none())?;
    let shares = jvm.bounds.cpu_shares.filter(|shares| *shares != 1024)?;
    let is_said = jvm.number("ActiveProcessorCount").is_some_and(|count| count > 0 && count < 1 << 31);
    let counted = shares.div_ceil(1024).max(1);
    if is_said || !jvm.is_on("UseContainerSupport") || counted >= u64::from(cpus.allowed) {
        return None;
    }
    let evidence = [
        Evidence::count("cpu.shares", shares, "cgroup"),
        Evidence::count("CPUs that the JVM makes of it", counted, "osContainer_linux.cpp"),
        Evidence::count("CPUs that it may run on", cpus.allowed.into(), "/proc/PID/status: Cpus_allowed"),
    ];
    held(None, evidence)
}

pub fn outer_quota_unseen(_: &Facts, jvm: &JvmFacts) -> Option<Held> {
    let (inner, outer) = (jvm.bounds.inner_cpus?, jvm.bounds.outer_cpus?);
    let is_said = jvm.number("ActiveProcessorCount").is_some_and(|count| count > 0 && count < 1 << 31);
    if outer.count() >= inner.count() || is_said {
        return None;
    }
    let evidence = [
        Evidence::count(
            "CPUs by the cgroup of the JVM, which it sees",
            inner.count().into(),
            jvm.bounds.quota_files(),
        ),
        Evidence::count(
            "CPUs by a group above it",
            outer.count().into(),
            format!("{} of the groups above", jvm.bounds.quota_files()),
        ),
    ];
    held(None, evidence)
}

pub fn freed_memory_kept(_: &Facts, jvm: &JvmFacts) -> Option<Held> {
    let freed = jvm.area(Area::MallocFreed).resident_bytes;
    let is_large = freed >= 256 * M && freed.saturating_mul(10) >= jvm.resident_bytes();
    if jvm.flag("TrimNativeHeapInterval").is_some() || !is_large {
        return None;
    }
    held(freed, [Evidence::bytes("malloc-then-freed, resident", freed, "account: malloc_freed")])
}

pub fn heap_not_returned(_: &Facts, jvm: &JvmFacts) -> Option<Held> {
    let used = jvm.jvm()?.heap.as_ref().ok()?.used_bytes.clone().ok()?;
    let resident = jvm.area(Area::JavaHeap).resident_bytes;
    // No release gives back what -Xms asks for.
    let unused = resident.saturating_sub(used.max(jvm.number("InitialHeapSize").unwrap_or(0)));
    if jvm.gc()? != Gc::G1 || unused < 512 * M || !is_half(unused, resident) {
        return None;
    }
    let evidence = [
        Evidence::bytes("heap, resident", resident, "account: java_heap"),
        Evidence::bytes("heap that objects use", used, "the collector's own sums"),
    ];
    held(unused, evidence)
}

pub fn metaspace_not_returned(_: &Facts, jvm: &JvmFacts) -> Option<Held> {
    let used = jvm.jvm()?.classes.as_ref().ok()?.metaspace_used_bytes.clone().ok()?;
    let resident = jvm.area(Area::ClassMetadata).resident_bytes;
    let unused = resident.saturating_sub(used);
    if unused < 64 * M || unused.saturating_mul(3) < resident {
        return None;
    }
    let evidence = [
        Evidence::bytes("class metadata, resident", resident, "account: class_metadata"),
        Evidence::bytes("class metadata in use", used, "perf memory: sun.gc.metaspace.used"),
    ];
    held(unused, evidence)
}

pub fn two_bitmaps(_: &Facts, jvm: &JvmFacts) -> Option<Held> {
    let bitmaps = jvm.resident_bytes_of_parts(Area::Gc, "bitmap");
    if jvm.gc()? != Gc::G1 || bitmaps < 128 * M {
        return None;
    }
    held(bitmaps / 2, [Evidence::bytes("both mark bitmaps, resident", bitmaps, "account: gc, mark bitmap")])
}

pub fn heap_counted_thrice(_: &Facts, jvm: &JvmFacts) -> Option<Held> {
    let totals = &jvm.account.totals;
    if jvm.gc()? != Gc::Z || totals.aliased_bytes < 256 * M {
        return None;
    }
    let evidence = [
        Evidence::bytes("counted again by RSS", totals.aliased_bytes, "account: aliased"),
        Evidence::bytes("really resident", totals.resident_bytes, "account"),
    ];
    held(None, evidence)
}

pub fn many_symbols(_: &Facts, jvm: &JvmFacts) -> Option<Held> {
    let symbols = jvm.resident_bytes_of_parts(Area::JvmWork, "symbols");
    let evidence = [Evidence::bytes("symbols, resident", symbols, "account: jvm_work, symbols")];
    held(symbols, evidence).filter(|_| symbols >= 256 * M)
}

pub fn large_compilation(_: &Facts, jvm: &JvmFacts) -> Option<Held> {
    let work = jvm.area(Area::JitWork).resident_bytes;
    let evidence = [Evidence::bytes("work of the compilers, resident", work, "account: jit_work")];
    held(work, evidence).filter(|_| work >= 512 * M)
}

/// Pre-touching by a read before the write left small pages where one of 2 MiB could have been.
pub fn pretouched_small(facts: &Facts, jvm: &JvmFacts) -> Option<Held> {
    let heap = jvm.area(Area::JavaHeap);
    let huge: Bytes =
        heap.by_page_size.range(crate::os::machine::huge_page()..).map(|(_, bytes)| *bytes).sum();
    let small = heap.resident_bytes.saturating_sub(huge);
    let asked = jvm.is_on("UseTransparentHugePages") || facts.host.thp_mode() == "always";
    if !jvm.is_on("AlwaysPreTouch") || !asked || small < 256 * M || !is_half(small, heap.resident_bytes) {
        return None;
    }
    let evidence = [
        Evidence::bytes("heap on small pages", small, "account: page sizes"),
        Evidence::bytes("heap on huge pages", huge, "account: page sizes"),
        Evidence::state("AlwaysPreTouch", "true", "flag of the VM"),
    ];
    held(None, evidence)
}
