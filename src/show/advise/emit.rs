//! Advice as what a platform takes: a patch, a command or a drop-in. Nothing is applied.

use crate::advise::Workload;
use crate::base::Bytes;
use crate::base::printable::escaped;
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
            Format::Kubernetes => patch(out, &setting)?,
            Format::Vpa => autoscaler(out, &setting)?,
            Format::Docker => docker(out, &setting)?,
            Format::Systemd => systemd(out, &setting)?,
        }
    }
    Ok(left_out)
}

/// Requests are as large as limits: memory that is not reserved is taken by others just when the heap fills.
fn patch(out: &mut dyn Write, setting: &Setting) -> io::Result<()> {
    let (name, limit) = (scalar(&setting.container())?, &setting.limit);
    write!(
        out,
        "\
spec:
  template:
    spec:
      containers:
        - name: {name}
          resources:
            requests:
              memory: {limit}
            limits:
              memory: {limit}
          env:
"
    )?;
    setting.variables().try_for_each(|(name, value)| {
        let (name, value) = (scalar(&name)?, scalar(&value)?);
        writeln!(out, "            - name: {name}\n              value: {value}")
    })
}

fn autoscaler(out: &mut dyn Write, setting: &Setting) -> io::Result<()> {
    let (name, container, limit) = (scalar(&setting.name())?, scalar(&setting.container())?, &setting.limit);
    let kind = scalar(setting.workload.kind.as_deref().unwrap_or("Deployment"))?;
    let namespace = match &setting.workload.key.namespace {
        Some(namespace) => format!("  namespace: {}\n", scalar(namespace)?),
        None => String::new(),
    };
    write!(
        out,
        "\
apiVersion: autoscaling.k8s.io/v1
kind: VerticalPodAutoscaler
metadata:
  name: {name}
{namespace}spec:
  targetRef:
    apiVersion: apps/v1
    kind: {kind}
    name: {name}
  resourcePolicy:
    containerPolicies:
      - containerName: {container}
        controlledValues: RequestsAndLimits
        minAllowed:
          memory: {limit}
"
    )
}

/// A text in YAML, in quotation marks where it would be something else without.
fn scalar(text: &str) -> io::Result<String> {
    let mut yaml = String::new();
    YamlEmitter::new(&mut yaml).dump(&Yaml::String(text.to_string())).map_err(io::Error::other)?;
    Ok(yaml.split_off("---\n".len()))
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
