//! `/proc/PID/cgroup`: in which container, pod or service a process runs, by the names that container runtimes give to
//! cgroups. Versions 1 and 2, cgroupfs and systemd drivers.
//!
//! Format: cgroups(7). Names: runc `libcontainer/cgroups/systemd` (`docker-ID.scope`, `cri-containerd-ID.scope`,
//! `crio-ID.scope`), podman (`libpod-ID.scope`), Kubernetes `pkg/kubelet/cm` (`kubepods.../podUID/ID`), LXC (`lxc.payload`),
//! Amazon ECS (`/ecs/TASK/ID`; amazon-ecs-agent `agent/taskresource/cgroup`), Talos (`/podruntime/kubelet`, `/system/apid`; talos
//! `pkg/machinery/constants`). An id in any other form is not taken: desktops name scopes by UUIDs, too.

use std::path::{Path, PathBuf};

/// Where a process stands in the tree of cgroups.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cgroup {
    /// As the kernel prints it, below our own cgroup namespace's root.
    pub path: String,
    pub container: Option<Container>,
    /// The UID of the Kubernetes pod.
    pub pod: Option<String>,
    /// "tomcat.service", "session-2.scope"; on Talos the name of the service.
    pub unit: Option<String>,
    /// The id of the Amazon ECS task.
    pub task: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Container {
    /// "docker", "containerd", "cri-o", "podman", "ecs", "lxc"; "container" when the path does not tell.
    pub runtime: &'static str,
    /// 64 hexadecimal digits; of ECS on Fargate 32, a dash and a number; the name with LXC.
    pub id: String,
}

impl Cgroup {
    /// The container's id, else the path of a cgroup that is not the root, as people would name it.
    pub fn label(&self) -> Option<String> {
        let group = || (self.path != "/" && !self.path.is_empty()).then(|| self.path.clone());
        self.container.as_ref().map(|container| container.id.clone()).or_else(group)
    }
}

/// A label as people read it: the 12 digits of an id that docker shows, the last name of a path; a container's name as it is.
pub fn short(label: &str) -> &str {
    // Of docker and containerd 64; of others a UUID without hyphens.
    const ID_DIGITS: (usize, usize) = (32, 12);
    let last = if label.starts_with('/') { label.rsplit('/').next().unwrap_or(label) } else { label };
    let is_id = last.len() >= ID_DIGITS.0 && last.bytes().all(|digit| digit.is_ascii_hexdigit());
    if is_id { &last[..ID_DIGITS.1] } else { last }
}

/// Parses `hierarchy:controllers:path` lines.
pub fn parse(text: &str) -> Cgroup {
    let lines: Vec<(&str, &str)> = text
        .lines()
        .filter_map(|line| {
            let mut fields = line.splitn(3, ':');
            Some((fields.nth(1)?, fields.next()?))
        })
        .collect();
    // With version 1 the hierarchies may differ: a container shows in most, a service in systemd's only.
    let mut paths: Vec<&str> = Vec::new();
    for wanted in ["", "memory", "name=systemd", "pids", "cpu"] {
        let of_wanted = lines.iter().filter(|(names, _)| names.split(',').any(|name| name == wanted));
        paths.extend(of_wanted.map(|(_, path)| path));
    }
    paths.retain(|path| *path != "/" && !path.is_empty());
    let of_path = |path: &&str| Cgroup {
        path: path.to_string(),
        container: container(path),
        pod: path.split('/').find_map(pod),
        unit: unit(path).map(str::to_string),
        task: task(path).map(str::to_string),
    };
    let groups: Vec<Cgroup> = paths.iter().map(of_path).collect();
    let best = groups.iter().find(|group| group.container.is_some());
    let best = best.or_else(|| groups.iter().find(|group| group.unit.is_some())).or(groups.first());
    best.cloned().unwrap_or_else(|| Cgroup { path: "/".to_string(), ..Cgroup::default() })
}

/// The path of a process's group in the hierarchy of a controller, by its /proc/PID/cgroup; "": in that of version 2.
pub(super) fn path_in<'a>(groups: &'a str, controller: &str) -> Option<&'a str> {
    groups.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let names = fields.next()?;
        names.split(',').any(|name| name == controller).then(|| fields.next())?
    })
}

/// The directories of a controller for one line of /proc/PID/cgroup: the group and all above it, where they usually are.
pub(super) fn directories(line: &str, controller: &str) -> Vec<PathBuf> {
    let mut fields = line.splitn(3, ':').skip(1);
    let (names, path) = (fields.next().unwrap_or(""), fields.next().unwrap_or(""));
    let Some(path) = path.strip_prefix('/') else { return Vec::new() };
    let root = match names {
        "" => PathBuf::from("/sys/fs/cgroup"),
        names if names.split(',').any(|name| name == controller) => Path::new("/sys/fs/cgroup").join(names),
        _ => return Vec::new(),
    };
    Path::new(path).ancestors().map(|below| root.join(below)).collect()
}

