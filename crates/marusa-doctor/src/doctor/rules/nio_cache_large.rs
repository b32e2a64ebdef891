//! The JDK keeps a temporary direct buffer for each thread that reads or writes through a buffer in the heap, as large as the
//! largest that the thread needed, unless -Djdk.nio.maxCachedBufferSize says otherwise. Judged where the buffers were read.

use crate::base::{Bytes, human};
use crate::doctor::{Cost, Evidence, Finding, JvmFacts, Level, Remedy};
use crate::jvm::{BufferKind, BufferRow};

pub const PROPERTY: &str = "-Djdk.nio.maxCachedBufferSize";
const INFO_BYTES: Bytes = 64 << 20;
const WARN_BYTES: Bytes = 256 << 20;
/// Buffers of this size are what the property is for: ordinary reads and writes need less.
const LARGE_BYTES: Bytes = 1 << 20;

pub(super) fn find(jvm: &JvmFacts) -> Option<Finding> {
    let rows = jvm.account.buffers.as_ref()?.iter().filter(|row| row.kind == BufferKind::NioCache);
    let rows: Vec<&BufferRow> = rows.collect();
    let bytes = rows.iter().fold(0, |sum: Bytes, row| sum.saturating_add(row.bytes));
    let count = rows.iter().fold(0, |sum: u64, row| sum.saturating_add(row.count));
    let arguments = &jvm.snapshot.os.process.arguments;
    let is_set = arguments.iter().any(|argument| argument.starts_with(PROPERTY));
    if is_set || bytes < INFO_BYTES || bytes / count.max(1) < LARGE_BYTES {
        return None;
    }
    let largest = rows.iter().max_by_key(|row| row.bytes)?;
    let holders = largest.holder.rsplit_once("of thread ").map_or("ended", |(_, threads)| threads);
    let level = if bytes > WARN_BYTES { Level::Warn } else { Level::Info };
    let title = format!(
        "threads {holders}: {} of temporary direct buffers, all threads {}: jdk.nio.maxCachedBufferSize is not set",
        human(largest.bytes),
        human(bytes)
    );
    let evidence = [
        Evidence::bytes("temporary direct buffers of threads", bytes, "marusa map PID --by buffer"),
        Evidence::count("buffers", count, "marusa map PID --by buffer"),
    ];
    let remedies = [
        Remedy::JvmOption(format!("{PROPERTY}=262144")),
        Remedy::advice("or let these threads read and write direct buffers of their own"),
    ];
    Some(Finding::on_jvm(jvm.pid, level, title, evidence, remedies).costing(Cost::bytes(bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::facts::made_up::{M, healthy_jvm};

    fn found(bytes: Bytes, count: u64, option: &str) -> Option<Finding> {
        let mut jvm = healthy_jvm();
        jvm.account.buffers = Some(vec![BufferRow {
            kind: BufferKind::NioCache,
            holder: "sun.nio.ch.Util$BufferCache of thread io-pool-#".to_string(),
            bytes,
            count,
            live_bytes: None,
            resident_bytes: None,
            free_bytes: None,
            file: None,
            session: None,
        }]);
        let command = format!("java {option} -jar /srv/app.jar");
        jvm.snapshot.os.process.set_arguments(crate::base::redact::words_of(&command));
        find(&jvm)
    }

    #[test]
    fn from_64_mib_on_in_large_buffers_and_a_warning_above_256() {
        let level = |bytes, count| found(bytes, count, "-Xmx2g").map(|finding| finding.level);
        assert_eq!((level(64 * M, 8), level(64 * M - 1, 8)), (Some(Level::Info), None));
        assert_eq!((level(256 * M, 8), level(256 * M + 1, 8)), (Some(Level::Info), Some(Level::Warn)));
        assert_eq!((level(64 * M, 64), level(64 * M, 65)), (Some(Level::Info), None), "1 MiB each");
        let title = found(512 * M, 4, "-Xmx2g").expect("a finding").title;
        assert!(title.starts_with("threads io-pool-#: 512.0 MiB of temporary direct buffers"), "{title}");
    }

    #[test]
    fn with_the_property_or_without_buffers_nothing_is_said() {
        assert_eq!(found(512 * M, 4, "-Djdk.nio.maxCachedBufferSize=1048576"), None);
        assert_eq!(find(&healthy_jvm()), None);
    }
}
