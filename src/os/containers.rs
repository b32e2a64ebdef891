//! The names of containers, from the files of the runtimes that made them; cgroups hold ids only. Root's to read.
//!
//! docker: /var/lib/docker/containers/ID/config.v2.json, "Name". containerd (Kubernetes, nerdctl): the annotations of the
//! bundle's config.json, containerd `pkg/cri/annotations`. podman: containers.json of its storage, "names".

use super::cgroup::Container;
use super::foreign;
use serde_json::Value;
use std::path::Path;

/// Largest of these files that is read, in bytes.
const FILE_BYTES_MAX: u64 = 8 << 20;
const CONTAINERD: &str = "/run/containerd/io.containerd.runtime.v2.task";

/// "web", "shop/orders-7d4f/orders" (namespace, pod, container); `None` when no runtime's file tells.
pub fn name(container: &Container) -> Option<String> {
    let id = &container.id;
    match container.runtime {
        "docker" => docker(&json(format!("/var/lib/docker/containers/{id}/config.v2.json"))?),
        "podman" => podman(&json("/var/lib/containers/storage/overlay-containers/containers.json")?, id),
        "lxc" => Some(id.clone()),
        _ => {
            let namespaces = std::fs::read_dir(CONTAINERD).ok()?;
            let bundle = |entry: std::fs::DirEntry| json(entry.path().join(id).join("config.json"));
            namespaces.flatten().filter_map(bundle).find_map(|config| containerd(&config))
        }
    }
}

fn json(path: impl AsRef<Path>) -> Option<Value> {
    let bytes = foreign::open(path.as_ref()).and_then(|file| foreign::start(file, FILE_BYTES_MAX)).ok()?;
    serde_json::from_slice(&bytes).ok()
}

fn docker(config: &Value) -> Option<String> {
    Some(config.get("Name")?.as_str()?.trim_start_matches('/').to_string())
}

fn podman(containers: &Value, id: &str) -> Option<String> {
    let mine = containers.as_array()?.iter().find(|it| it.get("id").and_then(Value::as_str) == Some(id))?;
    Some(mine.get("names")?.get(0)?.as_str()?.to_string())
}

fn containerd(config: &Value) -> Option<String> {
    let text = |key: &str| config.get("annotations")?.get(key)?.as_str();
    if let Some(name) = text("nerdctl/name") {
        return Some(name.to_string());
    }
    let cri = |key: &str| text(&format!("io.kubernetes.cri.{key}"));
    let parts: Vec<&str> =
        ["sandbox-namespace", "sandbox-name", "container-name"].into_iter().filter_map(cri).collect();
    (!parts.is_empty()).then(|| parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_names_in_the_files_of_three_runtimes() {
        assert_eq!(docker(&json!({"Name": "/web"})).as_deref(), Some("web"));
        assert_eq!(podman(&json!([{"id": "ab", "names": ["db"]}]), "ab").as_deref(), Some("db"));
        let annotations = json!({"annotations": {
            "io.kubernetes.cri.sandbox-namespace": "shop",
            "io.kubernetes.cri.sandbox-name": "orders-7d4f",
            "io.kubernetes.cri.container-name": "orders"}});
        assert_eq!(containerd(&annotations).as_deref(), Some("shop/orders-7d4f/orders"));
        assert_eq!(containerd(&json!([1])), None);
    }
}
