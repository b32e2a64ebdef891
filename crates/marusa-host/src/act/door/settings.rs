//! The one table of settings that a plan may change, each with the values that it may take. A plan is a file that anybody may
//! have written, and a journal is read again as root: whether a value is written at once, at the next start of the host by
//! a file below /etc, or restored by `undo`, it is looked up here first.
//!
//! Sources are files of Linux 6.18. Where the kernel itself takes more than is sensible, the range here is the narrower one.

use crate::base::{Bytes, PAGE, Refused, refuse};

pub const THP: &str = "/sys/kernel/mm/transparent_hugepage";

/// The most memory that a pool of one page size may take: 64 TiB, what four levels of page tables map for the kernel
/// (Documentation/arch/x86/x86_64/mm.rst).
const POOL_BYTES_MAX: Bytes = 1 << 46;
/// The smallest huge page of any architecture that Linux has (arch/arm64/mm/hugetlbpage.c: contiguous 64 KiB pages).
const HUGE_PAGE_BYTES_MIN: Bytes = 64 << 10;
const HUGE_PAGE_BYTES_MAX: Bytes = 16 << 30;
/// Most small pages in a huge page (HPAGE_PMD_NR): 8192 where they have 64 KiB. A kernel refuses more than its own.
const SMALL_IN_HUGE: u64 = 8192;

/// What a setting takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    /// Huge pages: a sum of what several programs need, so a plan adds to it.
    Pages,
    /// A number; both ends are allowed.
    Number { least: u64, most: u64 },
    /// A limit that other programs stand on: a plan may raise it and never lower it.
    Limit { least: u64, most: u64 },
    /// One of these words.
    Word(&'static [&'static str]),
}

/// A file of /proc/sys or /sys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting {
    /// `*` stands for one digit or more.
    pub file: &'static str,
    pub takes: Takes,
}

const fn setting(file: &'static str, takes: Takes) -> Setting {
    Setting { file, takes }
}

const fn number(least: u64, most: u64) -> Takes {
    Takes::Number { least, most }
}

const SWITCH: Takes = number(0, 1);
const OF_SIZE: &[&str] = &["always", "inherit", "madvise", "never"];
const SHARED_OF_SIZE: &[&str] = &["always", "inherit", "within_size", "advise", "never"];
const SHARED: &[&str] = &["always", "within_size", "advise", "never", "deny", "force"];
const DEFRAG: &[&str] = &["always", "defer", "defer+madvise", "madvise", "never"];

