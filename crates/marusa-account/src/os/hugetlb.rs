//! Pools of huge pages that are set aside (hugetlbfs), and how much of them a cgroup may have.
//!
//! Pools: `/sys/kernel/mm/hugepages/hugepages-<size>kB`, Documentation/admin-guide/mm/hugetlbpage.rst. Limits:
//! admin-guide/cgroup-v2.rst ("HugeTLB") and cgroup-v1/hugetlb.rst. The plain limit counts pages that are touched, the
//! `rsvd` one the ones that are promised; each cgroup above limits too.

use super::cgroup::path_in;
use super::group::Group;
use super::host;
use crate::base::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub const DIRECTORY: &str = "/sys/kernel/mm/hugepages";

/// One size of pages. All but the first are numbers of pages.
#[derive(Clone, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct Pool {
    pub page_bytes: Bytes,
    pub pages: u64,
    pub free: u64,
    /// Promised to mappings that have not touched them; still among the free.
    pub reserved: u64,
    /// Above the configured number, by overcommit.
    pub surplus: u64,
    pub overcommit: u64,
}

impl Pool {
    /// From the contents of the files of one directory by name.
    pub fn parse(page_bytes: Bytes, read: &dyn Fn(&str) -> Option<String>) -> Option<Pool> {
        let number = |file: &str| read(file)?.trim().parse::<u64>().ok();
        Some(Pool {
            page_bytes,
            pages: number("nr_hugepages")?,
            free: number("free_hugepages")?,
            reserved: number("resv_hugepages").unwrap_or(0),
            surplus: number("surplus_hugepages").unwrap_or(0),
            overcommit: number("nr_overcommit_hugepages").unwrap_or(0),
        })
    }

    /// Pages that a new mapping could be promised now; of those of overcommit it is not sure that memory has them.
    pub fn available(&self) -> u64 {
        let more = self.overcommit.saturating_sub(self.surplus);
        self.free.saturating_sub(self.reserved).saturating_add(more)
    }
    /// Nothing is set aside, and nothing may be taken beyond that.
    pub fn is_off(&self) -> bool {
        self.pages == 0 && self.overcommit == 0
    }
}

/// A limit of the target's cgroup, or of one above it.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct Limit {
    pub page_bytes: Bytes,
    pub limit_bytes: Bytes,
    pub used_bytes: Option<Bytes>,
    /// The file that says so.
    pub file: String,
}

impl Limit {
    pub fn left_bytes(&self) -> Bytes {
        self.limit_bytes.saturating_sub(self.used_bytes.unwrap_or(0))
    }
}

/// The size of "hugepages-2048kB", in bytes.
pub fn directory_bytes(name: &str) -> Option<Bytes> {
    let kilobytes: u64 = name.strip_prefix("hugepages-")?.strip_suffix("kB")?.parse().ok()?;
    kilobytes.checked_mul(1024).filter(|bytes| bytes.is_power_of_two())
}

/// The sizes that have a directory below this one, in bytes.
pub fn sizes(directory: &str) -> Vec<Bytes> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let mut sizes: Vec<Bytes> =
        entries.filter_map(|entry| directory_bytes(entry.file_name().to_str()?)).collect();
    sizes.sort_unstable();
    sizes
}

/// The pools of the host (`DIRECTORY`) or of a node.
pub fn pools(directory: &str) -> Vec<Pool> {
    let pool = |bytes: Bytes| {
        let below = format!("{directory}/hugepages-{}kB", bytes >> 10);
        Pool::parse(bytes, &|file| host::text(format!("{below}/{file}")).ok())
    };
    sizes(directory).into_iter().filter_map(pool).collect()
}

/// Where the hugetlb controller of a process lies, from `/proc/PID/cgroup` and `/proc/mounts`. A hierarchy of version 1 has the
/// controller, if any has.
pub fn group(cgroup: &str, mounts: &str) -> Option<Group> {
    let mounted = |kind: &str, option: &str| {
        mounts.lines().find_map(|line| {
            let mut fields = line.split(' ').skip(1);
            let (at, is, options) = (fields.next()?, fields.next()?, fields.next()?);
            let has = option.is_empty() || options.split(',').any(|word| word == option);
            (is == kind && has).then(|| at.to_string())
        })
    };
    // "/../other": above the root of our cgroup namespace, so it is none of the directories that we see.
    let is_inside = |path: &&str| !path.split('/').any(|name| name == "..");
    let path = |wanted: &str| Some(path_in(cgroup, wanted).filter(is_inside)?.to_string());
    let first = || Some(Group { mount: mounted("cgroup", "hugetlb")?, path: path("hugetlb")?, version: 1 });
    first().or_else(|| Some(Group { mount: mounted("cgroup2", "")?, path: path("")?, version: 2 }))
}

