//! Resident memory with no known owner: neither the VM, nor malloc's owners, nor a library that points to it.

use crate::base::printable::escaped;
use crate::base::{Bytes, Range, human};
use crate::doctor::{Cost, Evidence, Finding, JvmFacts, Level, Remedy};
use crate::jvm::JvmView;
use crate::map::Area;
use crate::map::malloc::owners::OWNER_UNKNOWN;
use crate::os::maps::Mapping;
use std::collections::BTreeMap;

pub const WORTH_BYTES: Bytes = 64 << 20;
pub const WORTH_PERCENT: f64 = 5.0;
/// Blocks of malloc whose owner is not known are mostly libraries': a tenth of the resident memory is not unusual there.
const BLOCKS_PERCENT: f64 = 10.0;
const SHOWN: usize = 3;
const THREADS_SHOWN: usize = 4;
const LIBRARIES_SHOWN: usize = 6;
/// Starts of the names of libraries that every JVM has, outside of its JDK, and that keep little memory.
const OF_THE_SYSTEM: [&str; 12] = [
    "ld-",
    "ld.",
    "libc.",
    "libdl.",
    "libgcc_s.",
    "libm.",
    "libnss_",
    "libpthread.",
    "libresolv.",
    "librt.",
    "libstdc++.",
    "libz.",
];

pub(super) fn find(jvm: &JvmFacts) -> Option<Finding> {
    let unattributed = jvm.area(Area::Unattributed).resident_bytes;
    let blocks = jvm.resident_bytes_of_parts(Area::MallocUnknown, OWNER_UNKNOWN);
    let is_large = |bytes, least| bytes >= WORTH_BYTES && jvm.percent_of_resident(bytes) >= least;
    let (mappings, malloc) = (is_large(unattributed, WORTH_PERCENT), is_large(blocks, BLOCKS_PERCENT));
    if !mappings && !malloc {
        return None;
    }
    let bytes = if mappings { unattributed } else { 0 } + if malloc { blocks } else { 0 };
    let mut evidence = vec![
        Evidence::bytes("unattributed, in memory", unattributed, "the account: unattributed"),
        Evidence::bytes(format!("{OWNER_UNKNOWN}, in memory"), blocks, "the account: malloc_unknown"),
    ];
    evidence.extend(largest(jvm).into_iter().take(SHOWN).map(|(range, bytes)| {
        Evidence::bytes(
            format!("unattributed, in the mapping {:x}-{:x}", range.start.0, range.end.0),
            bytes,
            "/proc/PID/maps",
        )
    }));
    evidence.extend(libraries(jvm));
    let is_tracked = jvm.jvm().is_some_and(|view| view.nmt.as_deref().is_ok_and(|level| level != "off"));
    let mut remedies = vec![Remedy::advice(
        "memory of a native library, of Unsafe, or of java.lang.foreign: whether it grows, `marusa record PID` shows",
    )];
    if malloc {
        evidence.extend(largest_arena(jvm));
        let nmt = if is_tracked { "on" } else { "off: blocks have no owner's tag" };
        evidence.push(Evidence::state("Native Memory Tracking", nmt, "the VM"));
        remedies.push(Remedy::Command(format!("marusa map {} --by arena", jvm.pid)));
    }
    if mappings {
        remedies.push(Remedy::Command(format!("marusa map {} --by mapping", jvm.pid)));
    }
    if malloc && !is_tracked {
        remedies.push(Remedy::jvm_option("-XX:NativeMemoryTracking=summary"));
    }
    let title = format!(
        "of {}, {:.0} % of what is resident, it is not known whose they are",
        human(bytes),
        jvm.percent_of_resident(bytes)
    );
    Some(Finding::on_jvm(jvm.pid, Level::Info, title, evidence, remedies).costing(Cost::bytes(bytes)))
}

/// File names of the loaded libraries of neither the JDK nor the system.
pub fn foreign_libraries(jvm: &JvmFacts) -> Vec<&str> {
    let home = jvm.jvm().and_then(JvmView::java_home).map(|home| format!("{home}/"));
    let is_others = |mapping: &&Mapping| {
        let name = mapping.file_name();
        let is_library = mapping.is_file() && mapping.rights.execute && name.contains(".so");
        let is_jdks = home.as_ref().is_some_and(|home| mapping.path.starts_with(home.as_str()));
        is_library && !is_jdks && !OF_THE_SYSTEM.iter().any(|start| name.starts_with(start))
    };
    let mut names: Vec<&str> = Vec::new();
    for mapping in jvm.snapshot.os.mappings.iter().filter(is_others) {
        if !names.contains(&mapping.file_name()) {
            names.push(mapping.file_name());
        }
    }
    names
}

/// One of these libraries made the memory, or the program did.
fn libraries(jvm: &JvmFacts) -> Option<Evidence> {
    let mut names = foreign_libraries(jvm);
    let others = names.len().saturating_sub(LIBRARIES_SHOWN);
    names.truncate(LIBRARIES_SHOWN);
    let others = if others > 0 { format!(" and {others} more") } else { String::new() };
    let names = names.join(", ");
    (!names.is_empty()).then(|| {
        Evidence::state(
            "loaded libraries of neither the JDK nor the system",
            format!("{}{others}", escaped(&names)),
            "/proc/PID/maps",
        )
    })
}

