use super::*;

const ID: &str = "3f4e5a6b7c8d9e0f3f4e5a6b7c8d9e0f3f4e5a6b7c8d9e0f3f4e5a6b7c8d9e0f";
const UID: &str = "1b2c3d4e-5f60-7182-93a4-b5c6d7e8f901";
const TASK: &str = "0123456789abcdef0123456789abcdef";

fn filled(text: &str) -> String {
    let escaped = UID.replace('-', "_");
    text.replace("UID_", &escaped).replace("UID", UID).replace("TASK", TASK).replace("ID", ID)
}

fn of_texts(groups: &str, mountinfo: &str) -> Identity {
    by_kernel(&cgroup::parse(&filled(groups)), || filled(mountinfo))
}

/// What a pod's container has at its termination message, below a root and a mount point that nodes choose.
const MOUNTS: &str = "700 690 0:45 / / rw - overlay overlay rw,lowerdir=/a\n\
    701 700 0:46 / /proc rw - proc proc rw\n\
    702 700 8:1 /var/lib/kubelet/pods/UID/etc-hosts /etc/hosts rw - ext4 /dev/sda1 rw\n\
    703 700 8:1 /var/lib/kubelet/pods/UID/containers/orders/7a1b2c3d /dev/termination-log rw - ext4 /dev/sda1 rw\n\
    704 700 0:50 / /var/run/secrets/kubernetes.io/serviceaccount ro - tmpfs tmpfs rw\n";

#[test]
fn pods_of_kubelet_with_containerd_and_cri_o() {
    let containerd = "0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podUID_.slice/cri-containerd-ID.scope\n";
    let crio = "0::/kubepods.slice/kubepods-podUID_.slice/crio-ID.scope\n";
    let version_1 =
        "5:memory:/kubepods/besteffort/podUID/ID\n1:name=systemd:/kubepods/besteffort/podUID/ID\n";
    for (groups, runtime) in [(containerd, "containerd"), (crio, "cri-o"), (version_1, "containerd")] {
        let expected = Identity {
            pod_uid: Some(UID.to_string()),
            container: Some("orders".to_string()),
            container_id: Some(ID.to_string()),
            runtime: Some(runtime.to_string()),
            ..Identity::default()
        };
        assert_eq!(of_texts(groups, MOUNTS), expected, "{groups}");
        // Where /var/lib is a file system of its own, the root begins below it.
        assert_eq!(of_texts(groups, &MOUNTS.replace("/var/lib/kubelet", "/kubelet")), expected);
        assert_eq!(of_texts(groups, "").container, None);
    }
    // A path that does not tell: the mounts do.
    let masked = of_texts("0::/\n", MOUNTS);
    assert_eq!((masked.pod_uid.as_deref(), masked.container.as_deref()), (Some(UID), Some("orders")));
}

#[test]
fn docker_podman_ecs_talos_and_systemd() {
    let of = |path: &str| {
        let identity = of_texts(&format!("0::{path}\n"), MOUNTS.split("702").next().expect("its start"));
        let Identity { runtime, container_id, unit, task, pod_uid, .. } = identity;
        assert_eq!(pod_uid, None, "{path}");
        (runtime.unwrap_or_default(), container_id.unwrap_or_default(), unit.or(task).unwrap_or_default())
    };
    let row = |runtime: &str, id: &str, other: &str| (runtime.to_string(), id.to_string(), other.to_string());
    assert_eq!(of("/system.slice/docker-ID.scope/init"), row("docker", ID, ""));
    assert_eq!(of("/machine.slice/libpod-ID.scope/container"), row("podman", ID, ""));
    assert_eq!(of("/ecs/TASK/TASK-1234567890"), row("ecs", &format!("{TASK}-1234567890"), TASK));
    assert_eq!(of("/podruntime/kubelet"), row("", "", "kubelet"));
    assert_eq!(of("/system.slice/tomcat.service"), row("", "", "tomcat.service"));
    assert_eq!(of("/user.slice/user-1000.slice/session-2.scope"), row("", "", "session-2.scope"));
    assert_eq!(of("/"), row("", "", ""));
    // Docker in its own cgroup has no pod, and its mounts name none.
    assert_eq!(of("/lxc.payload.web/system.slice/tomcat.service"), row("lxc", "web", ""));
}