impl Group {
    /// The limits that one directory sets for pages of `page_bytes`; "max" and the huge number of version 1 are none.
    pub fn limits(
        &self,
        directory: &str,
        page_bytes: Bytes,
        read: &dyn Fn(&str) -> Option<String>,
    ) -> Vec<Limit> {
        let [limit, used] = match self.version {
            1 => ["limit_in_bytes", "usage_in_bytes"],
            _ => ["max", "current"],
        };
        let of = |kind: &str| {
            let name = |what: &str| format!("{directory}/hugetlb.{}{kind}.{what}", unit(page_bytes));
            let file = name(limit);
            let limit_bytes = read(&file)?.trim().parse().ok().filter(|bytes| *bytes < 1 << 60)?;
            let used_bytes = read(&name(used)).and_then(|text| text.trim().parse().ok());
            Some(Limit { page_bytes, limit_bytes, used_bytes, file })
        };
        ["", ".rsvd"].into_iter().filter_map(of).collect()
    }
}

/// "2MB", "1GB", "64KB": mm/hugetlb_cgroup.c, `mem_fmt`.
fn unit(bytes: Bytes) -> String {
    match bytes {
        bytes if bytes >= 1 << 30 => format!("{}GB", bytes >> 30),
        bytes if bytes >= 1 << 20 => format!("{}MB", bytes >> 20),
        bytes => format!("{}KB", bytes >> 10),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "tmpfs /sys/fs/cgroup tmpfs rw 0 0\ncgroup /sys/fs/cgroup/hugetlb cgroup rw,hugetlb 0 0\n\
                          cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n";

    #[test]
    fn what_a_pool_could_give() {
        let read = |file: &str| {
            let number = match file {
                "nr_hugepages" => 512,
                "free_hugepages" => 300,
                "resv_hugepages" => 256,
                "surplus_hugepages" => 12,
                "nr_overcommit_hugepages" => 20,
                _ => return None,
            };
            Some(format!("{number}\n"))
        };
        let pool = Pool::parse(2 << 20, &read).expect("a pool");
        assert_eq!((pool.available(), pool.is_off()), (44 + 8, false));
        assert!(Pool { page_bytes: 2 << 20, ..Pool::default() }.is_off());
        assert_eq!(directory_bytes("hugepages-1048576kB"), Some(1 << 30));
        assert_eq!((directory_bytes("hugepages-0kB"), directory_bytes("demote")), (None, None));
    }

    #[test]
    fn the_group_in_both_versions() {
        let both = group("8:hugetlb:/docker/ab\n0::/x\n", MOUNTS).expect("version 1 has it");
        assert_eq!((both.version, both.mount.as_str()), (1, "/sys/fs/cgroup/hugetlb"));
        assert_eq!(both.directories()[0], "/sys/fs/cgroup/hugetlb/docker/ab");
        assert_eq!(both.directories().len(), 3);
        let unified = group("0::/a.slice\n", "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n").expect("version 2");
        assert_eq!(unified.directories(), ["/sys/fs/cgroup/a.slice", "/sys/fs/cgroup"]);
        assert_eq!(group("nonsense", MOUNTS), None);
        assert_eq!(
            group("0::/../../tmp/a\n", "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n"),
            None,
            "not ours to see"
        );
    }

    #[test]
    fn a_limit_of_each_kind_and_none() {
        let group = Group { mount: "/c".to_string(), path: "/a".to_string(), version: 2 };
        let read = |file: &str| match file {
            "/c/a/hugetlb.2MB.max" => Some("max\n".to_string()),
            "/c/a/hugetlb.2MB.rsvd.max" => Some("4194304\n".to_string()),
            "/c/a/hugetlb.2MB.rsvd.current" => Some("2097152\n".to_string()),
            _ => None,
        };
        let limits = group.limits("/c/a", 2 << 20, &read);
        assert_eq!(limits.len(), 1);
        assert_eq!((limits[0].left_bytes(), limits[0].file.as_str()), (2 << 20, "/c/a/hugetlb.2MB.rsvd.max"));
        let none = |_: &str| Some("9223372036854771712\n".to_string());
        assert_eq!(Group { version: 1, ..group }.limits("/c/a", 1 << 30, &none), []);
    }
}
