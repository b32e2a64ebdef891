//! The plan for containers. Pages of hugetlb are the host's: a container can be limited in them, but not give itself any.
//!
//! OCI runtime-spec, config-linux.md ("hugepageLimits"); Kubernetes, "Manage HugePages": whole pages, requests equal to limits, no
//! overcommit, memory or CPU requested besides. Anonymous MAP_HUGETLB, which HotSpot uses, needs no volume; shmget(SHM_HUGETLB)
//! needs the group of vm.hugetlb_shm_group.

use crate::act::door::content::limit_line;
use crate::base::Bytes;
use crate::pages::types::{How, Mode, Plan, Vm};

/// What a JVM has next to its heap, until it is measured: half a GiB and an eighth of the heap.
fn other_bytes(plan: &Plan) -> Bytes {
    (512 << 20) + plan.subject.heap_max_bytes / 8
}

/// Memory that counts against the container's limit; hugetlb does not (unless memory_hugetlb_accounting is set).
fn memory_mib(plan: &Plan) -> u64 {
    let heap = if plan.mode == Mode::Thp { plan.subject.heap_max_bytes } else { 0 };
    heap.saturating_add(other_bytes(plan)) >> 20
}

/// Pages of one JVM.
fn pages(plan: &Plan) -> impl Iterator<Item = (Bytes, u64)> + '_ {
    let instances = plan.outlook.instances.max(1);
    plan.pools.iter().map(move |pool| (pool.page_bytes, pool.pages / instances))
}

fn group(plan: &Plan) -> Option<String> {
    let put = plan.outlook.shm.iter().find(|put| put.file == "/proc/sys/vm/hugetlb_shm_group");
    put.map(|put| put.value.to_string())
}

fn uses_shm(plan: &Plan) -> bool {
    plan.mode != Mode::Thp
        && (plan.subject.vm == Vm::OpenJ9 || plan.jvm_options.iter().any(|option| option == "-XX:+UseSHM"))
}

pub fn docker(plan: &Plan) -> String {
    let mut text = "# The pages are the host's: apply the plan there first. No option limits them, and --shm-size is not needed.\n\
                    # --memory does not count hugetlb; what the JVM has besides is an estimate: measure it with marusa map.\n"
        .to_string();
    let mut words = vec!["docker run".to_string()];
    words.push(format!("--memory={}m", memory_mib(plan)));
    words.push(format!("--cpus={}", plan.subject.cpus));
    if uses_shm(plan) {
        match group(plan) {
            Some(group) => words.push(format!("--group-add {group}")),
            None => {
                let bytes: Bytes = pages(plan).map(|(bytes, pages)| bytes.saturating_mul(pages)).sum();
                words.push(format!("--ulimit memlock={bytes}"));
            }
        }
    }
    words.push(format!("-e JAVA_TOOL_OPTIONS='{}'", plan.jvm_options.join(" ")));
    words.push("IMAGE".to_string());
    text.push_str(&words.join(" \\\n  "));
    text.push('\n');
    let limits: Vec<String> = pages(plan)
        .map(|(bytes, pages)| {
            let size =
                if bytes >= 1 << 30 { format!("{}GB", bytes >> 30) } else { format!("{}MB", bytes >> 20) };
            format!("{{\"pageSize\": \"{size}\", \"limit\": {}}}", bytes.saturating_mul(pages))
        })
        .collect();
    if !limits.is_empty() {
        text.push_str(
            "# config.json of an OCI runtime, where the container is to have these pages and no more:\n",
        );
        text.push_str(&format!(
            "# \"linux\": {{\"resources\": {{\"hugepageLimits\": [{}]}}}}\n",
            limits.join(", ")
        ));
    }
    text
}

pub fn kubernetes(plan: &Plan) -> String {
    let name: String = plan.outlook.name.chars().take(63).collect();
    let name = name.trim_matches('-');
    let resources = |indent: &str| {
        let mut lines =
            format!("{indent}memory: {}Mi\n{indent}cpu: \"{}\"\n", memory_mib(plan), plan.subject.cpus);
        for (bytes, pages) in pages(plan) {
            let (size, each) = if bytes >= 1 << 30 { ("1Gi", 1024) } else { ("2Mi", 2) };
            lines.push_str(&format!("{indent}hugepages-{size}: {}Mi\n", pages.saturating_mul(each)));
        }
        lines
    };
    let mut text = node(plan);
    text.push_str(&format!("apiVersion: v1\nkind: Pod\nmetadata:\n  name: {name}\nspec:\n"));
    if let (true, Some(group)) = (uses_shm(plan), group(plan)) {
        text.push_str(&format!("  securityContext:\n    supplementalGroups: [{group}]\n"));
    }
    text.push_str(
        "  containers:\n    - name: jvm\n      image: IMAGE\n      env:\n        - name: JAVA_TOOL_OPTIONS\n",
    );
    text.push_str(&format!("          value: \"{}\"\n      resources:\n", plan.jvm_options.join(" ")));
    text.push_str(&format!(
        "        requests:\n{}        limits:\n{}",
        resources("          "),
        resources("          ")
    ));
    text
}

/// What the node needs, as comments above the pod.
fn node(plan: &Plan) -> String {
    let mut text =
        "# memory next to the heap is an estimate: measure it with marusa map, then set it\n# On each node:\n"
            .to_string();
    let mut line = |text_line: &str| text.push_str(&format!("#   {text_line}\n"));
    if plan.mode == Mode::Thp {
        line("transparent huge pages: the file of --emit tmpfiles, where it is not empty");
    } else {
        for (bytes, pages) in pages(plan) {
            let size = if bytes >= 1 << 30 { "1G" } else { "2M" };
            line(&format!(
                "at least {pages} pages of {size} in the pool for each such pod: hugepagesz={size} hugepages=N"
            ));
        }
        line("then restart the kubelet: it counts the pool when it starts");
        if plan.pools.iter().any(|pool| pool.how == How::Overcommit) {
            line("Kubernetes knows no overcommit of huge pages: only the pool counts");
        }
        line("no volume of medium HugePages is needed: the JVM maps the pages itself");
    }
    for limit in &plan.outlook.memlock {
        line(&format!("locked memory for the JVM, which Kubernetes cannot set: {}", limit_line(limit)));
    }
    text
}