/// Everything that a plan may change below /proc/sys and /sys, and where the kernel reads it.
pub const SETTINGS: [Setting; 26] = [
    setting("/proc/sys/vm/nr_hugepages", Takes::Pages), // mm/hugetlb.c: nr_hugepages_store_common
    setting("/proc/sys/vm/nr_overcommit_hugepages", Takes::Pages), // mm/hugetlb.c: hugetlb_overcommit_handler
    setting("/sys/kernel/mm/hugepages/hugepages-*kB/nr_hugepages", Takes::Pages), // mm/hugetlb.c: nr_hugepages_store_common
    // mm/hugetlb.c: nr_overcommit_hugepages_store
    setting("/sys/kernel/mm/hugepages/hugepages-*kB/nr_overcommit_hugepages", Takes::Pages),
    // mm/hugetlb.c: nr_hugepages_store_common
    setting("/sys/devices/system/node/node*/hugepages/hugepages-*kB/nr_hugepages", Takes::Pages),
    // A group's number; the kernel keeps it as an int (mm/hugetlb.c: sysctl_hugetlb_shm_group).
    setting("/proc/sys/vm/hugetlb_shm_group", number(0, i32::MAX as u64)), // mm/hugetlb.c: hugetlb_table
    setting("/proc/sys/vm/hugetlb_optimize_vmemmap", SWITCH), // mm/hugetlb_vmemmap.c: hugetlb_vmemmap_sysctls
    // The least is the default, DEFAULT_MAX_MAP_COUNT: with fewer, programs cannot map what they are built to map.
    // include/linux/mm.h: DEFAULT_MAX_MAP_COUNT; mm/util.c
    setting("/proc/sys/vm/max_map_count", Takes::Limit { least: 65_530, most: i32::MAX as u64 }),
    setting("/proc/sys/vm/compaction_proactiveness", number(0, 100)), // mm/compaction.c: vm_compaction
    // The least is the default before Linux 3.16, 32 MiB; the most is the default since (ULONG_MAX - (1 << 24)), with which
    // sums of programs do not overflow.
    // include/uapi/linux/shm.h: SHMMAX
    setting("/proc/sys/kernel/shmmax", Takes::Limit { least: 0x200_0000, most: u64::MAX - (1 << 24) }),
    // include/uapi/linux/shm.h: SHMALL
    setting("/proc/sys/kernel/shmall", Takes::Limit { least: 2_097_152, most: u64::MAX - (1 << 24) }),
    // include/uapi/linux/shm.h: SHMMNI; ipc/util.h: IPCMNI
    setting("/proc/sys/kernel/shmmni", Takes::Limit { least: 4_096, most: 32_768 }),
    // mm/huge_memory.c: enabled_store
    setting("/sys/kernel/mm/transparent_hugepage/enabled", Takes::Word(&["always", "madvise", "never"])),
    setting("/sys/kernel/mm/transparent_hugepage/defrag", Takes::Word(DEFRAG)), // mm/huge_memory.c: defrag_store
    setting("/sys/kernel/mm/transparent_hugepage/shmem_enabled", Takes::Word(SHARED)), // mm/shmem.c: shmem_parse_huge
    // mm/huge_memory.c: anon_enabled_store
    setting("/sys/kernel/mm/transparent_hugepage/hugepages-*kB/enabled", Takes::Word(OF_SIZE)),
    // mm/shmem.c: thpsize_shmem_enabled_store
    setting("/sys/kernel/mm/transparent_hugepage/hugepages-*kB/shmem_enabled", Takes::Word(SHARED_OF_SIZE)),
    setting("/sys/kernel/mm/transparent_hugepage/use_zero_page", SWITCH), // mm/huge_memory.c: use_zero_page_store
    setting("/sys/kernel/mm/transparent_hugepage/shrink_underused", SWITCH), // mm/huge_memory.c: split_underused_thp_store
    setting("/sys/kernel/mm/transparent_hugepage/khugepaged/defrag", SWITCH), // mm/khugepaged.c: defrag_store
    // mm/khugepaged.c: max_ptes_none_store
    setting("/sys/kernel/mm/transparent_hugepage/khugepaged/max_ptes_none", number(0, SMALL_IN_HUGE - 1)),
    // mm/khugepaged.c: max_ptes_swap_store
    setting("/sys/kernel/mm/transparent_hugepage/khugepaged/max_ptes_swap", number(0, SMALL_IN_HUGE - 1)),
    // mm/khugepaged.c: max_ptes_shared_store
    setting("/sys/kernel/mm/transparent_hugepage/khugepaged/max_ptes_shared", number(0, SMALL_IN_HUGE - 1)),
    // From one page to 64 GiB of them in one turn.
    // mm/khugepaged.c: pages_to_scan_store
    setting("/sys/kernel/mm/transparent_hugepage/khugepaged/pages_to_scan", number(1, (64 << 30) / PAGE)),
    // Without a pause (0) khugepaged takes a whole CPU; a day is as good as never.
    // mm/khugepaged.c: scan_sleep_millisecs_store
    setting("/sys/kernel/mm/transparent_hugepage/khugepaged/scan_sleep_millisecs", number(1, 86_400_000)),
    // mm/khugepaged.c: alloc_sleep_millisecs_store
    setting("/sys/kernel/mm/transparent_hugepage/khugepaged/alloc_sleep_millisecs", number(1, 86_400_000)),
];

