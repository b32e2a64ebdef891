//! Every exported figure once: its name, unit, help, labels, and the source of its value. Prometheus, OTLP, the documentation and
//! the dashboard are made of this table, so a figure has one name everywhere.
//!
//! Names are those of OpenTelemetry (docs/general/naming.md): `marusa.jvm.memory.resident` with the unit By is
//! `marusa_jvm_memory_resident_bytes` in Prometheus, by the rules of its OTLP receiver. A value that is not known is absent.

use super::jvm::JvmNow;
use super::node::NodeNow;
use super::own::Own;
use super::summary::FoundNow;
use crate::map::rows::Measure;
use std::collections::BTreeSet;

/// What a value may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Goes up and down.
    Gauge,
    /// Only rises, from the start of what it is of.
    Counter,
    /// Always 1; the labels are the fact.
    Info,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    Bytes,
    Seconds,
    /// A number of things: "{thread}" in UCUM.
    Count(&'static str),
    /// 0 or 1, or 1 for an info.
    One,
}

impl Unit {
    /// As OTLP writes it.
    pub fn ucum(self) -> String {
        match self {
            Unit::Bytes => "By".to_string(),
            Unit::Seconds => "s".to_string(),
            Unit::Count(what) => format!("{{{what}}}"),
            Unit::One => "1".to_string(),
        }
    }

    /// As the last part of a Prometheus name.
    pub fn suffix(self) -> Option<&'static str> {
        match self {
            Unit::Bytes => Some("bytes"),
            Unit::Seconds => Some("seconds"),
            Unit::Count(_) | Unit::One => None,
        }
    }
}

