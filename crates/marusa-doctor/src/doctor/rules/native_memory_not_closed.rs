//! A Java class that must be closed, and whose many instances hold much native memory: Inflater and Deflater without end(), objects
//! of RocksDB without close(). One instance with many blocks, such as a cache, is not meant. Judged where the holders were read.

use crate::base::printable::escaped;
use crate::base::{Bytes, counted, human};
use crate::doctor::{Cost, Evidence, Facts, Finding, JvmFacts, Level, Remedy};
use crate::jvm::Held;

const WORTH_BYTES: Bytes = 32 << 20;
const WORTH_BLOCKS: u64 = 10_000;
/// Instances: each field has the address of one block.
const WORTH_INSTANCES: u64 = 1_000;

/// Whether a holder is meant.
type IsOf = fn(&str) -> bool;

/// What a class is known by, and how it is closed. Since JDK 9 the address is in a class within Inflater or Deflater, before in
/// ZStreamRef (java.util.zip).
const MUST_BE_CLOSED: [(IsOf, &str); 3] = [
    (
        |name| ["java.util.zip.Inflater", "java.util.zip.Deflater"].iter().any(|class| is_of(name, class)),
        "call end() on each Inflater and Deflater, or close the stream that made it; a collection frees unused ones, \
         but nothing starts one for native memory",
    ),
    (
        |name| is_of(name, "java.util.zip.ZStreamRef"),
        "call end() on each Inflater and Deflater, or close the stream that made it",
    ),
    (
        |name| name.ends_with(".nativeHandle_"),
        "close each of them, best with try-with-resources: ReadOptions, WriteOptions, Slice, RocksIterator and the like are not \
         freed by a collection",
    ),
];

/// "java.util.zip.Inflater$InflaterZStreamRef.address" is of java.util.zip.Inflater.
fn is_of(holder: &str, class: &str) -> bool {
    holder.strip_prefix(class).is_some_and(|rest| rest.starts_with(['$', '.']))
}

/// How the objects of a holder are closed; `None`: it is not of a class that must be.
pub fn advice(holder: &str) -> Option<&'static str> {
    MUST_BE_CLOSED.iter().find(|(is_it, _)| is_it(holder)).map(|(_, advice)| *advice)
}

pub(super) fn find(_: &Facts, jvm: &JvmFacts) -> Vec<Finding> {
    let finding = |held: &Held| {
        let remedy = advice(&held.holder)?;
        let instances = held.direct_blocks.unwrap_or(0);
        if held.bytes < WORTH_BYTES || held.blocks < WORTH_BLOCKS || instances < WORTH_INSTANCES {
            return None;
        }
        let name = escaped(&held.holder);
        let title = format!(
            "{} hold {} through {name}: are they closed?",
            counted(instances, "instance"),
            human(held.bytes)
        );
        let evidence = [
            Evidence::bytes(format!("held by {name}"), held.bytes, "marusa map PID --by holder"),
            Evidence::count("blocks of malloc", held.blocks, "marusa map PID --by holder"),
            Evidence::count("of them in the field itself", instances, "the Java heap"),
        ];
        let remedies = [Remedy::Advice(remedy.to_string()), Remedy::command("jcmd PID GC.class_histogram")];
        Some(
            Finding::on_jvm(jvm.pid, Level::Warn, title, evidence, remedies).costing(Cost::bytes(held.bytes)),
        )
    };
    jvm.account.holders.iter().flatten().filter_map(finding).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::facts::made_up::{M, healthy_jvm, held};

    fn is_found(holder: &str, bytes: Bytes, blocks: u64, instances: u64) -> bool {
        let mut jvm = healthy_jvm();
        jvm.account.holders = Some(vec![held(holder, bytes, blocks, instances)]);
        !find(&Facts::default(), &jvm).is_empty()
    }

    #[test]
    fn from_32_mib_10_000_blocks_and_1_000_instances_on() {
        let name = "java.util.zip.Inflater$InflaterZStreamRef.address";
        assert!(is_found(name, 32 * M, 10_000, 1_000));
        assert!(!is_found(name, 32 * M - 1, 10_000, 1_000));
        assert!(!is_found(name, 32 * M, 9_999, 1_000));
        assert!(!is_found("org.rocksdb.LRUCache.nativeHandle_", 256 * M, 60_000, 999), "a cache");
    }

    #[test]
    fn only_classes_that_must_be_closed() {
        for (holder, is_meant) in [
            ("java.util.zip.ZStreamRef.address", true),
            ("java.util.zip.Deflater$DeflaterZStreamRef.address", true),
            ("org.rocksdb.ReadOptions.nativeHandle_", true),
            ("java.util.zip.InflaterLike.address", false),
            ("java.nio.DirectByteBuffer.address", false),
            ("app.Handle.nativeHandle", false),
        ] {
            assert_eq!(is_found(holder, 100 * M, 20_000, 20_000), is_meant, "{holder}");
        }
        assert_eq!(find(&Facts::default(), &healthy_jvm()), [], "the holders were not read");
    }
}
