//! A JVM in a cgroup and with mounts as kubelet and containerd make them: its pod and its container have names, from the host's
//! directories or from its own root, and whatever lies there in place of a name is not waited for or believed.

use crate::common::small_group::Group;
use crate::common::*;
use marusa::os::identity::{HostRoot, Identity, jvm_id, of};
use marusa::os::process::Process;
use serde_json::Value;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

const ROOM: u64 = 1 << 30;
const POD: &str = "orders-7d4f8b9c6d-x2x4z";
const ID: &str = "3f4e5a6b7c8d9e0f3f4e5a6b7c8d9e0f3f4e5a6b7c8d9e0f3f4e5a6b7c8d9e0f";
/// What kubelet and the runtime mount, in a mount namespace of its own: $0 is kubelet's directory of the container, $1 the
/// hostname.
const MOUNTS: &str = "mount -t tmpfs dev /dev && mknod -m 666 /dev/null c 1 3 && mknod -m 666 /dev/urandom c 1 9 && \
    mknod -m 666 /dev/random c 1 8 && touch /dev/termination-log && mount --bind \"$0\" /dev/termination-log && \
    mount --bind \"$1\" /etc/hostname && mount -t tmpfs run /run && mkdir -p /run/secrets/kubernetes.io/serviceaccount && \
    echo shop > /run/secrets/kubernetes.io/serviceaccount/namespace && shift && exec \"$@\"";

struct Pod {
    jvm: Jvm,
    uid: String,
    top: tempfile::TempDir,
    _group: Group,
}

impl Pod {
    /// `None`: it cannot be made here.
    fn start() -> Option<Pod> {
        if !is_root() {
            skip("only root can mount");
            return None;
        }
        let java = java("21")?;
        let uid = format!("1b2c3d4e-5f60-7182-93a4-{:012x}", std::process::id());
        let name = format!("kubepods-burstable-pod{}.slice:cri-containerd:{ID}", uid.replace('-', "_"));
        let Some(group) = Group::named(&name, ROOM) else {
            skip("no cgroup can be made here");
            return None;
        };
        let top = tempfile::tempdir().expect("a directory");
        let container = top.path().join(format!("var/lib/kubelet/pods/{uid}/containers/orders"));
        fs::create_dir_all(&container).expect("directories");
        fs::write(container.join("7a1b2c3d"), "").expect("a file");
        fs::write(top.path().join("hostname"), format!("{POD}\n")).expect("a file");
        let mut command = group.command("unshare");
        command.args(["--mount", "--propagation", "private", "sh", "-c", MOUNTS]);
        command.args([container.join("7a1b2c3d"), top.path().join("hostname")]).arg(java);
        command.args(["-Xmx50m", "-cp"]).arg(root().join("java/build-out")).args([
            "marusa.Load",
            "heap=5m",
            "quiet=1",
        ]);
        Some(Pod { jvm: Jvm::of(command), uid, top, _group: group })
    }

    /// Below the temporary host root.
    fn logs(&self) -> PathBuf {
        self.top.path().join("var/log/pods")
    }

    fn identity(&self) -> Identity {
        let process = Process::open(self.jvm.pid).expect("it runs");
        of(&process, &HostRoot::at(self.top.path()).expect("a directory"))
    }

    fn in_its_root(&self, path: &str) -> PathBuf {
        Path::new("/proc").join(self.jvm.pid.to_string()).join("root").join(path)
    }
}

fn fifo(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().expect("mkfifo").success());
}

#[test]
fn a_pod_by_its_logs_by_its_own_files_and_by_nothing() {
    let Some(pod) = Pod::start() else { return };
    // Nothing on the host names it: its own files do.
    let expected = Identity {
        namespace: Some("shop".to_string()),
        pod: Some(POD.to_string()),
        pod_uid: Some(pod.uid.clone()),
        workload: Some("orders".to_string()),
        container: Some("orders".to_string()),
        container_id: Some(ID.to_string()),
        runtime: Some("containerd".to_string()),
        ..Identity::default()
    };
    assert_eq!(pod.identity(), expected);
    let output = marusa(&["list", "--json"]);
    let list: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let jvms = list["jvms"].as_array().expect("an array");
    let row = jvms.iter().find(|row| row["pid"] == pod.jvm.pid).expect("listed");
    assert_eq!(row["container_name"], format!("shop/{POD}/orders"), "{row}");
    // The host's word counts more than the pod's, and its bundle has the image.
    fs::create_dir_all(pod.logs().join(format!("prod_billing-0_{}", pod.uid))).expect("directories");
    fs::create_dir_all(pod.logs().join(format!("a_b_c_{}", pod.uid))).expect("directories");
    let bundle = pod.top.path().join(format!("run/containerd/io.containerd.runtime.v2.task/k8s.io/{ID}"));
    fs::create_dir_all(&bundle).expect("directories");
    let config = "{\"annotations\": {\"io.kubernetes.cri.image-name\": \"registry/orders:1\", \
                  \"io.kubernetes.cri.sandbox-name\": \"lie\", \"io.kubernetes.cri.container-name\": \"lie\"}}";
    fs::write(bundle.join("config.json"), config).expect("written");
    let named = Identity {
        namespace: Some("prod".to_string()),
        pod: Some("billing-0".to_string()),
        workload: Some("billing".to_string()),
        image: Some("registry/orders:1".to_string()),
        ..expected.clone()
    };
    assert_eq!(pod.identity(), named);
    fs::remove_dir_all(pod.top.path().join("run")).expect("removed");
    fs::remove_dir_all(pod.logs()).expect("removed");
    traps(&pod, &expected);
    let process = Process::open(pod.jvm.pid).expect("it runs");
    assert_eq!(jvm_id(&process), jvm_id(&Process::open(pod.jvm.pid).expect("it runs")));
}

/// In place of the names that the pod has in its root.
fn traps(pod: &Pod, expected: &Identity) {
    let account = pod.in_its_root("run/secrets/kubernetes.io/serviceaccount/namespace");
    let hostname = pod.top.path().join("hostname");
    let of_account = |lay: &dyn Fn()| {
        fs::remove_file(&account).expect("removed");
        lay();
        let found = pod.identity();
        assert_eq!(found.pod, expected.pod);
        found.namespace
    };
    assert_eq!(of_account(&|| fifo(&account)), None);
    assert_eq!(of_account(&|| symlink("/proc/self/root/etc/shadow", &account).expect("a link")), None);
    assert_eq!(of_account(&|| fs::write(&account, "a\u{1b}[2Jb\nc").expect("written")), None);
    assert_eq!(of_account(&|| fs::write(&account, vec![b'a'; 10 << 20]).expect("written")), None);
    for bad in ["a b", "../x", "\u{1b}]0;x\u{7}", "", "UPPER"] {
        fs::write(&hostname, bad).expect("written");
        assert_eq!((pod.identity().pod, pod.identity().workload), (None, None), "{bad:?}");
    }
    // A pod on the host's network has the host's name.
    fs::write(&hostname, "node-1\n").expect("written");
    fs::create_dir_all(pod.top.path().join("etc")).expect("a directory");
    fs::write(pod.top.path().join("etc/hostname"), "node-1\n").expect("written");
    let found = pod.identity();
    assert_eq!((found.pod, found.pod_uid), (None, expected.pod_uid.clone()));
}
