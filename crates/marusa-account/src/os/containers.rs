//! The names of containers, from the files of the runtimes that made them; cgroups hold ids only. Root's to read.
//!
//! docker: /var/lib/docker/containers/ID/config.v2.json, "Name", and with Kubernetes the labels of its cri-dockerd. containerd
//! (Kubernetes, nerdctl): the annotations of the bundle's config.json, containerd `pkg/cri/annotations`. CRI-O: the same file,
//! with the
//! annotations that kubelet gives (cri-o `pkg/annotations`). podman: containers.json of its storage, "names".

use super::cgroup::Container;
use super::foreign::Root;
use super::small_file::start;
use serde_json::Value;

/// Largest of these files that is read, in bytes.
const FILE_BYTES_MAX: u64 = 8 << 20;
/// Namespaces of containerd that are looked into: Kubernetes has "k8s.io", nerdctl "default", Docker "moby".
const NAMESPACES_MAX: usize = 64;
const CONTAINERD: &str = "/run/containerd/io.containerd.runtime.v2.task";

/// What a runtime calls a container.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Names {
    pub namespace: Option<String>,
    pub pod: Option<String>,
    pub container: Option<String>,
    pub image: Option<String>,
}

/// `None` when no runtime's file below the host's root tells.
pub(super) fn names(container: &Container, host: &Root) -> Option<Names> {
    let id = &container.id;
    let json = |path: &str| json(host, path);
    match container.runtime {
        "docker" => docker(&json(&format!("/var/lib/docker/containers/{id}/config.v2.json"))?),
        "podman" => podman(&json("/var/lib/containers/storage/overlay-containers/containers.json")?, id),
        "cri-o" => annotated(&json(&format!(
            "/run/containers/storage/overlay-containers/{id}/userdata/config.json"
        ))?),
        "lxc" => Some(Names { container: Some(id.clone()), ..Names::default() }),
        _ => {
            let namespaces = host.directory(CONTAINERD).ok()?.flatten().take(NAMESPACES_MAX);
            let names = namespaces.filter_map(|entry| entry.file_name().into_string().ok());
            let bundle = |namespace: String| json(&format!("{CONTAINERD}/{namespace}/{id}/config.json"));
            names.filter_map(bundle).find_map(|config| annotated(&config))
        }
    }
}

fn json(host: &Root, path: &str) -> Option<Value> {
    let bytes = host.open(path).and_then(|file| start(file, FILE_BYTES_MAX)).ok()?;
    serde_json::from_slice(&bytes).ok()
}

fn docker(config: &Value) -> Option<Names> {
    let label = |key: &str| text(config.pointer("/Config/Labels")?, &format!("io.kubernetes.{key}"));
    let own = config.get("Name")?.as_str()?.trim_start_matches('/').to_string();
    Some(Names {
        namespace: label("pod.namespace"),
        pod: label("pod.name"),
        container: label("container.name").or(Some(own)),
        image: config.pointer("/Config/Image").and_then(Value::as_str).map(str::to_string),
    })
}

fn podman(containers: &Value, id: &str) -> Option<Names> {
    let mine = containers.as_array()?.iter().find(|it| it.get("id").and_then(Value::as_str) == Some(id))?;
    let name = mine.get("names")?.get(0)?.as_str()?.to_string();
    // A document within the document.
    let metadata = mine.get("metadata").and_then(|it| serde_json::from_str::<Value>(it.as_str()?).ok());
    let image = metadata.and_then(|it| text(&it, "image-name"));
    Some(Names { container: Some(name), image, ..Names::default() })
}

fn annotated(config: &Value) -> Option<Names> {
    let annotations = config.get("annotations")?;
    let first = |keys: [&str; 2]| keys.into_iter().find_map(|key| text(annotations, key));
    let names = Names {
        namespace: first(["io.kubernetes.cri.sandbox-namespace", "io.kubernetes.pod.namespace"]),
        pod: first(["io.kubernetes.cri.sandbox-name", "io.kubernetes.pod.name"]),
        container: first(["io.kubernetes.cri.container-name", "io.kubernetes.container.name"])
            .or_else(|| text(annotations, "nerdctl/name")),
        image: first(["io.kubernetes.cri.image-name", "io.kubernetes.cri-o.ImageName"]),
    };
    (names != Names::default()).then_some(names)
}

fn text(map: &Value, key: &str) -> Option<String> {
    Some(map.get(key)?.as_str()?.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn named([namespace, pod, container, image]: [&str; 4]) -> Option<Names> {
        let known = |text: &str| (!text.is_empty()).then(|| text.to_string());
        Some(Names {
            namespace: known(namespace),
            pod: known(pod),
            container: known(container),
            image: known(image),
        })
    }

    #[test]
    fn the_names_in_the_files_of_the_runtimes() {
        assert_eq!(
            docker(&json!({"Name": "/web", "Config": {"Image": "a:1"}})),
            named(["", "", "web", "a:1"])
        );
        let labels = json!({"io.kubernetes.pod.namespace": "shop", "io.kubernetes.pod.name": "orders-0",
            "io.kubernetes.container.name": "orders"});
        let config = json!({"Name": "/k8s_orders_orders-0_shop_1_0", "Config": {"Labels": labels}});
        assert_eq!(docker(&config), named(["shop", "orders-0", "orders", ""]));
        let metadata = "{\"image-name\": \"b:2\"}";
        let containers = json!([{"id": "ab", "names": ["db"], "metadata": metadata}]);
        assert_eq!(podman(&containers, "ab"), named(["", "", "db", "b:2"]));
        assert_eq!(podman(&json!([{"id": "ab", "names": ["db"]}]), "ab"), named(["", "", "db", ""]));
        let config = json!({"annotations": {
            "io.kubernetes.cri.sandbox-namespace": "shop",
            "io.kubernetes.cri.sandbox-name": "orders-7d4f",
            "io.kubernetes.cri.image-name": "c:3",
            "io.kubernetes.cri.container-name": "orders"}});
        assert_eq!(annotated(&config), named(["shop", "orders-7d4f", "orders", "c:3"]));
        let config = json!({"annotations": {
            "io.kubernetes.pod.namespace": "shop",
            "io.kubernetes.pod.name": "orders-7d4f",
            "io.kubernetes.container.name": "orders",
            "io.kubernetes.cri-o.ImageName": "d:4"}});
        assert_eq!(annotated(&config), named(["shop", "orders-7d4f", "orders", "d:4"]));
        assert_eq!(
            annotated(&json!({"annotations": {"nerdctl/name": "cache"}})),
            named(["", "", "cache", ""])
        );
        assert_eq!((annotated(&json!([1])), docker(&json!({"Name": 1}))), (None, None));
    }
}
