//! `/proc/PID/maps`: what is mapped where, with which rights, from which file.
//!
//! Format: Documentation/filesystems/proc.rst, "3.1 /proc/<pid>/maps"; path escaping of "\n" as "\012": fs/proc/task_mmu.c
//! (`show_vma_header_prefix`, `seq_file_path`).

use crate::base::{Addr, Range};
use serde::{Deserialize, Serialize};

/// One line of the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mapping {
    pub range: Range,
    pub rights: Rights,
    /// Offset in the file, in bytes.
    pub offset: u64,
    /// "major:minor", hexadecimal, as the kernel prints it.
    pub device: String,
    pub inode: u64,
    /// The path as the kernel prints it (with " (deleted)"), "[heap]", "[anon: name]", or empty.
    pub path: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Rights {
    pub read: bool,
    pub write: bool,
    pub execute: bool,
    pub shared: bool,
}

impl Rights {
    /// `rwxp` as the kernel writes it.
    pub fn text(self) -> String {
        let bit = |on, letter| if on { letter } else { '-' };
        [
            bit(self.read, 'r'),
            bit(self.write, 'w'),
            bit(self.execute, 'x'),
            if self.shared { 's' } else { 'p' },
        ]
        .iter()
        .collect()
    }
    /// Whether any access is allowed: HotSpot reserves with PROT_NONE and commits with rights.
    pub fn any(self) -> bool {
        self.read || self.write || self.execute
    }
}

impl Mapping {
    /// Private memory without a file; includes `[heap]` and named anonymous mappings.
    pub fn is_anonymous(&self) -> bool {
        self.inode == 0 && (self.path.is_empty() || self.path == "[heap]" || self.path.starts_with("[anon:"))
    }
    pub fn is_file(&self) -> bool {
        self.inode != 0
    }
    /// The path without the kernel's " (deleted)".
    pub fn file_path(&self) -> &str {
        self.path.strip_suffix(" (deleted)").unwrap_or(&self.path)
    }
    /// A file that exists in memory only, whatever its name (memfd_create(2)).
    pub fn is_memory_file(&self) -> bool {
        self.path.starts_with("/memfd:")
    }
    /// Whether both map the same file.
    pub fn is_of_same_file(&self, other: &Mapping) -> bool {
        self.is_file() && self.inode == other.inode && self.device == other.device
    }
    pub fn is_deleted(&self) -> bool {
        self.path.ends_with(" (deleted)")
    }
    /// The last part of the path.
    pub fn file_name(&self) -> &str {
        self.file_path().rsplit('/').next().unwrap_or("")
    }
    /// Whether a present page of this mapping is in the process's RSS: memory of a device and the kernel's own time pages
    /// are mapped by frame number, without a page that could be counted (mm/memory.c, `vm_normal_page`).
    pub fn counts_in_rss(&self, is_file_page: bool) -> bool {
        (is_file_page || !self.rights.shared) && !self.path.starts_with("[vvar") && self.path != "[vsyscall]"
    }
    /// Memory that has the name of a file and none on a disk: memfd_create, shared anonymous memory, SysV segments
    /// (mm/shmem.c, `shmem_kernel_file_setup`; ipc/shm.c). Files of other tmpfs mounts do not show by their name.
    pub fn is_shmem_name(&self) -> bool {
        is_shmem_name(&self.path)
    }
    /// Pages of hugetlbfs: an anonymous MAP_HUGETLB mapping or a file of a hugetlbfs mount's SysV segment.
    pub fn is_hugetlb_name(&self) -> bool {
        self.path.starts_with("/anon_hugepage")
    }
}

pub(super) fn is_shmem_name(path: &str) -> bool {
    ["/memfd:", "/dev/zero (deleted)", "/SYSV", "/dev/shm/"].iter().any(|start| path.starts_with(start))
}

/// The mapping that holds `at`; `mappings` is sorted.
pub fn find_mapping(mappings: &[Mapping], at: Addr) -> Option<&Mapping> {
    let after = mappings.partition_point(|mapping| mapping.range.end <= at);
    mappings.get(after).filter(|mapping| mapping.range.has(at))
}

