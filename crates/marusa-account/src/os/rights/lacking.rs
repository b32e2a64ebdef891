//! What a service that reads every JVM of a host is not allowed to see: reported once, at its start, with the figures that are lost
//! for it
//! and what gives the right. A reading of one JVM says it of that one (`hint`).

use super::{Capability, Own, name, own};
use crate::os::group;
use crate::os::hierarchy;
use crate::os::host;
use crate::os::namespaces::Namespaces;
use crate::os::perf;
use schemars::JsonSchema;
use serde::Serialize;

/// A right or a setting that is missing.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize)]
pub struct Lack {
    /// "CAP_SYS_PTRACE", "kernel.perf_event_paranoid = 3".
    pub what: String,
    /// The figures that are lost without it.
    pub costs: &'static str,
    /// How to grant it.
    pub help: String,
}

/// What is missing here; empty for root on the host.
pub fn lacking() -> Vec<Lack> {
    Facts::read().lacks()
}

/// What decides.
#[derive(Clone, Debug, Default)]
struct Facts {
    own: Own,
    paranoid: Option<i32>,
    /// kernel.yama.ptrace_scope; `None`: a kernel without Yama.
    yama: Option<u32>,
    is_first_pid: bool,
    sees_groups: bool,
    /// The label of the security module that confines us: "docker-default (enforce)", "system_u:system_r:container_t:s0:c1,c2".
    label: Option<String>,
}

impl Facts {
    fn read() -> Facts {
        let small =
            |path: &str| host::text(path).ok().map(|text| text.trim_matches(['\0', '\n']).to_string());
        let of_first = host::text("/proc/1/cgroup").unwrap_or_default();
        let mounts = hierarchy::mounts().unwrap_or_default();
        Facts {
            own: own(),
            paranoid: perf::paranoid(),
            yama: small("/proc/sys/kernel/yama/ptrace_scope").and_then(|text| text.parse().ok()),
            is_first_pid: Namespaces::ours().is_first_pid,
            sees_groups: matches!(group::place(&of_first, &mounts), Ok(Some(_))),
            label: ["/proc/self/attr/apparmor/current", "/proc/self/attr/current"]
                .into_iter()
                .find_map(small),
        }
    }

    fn has(&self, one: Capability) -> bool {
        self.own.effective & one.bits() != 0
    }

    fn lacks(&self) -> Vec<Lack> {
        let all = [
            self.pids(),
            self.ptrace(),
            self.user_namespace(),
            self.module(),
            self.files(),
            self.groups(),
            self.frames(),
            self.counters(),
        ];
        all.into_iter().flatten().collect()
    }

    fn pids(&self) -> Option<Lack> {
        (!self.is_first_pid).then(|| Lack {
            what: "the host's pid namespace".to_string(),
            costs: "JVMs of other containers and of the host are not found",
            help: "give marusa's container the host's pids (Kubernetes: hostPID: true; docker: --pid=host)"
                .to_string(),
        })
    }

    fn ptrace(&self) -> Option<Lack> {
        match (self.has(Capability::SYS_PTRACE), self.yama) {
            (_, Some(3)) => Some(Lack {
                what: "kernel.yama.ptrace_scope = 3".to_string(),
                costs: "no JVM's memory can be read: only the kernel's figures are known",
                help: "boot with kernel.yama.ptrace_scope at 2 or below: it cannot be lowered from 3"
                    .to_string(),
            }),
            (true, _) => None,
            (false, Some(1..)) => Some(lack(
                Capability::SYS_PTRACE,
                "no JVM's memory can be read, since kernel.yama.ptrace_scope is 1 or more: only the kernel's figures are known",
            )),
            (false, _) => Some(lack(
                Capability::SYS_PTRACE,
                "of JVMs of other users, or with capabilities, only the kernel's figures are known",
            )),
        }
    }

    fn user_namespace(&self) -> Option<Lack> {
        self.own.is_nested.then(|| Lack {
            what: "the host's user namespace".to_string(),
            costs: "of JVMs outside of marusa's user namespace only the kernel's figures are known, whatever its capabilities",
            help: "run marusa in the host's user namespace (Kubernetes: hostUsers: true)".to_string(),
        })
    }

    /// AppArmor's profiles for containers let a process read only what has the same profile; SELinux keeps `container_t` of one
    /// category from all others.
    fn module(&self) -> Option<Lack> {
        let label = self.label.as_deref().filter(|label| !label.is_empty())?;
        let is_selinux = label.contains(':') && !label.ends_with(')');
        let help = match is_selinux {
            true if label.contains(":container_t:") => {
                "run marusa as type spc_t (Kubernetes: seLinuxOptions.type: spc_t)"
            }
            false if label.ends_with(')') => {
                "run marusa unconfined (Kubernetes: appArmorProfile.type: Unconfined; docker: --security-opt apparmor=unconfined)"
            }
            _ => return None,
        };
        Some(Lack {
            what: format!(
                "freedom from the security module's label \"{}\"",
                crate::base::printable::escaped(label)
            ),
            costs: "of JVMs with another label, those of the host among them, only the kernel's figures are known",
            help: help.to_string(),
        })
    }