#[test]
fn mounts_that_lie_are_not_believed() {
    let groups = "0::/kubepods.slice/kubepods-podUID_.slice/crio-ID.scope\n";
    let other = MOUNTS.replace("pods/UID", "pods/99999999-5f60-7182-93a4-b5c6d7e8f901");
    assert_eq!(of_texts(groups, &other).container, None, "another pod's");
    for name in ["a b", "a\\012b", "..", "A", "-a", "a\u{1b}[2J", "a\"b", ""] {
        let lying = MOUNTS.replace("containers/orders", &format!("containers/{name}"));
        assert_eq!(of_texts(groups, &lying).container, None, "{name:?}");
    }
    let service = of_texts("0::/system.slice/kubelet.service\n", MOUNTS);
    assert_eq!((service.container, service.unit.as_deref()), (None, Some("kubelet.service")));
    let unit = of_texts("0::/system.slice/a\u{1b}[2Jb.service\n", "");
    assert_eq!(unit, Identity::default());
    assert_eq!(by_mounts(&"x".repeat(10 << 20), None), None);
    assert_eq!(by_mounts("1 2 3\n\n/pods/a/containers/b/c\n", None), None);
}

#[test]
fn a_runtimes_names_fill_what_is_missing_and_are_checked() {
    let names = |pod: &str, container: &str| Names {
        namespace: Some("shop".to_string()),
        pod: Some(pod.to_string()),
        container: Some(container.to_string()),
        image: Some("a:1".to_string()),
    };
    let mut identity = Identity::default();
    identity.add(names("orders-0", "orders"));
    identity.add(names("other", "other"));
    assert_eq!(identity.name().as_deref(), Some("shop/orders-0/orders"));
    let mut identity = Identity::default();
    identity.add(names("a\nb", "a\u{1b}b"));
    assert_eq!((identity.name(), identity.image.as_deref()), (None, Some("a:1")));
}

#[test]
fn this_very_process_and_its_id() {
    let me = Process::own().expect("myself");
    let identity = of(&me, &HostRoot::usual());
    assert_eq!(identity.pod.is_some(), identity.workload.is_some());
    let id = jvm_id(&me).expect("an id");
    assert!(id.len() == 32 && id.bytes().all(|digit| digit.is_ascii_hexdigit()), "{id}");
    assert_eq!(jvm_id(&Process::own().expect("myself")).expect("an id"), id);
    let child = std::process::Command::new("sleep").arg("60").spawn();
    let Ok(mut child) = child else { return };
    let other = Process::open(child.id() as i32).map(|process| jvm_id(&process).expect("an id"));
    child.kill().and_then(|()| child.wait()).expect("ended");
    assert_ne!(other.expect("opened"), id);
}

#[test]
fn the_hash_is_the_published_one() {
    // draft-eastlake-fnv, appendix C: the hashes of "" and "a".
    assert_eq!(fnv_1a(b""), 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d);
    assert_eq!(fnv_1a(b"a"), 0xd228_cb69_6f1a_8caf_7891_2b70_4e4a_8964);
}

#[test]
fn a_host_that_is_not_there_and_files_that_are_traps() {
    let top = tempfile::tempdir().expect("a directory");
    let host = HostRoot::at(top.path()).expect("opened");
    assert_eq!((host.pod(UID), host.name()), (None, None));
    std::fs::create_dir_all(top.path().join("etc")).expect("a directory");
    let hostname = top.path().join("etc/hostname");
    std::fs::write(&hostname, "node-1\n").expect("written");
    assert_eq!(host.name().as_deref(), Some("node-1"));
    std::fs::remove_file(&hostname).expect("removed");
    std::os::unix::fs::symlink("/dev/zero", &hostname).expect("a link");
    assert_eq!(host.name(), None, "it leads out of the root");
    std::fs::remove_file(&hostname).expect("removed");
    let path = std::ffi::CString::new(hostname.to_str().expect("UTF-8")).expect("no NUL");
    // SAFETY: the path is a NUL-terminated string that outlives the call.
    assert_eq!(unsafe { libc::mkfifo(path.as_ptr(), 0o644) }, 0);
    assert_eq!(host.name(), None, "a FIFO");
}