/// Parses the whole file. Lines that make no sense are left out and counted in the second value.
pub fn parse(text: &[u8]) -> (Vec<Mapping>, usize) {
    let mut mappings = Vec::new();
    let mut strange = 0;
    for line in text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        match parse_line(&String::from_utf8_lossy(line)) {
            Some(mapping) => mappings.push(mapping),
            None => strange += 1,
        }
    }
    // The kernel's answer is sorted; a hostile file is not to be trusted with it.
    if !mappings.windows(2).all(|pair| pair[0].range.end <= pair[1].range.start) {
        let before = mappings.len();
        mappings.sort_by_key(|mapping| mapping.range.start);
        let mut end = Addr::NULL;
        mappings.retain(|mapping| {
            let apart = mapping.range.start >= end;
            if apart {
                end = mapping.range.end;
            }
            apart
        });
        strange += before - mappings.len();
    }
    (mappings, strange)
}

/// `start-end rights offset device inode   path`
pub fn parse_line(line: &str) -> Option<Mapping> {
    let (range, rest) = line.split_once(' ')?;
    let (start, end) = range.split_once('-')?;
    let (start, end) = (hex(start)?, hex(end)?);
    if start >= end {
        return None;
    }
    let (rights, rest) = rest.split_once(' ')?;
    let (offset, rest) = rest.split_once(' ')?;
    let (device, rest) = rest.split_once(' ')?;
    let (inode, path) = rest.split_once(' ').unwrap_or((rest, ""));
    let path = path.trim_start_matches(' ');
    Some(Mapping {
        range: Range::of(start, end),
        rights: parse_rights(rights)?,
        offset: hex(offset)?,
        device: device.to_string(),
        inode: inode.parse().ok()?,
        path: if path.contains('\\') { path.replace("\\012", "\n") } else { path.to_string() },
    })
}

fn parse_rights(text: &str) -> Option<Rights> {
    let [read, write, execute, shared] = text.as_bytes() else { return None };
    Some(Rights {
        read: *read == b'r',
        write: *write == b'w',
        execute: *execute == b'x',
        shared: *shared == b's',
    })
}

fn hex(text: &str) -> Option<u64> {
    u64::from_str_radix(text, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_with_a_path_of_spaces_and_newlines() {
        let line =
            "7f1e2a000000-7f1e2a021000 rw-s 00001000 fe:00 1234                 /tmp/a b\\012c (deleted)";
        let mapping = parse_line(line).expect("a good line");
        assert_eq!(mapping.path, "/tmp/a b\nc (deleted)");
        assert_eq!(mapping.file_path(), "/tmp/a b\nc");
        assert!(mapping.is_deleted() && mapping.rights.shared && !mapping.rights.execute);
        assert_eq!((mapping.offset, mapping.inode), (0x1000, 1234));
    }

    #[test]
    fn anonymous_mappings_have_no_path_and_nonsense_is_counted() {
        let text = b"00400000-00401000 ---p 00000000 00:00 0 \nhello\n2000-1000 rw-p 0 00:00 0\n";
        let (mappings, strange) = parse(text);
        assert_eq!((mappings.len(), strange), (1, 2));
        assert!(mappings[0].is_anonymous() && !mappings[0].rights.any());
        assert_eq!(mappings[0].rights.text(), "---p");
    }

    #[test]
    fn overlapping_lines_of_a_hostile_file_are_dropped() {
        let text = b"5000-7000 rw-p 0 00:00 0 \n1000-6000 rw-p 0 00:00 0 \n";
        let (mappings, strange) = parse(text);
        assert_eq!((mappings.len(), strange), (1, 1));
        assert_eq!(find_mapping(&mappings, Addr(0x1fff)).map(|m| m.range.end), Some(Addr(0x6000)));
        assert_eq!(find_mapping(&mappings, Addr(0x6000)), None);
    }
}
