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

/// The first that fits a line is taken, so the longer ones come first.
pub const MESSAGES: &[Message] = &[
    Message {
        id: "no_pool",
        text: "UseLargePages disabled, no large pages configured and available on the system.",
        jdks: "17-25",
        means: "no HugeTLB page was free when the JVM started: all of it is on small pages",
    },
    Message {
        id: "large_page_refused",
        text: "Large page size (*) failed sanity check",
        jdks: "17-25",
        means: "no page of this size could be mapped when the JVM started; it tries the next smaller one",
    },
    Message {
        id: "shm_failed",
        text: "Failed to reserve shared memory. (error = *)",
        jdks: "8-21",
        means: "no HugeTLB pages, and the second way (SysV shared memory) failed too: this reservation is on small pages",
    },
    Message {
        id: "shm_attach_failed",
        text: "Failed to attach shared memory. (error = *)",
        jdks: "8-21",
        means: "a SysV segment of HugeTLB pages could not be attached: this reservation is on small pages",
    },
    Message {
        id: "reservation_failed",
        text: "Failed to reserve large pages memory req_addr: * bytes: * (errno = *)",
        jdks: "8-11",
        means: "too few HugeTLB pages for this reservation: it is on small pages",
    },
    Message {
        id: "reservation_failed",
        text: "Failed to reserve and commit memory. req_addr: * bytes: * page size: * (errno = *)",
        jdks: "17",
        means: "too few HugeTLB pages for this reservation: it is on small pages, or on the next smaller large ones",
    },
    Message {
        id: "reservation_failed",
        text: "Failed to reserve and commit memory with given page size. req_addr: * size: *, page size: *, (errno = *)",
        jdks: "21-25",
        means: "too few HugeTLB pages of this size for this reservation; it tries the next smaller size",
    },
    Message {
        id: "reservation_failed",
        text: "Failed to reserve and commit memory using large pages. req_addr: * bytes: *",
        jdks: "21-25",
        means: "too few HugeTLB pages for this reservation: it is on small pages",
    },
    Message {
        id: "hugetlbfs_not_configured",
        text: "HugeTLBFS is not configured or not supported by the operating system.",
        jdks: "17-21",
        means: "no HugeTLB page was free when the JVM started; -XX:+UseHugeTLBFS has nothing to use",
    },
    Message {
        id: "hugetlbfs_not_configured",
        text: "HugeTLBFS is not supported by the operating system.",
        jdks: "8-11",
        means: "no HugeTLB page was free when the JVM started; -XX:+UseHugeTLBFS has nothing to use",
    },
    Message {
        id: "shm_not_configured",
        text: "Large pages using UseSHM are not configured on this system.",
        jdks: "17-21",
        means: "-XX:+UseSHM needs HugeTLB pages, and the JVM's group in vm.hugetlb_shm_group or CAP_IPC_LOCK",
    },
    Message {
        id: "size_ignored",
        text: "Setting LargePageSizeInBytes has no effect on this OS. Large page size is *",
        jdks: "8-11",
        means: "JDK 8 and 11 use the kernel's default size only (Hugepagesize in /proc/meminfo)",
    },
    Message {
        id: "size_invalid",
        text: "LargePageSizeInBytes is not a valid large page size (*) using the default large page size: *",
        jdks: "17-25",
        means: "the kernel has no pages of this size; the default size is used",
    },
    Message {
        id: "size_invalid",
        text: "LargePageSizeInBytes ( * ) must be a power of 2",
        jdks: "25",
        means: "the JVM does not start with this size",
    },
    Message {
        id: "zgc_size",
        text: "Incompatible -XX:LargePageSizeInBytes, only * large pages are supported by ZGC",
        jdks: "21-25",
        means: "ZGC takes 2M pages only; the JVM does not start",
    },
    Message {
        id: "zgc_size",
        text: "Incompatible large page size configured * (expected *)",
        jdks: "17",
        means: "ZGC takes 2M pages only; the JVM does not start",
    },
    Message {
        id: "zgc_heap_failed",
        text: "Failed to allocate initial Java heap (*)",
        jdks: "17-25",
        means: "too few HugeTLB pages for ZGC's heap, which has no small pages to fall back to: the JVM ends",
    },
    Message {
        id: "zgc_heap_shrunk",
        text: "Forced to lower max Java heap size from * to *",
        jdks: "17-25",
        means: "too few HugeTLB pages for ZGC's heap: it cannot grow to what was asked",
    },
    Message {
        id: "zgc_heap_shrunk",
        text: "Forcefully lowering max Java heap size to *",
        jdks: "11",
        means: "too few HugeTLB pages for ZGC's heap (after five seconds of trying): it cannot grow to what was asked",
    },
    Message {
        id: "zgc_commit_failed",
        text: "Failed to map backing file (*)",
        jdks: "11",
        means: "too few HugeTLB pages for a part of ZGC's heap",
    },
    Message {
        id: "zgc_commit_failed",
        text: "Failed to commit memory (*)",
        jdks: "17-25",
        means: "too few HugeTLB pages for a part of ZGC's heap",
    },
    Message {
        id: "zgc_filesystem",
        text: "-XX:+UseLargePages * when using a * filesystem",
        jdks: "11-25",
        means: "the directory that holds ZGC's heap decides its pages (-XX:AllocateHeapAt or its old name ZPath)",
    },
    Message {
        id: "shmem_off",
        text: "Shared memory transparent huge pages are not enabled in the OS.",
        jdks: "25",
        means: "ZGC's heap is shared memory, for which transparent_hugepage/shmem_enabled decides",
    },
    Message {
        id: "thp_off",
        text: "Anonymous transparent huge pages are not enabled in the OS.",
        jdks: "25",
        means: "transparent_hugepage/enabled said never when the JVM started",
    },
    Message {
        id: "thp_off",
        text: "UseTransparentHugePages disabled, transparent huge pages are not supported by the operating system.",
        jdks: "21-25",
        means: "transparent_hugepage/enabled said never when the JVM started; the JVM switched its flag off",
    },
    Message {
        id: "thp_off",
        text: "TransparentHugePages is not supported by the operating system.",
        jdks: "8-21",
        means: "transparent_hugepage/enabled said never when the JVM started; the JVM switched its flag off",
    },
    Message {
        id: "heap_in_file",
        text: "Cannot allocate * large pages for Java Heap when AllocateHeapAt option is set.",
        jdks: "11-25",
        means: "a heap in a file (-XX:AllocateHeapAt) gets the pages of that file system",
    },
    Message {
        id: "unknown_option",
        text: "Unrecognized VM option 'UseHugeTLBFS'",
        jdks: "23-25",
        means: "the option is gone since JDK 23 (obsolete in 22): -XX:+UseLargePages alone",
    },
    Message {
        id: "unknown_option",
        text: "Unrecognized VM option 'UseSHM'",
        jdks: "23-25",
        means: "the option is gone since JDK 23 (obsolete in 22): -XX:+UseLargePages alone",
    },
];

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