/// The kernel's reserve of free memory, which moves with the switches of huge pages and which `undo` puts back. Below 1024
/// "your system will become subtly broken" (Documentation/admin-guide/sysctl/vm.rst).
pub const RESERVE: Setting = setting("/proc/sys/vm/min_free_kbytes", number(1_024, i32::MAX as u64)); // mm/page_alloc.c

/// The setting that a file is.
pub fn of(file: &str) -> Option<&'static Setting> {
    SETTINGS.iter().find(|setting| matches(setting.file, file))
}

/// A limit that is to be at least this, within what a plan may set.
pub fn raised_to(file: &str, value: u64) -> u64 {
    match of(file).map(|setting| setting.takes) {
        Some(Takes::Limit { least, most }) => value.clamp(least, most),
        _ => value,
    }
}

impl Setting {
    /// Whether it may have this number in `file`; else why not. A pool is held against the host's memory besides, where the
    /// host is known (`room.rs`).
    pub fn takes_number(&self, file: &str, value: u64) -> Result<(), Refused> {
        let (least, most) = match self.takes {
            Takes::Number { least, most } | Takes::Limit { least, most } => (least, most),
            Takes::Pages => (0, POOL_BYTES_MAX / page_bytes(file)?.unwrap_or(HUGE_PAGE_BYTES_MIN)),
            Takes::Word(words) => {
                refuse!("{file} takes no number: it takes one of {}", words.join(", "));
            }
        };
        if (least..=most).contains(&value) {
            return Ok(());
        }
        refuse!("{file}: {value} is outside of {least} to {most}, the range that a plan may set");
    }

    pub fn takes_word(&self, file: &str, word: &str) -> Result<(), Refused> {
        match self.takes {
            Takes::Word(words) if words.contains(&word) => Ok(()),
            Takes::Word(words) => {
                refuse!("{file}: {word:?} is none of its words, which are {}", words.join(", "));
            }
            _ => refuse!("{file} takes a number, and {word:?} is none"),
        }
    }
}

/// The size of the pages that a file below hugepages-*kB counts. `None`: the kernel's default size.
fn page_bytes(file: &str) -> Result<Option<Bytes>, Refused> {
    let Some(digits) = file.split('/').find_map(|part| part.strip_prefix("hugepages-")?.strip_suffix("kB"))
    else {
        return Ok(None);
    };
    let bytes = digits.parse::<u64>().ok().and_then(|kib| kib.checked_mul(1024));
    match bytes.filter(|bytes| bytes.is_power_of_two()) {
        Some(bytes @ HUGE_PAGE_BYTES_MIN..=HUGE_PAGE_BYTES_MAX) => Ok(Some(bytes)),
        _ => refuse!("{file}: {digits} KiB are not a size of a huge page"),
    }
}

/// Whether a plan may suggest a word for the kernel's command line, which the user then adds
/// (Documentation/admin-guide/kernel-parameters.txt).
pub fn boot_word(word: &str) -> Result<(), Refused> {
    let number =
        |text: &str| (1..=10).contains(&text.len()) && text.bytes().all(|letter| letter.is_ascii_digit());
    let fits = match word.split_once('=') {
        Some(("hugepages", count)) => number(count),
        Some(("hugepagesz" | "default_hugepagesz", size)) => {
            size.strip_suffix(['K', 'M', 'G']).is_some_and(number)
        }
        _ => false,
    };
    match fits {
        true => Ok(()),
        false => refuse!("{word:?} is not a huge page option of the kernel's command line"),
    }
}