/// The innermost container of a path.
fn container(path: &str) -> Option<Container> {
    let segments: Vec<&str> = path.split('/').collect();
    let mut found = None;
    for (index, segment) in segments.iter().enumerate() {
        let above = index.checked_sub(1).map_or("", |above| segments[above]);
        if let Some(name) = segment.strip_prefix("lxc.payload.") {
            found = Some(Container { runtime: "lxc", id: name.to_string() });
        } else if above == "lxc" && !segment.is_empty() {
            found = Some(Container { runtime: "lxc", id: segment.to_string() });
        } else if let Some((prefix, id)) = id_of(segment) {
            found = Some(Container { runtime: runtime(prefix, above, path), id: id.to_string() });
        }
    }
    found
}

/// The id that a segment ends with, and what is before it: "docker-ID.scope", "ID". What watches a container (conmon) has a
/// scope of its own, with the container's id, and is not in the container.
fn id_of(segment: &str) -> Option<(&str, &str)> {
    let segment = bare(segment);
    let is_watcher = |prefix: &&str| prefix.ends_with("conmon-");
    let (prefix, id) = if is_fargate_id(segment) {
        ("ecs", segment)
    } else {
        let start = segment.len().checked_sub(ID_DIGITS)?;
        (segment.get(..start)?, segment.get(start..).filter(|id| is_hexadecimal(id))?)
    };
    (!is_watcher(&prefix)).then_some((prefix, id))
}

const ID_DIGITS: usize = 64;
const TASK_DIGITS: usize = 32;

/// The name of a unit of systemd without its kind.
fn bare(segment: &str) -> &str {
    segment.strip_suffix(".scope").or(segment.strip_suffix(".service")).unwrap_or(segment)
}

fn is_hexadecimal(text: &str) -> bool {
    text.bytes().all(|letter| letter.is_ascii_hexdigit())
}

/// The id of the task, a dash and a number.
fn is_fargate_id(segment: &str) -> bool {
    let parts = segment.split_once('-').filter(|(task, _)| task.len() == TASK_DIGITS && is_hexadecimal(task));
    parts.is_some_and(|(_, number)| {
        (1..=20).contains(&number.len()) && number.bytes().all(|digit| digit.is_ascii_digit())
    })
}

/// "/ecs/TASK/ID", "/ecstasks.slice/ecstasks-TASK.slice/docker-ID.scope".
fn task<'a>(path: &'a str) -> Option<&'a str> {
    let segments: Vec<&'a str> = path.split('/').collect();
    let after = segments.iter().position(|segment| *segment == "ecs").and_then(|at| segments.get(at + 1));
    let of_slice =
        |segment: &&'a str| -> Option<&'a str> { segment.strip_prefix("ecstasks-")?.strip_suffix(".slice") };
    let of_id = || segments.iter().find(|segment| is_fargate_id(segment))?.split('-').next();
    let named = after.copied().or_else(|| segments.iter().find_map(of_slice));
    let is_task = |task: &&str| {
        (TASK_DIGITS..=36).contains(&task.len()) && task.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-')
    };
    named.filter(is_task).or_else(of_id)
}

fn runtime(prefix: &str, above: &str, path: &str) -> &'static str {
    let is = |word: &str| prefix.starts_with(word) || above.starts_with(word);
    match () {
        () if prefix == "ecs" => "ecs",
        () if is("docker") => "docker",
        () if is("libpod") => "podman",
        () if is("crio") => "cri-o",
        () if is("cri-containerd") || is("nerdctl") || path.contains("kubepods") => "containerd",
        () => "container",
    }
}

/// "pod1b2c..." or "kubepods-burstable-pod1b2c_....slice", with the dashes of the UID back in place. containerd without
/// systemd's driver on a host with its slices: "kubepods-burstable-pod1b2c_....slice:cri-containerd:ID".
fn pod(segment: &str) -> Option<String> {
    let name = segment.split(':').next().unwrap_or(segment);
    let name = name.strip_suffix(".slice").unwrap_or(name);
    let uid = match name.strip_prefix("kubepods") {
        Some(rest) => rest.split_once("-pod")?.1,
        None => name.strip_prefix("pod")?,
    };
    let is_uid = (32..=64).contains(&uid.len())
        && uid.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-' || b == b'_');
    is_uid.then(|| uid.replace('_', "-"))
}

