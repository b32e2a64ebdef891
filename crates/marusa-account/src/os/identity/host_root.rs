//! The host's root directory, as it is seen from where Marusa runs: its own, the one that a container's mount shows, or that of the
//! host's first process. Below it kubelet and the runtimes leave the names of what they run.

use super::file_text;
use super::names::{is_label, is_subdomain, is_uid};
use crate::base::limits::POD_LOGS_MAX;
use crate::os::foreign::Root;
use crate::os::hierarchy::is_in_container;
use crate::os::host;
use crate::os::process::Process;
use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::{Duration, Instant};

const POD_LOGS: &str = "/var/log/pods";
/// The directory of pods' logs is not read again within this time: a pod without one is asked for at each reading of a JVM.
const POD_LOGS_AGE_MIN: Duration = Duration::from_secs(5);

/// Where the host's file system is mounted.
pub struct HostRoot {
    /// `None`: it cannot be opened.
    root: Option<Root>,
    pods: Mutex<Pods>,
}

/// The pods that have logs, by UID, and when they were read.
#[derive(Default)]
struct Pods {
    by_uid: HashMap<String, (String, String)>,
    read: Option<Instant>,
}

impl HostRoot {
    /// The directory where the host's root is mounted: `--host-root`.
    pub fn at(directory: &Path) -> io::Result<HostRoot> {
        Ok(HostRoot::with(Some(Root::at(directory)?)))
    }

    /// Our own root on the host; in a container that has the host's pids the root of the host's first process, where it may be
    /// read.
    pub fn usual() -> HostRoot {
        let first = || Root::of(&Process::open(1).ok()?).ok();
        let root = is_in_container().then(first).flatten();
        HostRoot::with(root.or_else(|| Root::own().ok()))
    }

    /// The usual one, with what is known of its pods: for commands that look at many JVMs.
    pub fn shared() -> &'static HostRoot {
        static SHARED: LazyLock<HostRoot> = LazyLock::new(HostRoot::usual);
        &SHARED
    }

    fn with(root: Option<Root>) -> HostRoot {
        HostRoot { root, pods: Mutex::default() }
    }

    pub(super) fn root(&self) -> Option<&Root> {
        self.root.as_ref()
    }

    /// The host's name. In a container without the host's root, the container's.
    pub fn node(&self) -> Option<String> {
        let own = || host::text("/proc/sys/kernel/hostname").ok();
        let name = self.name().or_else(own)?.trim().to_string();
        (!name.is_empty()).then_some(name)
    }

    pub(super) fn name(&self) -> Option<String> {
        file_text(self.root()?, "/etc/hostname")
    }

    /// Namespace and name of a pod.
    pub(super) fn pod(&self, uid: &str) -> Option<(String, String)> {
        let mut pods = self.pods.lock().unwrap_or_else(PoisonError::into_inner);
        let is_fresh = pods.read.is_some_and(|read| read.elapsed() < POD_LOGS_AGE_MIN);
        if !pods.by_uid.contains_key(uid) && !is_fresh {
            *pods = Pods { by_uid: self.read_pods().unwrap_or_default(), read: Some(Instant::now()) };
        }
        pods.by_uid.get(uid).cloned()
    }

    fn read_pods(&self) -> io::Result<HashMap<String, (String, String)>> {
        let root = self.root().ok_or(io::ErrorKind::NotFound)?;
        let names = root.directory(POD_LOGS)?.flatten().take(POD_LOGS_MAX);
        Ok(names.filter_map(|entry| parse(entry.file_name().to_str()?)).collect())
    }
}

/// "NAMESPACE_POD_UID"; none of them has an underscore.
fn parse(directory: &str) -> Option<(String, (String, String))> {
    let mut parts = directory.split('_');
    let (namespace, pod, uid) = (parts.next()?, parts.next()?, parts.next()?);
    let is_whole = parts.next().is_none() && is_label(namespace) && is_subdomain(pod) && is_uid(uid);
    is_whole.then(|| (uid.to_string(), (namespace.to_string(), pod.to_string())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_directories() {
        let uid = "1b2c3d4e-5f60-7182-93a4-b5c6d7e8f901";
        let of = |text: &str| parse(text).map(|(uid, (namespace, pod))| format!("{namespace} {pod} {uid}"));
        assert_eq!(of(&format!("shop_orders-0_{uid}")), Some(format!("shop orders-0 {uid}")));
        let bad = [
            "",
            "shop",
            "shop_orders",
            "shop_orders_0_1",
            "shop__1",
            "shop_a b_1",
            "Shop_a_1",
            "s_a\n_1",
            "s_a_",
        ];
        for text in bad {
            assert_eq!(of(text), None, "{text:?}");
        }
    }

    #[test]
    fn a_host_with_more_logs_than_are_read_still_answers() {
        let top = tempfile::tempdir().expect("a directory");
        let logs = top.path().join("var/log/pods");
        std::fs::create_dir_all(&logs).expect("directories");
        for number in 0..POD_LOGS_MAX + 10 {
            std::fs::create_dir(logs.join(format!("a_b-{number}_{number}"))).expect("a directory");
        }
        let host = HostRoot::at(top.path()).expect("opened");
        assert_eq!(host.read_pods().expect("read").len(), POD_LOGS_MAX);
        assert_eq!(host.pod("no-such-pod"), None);
        let named = (0..POD_LOGS_MAX + 10).filter_map(|number| host.pod(&number.to_string())).count();
        assert_eq!(named, POD_LOGS_MAX);
    }

    #[test]
    fn a_link_below_the_host_root_stays_below_it() {
        let top = tempfile::tempdir().expect("a directory");
        std::fs::create_dir_all(top.path().join("data/pods/shop_orders-0_1")).expect("directories");
        std::fs::create_dir_all(top.path().join("var/log")).expect("directories");
        std::os::unix::fs::symlink("/data/pods", top.path().join("var/log/pods")).expect("a link");
        let host = HostRoot::at(top.path()).expect("opened");
        assert_eq!(host.pod("1"), Some(("shop".to_string(), "orders-0".to_string())));
        assert_eq!(
            HostRoot::at(Path::new("/no/such/directory")).err().map(|it| it.kind()),
            Some(io::ErrorKind::NotFound)
        );
    }
}
