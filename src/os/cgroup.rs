//! `/proc/PID/cgroup`: in which container, pod or service a process runs, told by the names that container runtimes give
//! to cgroups. Versions 1 and 2, cgroupfs and systemd drivers.
//!
//! Format: cgroups(7). Names: runc `libcontainer/cgroups/systemd` (`docker-ID.scope`, `cri-containerd-ID.scope`,
//! `crio-ID.scope`), podman (`libpod-ID.scope`), Kubernetes `pkg/kubelet/cm` (`kubepods.../podUID/ID`), LXC (`lxc.payload`).

/// Where a process stands in the tree of cgroups.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cgroup {
    /// As the kernel prints it, below our own cgroup namespace's root.
    pub path: String,
    pub container: Option<Container>,
    /// The UID of the Kubernetes pod.
    pub pod: Option<String>,
    /// "tomcat.service", "session-2.scope".
    pub unit: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Container {
    /// "docker", "containerd", "cri-o", "podman", "lxc"; "container" when the path does not tell.
    pub runtime: &'static str,
    /// 64 hexadecimal digits, or the name with LXC.
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
        unit: path.rsplit('/').find(|segment| is_unit(segment)).map(str::to_string),
    };
    let groups: Vec<Cgroup> = paths.iter().map(of_path).collect();
    let best = groups.iter().find(|group| group.container.is_some());
    let best = best.or_else(|| groups.iter().find(|group| group.unit.is_some())).or(groups.first());
    best.cloned().unwrap_or_else(|| Cgroup { path: "/".to_string(), ..Cgroup::default() })
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

/// The id that a segment ends with, and what is before it: "docker-ID.scope", "ID".
fn id_of(segment: &str) -> Option<(&str, &str)> {
    const ID_LETTERS: usize = 64;
    let segment = segment.strip_suffix(".scope").or(segment.strip_suffix(".service")).unwrap_or(segment);
    let start = segment.len().checked_sub(ID_LETTERS)?;
    let (prefix, id) = (segment.get(..start)?, segment.get(start..)?);
    id.bytes().all(|letter| letter.is_ascii_hexdigit()).then_some((prefix, id))
}

fn runtime(prefix: &str, above: &str, path: &str) -> &'static str {
    let is = |word: &str| prefix.starts_with(word) || above.starts_with(word);
    match () {
        () if is("docker") => "docker",
        () if is("libpod") => "podman",
        () if is("crio") => "cri-o",
        () if is("cri-containerd") || is("nerdctl") || path.contains("kubepods") => "containerd",
        () => "container",
    }
}

/// "pod1b2c..." or "kubepods-burstable-pod1b2c_....slice", with the dashes of the UID back in place.
fn pod(segment: &str) -> Option<String> {
    let name = segment.strip_suffix(".slice").unwrap_or(segment);
    let uid = match name.strip_prefix("kubepods") {
        Some(rest) => rest.split_once("-pod")?.1,
        None => name.strip_prefix("pod")?,
    };
    let is_uid = uid.len() >= 32 && uid.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-' || b == b'_');
    is_uid.then(|| uid.replace('_', "-"))
}

fn is_unit(segment: &str) -> bool {
    (segment.ends_with(".service") || segment.ends_with(".scope")) && id_of(segment).is_none()
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
