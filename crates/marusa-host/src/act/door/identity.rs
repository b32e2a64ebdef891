//! Which host this is: a plan is made for one, and fits no other.

use crate::base::Bytes;
use crate::os::{host, meminfo};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The host that the plan was made on: `apply` refuses another.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct HostId {
    /// sha-free: the text of /etc/machine-id, or the boot id where there is none.
    pub machine: String,
    pub kernel: String,
    pub memory_bytes: Bytes,
}

/// What the memory of one host may differ by between two starts: what firmware and the kernel keep for themselves.
const MEMORY_PARTS: u64 = 64;

pub fn here() -> HostId {
    let trimmed = |file: &str| host::text(file).unwrap_or_default().trim().to_string();
    let machine = match trimmed("/etc/machine-id") {
        id if id.is_empty() || id == "uninitialized" => trimmed("/proc/sys/kernel/random/boot_id"),
        id => id,
    };
    let meminfo = host::text("/proc/meminfo").unwrap_or_default();
    let memory_bytes = meminfo::fields(&meminfo).remove("MemTotal").unwrap_or_default();
    HostId { machine, kernel: host::kernel_release(), memory_bytes }
}

impl HostId {
    /// In what another host differs from this one; `None`: it is the same.
    pub fn differs(&self, other: &HostId) -> Option<String> {
        let apart = self.memory_bytes.abs_diff(other.memory_bytes);
        match () {
            () if self.machine != other.machine => {
                Some(format!("machine-id {:?} there, {:?} here", other.machine, self.machine))
            }
            () if self.kernel != other.kernel => {
                Some(format!("kernel {:?} there, {:?} here", other.kernel, self.kernel))
            }
            () if apart > self.memory_bytes / MEMORY_PARTS => Some(format!(
                "{} MiB of memory there, {} here",
                other.memory_bytes >> 20,
                self.memory_bytes >> 20
            )),
            () => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_machine_kernel_or_memory_is_another_host() {
        let here = here();
        assert!(!here.machine.is_empty() && here.memory_bytes > 1 << 20);
        assert_eq!(here.differs(&here), None);
        let other = HostId { machine: "0".into(), ..here.clone() };
        assert!(here.differs(&other).is_some_and(|why| why.contains("machine-id")));
        let other = HostId { memory_bytes: here.memory_bytes / 2, ..here.clone() };
        assert!(here.differs(&other).is_some_and(|why| why.contains("memory")));
        let other = HostId { memory_bytes: here.memory_bytes + 4096, ..here.clone() };
        assert_eq!(here.differs(&other), None);
    }
}
