//! Who a process is to the platform that runs it, without asking an API or a runtime's socket: what the kernel says of it (its
//! cgroup, its mounts), and what kubelet and the runtimes leave on the host's disk.
//!
//! The cgroup's path is the kernel's word and decides: container id, pod UID, unit. kubelet mounts
//! `<its directory>/pods/UID/containers/NAME/ID` at the container's terminationMessagePath (kubernetes
//! `pkg/kubelet/kubelet_pods.go`,
//! `makeMounts`; `kubelet_getters.go`, `getPodContainerDir`), and names the directory of a pod's logs `NAMESPACE_POD_UID`
//! (`pkg/kubelet/kuberuntime/helpers.go`, `BuildPodLogsDirectory`). Where those logs cannot be seen, the runtime's own files name
//! the
//! pod, else what the pod has in its own root: a hostname, and the namespace of its service account. The last two are the pod's
//! to change, so they are asked for last, and only of a process whose cgroup is a pod's.

mod host_root;
mod names;

pub use host_root::HostRoot;
pub use names::kind;

use super::cgroup::{self, Cgroup};
use super::containers::{self, Names};
use super::foreign::{self, Root};
use super::hierarchy;
use super::host;
use super::process::{Process, gap};
use crate::base::limits::{IDENTITY_FILE_BYTES_MAX, IDENTITY_MOUNTS_BYTES_MAX};
use crate::base::{Gap, Known, Why};
use names::{is_image, is_label, is_name, is_subdomain, is_uid};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Who a process is to a platform: the Kubernetes pod and container, the Docker or Podman container, the ECS task, or the systemd
/// unit. Every name is short and has only letters that its platform allows. `None`: there is none, or it is not known.
#[derive(Clone, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct Identity {
    /// The namespace in Kubernetes.
    pub namespace: Option<String>,
    pub pod: Option<String>,
    pub pod_uid: Option<String>,
    /// What the pod is a replica of, by its name: "orders" of "orders-7d4f8b9c6d-x2x4z". A guess where a pod was named by hand.
    pub workload: Option<String>,
    /// The container's name.
    pub container: Option<String>,
    pub container_id: Option<String>,
    /// "containerd", "cri-o", "docker", "podman", "ecs", "lxc", "container".
    pub runtime: Option<String>,
    pub image: Option<String>,
    /// The id of the Amazon ECS task.
    pub task: Option<String>,
    /// The systemd unit of a process that is in no container.
    pub unit: Option<String>,
}

impl Identity {
    pub fn is_empty(&self) -> bool {
        *self == Identity::default()
    }

    /// "shop/orders-7d4f8b9c6d-x2x4z/orders", "web"; `None` where neither a pod nor a container has a known name.
    pub fn name(&self) -> Option<String> {
        let parts = [&self.namespace, &self.pod, &self.container];
        let parts: Vec<&str> = parts.into_iter().filter_map(Option::as_deref).collect();
        (self.pod.is_some() || self.container.is_some()).then(|| parts.join("/"))
    }
}

/// The identity as it is now. It stays the same while the process lives, except that kubelet may make the directory of the pod's
/// logs
/// a moment after the pod: ask again while a pod with a UID has no name. Takes a few small files.
pub fn of(process: &Process, host: &HostRoot) -> Identity {
    let groups = process.text("cgroup").unwrap_or_default();
    let group = cgroup::parse(&hierarchy::absolute(&groups));
    let mounts = || foreign::mountinfo(process, IDENTITY_MOUNTS_BYTES_MAX);
    let mut identity = by_kernel(&group, mounts);
    let logs = identity.pod_uid.as_deref().and_then(|uid| host.pod(uid));
    (identity.namespace, identity.pod) = logs.unzip();
    let named = group.container.and_then(|container| containers::names(&container, host.root()?));
    identity.add(named.unwrap_or_default());
    if identity.pod.is_none() && group.pod.is_some() {
        identity.add(by_own_files(process, host));
    }
    identity.workload = identity.pod.as_deref().map(|pod| names::workload(pod).to_string());
    identity
}

