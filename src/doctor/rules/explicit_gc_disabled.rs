//! -XX:+DisableExplicitGC next to large direct buffers: at their limit java.nio asks for a collection by System.gc(), which does
//! nothing then, so buffers that are garbage stay until the heap itself needs a collection.

use super::direct_buffers_near_limit::{held, limit};
use crate::base::{Bytes, human};
use crate::doctor::facts::percent;
use crate::doctor::{Evidence, Finding, JvmFacts, Level, Remedy};

/// Less is a small part of a JVM's memory, whatever happens to it.
const HELD_BYTES_MIN: Bytes = 128 << 20;
const INFO_PERCENT: f64 = 25.0;
const WARN_PERCENT: f64 = 50.0;

pub(super) fn find(jvm: &JvmFacts) -> Option<Finding> {
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
        Evidence::bytes("in direct buffers", held, "blocks of malloc that are known to be direct buffers'"),
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
    use super::*;
    use crate::doctor::facts::made_up::{G, M, alloc, healthy_jvm, joined, set_flags, view};
    use crate::jvm::Kind;

    fn level(bytes: Bytes, flag: &str, limit: &str) -> Option<Level> {
        let mut jvm = healthy_jvm();
        view(&mut jvm).block_owners[0].kind = Kind::DirectBuffers;
        alloc(&mut jvm).in_use[1].bytes = bytes;
        let mut jvm = joined(&jvm);
        set_flags(&mut jvm, &[("DisableExplicitGC", flag), ("MaxDirectMemorySize", limit)]);
        find(&jvm).map(|finding| finding.level)
    }

    #[test]
    fn only_with_the_flag_and_much_of_the_limit() {
        assert_eq!(find(&healthy_jvm()), None);
        assert_eq!(level(G, "true", "0"), Some(Level::Warn), "half of -Xmx");
        assert_eq!(level(G - M, "true", "0"), Some(Level::Info));
        assert_eq!(level(G, "false", "0"), None);
        assert_eq!(level(512 * M, "true", "0"), Some(Level::Info));
        assert_eq!(level(511 * M, "true", "0"), None);
        assert_eq!(level(128 * M, "true", "134217728"), Some(Level::Warn));
        assert_eq!(level(127 * M, "true", "134217728"), None);
    }
}
