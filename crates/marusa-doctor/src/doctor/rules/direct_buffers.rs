//! Direct buffers against the limit that java.nio has for them.

use crate::base::{Bytes, human};
use crate::doctor::facts::percent;
use crate::doctor::{Evidence, Finding, JvmFacts, Level, Remedy};
use crate::map::Area;

/// From here on a burst of buffers meets the limit.
const WARN_PERCENT: f64 = 90.0;
/// From here on most allocations do: each first runs System.gc() and sleeps up to half a second (java.nio.Bits).
const CRITICAL_PERCENT: f64 = 98.0;
const ROUND_BYTES: Bytes = 16 << 20;
const BLOCKS: &str = "blocks of malloc that are known to be direct buffers'";

/// Direct buffers near the limit that java.nio has for them: past it, allocateDirect collects, waits and throws.
pub(super) fn near_limit(jvm: &JvmFacts) -> Option<Finding> {
    let (limit, limit_of) = limit(jvm)?;
    let (buffers, held) = held(jvm)?;
    let used = percent(held, limit);
    if used < WARN_PERCENT {
        return None;
    }
    let level = if used >= CRITICAL_PERCENT { Level::Critical } else { Level::Warn };
    let more = (limit + limit / 2).next_multiple_of(ROUND_BYTES) >> 20;
    let title = format!(
        "direct buffers hold {} of the {} that they may, {used:.0} %: past it each allocation runs a full collection, waits, \
         and may throw OutOfMemoryError",
        human(held),
        human(limit)
    );
    let evidence = [
        Evidence::bytes("in direct buffers", held, BLOCKS),
        Evidence::count("blocks", buffers, BLOCKS),
        Evidence::bytes("limit", limit, limit_of),
        Evidence::percent("of the limit", used, "both"),
    ];
    let remedies = [
        Remedy::JvmOption(format!("-XX:MaxDirectMemorySize={more}m")),
        Remedy::advice(
            "find who keeps them: a cache without a bound, or buffers that wait for a collection that a large heap seldom runs",
        ),
    ];
    Some(Finding::on_jvm(jvm.pid, level, title, evidence, remedies))
}

/// And which option it comes from.
fn limit(jvm: &JvmFacts) -> Option<(Bytes, &'static str)> {
    Some(match jvm.number("MaxDirectMemorySize")? {
        0 => (jvm.heap_max_bytes()?, "-Xmx, as -XX:MaxDirectMemorySize is not set"),
        bytes => (bytes, "-XX:MaxDirectMemorySize"),
    })
}

/// Blocks and bytes that are known to belong to direct buffers; `None`: none are known. Memory of `Unsafe.allocateMemory` does
/// not count against the limit. That of `java.lang.foreign` arenas does, but cannot be distinguished from it, so this is the least.
fn held(jvm: &JvmFacts) -> Option<(u64, Bytes)> {
    let owners = jvm.account.malloc.as_ref()?.owners.as_ref()?;
    let of_buffers = owners.iter().filter(|owner| owner.area == Area::DirectBuffers);
    let sum = of_buffers.fold((0, 0), |(blocks, bytes), owner| (blocks + owner.blocks, bytes + owner.bytes));
    Some(sum).filter(|(blocks, _)| *blocks > 0)
}

/// Less is a small part of a JVM's memory, whatever happens to it.
const HELD_BYTES_MIN: Bytes = 128 << 20;