/// The innermost one.
fn unit(path: &str) -> Option<&str> {
    let is_container = |segment: &str| bare(segment).len() >= ID_DIGITS && id_of(segment).is_some();
    let is_unit = |segment: &&str| {
        (segment.ends_with(".service") || segment.ends_with(".scope")) && !is_container(segment)
    };
    let of_talos = || {
        let mut segments = path.strip_prefix('/')?.split('/');
        let is_talos = matches!(segments.next(), Some("podruntime" | "system"));
        segments.next().filter(|name| is_talos && !name.is_empty())
    };
    path.rsplit('/').find(is_unit).or_else(of_talos)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "3f4e5a6b7c8d9e0f3f4e5a6b7c8d9e0f3f4e5a6b7c8d9e0f3f4e5a6b7c8d9e0f";

    fn of(text: &str) -> (Option<&'static str>, Option<String>) {
        let group = parse(&text.replace("ID", ID));
        (group.container.as_ref().map(|container| container.runtime), group.pod)
    }

    #[test]
    fn a_label_as_people_read_it() {
        let id = "0123456789abcdef".repeat(4);
        assert_eq!((short(&id), short(&format!("/docker/{id}"))), ("0123456789ab", "0123456789ab"));
        assert_eq!(
            (short("/system.slice/a.service"), short("shop/orders"), short("")),
            ("a.service", "shop/orders", "")
        );
    }

    #[test]
    fn docker_podman_and_kubernetes_in_both_versions() {
        assert_eq!(of("12:memory:/docker/ID\n1:name=systemd:/docker/ID\n").0, Some("docker"));
        assert_eq!(of("0::/system.slice/docker-ID.scope\n").0, Some("docker"));
        assert_eq!(of("0::/machine.slice/libpod-ID.scope/container\n").0, Some("podman"));
        let pod = "0::/kubepods.slice/kubepods-burstable-pod1b2c3d4e_5f60_7182_93a4_b5c6d7e8f901.slice/\
                   cri-containerd-ID.scope\n";
        assert_eq!(of(pod), (Some("containerd"), Some("1b2c3d4e-5f60-7182-93a4-b5c6d7e8f901".to_string())));
        let pod = "4:memory:/kubepods/besteffort/pod1b2c3d4e-5f60-7182-93a4-b5c6d7e8f901/ID\n";
        assert_eq!(of(pod), (Some("containerd"), Some("1b2c3d4e-5f60-7182-93a4-b5c6d7e8f901".to_string())));
        assert_eq!(of("0::/lxc.payload.web/system.slice/tomcat.service\n").0, Some("lxc"));
        let pod = "0::/system.slice/containerd.service/kubepods-burstable-pod1b2c3d4e_5f60_7182_93a4_b5c6d7e8f901.slice:\
                   cri-containerd:ID\n";
        assert_eq!(of(pod), (Some("containerd"), Some("1b2c3d4e-5f60-7182-93a4-b5c6d7e8f901".to_string())));
        assert_eq!(of("0::/system.slice/docker-ID.scope/init\n").0, Some("docker"));
        // A sibling and another pod, seen from within a cgroup namespace.
        let pod = "0::/../../kubepods-pod1b2c3d4e_5f60_7182_93a4_b5c6d7e8f901.slice/crio-ID.scope\n";
        assert_eq!(of(pod), (Some("cri-o"), Some("1b2c3d4e-5f60-7182-93a4-b5c6d7e8f901".to_string())));
    }

    #[test]
    fn tasks_of_ecs_and_what_is_no_container() {
        const TASK: &str = "0123456789abcdef0123456789abcdef";
        let of = |path: &str| {
            let group = parse(&format!("0::{}\n", path.replace("ID", ID).replace("TASK", TASK)));
            (group.container.map(|it| (it.runtime, it.id)), group.task, group.unit)
        };
        let (task, none) = (Some(TASK.to_string()), None::<String>);
        let fargate = Some(("ecs", format!("{TASK}-1234567890")));
        assert_eq!(of("/ecs/TASK/TASK-1234567890"), (fargate, task.clone(), none.clone()));
        let on_ec2 = Some(("container", ID.to_string()));
        assert_eq!(of("/ecs/TASK/ID"), (on_ec2, task.clone(), none.clone()));
        let slice = of("/ecstasks.slice/ecstasks-TASK.slice/docker-ID.scope");
        assert_eq!(slice, (Some(("docker", ID.to_string())), task, none.clone()));
        let conmon = of("/kubepods.slice/crio-conmon-ID.scope");
        assert_eq!((conmon.0, conmon.1), (None, None));
        let uuid = "app-gnome-0f5c1a90-6d1e-4d5e-8a46-8f0f2a1cf0ab.scope";
        assert_eq!(of(&format!("/user.slice/{uuid}")), (None, None, Some(uuid.to_string())));
        assert_eq!(of("/podruntime/kubelet"), (None, None, Some("kubelet".to_string())));
        assert_eq!(of("/system/apid"), (None, None, Some("apid".to_string())));
        assert_eq!(of("/ecs/.../x"), (None, None, None));
    }

    #[test]
    fn a_container_in_a_container_is_named_by_the_inner_one() {
        let inner = ID.replace('3', "4");
        let group = parse(&format!("0::/docker/{ID}/docker/{inner}\n"));
        assert_eq!(group.container.map(|container| container.id), Some(inner));
    }

    #[test]
    fn a_service_and_the_root() {
        let group = parse("5:memory:/\n1:name=systemd:/system.slice/tomcat.service\n0::/\n");
        assert_eq!(group.unit.as_deref(), Some("tomcat.service"));
        assert_eq!(group.label().as_deref(), Some("/system.slice/tomcat.service"));
        assert_eq!(parse("0::/\n").label(), None);
        assert_eq!(parse("nonsense").label(), None);
    }
}
