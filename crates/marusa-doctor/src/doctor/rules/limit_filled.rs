//! Memory outside of the JVM that fills a limit: files on tmpfs, buffers of sockets, the kernel's slab, page cache. By the figures
//! of the cgroup alone; `marusa container` names the files and processes.

use crate::base::{Bytes, human};
use crate::doctor::facts::{GroupMemory, percent};
use crate::doctor::{Cost, Evidence, Facts, Finding, JvmFacts, Level, Remedy};
use crate::map::Area;

/// Percentage of the limit: what a JVM takes for its heap by default (MaxRAMPercentage), so that this amount matters.
const PART_PERCENT: f64 = 25.0;
/// A small limit is filled by little.
const BYTES_MIN: Bytes = 64 << 20;

/// Something that fills a limit.
struct Filler {
    what: &'static str,
    bytes: Bytes,
    /// Rows of memory.stat.
    source: &'static str,
    level: Level,
    advice: &'static str,
}

pub(super) fn find(_: &Facts, jvm: &JvmFacts) -> Vec<Finding> {
    let Ok(Some(group)) = &jvm.group else { return Vec::new() };
    let is_much = |filler: &Filler| {
        filler.bytes >= BYTES_MIN && percent(filler.bytes, group.limit_bytes) >= PART_PERCENT
    };
    fillers(jvm, group).into_iter().filter(is_much).map(|filler| finding(jvm, group, &filler)).collect()
}

fn fillers(jvm: &JvmFacts, group: &GroupMemory) -> [Filler; 4] {
    let row = |name: &str| group.rows.get(name).copied().unwrap_or(0);
    let version_1 = group.is_version_1();
    let shmem = row("shmem");
    let tmpfs = Filler {
        what: "files on tmpfs and shared memory",
        bytes: shmem.saturating_sub(heap_in_shared_memory(jvm)),
        source: "memory.stat: shmem, less the heap of ZGC",
        level: Level::Warn,
        advice: "delete them, or bound the mount (size=, emptyDir's sizeLimit): they are never dropped, and outlive a restart",
    };
    let sockets = Filler {
        what: "buffers of sockets",
        bytes: if version_1 { 0 } else { row("sock") },
        source: "memory.stat: sock",
        level: Level::Warn,
        advice: "read what arrives, close idle connections, or lower net.ipv4.tcp_rmem and tcp_wmem",
    };
    // Version 1 has one sum for all of the kernel's memory, most of which may be reclaimable.
    let (slab, level, source) = match version_1 {
        true => (row("kernel"), Level::Info, "memory.kmem.usage_in_bytes"),
        false => {
            let (yes, no) = (row("slab_reclaimable"), row("slab_unreclaimable"));
            (yes.saturating_add(no), if no > yes { Level::Warn } else { Level::Info }, "memory.stat: slab")
        }
    };
    let slab = Filler {
        what: "slab of the kernel (dentries and inodes, mostly)",
        bytes: slab,
        source,
        level,
        advice: "look for names that are looked up and do not exist (strace -fe trace=file), and for short-lived files",
    };
    let file = row(if version_1 { "cache" } else { "file" });
    let cache = Filler {
        what: "page cache",
        bytes: file.saturating_sub(shmem).saturating_sub(group.reclaimable_bytes),
        source: "memory.stat: file, less shmem and inactive_file",
        level: Level::Info,
        advice: "it is dropped before anything is killed, but Kubernetes counts it: judge the limit by anonymous memory",
    };
    [tmpfs, sockets, slab, cache]
}

/// ZGC's heap is a memory file, which the kernel counts as shared memory.
fn heap_in_shared_memory(jvm: &JvmFacts) -> Bytes {
    let heap = jvm.area(Area::JavaHeap);
    heap.resident_bytes.saturating_sub(heap.anonymous_bytes.unwrap_or(heap.resident_bytes))
}

fn finding(jvm: &JvmFacts, group: &GroupMemory, filler: &Filler) -> Finding {
    let share = percent(filler.bytes, group.limit_bytes);
    let title = format!(
        "{}: {} of the limit of {}, outside of the JVM",
        filler.what,
        human(filler.bytes),
        human(group.limit_bytes)
    );
    let evidence = [
        Evidence::bytes(filler.what, filler.bytes, filler.source),
        Evidence::percent("of the limit", share, group.limit_file.clone()),
        Evidence::bytes("taken, less what could be dropped at once", group.held_bytes(), group.path.clone()),
    ];
    let remedies =
        [Remedy::Command(format!("marusa container {}", jvm.pid)), Remedy::Advice(filler.advice.to_string())];
    Finding::on_jvm(jvm.pid, filler.level, title, evidence, remedies).costing(Cost::bytes(filler.bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::facts::made_up::{M, healthy_jvm};

    fn of(version_1: bool, rows: &[(&str, Bytes)]) -> Vec<(Level, Bytes)> {
        let mut jvm = healthy_jvm();
        let file = if version_1 { "/c/memory.limit_in_bytes" } else { "/c/memory.max" };
        jvm.group = Ok(Some(GroupMemory {
            path: "/c".to_string(),
            limit_file: file.to_string(),
            limit_bytes: 1000 * M,
            reclaimable_bytes: 10 * M,
            rows: rows.iter().map(|(name, bytes)| (name.to_string(), *bytes)).collect(),
            ..GroupMemory::default()
        }));
        find(&Facts::default(), &jvm)
            .into_iter()
            .map(|finding| (finding.level, finding.cost.bytes.unwrap_or(0)))
            .collect()
    }

    #[test]
    fn a_quarter_of_the_limit_is_much() {
        assert_eq!(of(false, &[("shmem", 249 * M), ("file", 300 * M)]), []);
        assert_eq!(of(false, &[("shmem", 250 * M), ("file", 300 * M)]), [(Level::Warn, 250 * M)]);
        assert_eq!(of(false, &[("sock", 251 * M)]), [(Level::Warn, 251 * M)]);
        let slab = |yes, no| of(false, &[("slab_reclaimable", yes), ("slab_unreclaimable", no)]);
        assert_eq!(slab(200 * M, 60 * M), [(Level::Info, 260 * M)]);
        assert_eq!(slab(60 * M, 200 * M), [(Level::Warn, 260 * M)]);
        assert_eq!(slab(60 * M, 100 * M), []);
        assert_eq!(of(false, &[("file", 259 * M)]), [], "inactive pages are dropped at once");
        assert_eq!(of(false, &[("file", 260 * M)]), [(Level::Info, 250 * M)]);
    }

    #[test]
    fn version_1_and_a_limit_that_is_small() {
        assert_eq!(
            of(true, &[("kernel", 300 * M), ("cache", 400 * M), ("shmem", 100 * M)]),
            [(Level::Info, 300 * M), (Level::Info, 290 * M)]
        );
        assert_eq!(of(true, &[("sock", 900 * M)]), [], "outside of the figure");
        let mut jvm = healthy_jvm();
        let rows = [("shmem".to_string(), 40 * M)].into();
        let group = GroupMemory { limit_bytes: 100 * M, rows, ..GroupMemory::default() };
        jvm.group = Ok(Some(group));
        assert_eq!(find(&Facts::default(), &jvm), []);
    }
}
