//! What a JVM prints when it does not get the large pages that it was started to use, by text, with what each line means. The
//! texts are the formats in libjvm of JDK 8u, 11, 17, 21 and 25 (src/hotspot/os/linux/os_linux.cpp; hugepages.cpp; gc/z,
//! gc/x), and each was seen printed by these JDKs; `*` stands for what varies.
//!
//! A JVM prints them once, when it starts, and then runs on small pages: often they are never read.

use crate::base::limits::{LOG_LINES_MAX, LOG_MESSAGES_MAX};
use crate::base::{Addr, Bytes};
use crate::jvm::hotspot::report::large_pages;
use schemars::JsonSchema;
use serde::Serialize;
use std::sync::LazyLock;

/// The letters of a line that are kept.
const TEXT_MAX: usize = 200;

/// One line that JVMs print.
#[derive(Debug, PartialEq, Eq, JsonSchema, Serialize)]
pub struct Message {
    /// The key in JSON.
    pub id: &'static str,
    #[serde(skip)]
    pub text: &'static str,
    /// The releases that have it.
    #[serde(skip)]
    pub jdks: &'static str,
    pub means: &'static str,
}

/// From messages.tsv: id, releases, text, meaning. The first that fits a line is taken, so the longer ones come first.
static MESSAGES: LazyLock<Vec<Message>> = LazyLock::new(|| {
    let message = |line: &'static str| {
        let [id, jdks, text, means] = line.split('\t').collect::<Vec<_>>().try_into().ok()?;
        Some(Message { id, text, jdks, means })
    };
    include_str!("messages.tsv").lines().filter_map(message).collect()
});

/// One message of a log. The same one in the same words is counted, not repeated.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize)]
pub struct Found {
    #[serde(flatten)]
    pub message: &'static Message,
    /// Counted from 1.
    pub line: usize,
    pub text: String,
    pub times: usize,
    #[serde(skip)]
    pub bytes: Option<Bytes>,
    #[serde(skip)]
    pub at: Option<Addr>,
    #[serde(skip)]
    pub errno: Option<u32>,
}

impl Found {
    /// Whether a reservation was asked for and refused, so that its bytes tell which.
    pub fn is_reservation(&self) -> bool {
        self.message.id == "reservation_failed"
    }
}

/// All of them in a log, in its order.
pub fn find(log: &str) -> Vec<Found> {
    let mut all: Vec<Found> = Vec::new();
    for (index, line) in log.lines().enumerate().take(LOG_LINES_MAX) {
        let Some((message, text)) =
            MESSAGES.iter().find_map(|message| Some((message, fit(line, message.text)?)))
        else {
            continue;
        };
        if let Some(known) = all.iter_mut().find(|known| known.text == text) {
            known.times += 1;
        } else if all.len() < LOG_MESSAGES_MAX {
            all.push(found(message, index + 1, text));
        }
    }
    all
}

fn found(message: &'static Message, line: usize, text: &str) -> Found {
    let after = |name: &str| text.split_once(name).map(|(_, rest)| word(rest));
    let short: String = text.chars().take(TEXT_MAX).collect();
    let at = after("req_addr: ").and_then(|word| u64::from_str_radix(word.strip_prefix("0x")?, 16).ok());
    let bytes = after("bytes: ").and_then(|word| word.parse().ok());
    let bytes = bytes.or_else(|| large_pages::bytes(after(" size: ")?));
    let errno = after("errno = ").or_else(|| after("error = ")).and_then(|word| word.parse().ok());
    Found { message, line, text: short, times: 1, bytes, at: at.filter(|at| *at != 0).map(Addr), errno }
}

/// Up to where a number of these messages ends.
fn word(rest: &str) -> &str {
    let end = rest.find([' ', ',', ')', '.']).unwrap_or(rest.len());
    &rest[..end]
}

