//! What is pushed to an OpenTelemetry back end: an ExportMetricsServiceRequest, written field by field, because nine small messages
//! need no code generator. Field numbers are those of open-telemetry/opentelemetry-proto (v1): metrics_service.proto,
//! metrics.proto, resource.proto and common.proto.
//!
//! Each JVM is a Resource with the attributes of the semantic conventions, so that it joins what else is known of its pod; the node
//! and Marusa itself are one more. A name that a back end makes of a metric is the one that Prometheus scrapes.

use super::catalogue::{self, Kind, Metric, Points, Unit};
use super::jvm::JvmNow;
use super::node::{Node, State};
use crate::base::varint;

/// What a request says besides the figures.
#[derive(Clone, Debug, Default)]
pub struct Context {
    pub host_name: Option<String>,
    /// When the host was booted, and now, in nanoseconds since 1970.
    pub boot_nanos: Option<u64>,
    pub now_nanos: u64,
}

/// AggregationTemporality: AGGREGATION_TEMPORALITY_CUMULATIVE.
const CUMULATIVE: u64 = 2;

type Attributes = Vec<(&'static str, String)>;

/// All figures of this node.
pub fn request(node: &Node, state: &State, context: &Context) -> Vec<u8> {
    let mut out = Proto::default();
    for jvm in state.jvms.values().filter(|jvm| node.is_shown(jvm)) {
        // Two JVMs of one container have one service.instance.id: the name tells their series apart.
        let name = [("jvm", jvm.name.clone())];
        let start = |metric: &Metric<JvmNow>| match metric.name.starts_with("marusa.jvm.group.") {
            // When the cgroup began is not known.
            true => None,
            false => jvm.started_seconds.map(nanos),
        };
        out.message(1, |out| {
            resource(out, &of_jvm(jvm, context));
            scope(out, |out| metrics(out, catalogue::JVM, jvm, &name, &start, context.now_nanos));
        });
    }
    let started = state.own.started_seconds.map(nanos);
    out.message(1, |out| {
        resource(out, &of_marusa(context));
        scope(out, |out| {
            metrics(out, catalogue::NODE, &state.node, &[], &|_| context.boot_nanos, context.now_nanos);
            metrics(out, catalogue::OWN, &state.own, &[], &|_| started, context.now_nanos);
        });
    });
    out.0
}

fn nanos(seconds: f64) -> u64 {
    // Clock ticks are hundredths: microseconds lose nothing, and nanoseconds since 1970 are more than a double holds.
    (seconds * 1e6) as u64 * 1000
}

/// By semantic-conventions docs/resource/{service,process,container,k8s,host}.md.
fn of_jvm(jvm: &JvmNow, context: &Context) -> Attributes {
    let of = &jvm.who.of;
    let service = of.workload.as_ref().or(of.container.as_ref()).or(of.unit.as_ref()).unwrap_or(&jvm.name);
    let instance = match (&of.namespace, &of.pod, &of.container) {
        (Some(namespace), Some(pod), Some(container)) => Some(format!("{namespace}.{pod}.{container}")),
        _ => jvm.who.id.clone(),
    };
    let attributes = [
        ("service.name", Some(service.clone())),
        ("service.namespace", of.namespace.clone()),
        ("service.instance.id", instance),
        ("k8s.namespace.name", of.namespace.clone()),
        ("k8s.pod.name", of.pod.clone()),
        ("k8s.pod.uid", of.pod_uid.clone()),
        ("k8s.container.name", of.container.clone().filter(|_| of.pod.is_some())),
        ("container.name", of.container.clone().filter(|_| of.pod.is_none())),
        ("container.id", of.container_id.clone()),
        ("process.pid", Some(jvm.facts.pid.to_string())),
        ("process.creation.time", jvm.facts.started.clone()),
        ("process.runtime.name", jvm.facts.version.as_ref().map(|_| "java".to_string())),
        ("process.runtime.version", jvm.facts.version.clone()),
        ("host.name", context.host_name.clone()),
        ("marusa.jvm.id", jvm.who.id.clone()),
        ("marusa.unit", of.unit.clone()),
    ];
    attributes.into_iter().filter_map(|(key, value)| Some((key, value?))).collect()
}

fn of_marusa(context: &Context) -> Attributes {
    let attributes = [
        ("service.name", Some("marusa".to_string())),
        ("service.version", Some(env!("CARGO_PKG_VERSION").to_string())),
        ("service.instance.id", context.host_name.clone()),
        ("host.name", context.host_name.clone()),
    ];
    attributes.into_iter().filter_map(|(key, value)| Some((key, value?))).collect()
}

/// ResourceMetrics.resource.
fn resource(out: &mut Proto, attributes: &Attributes) {
    out.message(1, |out| {
        for (key, value) in attributes {
            out.message(1, |out| match (*key, value.parse()) {
                // The one attribute that is a number by the conventions.
                ("process.pid", Ok(pid)) => key_value(out, key, |out| out.varint(3, pid)),
                _ => key_value(out, key, |out| out.text(1, value)),
            });
        }
    });
}

/// KeyValue, of an AnyValue.
fn key_value(out: &mut Proto, key: &str, value: impl FnOnce(&mut Proto)) {
    out.text(1, key);
    out.message(2, value);
}

/// ResourceMetrics.scope_metrics.
fn scope(out: &mut Proto, metrics: impl FnOnce(&mut Proto)) {
    out.message(2, |out| {
        out.message(1, |out| {
            out.text(1, "marusa");
            out.text(2, env!("CARGO_PKG_VERSION"));
        });
        metrics(out);
    });
}

/// ScopeMetrics.metrics.
fn metrics<T>(
    out: &mut Proto,
    of: &[Metric<T>],
    one: &T,
    labels: &[(&'static str, String)],
    start: &dyn Fn(&Metric<T>) -> Option<u64>,
    now: u64,
) {
    let mut points = Points::default();
    for metric in of {
        points.0.clear();
        (metric.get)(one, &mut points);
        points.0.retain(|(_, value)| value.is_finite());
        if points.0.is_empty() {
            continue;
        }
        // A clock that was set back has a start in the future: none is known.
        let since = start(metric).filter(|since| metric.kind == Kind::Counter && *since <= now);
        let write = |out: &mut Proto| {
            for (own, value) in &points.0 {
                out.message(1, |out| point(out, labels.iter().chain(own), *value, since, now));
            }
        };
        out.message(2, |out| {
            out.text(1, &name(metric));
            out.text(2, metric.help);
            out.text(3, &unit(metric.unit));
            match metric.kind {
                Kind::Counter => out.message(7, |out| {
                    write(out);
                    out.varint(2, CUMULATIVE);
                    out.varint(3, 1);
                }),
                Kind::Gauge | Kind::Info => out.message(5, write),
            }
        });
    }
}

/// NumberDataPoint.
fn point<'a>(
    out: &mut Proto,
    labels: impl Iterator<Item = &'a (&'static str, String)>,
    value: f64,
    since: Option<u64>,
    now: u64,
) {
    if let Some(since) = since {
        out.fixed64(2, since);
    }
    out.fixed64(3, now);
    out.fixed64(4, value.to_bits());
    for (label, value) in labels {
        out.message(7, |out| key_value(out, &format!("marusa.{label}"), |out| out.text(1, value)));
    }
}

/// An info is a gauge that is 1; its name ends as that of Prometheus does.
fn name<T>(metric: &Metric<T>) -> String {
    match metric.kind {
        Kind::Info => format!("{}.info", metric.name),
        Kind::Gauge | Kind::Counter => metric.name.to_string(),
    }
}

/// None where it is "1": Prometheus makes "_ratio" of that (prometheus/otlptranslator, metric_namer.go), and 0 or 1 is not a ratio.
fn unit(unit: Unit) -> String {
    if unit == Unit::One { String::new() } else { unit.ucum() }
}

/// What a back end says in its answer that it did not take: ExportMetricsServiceResponse.partial_success (metrics_service.proto).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rejected {
    pub points: u64,
    /// In the words of the back end, shortened.
    pub why: String,
}