/// -XX:+DisableExplicitGC next to large direct buffers: at their limit java.nio asks for a collection by System.gc(), which does
/// nothing then, so buffers that are garbage stay until the heap itself needs a collection.
pub(super) fn explicit_gc_disabled(jvm: &JvmFacts) -> Option<Finding> {
    const INFO_PERCENT: f64 = 25.0;
    const WARN_PERCENT: f64 = 50.0;
    let (limit, limit_of) = limit(jvm)?;
    let (_, held) = held(jvm)?;
    let used = percent(held, limit);
    if !jvm.is_on("DisableExplicitGC") || held < HELD_BYTES_MIN || used < INFO_PERCENT {
        return None;
    }
    let classes = jvm.jvm().and_then(|view| view.classes.as_ref().ok());
    let collections = classes.and_then(|classes| classes.old_collections).map(|count| {
        Evidence::count("collections of the whole heap", count, "performance counters of the VM")
    });
    let evidence = [
        Evidence::state("DisableExplicitGC", "true", "flag of the VM"),
        Evidence::bytes("in direct buffers", held, BLOCKS),
        Evidence::bytes("limit", limit, limit_of),
        Evidence::percent("of the limit", used, "both"),
    ];
    let level = if used >= WARN_PERCENT { Level::Warn } else { Level::Info };
    let title = format!(
        "-XX:+DisableExplicitGC, and direct buffers hold {} of the {} that they may: at the limit java.nio cannot have \
         garbage collected, and throws OutOfMemoryError though buffers are unused",
        human(held),
        human(limit)
    );
    let evidence = evidence.into_iter().chain(collections);
    let remedies = [
        Remedy::jvm_option("-XX:-DisableExplicitGC"),
        Remedy::jvm_option("-XX:+ExplicitGCInvokesConcurrent"),
    ];
    Some(Finding::on_jvm(jvm.pid, level, title, evidence, remedies))
}

#[cfg(test)]
mod tests {
    mod near_limit {
        use super::super::*;
        use crate::doctor::facts::made_up::{G, M, alloc, healthy_jvm, joined, set_flags, view};
        use crate::jvm::Kind;

        fn with_buffers(bytes: Bytes) -> JvmFacts {
            with_blocks(Kind::DirectBuffers, bytes)
        }

        fn with_blocks(kind: Kind, bytes: Bytes) -> JvmFacts {
            let mut jvm = healthy_jvm();
            view(&mut jvm).block_owners[0].kind = kind;
            alloc(&mut jvm).in_use[1].bytes = bytes;
            joined(&jvm)
        }

        fn level(jvm: &JvmFacts) -> Option<Level> {
            near_limit(jvm).map(|finding| finding.level)
        }

        #[test]
        fn against_the_option_or_else_the_largest_heap() {
            assert_eq!(level(&healthy_jvm()), None);
            assert_eq!(level(&with_buffers(G)), None);
            assert_eq!(level(&with_buffers(2 * G - 2 * G / 10 - M)), None);
            assert_eq!(level(&with_buffers(2 * G - 2 * G / 11)), Some(Level::Warn));
            assert_eq!(level(&with_buffers(2 * G)), Some(Level::Critical));
            assert_eq!(level(&with_blocks(Kind::UnsafeMemory, 2 * G)), None, "the limit is not for these");
            let mut jvm = with_buffers(61 * M);
            set_flags(&mut jvm, &[("MaxDirectMemorySize", "67108864")]);
            let finding = near_limit(&jvm).expect("95 %");
            assert_eq!(finding.level, Level::Warn);
            assert_eq!(finding.remedies[0].text(), "-XX:MaxDirectMemorySize=96m");
        }
    }

    mod explicit_gc {
        use super::super::*;
        use crate::doctor::facts::made_up::{G, M, alloc, healthy_jvm, joined, set_flags, view};
        use crate::jvm::Kind;

        fn level(bytes: Bytes, flag: &str, limit: &str) -> Option<Level> {
            let mut jvm = healthy_jvm();
            view(&mut jvm).block_owners[0].kind = Kind::DirectBuffers;
            alloc(&mut jvm).in_use[1].bytes = bytes;
            let mut jvm = joined(&jvm);
            set_flags(&mut jvm, &[("DisableExplicitGC", flag), ("MaxDirectMemorySize", limit)]);
            explicit_gc_disabled(&jvm).map(|finding| finding.level)
        }

        #[test]
        fn only_with_the_flag_and_much_of_the_limit() {
            assert_eq!(explicit_gc_disabled(&healthy_jvm()), None);
            assert_eq!(level(G, "true", "0"), Some(Level::Warn), "half of -Xmx");
            assert_eq!(level(G - M, "true", "0"), Some(Level::Info));
            assert_eq!(level(G, "false", "0"), None);
            assert_eq!(level(512 * M, "true", "0"), Some(Level::Info));
            assert_eq!(level(511 * M, "true", "0"), None);
            assert_eq!(level(128 * M, "true", "134217728"), Some(Level::Warn));
            assert_eq!(level(127 * M, "true", "134217728"), None);
        }
    }
}