/// What a line has of a text, from its first word on: the fixed pieces in their order.
fn fit<'a>(line: &'a str, text: &str) -> Option<&'a str> {
    let mut pieces = text.split('*');
    let first = pieces.next()?;
    let start = line.find(first)?;
    let mut rest = &line[start + first.len()..];
    for piece in pieces {
        rest = &rest[rest.find(piece)? + piece.len()..];
    }
    Some(line[start..].trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_of_the_table_is_a_message() {
        assert_eq!(MESSAGES.len(), include_str!("messages.tsv").lines().count());
        assert!(
            MESSAGES
                .iter()
                .all(|one| [one.id, one.text, one.jdks, one.means].iter().all(|cell| !cell.is_empty()))
        );
    }

    fn ids(log: &str) -> Vec<&'static str> {
        find(log).iter().map(|found| found.message.id).collect()
    }

    /// As each JDK printed them (8u, 11.0.13, 17.0.9, 21.0.8, 25.0.2), with too few pages and with none.
    #[test]
    fn too_few_pages_in_every_jdk() {
        let logs = [
            "OpenJDK 64-Bit Server VM warning: Failed to reserve large pages memory req_addr: 0x00000000fc000000 \
             bytes: 67108864 (errno = 12).",
            "OpenJDK 64-Bit Server VM warning: Failed to reserve and commit memory. req_addr: 0x00000000fc000000 \
             bytes: 67108864 page size: 2097152 (errno = 12).",
            "OpenJDK 64-Bit Server VM warning: Failed to reserve and commit memory using large pages. req_addr: \
             0x00000000fc000000 bytes: 67108864",
            "[0.009s][info][pagesize] Failed to reserve and commit memory with given page size. req_addr: \
             0x00000000fc000000 size: 64M, page size: 2M, (errno = 12)",
        ];
        for log in logs {
            let found = find(log);
            assert_eq!(found.len(), 1, "{log}");
            assert!(found[0].is_reservation(), "{log}");
            assert_eq!((found[0].bytes, found[0].at), (Some(64 << 20), Some(Addr(0xfc00_0000))), "{log}");
            assert!(found[0].text.starts_with("Failed to reserve"), "{log}");
        }
        assert_eq!(find(logs[0])[0].errno, Some(12));
        assert_eq!(find(logs[3])[0].errno, Some(12));
    }

    #[test]
    fn no_pages_at_all() {
        let log = "[0.001s][warning][pagesize] UseLargePages disabled, no large pages configured and available on the \
                   system.\r\nREADY 7\nOpenJDK 64-Bit Server VM warning: Failed to reserve shared memory. (error = 12)\n\
                   OpenJDK 64-Bit Server VM warning: Failed to reserve shared memory. (error = 12)\n\
                   OpenJDK 64-Bit Server VM warning: HugeTLBFS is not supported by the operating system.\n";
        let found = find(log);
        assert_eq!(ids(log), ["no_pool", "shm_failed", "hugetlbfs_not_configured"]);
        assert_eq!((found[1].times, found[1].line, found[1].errno), (2, 3, Some(12)));
        assert!(found[0].text.ends_with("on the system."), "{:?}", found[0].text);
    }

    #[test]
    fn zgc_and_transparent_ones() {
        let log = "[5.008s][error][gc] Failed to map backing file (Cannot allocate memory)\n\
                   [5.008s][error][gc,init] Java heap size (64M). Forcefully lowering max Java heap size to 20M (31%).\n\
                   [0.007s][error][gc] Failed to commit memory (Not enough space)\n\
                   [0.007s][error][gc] Forced to lower max Java heap size from 64M(100%) to 20M(31%)\n\
                   [0.007s][error][gc] Failed to allocate initial Java heap (64M)\n\
                   Incompatible -XX:LargePageSizeInBytes, only 2M large pages are supported by ZGC\n\
                   [0.001s][warning][pagesize] Shared memory transparent huge pages are not enabled in the OS. Set \
                   /sys/kernel/mm/transparent_hugepage/shmem_enabled to 'advise' to enable them.\n\
                   [0.001s][warning][pagesize] UseTransparentHugePages disabled, transparent huge pages are not \
                   supported by the operating system.\n";
        let expected = [
            "zgc_commit_failed",
            "zgc_heap_shrunk",
            "zgc_commit_failed",
            "zgc_heap_shrunk",
            "zgc_heap_failed",
            "zgc_size",
            "shmem_off",
            "thp_off",
        ];
        assert_eq!(ids(log), expected);
    }

    #[test]
    fn what_a_program_prints_is_no_message() {
        for line in
            ["Failed to reserve", "Failed to commit memory", "req_addr: 0x1 bytes: 7", "Heap: min=64M", ""]
        {
            assert!(find(line).is_empty(), "{line}");
        }
        let hostile = "Failed to reserve and commit memory using large pages. req_addr: 0xfffffffffffffffffff bytes: \
                       99999999999999999999999";
        assert_eq!((find(hostile)[0].bytes, find(hostile)[0].at), (None, None));
        let long = format!("Failed to commit memory ({}\u{e4})", "x".repeat(10_000));
        assert_eq!(find(&long)[0].text.chars().count(), TEXT_MAX);
    }
}