/// `*` stands for one digit or more.
pub fn matches(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| text.strip_prefix(first)) else { return false };
    for part in parts {
        let digits = rest.len() - rest.trim_start_matches(|letter: char| letter.is_ascii_digit()).len();
        let Some(after) = rest[digits..].strip_prefix(part).filter(|_| digits > 0) else { return false };
        rest = after;
    }
    rest.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_is_found_by_its_file_and_has_a_range() {
        for one in &SETTINGS {
            let file = one.file.replace("kB/", "!").replace("-*!", "-2048kB/").replace('*', "1");
            assert_eq!(of(&file), Some(one), "{file}");
            assert!(one.file.starts_with("/proc/sys/") || one.file.starts_with("/sys/"), "{file}");
            match one.takes {
                Takes::Number { least, most } | Takes::Limit { least, most } => {
                    assert!(least < most, "{file}")
                }
                Takes::Word(words) => assert!(words.len() > 2, "{file}"),
                Takes::Pages => {}
            }
        }
    }

    #[test]
    fn numbers_have_two_ends() {
        let fits = |file: &str, value| of(file).expect(file).takes_number(file, value).is_ok();
        for (file, good, bad) in [
            ("/proc/sys/vm/max_map_count", &[65_530, 262_144][..], &[0, 1, 65_529, 1 << 31][..]),
            ("/proc/sys/kernel/shmmax", &[32 << 20, u64::MAX - (1 << 24)], &[0, 4096, u64::MAX]),
            ("/proc/sys/kernel/shmmni", &[4096, 32_768], &[0, 32_769]),
            ("/proc/sys/vm/hugetlb_shm_group", &[0, 1001], &[1 << 31]),
            ("/proc/sys/vm/compaction_proactiveness", &[0, 100], &[101]),
            ("/proc/sys/vm/nr_hugepages", &[0, 512], &[1 << 31]),
            ("/sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages", &[65_536], &[65_537]),
            ("/sys/kernel/mm/hugepages/hugepages-3kB/nr_hugepages", &[], &[0, 1]),
            ("/sys/kernel/mm/hugepages/hugepages-99999999999999999999kB/nr_hugepages", &[], &[1]),
            ("/sys/kernel/mm/transparent_hugepage/khugepaged/max_ptes_none", &[0, 511], &[8192]),
            ("/sys/kernel/mm/transparent_hugepage/khugepaged/pages_to_scan", &[1, 4096], &[0, 1 << 32]),
            ("/sys/kernel/mm/transparent_hugepage/khugepaged/scan_sleep_millisecs", &[10_000], &[0, 1 << 32]),
            ("/sys/kernel/mm/transparent_hugepage/enabled", &[], &[0, 1]),
        ] {
            good.iter().for_each(|value| assert!(fits(file, *value), "{file} {value}"));
            bad.iter().for_each(|value| assert!(!fits(file, *value), "{file} {value}"));
        }
    }

    #[test]
    fn words_for_the_kernel_are_those_of_huge_pages() {
        for word in ["hugepagesz=2M", "default_hugepagesz=1G", "hugepages=1182"] {
            assert_eq!(boot_word(word), Ok(()), "{word}");
        }
        for word in [
            "init=/bin/sh",
            "hugepages=",
            "hugepages=1 init=/x",
            "hugepagesz=2M\r",
            "hugepages=-1",
            "hugepages",
        ] {
            assert!(boot_word(word).is_err(), "{word:?}");
        }
    }

    #[test]
    fn words_are_those_of_the_file() {
        let fits = |file: &str, word: &str| {
            let file = format!("{THP}/{file}");
            of(&file).expect("known").takes_word(&file, word).is_ok()
        };
        assert!(fits("enabled", "madvise") && fits("defrag", "defer+madvise"));
        assert!(fits("hugepages-64kB/enabled", "inherit") && !fits("enabled", "inherit"));
        assert!(fits("shmem_enabled", "advise") && !fits("shmem_enabled", "madvise"));
        for word in ["", "always\n", "always\r", "[always]", "alwaysx", "defer"] {
            assert!(!fits("enabled", word), "{word:?}");
        }
        assert!(!fits("khugepaged/defrag", "always"));
    }
}