/// What the kernel tells. `mounts`: the text of mountinfo, which a process outside of pods is not asked for.
fn by_kernel(group: &Cgroup, mounts: impl FnOnce() -> String) -> Identity {
    let is_service = group.unit.is_some() && group.container.is_none() && group.pod.is_none();
    let mounted = if is_service { None } else { by_mounts(&mounts(), group.pod.as_deref()) };
    let (pod_uid, container) = mounted.unzip();
    let in_container = group.container.is_some() || group.pod.is_some() || pod_uid.is_some();
    let (runtime, container_id) =
        group.container.as_ref().map(|it| (it.runtime.to_string(), it.id.clone())).unzip();
    Identity {
        pod_uid: group.pod.clone().or(pod_uid),
        container,
        container_id: container_id.filter(|id| is_name(id)),
        runtime,
        task: group.task.clone(),
        unit: group.unit.clone().filter(|unit| !in_container && names::is_unit(unit)),
        ..Identity::default()
    }
}

/// The pod's UID and the container's name, by the mount of its termination message. `pod`: whose it must be, where the cgroup
/// tells.
fn by_mounts(mountinfo: &str, pod: Option<&str>) -> Option<(String, String)> {
    let of_line = |line: &str| {
        let root = line.split(' ').nth(3)?;
        let mut names = root.rsplit('/').skip(1);
        let (name, containers, uid, pods) = (names.next()?, names.next()?, names.next()?, names.next()?);
        let is_kubelets = containers == "containers" && pods == "pods" && is_label(name) && is_uid(uid);
        let is_own = pod.is_none_or(|pod| pod == uid);
        (is_kubelets && is_own).then(|| (uid.to_string(), name.to_string()))
    };
    mountinfo.lines().find_map(of_line)
}

impl Identity {
    /// Adds what is not known yet, where it is a name.
    fn add(&mut self, names: Names) {
        if self.pod.is_none() {
            self.pod = names.pod.filter(|pod| is_subdomain(pod));
            self.namespace = names.namespace.filter(|namespace| is_label(namespace));
        }
        let container = names.container.filter(|name| is_name(name));
        self.container = self.container.take().or(container);
        self.image = self.image.take().or(names.image.filter(|image| is_image(image)));
    }
}

/// By the hostname and the service account in the pod's own root. A pod on the host's network has the host's name.
fn by_own_files(process: &Process, host: &HostRoot) -> Names {
    let Ok(root) = Root::of(process) else { return Names::default() };
    let text = |path: &str| file_text(&root, path);
    let own = text("/etc/hostname").filter(|name| Some(name) != host.name().as_ref());
    Names {
        pod: own,
        namespace: text("/var/run/secrets/kubernetes.io/serviceaccount/namespace"),
        ..Names::default()
    }
}

/// A small file, without white space at its ends.
fn file_text(root: &Root, path: &str) -> Option<String> {
    let bytes = root.open(path).and_then(|file| foreign::start(file, IDENTITY_FILE_BYTES_MAX)).ok()?;
    Some(std::str::from_utf8(&bytes).ok()?.trim().to_string())
}

/// A name for a JVM that no other has, on any host at any time: 32 hexadecimal digits. It is the same from wherever it is seen,
/// since
/// the pid is that of the process' own pid namespace.
pub fn jvm_id(process: &Process) -> Known<String> {
    let boot = host::text("/proc/sys/kernel/random/boot_id").map_err(|error| gap("boot id", &error))?;
    let namespace = process.link("ns/pid").map_err(|error| gap("/proc/PID/ns/pid", &error))?;
    let pid = process.status()?.namespace_pids.last().copied().unwrap_or(process.pid);
    if !process.is_same() {
        return Err(Gap::new("JVM id", Why::Gone));
    }
    let key = format!("{} {} {} {pid}", boot.trim(), namespace.display(), process.start_ticks);
    Ok(hashed(&key))
}

/// 32 hexadecimal digits, the same for ever.
pub fn hashed(key: &str) -> String {
    format!("{:032x}", fnv_1a(key.as_bytes()))
}

/// FNV-1a with 128 bits (draft-eastlake-fnv): the same for ever, which the standard library's hashes do not promise.
fn fnv_1a(bytes: &[u8]) -> u128 {
    const PRIME: u128 = (1 << 88) + 0x13b;
    let step = |hash: u128, byte: &u8| (hash ^ u128::from(*byte)).wrapping_mul(PRIME);
    bytes.iter().fold(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d, step)
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
