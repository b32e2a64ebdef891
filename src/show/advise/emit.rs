//! Advice as what a platform takes: a patch, a command or a drop-in. Nothing is applied.

use crate::advise::Workload;
use crate::base::Bytes;
use crate::base::printable::escaped;
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::{self, Write};
use yaml_rust2::{Yaml, YamlEmitter};

#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// A patch of a Deployment's or StatefulSet's pod template (kubectl patch --patch-file)
    Kubernetes,
    /// docker update, and the options of docker run
    Docker,
    /// A drop-in of the unit
    Systemd,
    /// A VerticalPodAutoscaler that stays within what the JVM needs
    Vpa,
}

#[derive(Serialize)]
struct Patch {
    spec: PatchSpec,
}

#[derive(Serialize)]
struct PatchSpec {
    template: Template,
}

#[derive(Serialize)]
struct Template {
    spec: PodSpec,
}

#[derive(Serialize)]
struct PodSpec {
    containers: Vec<Container>,
}

#[derive(Serialize)]
struct Container {
    name: String,
    resources: Resources,
    env: Vec<Variable>,
}

#[derive(Serialize)]
struct Resources {
    requests: BTreeMap<&'static str, String>,
    limits: BTreeMap<&'static str, String>,
}

#[derive(Serialize)]
struct Variable {
    name: String,
    value: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Autoscaler<'a> {
    api_version: &'static str,
    kind: &'static str,
    metadata: Metadata,
    spec: AutoscalerSpec<'a>,
}

#[derive(Serialize)]
struct Metadata {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    namespace: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct AutoscalerSpec<'a> {
    target_ref: TargetRef<'a>,
    resource_policy: Policy,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct TargetRef<'a> {
    api_version: &'static str,
    kind: &'a str,
    name: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Policy {
    container_policies: Vec<ContainerPolicy>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ContainerPolicy {
    container_name: String,
    controlled_values: &'static str,
    min_allowed: BTreeMap<&'static str, String>,
}

/// What is set for one workload.
struct Setting<'a> {
    workload: &'a Workload,
    limit: String,
    mebibytes: u64,
    /// For JAVA_TOOL_OPTIONS.
    java: String,
    environment: &'a [(String, String)],
}

impl Setting<'_> {
    fn of(workload: &Workload) -> Option<Setting<'_>> {
        let mebibytes = mib(workload.limit.as_ref()?.limit_bytes);
        let options = workload.malloc.iter().flat_map(|malloc| malloc.options.iter().cloned());
        let options = options.chain(workload.code_cache.iter().filter_map(|cache| cache.option.clone()));
        let java: Vec<String> =
            [format!("-Xmx{}m", mib(workload.xmx_bytes()?))].into_iter().chain(options).collect();
        Some(Setting {
            workload,
            limit: format!("{mebibytes}Mi"),
            mebibytes,
            java: java.join(" "),
            environment: workload.malloc.as_ref().map_or(&[], |malloc| &malloc.environment),
        })
    }

    fn name(&self) -> String {
        let key = &self.workload.key;
        plain(key.workload.as_ref().or(key.container.as_ref()), "WORKLOAD")
    }

    fn container(&self) -> String {
        plain(self.workload.key.container.as_ref(), "CONTAINER")
    }

    fn variables(&self) -> impl Iterator<Item = (String, String)> {
        let java = ("JAVA_TOOL_OPTIONS".to_string(), self.java.clone());
        std::iter::once(java).chain(self.environment.iter().cloned())
    }
}

/// A name as platforms allow it; of another kind, what stands for it.
fn plain(name: Option<&String>, otherwise: &str) -> String {
    let is_plain = |name: &&String| {
        name.chars().all(|letter| letter.is_ascii_alphanumeric() || "-_.@".contains(letter))
            && !name.starts_with('-')
    };
    name.filter(is_plain).cloned().unwrap_or_else(|| otherwise.to_string())
}

const CAUTION: &str = "An -Xmx on the command line overrides JAVA_TOOL_OPTIONS: change it there. Keep what the variable has now.";

