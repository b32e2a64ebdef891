//! All that says whether this host can give large pages now: free blocks and what keeps them, pools, limits, nodes, what is
//! set already for the next start, and whether the settings can be changed from here. Some hundred small files.

use super::buddyinfo::{self, FreeBlocks};
use super::host_pages::HostPages;
use super::machine::{base_page, huge_page};
use super::meminfo::{self, Meminfo};
use super::numa::{self, Node};
use super::pagetypeinfo::{self, BlockTypes};
use super::process::Process;
use super::zoneinfo::{self, Kept};
use super::{extfrag, free_memory, host};
use crate::base::{Bytes, Gap, Known, Why};
use std::path::Path;

#[derive(Clone, Debug)]
pub struct HostMemory {
    pub meminfo: Meminfo,
    /// Settings and pools of the host, and limits of the cgroup of the process that is asked for.
    pub pages: HostPages,
    pub free: Vec<FreeBlocks>,
    pub kept: Vec<Kept>,
    pub blocks: Known<BlockTypes>,
    pub nodes: Vec<Node>,
    /// For 2 MiB pages; `None`: /proc/buddyinfo cannot be read.
    pub fragmentation: Option<f64>,
    /// What the cgroups of that process leave of memory; `None`: no limit.
    pub group_left_bytes: Option<Bytes>,
    /// Huge pages of hugetlb count against that limit (the mount option memory_hugetlb_accounting).
    pub group_counts_hugetlb: bool,
    /// Why the settings cannot be changed from here; `None`: they can.
    pub locked: Option<String>,
    /// Settings of `vm.nr_hugepages` and the like that the host makes when it starts: file, line.
    pub settings: Vec<(String, String)>,
    pub shm: Shm,
}

/// What limits shared memory of System V, on which OpenJ9 and HotSpot's UseSHM lay large pages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shm {
    /// Largest segment, and all of them.
    pub max_bytes: Option<Bytes>,
    pub all_bytes: Option<Bytes>,
    /// The group that may have huge pages.
    pub huge_group: Option<u32>,
}

impl HostMemory {
    /// With the limits of `process`: the target, or ourselves where the JVM is not there yet.
    pub fn read(process: &Process) -> Known<HostMemory> {
        let read = |file: &str| host::text(file).unwrap_or_default();
        let meminfo = meminfo::parse(&read("/proc/meminfo"))
            .ok_or_else(|| Gap::new("/proc/meminfo", Why::NotInThisKernel).hint("is /proc mounted?"))?;
        let free = buddyinfo::parse(&read("/proc/buddyinfo"));
        Ok(HostMemory {
            meminfo,
            pages: HostPages::read(process),
            fragmentation: extfrag::best(&free, buddyinfo::order(huge_page())),
            free,
            kept: zoneinfo::parse(&read("/proc/zoneinfo")),
            blocks: block_types(),
            nodes: numa::read(),
            group_left_bytes: free_memory::left_in_groups(&process.text("cgroup").unwrap_or_default()),
            group_counts_hugetlb: read("/proc/self/mounts").contains("memory_hugetlb_accounting"),
            locked: locked(),
            settings: settings(),
            shm: shm(),
        })
    }

    /// What programs may take without harm to others.
    pub fn available_bytes(&self) -> Bytes {
        self.meminfo.available_bytes.unwrap_or(self.meminfo.free_bytes)
    }
}

fn block_types() -> Known<BlockTypes> {
    let text = host::text("/proc/pagetypeinfo").map_err(|error| {
        super::process::gap("/proc/pagetypeinfo", &error)
            .hint("how much compaction could add is known to root only")
    })?;
    pagetypeinfo::parse(&text).ok_or_else(|| Gap::new("/proc/pagetypeinfo", Why::NotInThisKernel))
}

/// Whether the files below /sys can be written, by the mount and by our rights.
fn locked() -> Option<String> {
    let mounts = host::text("/proc/self/mounts").unwrap_or_default();
    let mut options = mounts.lines().filter_map(|line| {
        let mut fields = line.split(' ').skip(1);
        (fields.next()? == "/sys").then(|| fields.nth(1))?
    });
    if options.next_back().is_some_and(|options| options.split(',').any(|word| word == "ro")) {
        return Some("/sys is read-only here (a container): the steps must be made on the host".to_string());
    }
    match rustix::process::geteuid().as_raw() {
        0 => None,
        _ => Some("the steps need root".to_string()),
    }
}

/// Lines of sysctl's files that set huge pages.
fn settings() -> Vec<(String, String)> {
    let directories = ["/usr/lib/sysctl.d", "/usr/local/lib/sysctl.d", "/run/sysctl.d", "/etc/sysctl.d"];
    let mut files: Vec<_> = directories
        .iter()
        .flat_map(|directory| std::fs::read_dir(directory).into_iter().flatten().flatten())
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "conf"))
        .collect();
    files.sort();
    files.push("/etc/sysctl.conf".into());
    files.dedup_by_key(|path| std::fs::canonicalize(path).unwrap_or_default());
    files.iter().flat_map(|path| lines_of(path)).collect()
}

fn lines_of(path: &Path) -> Vec<(String, String)> {
    let text = host::text(path).unwrap_or_default();
    let is_ours = |line: &&str| {
        let key = line.split('=').next().unwrap_or("").trim().trim_start_matches('-').replace('/', ".");
        key.starts_with("vm.nr_hugepages") || key.starts_with("vm.nr_overcommit_hugepages")
    };
    let lines = text.lines().map(str::trim).filter(is_ours);
    lines.map(|line| (path.display().to_string(), line.to_string())).collect()
}

fn shm() -> Shm {
    Shm {
        max_bytes: host::number("/proc/sys/kernel/shmmax"),
        all_bytes: host::number("/proc/sys/kernel/shmall")
            .map(|pages: u64| pages.saturating_mul(base_page())),
        huge_group: host::number("/proc/sys/vm/hugetlb_shm_group"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_host_has_memory() {
        let me = Process::open(std::process::id() as i32).expect("myself");
        let host = HostMemory::read(&me).expect("/proc is there");
        assert!(host.available_bytes() > 0 && host.available_bytes() <= host.meminfo.total_bytes);
        assert!(host.free.iter().map(FreeBlocks::free_bytes).sum::<u64>() <= host.meminfo.total_bytes);
    }

    #[test]
    fn only_lines_that_set_huge_pages() {
        let path = std::env::temp_dir().join(format!("marusa-sysctl-{}.conf", std::process::id()));
        let text =
            "# vm.nr_hugepages = 1\nvm.swappiness=1\n vm.nr_hugepages = 512\n-vm/nr_overcommit_hugepages=4\n";
        std::fs::write(&path, text).expect("written");
        let lines: Vec<String> = lines_of(&path).into_iter().map(|(_, line)| line).collect();
        assert_eq!(lines, ["vm.nr_hugepages = 512", "-vm/nr_overcommit_hugepages=4"]);
        std::fs::remove_file(&path).expect("removed");
    }
}