/// The arena that has the most in use, and the threads that allocate from it: one of them made the blocks, or one that ended.
fn largest_arena(jvm: &JvmFacts) -> Option<Evidence> {
    let arenas = jvm.account.malloc.as_ref()?.arenas.iter();
    let (arena, bytes) = arenas
        .filter_map(|arena| Some((arena, arena.sums.in_use_resident_bytes?)))
        .max_by_key(|(_, bytes)| *bytes)?;
    let name = |tid: &i32| {
        jvm.account.threads.iter().find(|thread| thread.tid == *tid).map(|thread| thread.name.as_str())
    };
    let mut names: Vec<&str> = arena.threads.iter().rev().filter_map(name).collect();
    let others = names.len().saturating_sub(THREADS_SHOWN);
    names.truncate(THREADS_SHOWN);
    let others = if others > 0 { format!(" and {others} more") } else { String::new() };
    let threads = format!("{}: {}{others}", human(bytes), escaped(&names.join(", ")));
    Some(Evidence::state(
        format!("most in use: {}, of threads", arena.title()),
        threads,
        "walk of malloc's arenas",
    ))
}

/// The mappings that hold the most of it.
fn largest(jvm: &JvmFacts) -> Vec<(Range, Bytes)> {
    let mut sums: BTreeMap<usize, Bytes> = BTreeMap::new();
    for span in &jvm.map.spans {
        let shares =
            span.shares.iter().filter(|share| jvm.map.owners[share.owner].area == Area::Unattributed);
        let bytes: Bytes = shares.map(|share| share.figures.resident).fold(0, Bytes::saturating_add);
        if bytes > 0 {
            *sums.entry(span.mapping).or_default() += bytes;
        }
    }
    let range = |(index, bytes): (usize, Bytes)| Some((jvm.snapshot.os.mappings.get(index)?.range, bytes));
    let mut sums: Vec<(Range, Bytes)> = sums.into_iter().filter_map(range).collect();
    sums.sort_by_key(|(range, bytes)| (std::cmp::Reverse(*bytes), *range));
    sums
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::facts::made_up::{M, healthy_jvm, joined, recount, set_resident, view};
    use crate::os::maps::parse_line;

    #[test]
    fn mappings_without_an_owner() {
        assert_eq!(find(&healthy_jvm()), None);
        let with = |bytes| {
            let mut jvm = healthy_jvm();
            set_resident(&mut jvm, Area::Unattributed, bytes);
            find(&jvm).map(|finding| finding.level)
        };
        assert_eq!(with(50 * M), None);
        assert_eq!(with(100 * M), Some(Level::Info));
        let mut large = healthy_jvm();
        set_resident(&mut large, Area::Unattributed, 64 * M);
        large.account.totals.resident_bytes = 64 * M * 21;
        assert_eq!(find(&large), None, "under a twentieth");
    }

    #[test]
    fn libraries_of_others_are_named() {
        let mut jvm = healthy_jvm();
        set_resident(&mut jvm, Area::Unattributed, 100 * M);
        let named = |jvm: &JvmFacts| {
            let finding = find(jvm).expect("100 MiB");
            let evidence = finding.evidence.into_iter().find(|one| one.what.starts_with("loaded libraries"));
            evidence.map(|one| one.value)
        };
        assert_eq!(named(&jvm), None, "the JDK's own");
        for (at, path) in
            ["/lib/libc.so.6", "/tmp/librocksdbjni7.so", "/tmp/librocksdbjni7.so"].iter().enumerate()
        {
            let line = format!("7fff000{at}0000-7fff000{at}1000 r-xp 00000000 fe:00 9{at} {path}");
            jvm.snapshot.os.mappings.push(parse_line(&line).expect("a line"));
        }
        assert_eq!(named(&jvm).as_deref(), Some("librocksdbjni7.so"));
    }

    #[test]
    fn blocks_without_an_owner_ask_for_tracking() {
        let mut jvm = healthy_jvm();
        view(&mut jvm).block_owners.clear();
        let mut jvm = joined(&jvm);
        assert_eq!(find(&jvm), None, "50 MiB");
        jvm.map.spans.extend(jvm.map.spans.clone());
        recount(&mut jvm);
        jvm.account.totals.resident_bytes = 900 * M;
        let finding = find(&jvm).expect("100 MiB");
        let texts: Vec<&str> = finding.remedies.iter().map(Remedy::text).collect();
        assert_eq!(texts[1..], ["marusa map 4711 --by arena", "-XX:NativeMemoryTracking=summary"]);
        let arena = finding.evidence.iter().find(|one| one.what.starts_with("most in use: main arena"));
        assert!(arena.is_some_and(|arena| arena.value.contains("http-")), "{:?}", finding.evidence);
    }
}
