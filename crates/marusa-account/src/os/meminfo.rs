//! `/proc/meminfo`: the memory of the host, and the size of huge pages that a program gets that names none.
//!
//! Fields: Documentation/filesystems/proc.rst, "meminfo". In most containers it is the host's.

use crate::base::Bytes;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Meminfo {
    pub total_bytes: Bytes,
    pub free_bytes: Bytes,
    /// What programs may take without swapping; `None` before Linux 3.14.
    pub available_bytes: Option<Bytes>,
    /// `Hugepagesize`: of shmget(SHM_HUGETLB) and mmap(MAP_HUGETLB) without a size. `None`: this kernel has no hugetlb.
    pub default_huge_bytes: Option<Bytes>,
}

/// All fields in kilobytes, as bytes.
pub fn fields(text: &str) -> BTreeMap<String, Bytes> {
    let field = |line: &str| {
        let (name, value) = line.split_once(':')?;
        let bytes = value.strip_suffix(" kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)?;
        Some((name.to_string(), bytes))
    };
    text.lines().filter_map(field).collect()
}

/// `None` where not even the total is there.
pub fn parse(text: &str) -> Option<Meminfo> {
    let fields = fields(text);
    let field = |wanted: &str| fields.get(wanted).copied();
    Some(Meminfo {
        total_bytes: field("MemTotal")?,
        free_bytes: field("MemFree")?,
        available_bytes: field("MemAvailable"),
        default_huge_bytes: field("Hugepagesize").filter(|bytes| bytes.is_power_of_two()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fields_that_count() {
        let text = "MemTotal:       24684084 kB\nMemFree:        16539908 kB\nMemAvailable:   17879040 kB\n\
                    HugePages_Total:       0\nHugepagesize:       2048 kB\n";
        let host = parse(text).expect("a host");
        assert_eq!(host.available_bytes, Some(17879040 << 10));
        assert_eq!((host.total_bytes, host.default_huge_bytes), (24684084 << 10, Some(2 << 20)));
        assert_eq!(parse("MemFree: 1 kB\n"), None);
        assert_eq!(parse("MemTotal: 99999999999999999999 kB\nMemFree: 1 kB\n"), None);
    }
}