/// The values of one metric, each with its labels.
#[derive(Debug, Default)]
pub struct Points(pub Vec<(Vec<(&'static str, String)>, f64)>);

impl Points {
    fn one(&mut self, value: Option<u64>) {
        self.float(value.map(|value| value as f64));
    }

    fn float(&mut self, value: Option<f64>) {
        self.0.extend(value.map(|value| (Vec::new(), value)));
    }

    /// One for each id and level, however often it was found.
    fn findings(&mut self, found: &[FoundNow]) {
        let found: BTreeSet<_> = found.iter().map(|found| (found.id, found.level.word())).collect();
        let labels = |(id, level): (&str, &str)| vec![("id", id.to_string()), ("level", level.to_string())];
        self.0.extend(found.into_iter().map(|of| (labels(of), 1.0)));
    }

    fn with(&mut self, label: &'static str, of: impl Into<String>, value: f64) {
        self.0.push((vec![(label, of.into())], value));
    }
}

/// One exported figure of a `T`.
pub struct Metric<T: 'static> {
    pub name: &'static str,
    pub kind: Kind,
    pub unit: Unit,
    pub help: &'static str,
    /// In addition to the labels that identify the JVM.
    pub labels: &'static [&'static str],
    pub get: fn(&T, &mut Points),
}

impl<T> Metric<T> {
    /// The family's name in Prometheus, without "_total".
    pub fn family(&self) -> String {
        let name = self.name.replace('.', "_");
        match self.unit.suffix() {
            Some(unit) => format!("{name}_{unit}"),
            None => name,
        }
    }

    /// The name of its samples.
    pub fn sample(&self) -> String {
        let family = self.family();
        match self.kind {
            Kind::Counter => format!("{family}_total"),
            Kind::Gauge => family,
            Kind::Info => format!("{family}_info"),
        }
    }
}

/// The labels of every figure of a JVM. Never the pid, arguments, paths or names of threads: they are without bound, or secret.
pub const JVM_LABELS: &[&str] = &["namespace", "pod", "container", "unit", "jvm"];

macro_rules! metrics {
    ($($(#[$doc:meta])* $name:literal $kind:ident $unit:expr, [$($label:literal),*] $help:literal $get:expr;)*) => {
        &[$(Metric { name: $name, kind: Kind::$kind, unit: $unit, help: $help, labels: &[$($label),*], get: $get }),*]
    };
}

/// Seconds of `microseconds`.
fn seconds(microseconds: Option<u64>) -> Option<f64> {
    microseconds.map(|us| us as f64 / 1e6)
}

pub const JVM: &[Metric<JvmNow>] = metrics! {
    "marusa.jvm" Info Unit::One,
        ["jvm_id", "java_version", "gc", "nmt", "libc", "pages", "container_id", "pod_uid", "workload"]
        "Facts about the JVM; jvm_id is unique over hosts and time"
        |jvm, out| out.0.push((jvm.facts_of_it(), 1.0));
    "marusa.jvm.start_time" Gauge Unit::Seconds, []
        "When the JVM started, in seconds since 1970"
        |jvm, out| out.float(jvm.started_seconds);
    "marusa.jvm.readable" Gauge Unit::One, []
        "1 if its last account was read; 0 if only the kernel's figures are known"
        |jvm, out| out.one(Some(u64::from(jvm.account().is_some() && jvm.unread.is_none())));
    "marusa.jvm.account.age" Gauge Unit::Seconds, []
        "Age of the account with the areas, malloc and page sizes; the budget decides when it is read, not the scrape"
        |jvm, out| out.float(jvm.account_age_seconds());
    "marusa.jvm.memory.resident" Gauge Unit::Bytes, ["area"]
        "Resident memory by owner; the areas sum to all that is resident"
        |jvm, out| jvm.areas().for_each(|area| out.with("area", area.area.name(), area.resident_bytes as f64));
    "marusa.jvm.memory.committed" Gauge Unit::Bytes, ["area"]
        "Memory in mappings with a right of access, for the areas where that differs from the resident memory"
        |jvm, out| jvm.areas().filter_map(|area| Some((area.area.name(), area.committed_bytes?)))
            .for_each(|(name, bytes)| out.with("area", name, bytes as f64));
    "marusa.jvm.kernel.resident" Gauge Unit::Bytes, []
        "Resident memory as the kernel counts it (VmRSS and hugetlb pages)"
        |jvm, out| out.one(jvm.figure(Measure::KernelResident));
    "marusa.jvm.kernel.proportional" Gauge Unit::Bytes, []
        "Resident memory, each page divided by the number of its users (PSS)"
        |jvm, out| out.one(jvm.summary().and_then(|it| it.proportional_bytes));
    "marusa.jvm.kernel.swapped" Gauge Unit::Bytes, []
        "Memory in swap"
        |jvm, out| out.one(jvm.figure(Measure::KernelSwapped));
    "marusa.jvm.kernel.page_table" Gauge Unit::Bytes, []
        "Memory of its page tables"
        |jvm, out| out.one(jvm.figure(Measure::PageTables));
    "marusa.jvm.malloc.in_use" Gauge Unit::Bytes, []
        "Blocks of malloc in use"
        |jvm, out| out.one(jvm.summary().and_then(|it| it.malloc_in_use_bytes));
    "marusa.jvm.malloc.trimmable" Gauge Unit::Bytes, []
        "Freed memory that malloc_trim would return to the kernel"
        |jvm, out| out.one(jvm.summary().and_then(|it| it.malloc_trimmable_bytes));
    "marusa.jvm.malloc.arenas" Gauge Unit::Count("arena"), []
        "Arenas of malloc"
        |jvm, out| out.one(jvm.summary().and_then(|it| it.malloc_arenas));
    "marusa.jvm.heap.max" Gauge Unit::Bytes, []
        "Largest size of the Java heap (-Xmx)"
        |jvm, out| out.one(jvm.facts.max_heap_bytes);
    "marusa.jvm.heap.used" Gauge Unit::Bytes, []
        "Java heap in use, as the JVM counted it last; most collectors count at the end of a collection"
        |jvm, out| out.one(jvm.figure(Measure::HeapUsed));
    "marusa.jvm.heap.capacity" Gauge Unit::Bytes, []
        "Present size of the Java heap, as the JVM counted it last"
        |jvm, out| out.one(jvm.figure(Measure::HeapCapacity));
    "marusa.jvm.gc.collections" Counter Unit::Count("collection"), []
        "Collections"
        |jvm, out| out.one(jvm.figure(Measure::Collections));
    "marusa.jvm.gc.old_collections" Counter Unit::Count("collection"), []
        "Collections of the old generation: the live set is known from these"
        |jvm, out| out.one(jvm.figure(Measure::OldCollections));
    "marusa.jvm.gc.duration" Counter Unit::Seconds, []
        "Time in collections"
        |jvm, out| out.float(seconds(jvm.figure(Measure::CollectionTime)));
    "marusa.jvm.page_size.resident" Gauge Unit::Bytes, ["part", "page_size"]
        "Resident memory by the size in bytes of the pages that map it: of the Java heap, of compiled code, and of all else"
        |jvm, out| jvm.page_sizes().for_each(|(part, size, bytes)| out.0.push((
            vec![("part", part.to_string()), ("page_size", size.to_string())], bytes as f64)));
    "marusa.jvm.group.limit" Gauge Unit::Bytes, []
        "The memory limit among its cgroups with the least memory left"
        |jvm, out| out.one(jvm.figure(Measure::GroupLimit));
    "marusa.jvm.group.held" Gauge Unit::Bytes, []
        "What is charged to the cgroup with that limit, reclaimable file cache included"
        |jvm, out| out.one(jvm.figure(Measure::GroupCurrent));
    "marusa.jvm.group.reclaimable" Gauge Unit::Bytes, []
        "The part of that which the kernel can drop without swap"
        |jvm, out| out.one(jvm.figure(Measure::GroupReclaimable));
    "marusa.jvm.group.needed" Gauge Unit::Bytes, []
        "What the cgroup will hold once the Java heap is full (the doctor's container-limit)"
        |jvm, out| out.one(jvm.summary().and_then(|it| it.needed_bytes));
    "marusa.jvm.group.oom_kills" Counter Unit::Count("kill"), []
        "Processes of the cgroup that the kernel killed because it was full"
        |jvm, out| out.one(jvm.figure(Measure::GroupOomKills));
    "marusa.jvm.group.pressure" Counter Unit::Seconds, ["kind"]
        "Time in which some task, or all tasks, of the cgroup waited for memory (PSI)"
        |jvm, out| for (kind, measure) in [("some", Measure::PressureSome), ("full", Measure::PressureFull)] {
            if let Some(value) = seconds(jvm.figure(measure)) { out.with("kind", kind, value) }
        };
    "marusa.jvm.threads" Gauge Unit::Count("thread"), []
        "Threads, as the kernel counts them"
        |jvm, out| out.one(jvm.figure(Measure::Tasks));
    "marusa.jvm.classes" Gauge Unit::Count("class"), []
        "Loaded classes"
        |jvm, out| out.one(jvm.classes());
    "marusa.jvm.finding" Gauge Unit::One, ["id", "level"]
        "1 while the doctor finds this; `marusa doctor --explain ID` says what it means"
        |jvm, out| out.findings(jvm.findings());
};

pub const NODE: &[Metric<NodeNow>] = metrics! {
    "marusa.node.pressure" Counter Unit::Seconds, ["kind"]
        "Time in which some task, or all tasks, of this host waited for memory (PSI)"
        |node, out| for (kind, value) in [("some", node.waited.map(|it| it.some_us)), ("full", node.waited.map(|it| it.full_us))] {
            if let Some(value) = seconds(value) { out.with("kind", kind, value) }
        };
    "marusa.node.stalls" Counter Unit::Count("stall"), ["kind"]
        "Direct reclaims and direct compactions by tasks that allocated memory"
        |node, out| node.stalls.iter().for_each(|(kind, count)| out.with("kind", *kind, *count as f64));
    "marusa.node.huge_capable" Gauge Unit::Bytes, []
        "Free memory in blocks that are large enough for a huge page"
        |node, out| out.one(node.huge_capable_bytes);
    "marusa.node.memory.size" Gauge Unit::Bytes, []
        "Memory of this host"
        |node, out| out.one(node.memory_bytes);
    "marusa.node.memory.available" Gauge Unit::Bytes, []
        "Memory that can be allocated without swapping (MemAvailable)"
        |node, out| out.one(node.available_bytes);
    "marusa.node.thp" Info Unit::One, ["enabled", "defrag", "shmem_enabled"]
        "Settings of transparent huge pages"
        |node, out| if let Some(labels) = node.thp_labels() { out.0.push((labels, 1.0)) };
    "marusa.node.finding" Gauge Unit::One, ["id", "level"]
        "1 while the doctor finds this on the host"
        |node, out| out.findings(&node.findings);
};

pub const OWN: &[Metric<Own>] = metrics! {
    "marusa.build" Info Unit::One, ["version", "kernel"]
        "The version of Marusa, and of the kernel it runs on"
        |own, out| out.0.push((vec![("version", own.version.to_string()), ("kernel", own.kernel.clone())], 1.0));
    "marusa.jvms" Gauge Unit::Count("jvm"), ["state"]
        "JVMs: shown; young (--min-age); left_out (--jvms-max); unreadable. Processes: hidden, not allowed; waiting, not read yet"
        |own, out| own.jvms.iter().for_each(|(state, count)| out.with("state", *state, *count as f64));
    "marusa.jvms.seen" Counter Unit::Count("jvm"), []
        "JVMs seen since Marusa started"
        |own, out| out.one(Some(own.seen));
    "marusa.jvms.oom_killed" Counter Unit::Count("jvm"), []
        "JVMs that the kernel killed because their cgroup was full, since Marusa started"
        |own, out| out.one(Some(own.killed));
    "marusa.accounts" Counter Unit::Count("account"), ["outcome"]
        "Accounts that were read, and ones that were given up because they took too long"
        |own, out| own.accounts.iter().for_each(|(outcome, count)| out.with("outcome", *outcome, *count as f64));
    "marusa.read.longest_hold" Gauge Unit::Seconds, []
        "The longest single call into the kernel that may hold the memory-map lock of a JVM"
        |own, out| out.float(Some(own.longest_hold_seconds));
    "marusa.otlp.requests" Counter Unit::Count("request"), ["outcome"]
        "Requests to the OTLP back end: accepted, refused, failed (no answer), or dropped because the queue was full"
        |own, out| own.otlp.iter().for_each(|(outcome, count)| out.with("outcome", *outcome, *count as f64));
    "marusa.otlp.rejected" Counter Unit::Count("data_point"), []
        "Data points that the OTLP back end rejected of requests that it accepted"
        |own, out| out.one(own.otlp_rejected);
    "marusa.store.files" Counter Unit::Count("file"), []
        "Parquet files written to the store"
        |own, out| out.one(own.stored.is_on.then_some(own.stored.files));
    "marusa.store.written" Counter Unit::Bytes, []
        "Bytes written to the store"
        |own, out| out.one(own.stored.is_on.then_some(own.stored.bytes));
    "marusa.store.failures" Counter Unit::Count("attempt"), []
        "Attempts to write to the store that failed; they are repeated"
        |own, out| out.one(own.stored.is_on.then_some(own.stored.failures));
    "marusa.store.lost" Counter Unit::Count("file"), []
        "Hours of the recording that will not be in the store: the ring let them go first, or their file cannot be read"
        |own, out| out.one(own.stored.is_on.then_some(own.stored.lost));
    "marusa.http.requests" Counter Unit::Count("request"), ["code"]
        "Requests that this service answered"
        |own, out| own.requests.iter().for_each(|(code, count)| out.with("code", code.to_string(), *count as f64));
    "process.cpu" Counter Unit::Seconds, []
        "CPU time of Marusa itself"
        |own, out| out.float(Some(own.cpu_seconds));
    "process.resident_memory" Gauge Unit::Bytes, []
        "Resident memory of Marusa itself"
        |own, out| out.one(own.resident_bytes);
    "process.start_time" Gauge Unit::Seconds, []
        "When Marusa started, in seconds since 1970"
        |own, out| out.float(own.started_seconds);
    "process.open_fds" Gauge Unit::Count("fd"), []
        "Open files of Marusa itself"
        |own, out| out.one(own.open_files);
    "process.max_fds" Gauge Unit::Count("fd"), []
        "The limit of its open files"
        |own, out| out.one(own.open_files_max);
};

#[cfg(test)]
mod tests {
    use super::*;

    fn check<T>(metrics: &[Metric<T>], names: &mut BTreeSet<String>) {
        for metric in metrics {
            assert!(names.insert(metric.sample()), "{} twice", metric.sample());
            let is_plain = |letter: char| letter.is_ascii_lowercase() || "._".contains(letter);
            assert!(metric.name.chars().all(is_plain), "{}", metric.name);
            assert!(metric.name.starts_with("marusa.") || metric.name.starts_with("process."));
            assert!(!metric.help.ends_with('.') && metric.help.len() > 5, "{}", metric.name);
            assert!(!metric.name.ends_with(".total") && !metric.labels.contains(&"type"));
            // Labels of targets (prometheus/docs, instrumentation.md).
            assert!(
                ["cluster", "region", "env", "service", "instance", "job"]
                    .iter()
                    .all(|it| !metric.labels.contains(it))
            );
        }
    }

    #[test]
    fn names_are_of_one_form_and_given_once() {
        let mut names = BTreeSet::new();
        check(JVM, &mut names);
        check(NODE, &mut names);
        check(OWN, &mut names);
        assert!(names.contains("marusa_jvm_memory_resident_bytes") && names.contains("marusa_jvm_info"));
        assert!(
            names.contains("marusa_jvm_gc_duration_seconds_total")
                && names.contains("marusa_jvm_gc_collections_total")
        );
    }
}
