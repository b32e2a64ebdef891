//! Files that the program mapped, neither libraries nor archives of classes: many of them, or many bytes.

use crate::base::printable::escaped;
use crate::base::{Bytes, counted, human};
use crate::doctor::{Cost, Evidence, Finding, JvmFacts, Level, Remedy};
use crate::map::sums::group_of;
use crate::map::{Area, MemoryMap};
use crate::os::maps::Mapping;
use std::collections::{BTreeMap, HashSet};

/// A JVM has few mappings of files that are not libraries; search engines and brokers map all of their data, on purpose.
const INFO_BYTES: Bytes = 256 << 20;
const INFO_PERCENT: f64 = 25.0;
const INFO_MAPPINGS: usize = 1_000;
/// No program maps this many deleted or temporary files on purpose.
const WARN_MAPPINGS: usize = 64;
const TEMPORARY: [&str; 3] = ["/tmp/", "/var/tmp/", "/dev/shm/"];
const CODE: [&str; 6] = [".so", ".jar", ".war", ".jsa", ".mo", "/modules"];

/// Mappings of files whose paths differ in their numbers at most.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Group {
    /// Their places in the list of mappings.
    pub mappings: HashSet<usize>,
    pub resident: Bytes,
    pub reserved: Bytes,
    /// Mappings of files that are deleted, or lie in a directory for temporary files.
    pub temporary: usize,
}

pub(super) fn find(jvm: &JvmFacts) -> Option<Finding> {
    let groups = groups(&jvm.snapshot.os.mappings, &jvm.map);
    let resident: Bytes = groups.values().map(|group| group.resident).fold(0, Bytes::saturating_add);
    let mappings: usize = groups.values().map(|group| group.mappings.len()).sum();
    let (name, most) = groups.iter().max_by_key(|(_, group)| (group.resident, group.mappings.len()))?;
    let percent = jvm.percent_of_resident(resident);
    let is_large = resident >= INFO_BYTES && percent >= INFO_PERCENT;
    let level = match (is_large, mappings) {
        (true, _) if most.temporary >= WARN_MAPPINGS => Level::Warn,
        (true, _) | (_, INFO_MAPPINGS..) => Level::Info,
        _ => return None,
    };
    const SOURCE: &str = "the account: mapped_file";
    let title = format!(
        "mapped files hold {}, {percent:.0} % of what is resident: {} in {} of {}",
        human(resident),
        human(most.resident),
        counted(most.mappings.len(), "mapping"),
        escaped(name)
    );
    let evidence = [
        Evidence::bytes("mapped files, in memory", resident, SOURCE),
        Evidence::count("mappings of them", mappings as u64, "/proc/PID/maps"),
        Evidence::bytes("address space of those named above", most.reserved, SOURCE),
        Evidence::count("of them, temporary or deleted", most.temporary as u64, "/proc/PID/maps"),
    ];
    let remedies = [
        Remedy::advice(
            "a MappedByteBuffer stays mapped until it is collected, a segment until its Arena is closed: drop or close them; \
             mappings that a full collection (`jcmd PID GC.run`) leaves are held",
        ),
        Remedy::Command(format!("marusa map {} --by mapping", jvm.pid)),
    ];
    Some(Finding::on_jvm(jvm.pid, level, title, evidence, remedies).costing(Cost::bytes(resident)))
}

/// By the path without its numbers.
pub fn groups(mappings: &[Mapping], map: &MemoryMap) -> BTreeMap<String, Group> {
    let mut groups: BTreeMap<String, Group> = BTreeMap::new();
    for span in &map.spans {
        let Some(mapping) = mappings.get(span.mapping).filter(|mapping| is_data(mapping)) else { continue };
        let shares = span.shares.iter().filter(|share| map.owners[share.owner].area == Area::MappedFile);
        for share in shares {
            let group = groups.entry(group_of(mapping.file_path())).or_default();
            group.resident = group.resident.saturating_add(share.figures.resident);
            group.reserved = group.reserved.saturating_add(share.figures.reserved);
            if group.mappings.insert(span.mapping) && is_temporary(mapping) {
                group.temporary += 1;
            }
        }
    }
    groups
}

fn is_data(mapping: &Mapping) -> bool {
    let path = mapping.file_path();
    mapping.is_file() && !path.contains(".so.") && !CODE.iter().any(|end| path.ends_with(end))
}

fn is_temporary(mapping: &Mapping) -> bool {
    mapping.is_deleted() || TEMPORARY.iter().any(|start| mapping.path.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::facts::made_up::{M, healthy_jvm, set_resident};

    fn with(count: usize, bytes: Bytes, path: impl Fn(usize) -> String) -> Option<Finding> {
        let mut jvm = healthy_jvm();
        for number in 0..count {
            set_resident(&mut jvm, Area::MappedFile, bytes);
            let mapping = Mapping { path: path(number), inode: 7, ..jvm.snapshot.os.mappings[0].clone() };
            jvm.snapshot.os.mappings.push(mapping);
            jvm.map.spans.last_mut().expect("made up").mapping = jvm.snapshot.os.mappings.len() - 1;
        }
        jvm.account.totals.resident_bytes = 1024 * M;
        // `set_resident` leaves the last one alone.
        for (span, owner) in jvm.map.spans.iter_mut().rev().zip((0..jvm.map.owners.len()).rev()).take(count) {
            span.shares[0].owner = owner;
            span.shares[0].figures.resident = bytes;
        }
        find(&jvm)
    }

    #[test]
    fn files_of_one_name_are_one_group() {
        assert_eq!(find(&healthy_jvm()), None);
        let data = |number: usize| format!("/data/x-{number}.dat");
        assert_eq!(with(63, 4 * M, data), None, "252 MiB");
        let finding = with(64, 4 * M, data).expect("256 MiB");
        assert_eq!(finding.level, Level::Info);
        assert!(finding.title.ends_with("256.0 MiB in 64 mappings of /data/x-#.dat"), "{}", finding.title);
        let level = |count, path: fn(usize) -> String| with(count, 8 * M, path).map(|finding| finding.level);
        assert_eq!(level(64, |number| format!("/tmp/x-{number}.dat")), Some(Level::Warn));
        assert_eq!(level(63, |number| format!("/tmp/x-{number}.dat")), Some(Level::Info));
        assert_eq!(level(64, |number| format!("/data/{number} (deleted)")), Some(Level::Warn));
        assert_eq!(level(64, |number| format!("/opt/lib{number}.so")), None);
    }
}