impl Rejected {
    /// Nothing where the answer is none of protobuf: not every back end writes one.
    pub fn of(answer: &[u8]) -> Rejected {
        const WHY_BYTES_MAX: usize = 200;
        let mut rejected = Rejected::default();
        let partial = Fields(answer).find_map(|(field, value)| match value {
            Value::Bytes(bytes) if field == 1 => Some(bytes),
            _ => None,
        });
        for field in Fields(partial.unwrap_or_default()) {
            match field {
                // int64; a negative number is none of points.
                (1, Value::Number(points)) => rejected.points = i64::try_from(points).map_or(0, |_| points),
                (2, Value::Bytes(why)) => {
                    rejected.why = String::from_utf8_lossy(&why[..why.len().min(WHY_BYTES_MAX)]).into_owned();
                }
                _ => {}
            }
        }
        rejected
    }
}

enum Value<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

/// The fields of a message, to its end or to the first that is none.
struct Fields<'a>(&'a [u8]);

impl<'a> Iterator for Fields<'a> {
    type Item = (u64, Value<'a>);

    fn next(&mut self) -> Option<(u64, Value<'a>)> {
        let key = varint::take(&mut self.0)?;
        let value = match key & 7 {
            0 => Value::Number(varint::take(&mut self.0)?),
            1 => Value::Number(u64::from_le_bytes(varint::take_bytes(&mut self.0, 8)?.try_into().ok()?)),
            2 => {
                let length = usize::try_from(varint::take(&mut self.0)?).ok()?;
                Value::Bytes(varint::take_bytes(&mut self.0, length)?)
            }
            5 => Value::Bytes(varint::take_bytes(&mut self.0, 4)?),
            _ => return None,
        };
        Some((key >> 3, value))
    }
}

/// A message of protobuf as it is written (protobuf.dev, programming-guides/encoding).
#[derive(Default)]
struct Proto(Vec<u8>);

impl Proto {
    fn varint(&mut self, field: u64, value: u64) {
        varint::put(&mut self.0, field << 3);
        varint::put(&mut self.0, value);
    }

    fn fixed64(&mut self, field: u64, value: u64) {
        varint::put(&mut self.0, field << 3 | 1);
        self.0.extend(value.to_le_bytes());
    }

    fn bytes(&mut self, field: u64, bytes: &[u8]) {
        varint::put(&mut self.0, field << 3 | 2);
        varint::put(&mut self.0, bytes.len() as u64);
        self.0.extend(bytes);
    }

    fn text(&mut self, field: u64, text: &str) {
        if !text.is_empty() {
            self.bytes(field, text.as_bytes());
        }
    }

    fn message(&mut self, field: u64, write: impl FnOnce(&mut Proto)) {
        let mut inner = Proto::default();
        write(&mut inner);
        self.bytes(field, &inner.0);
    }
}

#[cfg(test)]
#[path = "otlp_tests.rs"]
mod tests;