/// A workload without a limit is left out, and its name is returned.
pub fn emit(out: &mut dyn Write, format: Format, workloads: &[Workload]) -> io::Result<Vec<String>> {
    let mut left_out = Vec::new();
    let mut is_first = true;
    for workload in workloads {
        let Some(setting) = Setting::of(workload) else {
            left_out.push(workload.name.clone());
            continue;
        };
        if !std::mem::take(&mut is_first) {
            writeln!(out, "{}", if matches!(format, Format::Kubernetes | Format::Vpa) { "---" } else { "" })?;
        }
        writeln!(out, "# {}", escaped(&workload.name))?;
        writeln!(out, "# {CAUTION}")?;
        if format == Format::Vpa && workload.kind.is_none() {
            writeln!(out, "# The names of its pods do not show its kind: check it.")?;
        }
        match format {
            Format::Kubernetes => yaml(out, &patch(&setting))?,
            Format::Vpa => yaml(out, &autoscaler(&setting))?,
            Format::Docker => docker(out, &setting)?,
            Format::Systemd => systemd(out, &setting)?,
        }
    }
    Ok(left_out)
}

/// Requests are as large as limits: memory that is not reserved is taken by others just when the heap fills.
fn patch(setting: &Setting) -> Patch {
    let memory = || BTreeMap::from([("memory", setting.limit.clone())]);
    let env = setting.variables().map(|(name, value)| Variable { name, value }).collect();
    let resources = Resources { requests: memory(), limits: memory() };
    let containers = vec![Container { name: setting.container(), resources, env }];
    Patch { spec: PatchSpec { template: Template { spec: PodSpec { containers } } } }
}

fn autoscaler<'a>(setting: &Setting<'a>) -> Autoscaler<'a> {
    let kind = setting.workload.kind.as_deref().unwrap_or("Deployment");
    let policy = ContainerPolicy {
        container_name: setting.container(),
        controlled_values: "RequestsAndLimits",
        min_allowed: BTreeMap::from([("memory", setting.limit.clone())]),
    };
    Autoscaler {
        api_version: "autoscaling.k8s.io/v1",
        kind: "VerticalPodAutoscaler",
        metadata: Metadata { name: setting.name(), namespace: setting.workload.key.namespace.clone() },
        spec: AutoscalerSpec {
            target_ref: TargetRef { api_version: "apps/v1", kind, name: setting.name() },
            resource_policy: Policy { container_policies: vec![policy] },
        },
    }
}

fn docker(out: &mut dyn Write, setting: &Setting) -> io::Result<()> {
    let (memory, name) = (setting.mebibytes, setting.container());
    writeln!(out, "docker update --memory {memory}m --memory-swap {memory}m {name}")?;
    let variables: Vec<String> =
        setting.variables().map(|(name, value)| format!("-e {name}='{value}'")).collect();
    writeln!(out, "# of a new one: docker run --memory {memory}m {}", variables.join(" "))
}

fn systemd(out: &mut dyn Write, setting: &Setting) -> io::Result<()> {
    let unit = plain(setting.workload.key.workload.as_ref(), "UNIT.service");
    writeln!(out, "# /etc/systemd/system/{unit}.d/memory.conf")?;
    writeln!(out, "[Service]\nMemoryMax={}M", setting.mebibytes)?;
    setting.variables().try_for_each(|(name, value)| writeln!(out, "Environment=\"{name}={value}\""))
}

fn mib(bytes: Bytes) -> u64 {
    bytes >> 20
}

fn yaml(out: &mut dyn Write, document: &impl Serialize) -> io::Result<()> {
    let mut text = String::new();
    let value = serde_json::to_value(document)?;
    YamlEmitter::new(&mut text).dump(&of_json(&value)).map_err(io::Error::other)?;
    writeln!(out, "{}", text.strip_prefix("---\n").unwrap_or(&text))
}

fn of_json(value: &serde_json::Value) -> Yaml {
    use serde_json::Value;
    match value {
        Value::Null => Yaml::Null,
        Value::Bool(is) => Yaml::Boolean(*is),
        Value::Number(number) => number.as_i64().map_or(Yaml::Real(number.to_string()), Yaml::Integer),
        Value::String(text) => Yaml::String(text.clone()),
        Value::Array(all) => Yaml::Array(all.iter().map(of_json).collect()),
        Value::Object(all) => {
            Yaml::Hash(all.iter().map(|(name, value)| (Yaml::String(name.clone()), of_json(value))).collect())
        }
    }
}