    fn files(&self) -> Option<Lack> {
        let has = self.has(Capability::DAC_READ_SEARCH) || self.has(Capability::DAC_OVERRIDE);
        (!has).then(|| {
            lack(
                Capability::DAC_READ_SEARCH,
                "of libraries, logs and names in directories that only their owner may enter, what is not in memory is not known",
            )
        })
    }

    fn groups(&self) -> Option<Lack> {
        (!self.sees_groups).then(|| Lack {
            what: "the host's hierarchy of cgroups".to_string(),
            costs: "limits, usage, pressure and OOM kills of other containers are not known",
            help: "mount the host's /sys/fs/cgroup into marusa's container, read-only".to_string(),
        })
    }

    fn frames(&self) -> Option<Lack> {
        (!self.has(Capability::SYS_ADMIN)).then(|| {
            lack(
                Capability::SYS_ADMIN,
                "how often pages are shared (proportional bytes), and page sizes below 2 MiB, are not known",
            )
        })
    }

    fn counters(&self) -> Option<Lack> {
        const ENOUGH: i32 = 1;
        let has = self.has(Capability::PERFMON) || self.has(Capability::SYS_ADMIN);
        let paranoid = self.paranoid.filter(|level| *level > ENOUGH && !has)?;
        let by_right = lack(Capability::PERFMON, "what address translation costs is not known");
        Some(Lack {
            help: format!(
                "{}; kernel.perf_event_paranoid is {paranoid}, {ENOUGH} would do too",
                by_right.help
            ),
            ..by_right
        })
    }
}

fn lack(one: Capability, costs: &'static str) -> Lack {
    let name = name(&one);
    Lack {
        what: format!("CAP_{name}"),
        costs,
        help: format!(
            "run marusa as root with it (Kubernetes: capabilities.add: [{name}]; docker: --cap-add={name}; \
             systemd: AmbientCapabilities=CAP_{name})"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root_on_the_host() -> Facts {
        let own = Own { uid: Some(0), effective: u64::MAX, ..Own::default() };
        Facts { own, paranoid: Some(4), yama: Some(1), is_first_pid: true, sees_groups: true, label: None }
    }

    fn of(change: impl FnOnce(&mut Facts)) -> Vec<String> {
        let mut facts = root_on_the_host();
        change(&mut facts);
        facts.lacks().into_iter().map(|lack| lack.what).collect()
    }

    fn only(rights: &[Capability]) -> u64 {
        rights.iter().map(|one| one.bits()).sum()
    }

    #[test]
    fn root_on_the_host_lacks_nothing() {
        assert_eq!(of(|_| {}), [""; 0]);
        assert_eq!(of(|facts| facts.label = Some("unconfined".to_string())), [""; 0]);
        assert_eq!(of(|facts| facts.label = Some("kernel".to_string())), [""; 0]);
    }

    #[test]
    fn the_least_rights_of_a_service() {
        let least = only(&[Capability::SYS_PTRACE, Capability::DAC_READ_SEARCH]);
        let lacks = of(|facts| facts.own.effective = least);
        assert_eq!(lacks, ["CAP_SYS_ADMIN", "CAP_PERFMON"]);
        let lacks = of(|facts| (facts.own.effective, facts.paranoid) = (least, Some(1)));
        assert_eq!(lacks, ["CAP_SYS_ADMIN"]);
    }

    #[test]
    fn each_lack_by_its_setting() {
        assert_eq!(of(|facts| facts.is_first_pid = false), ["the host's pid namespace"]);
        assert_eq!(of(|facts| facts.sees_groups = false), ["the host's hierarchy of cgroups"]);
        assert_eq!(of(|facts| facts.own.is_nested = true), ["the host's user namespace"]);
        assert_eq!(of(|facts| facts.yama = Some(3)), ["kernel.yama.ptrace_scope = 3"]);
        let label = "docker-default (enforce)";
        assert!(of(|facts| facts.label = Some(label.to_string()))[0].contains(label));
        let label = "system_u:system_r:container_t:s0:c1,c2";
        assert!(of(|facts| facts.label = Some(label.to_string()))[0].contains("container_t"));
        let mut facts = root_on_the_host();
        facts.own.effective = 0;
        assert!(facts.lacks()[0].costs.contains("ptrace_scope"));
        facts.yama = Some(0);
        assert!(facts.lacks()[0].costs.contains("other users"));
        assert!(facts.lacks().iter().all(|lack| !lack.help.is_empty()));
    }

    #[test]
    fn here() {
        let lacks = lacking();
        assert!(lacks.len() <= 8 && lacks.iter().all(|lack| !lack.costs.is_empty()), "{lacks:?}");
    }
}
