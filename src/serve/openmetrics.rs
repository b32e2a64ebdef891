//! The text that Prometheus scrapes, in two forms: its own 0.0.4, and OpenMetrics 1.0.0.
//! prometheus/docs content/docs/instrumenting/exposition_formats.md; prometheus/OpenMetrics specification/OpenMetrics.md.

use super::catalogue::{self, Kind, Metric, Points};
use super::node::{Node, State};
use std::fmt::Write;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// `text/plain; version=0.0.4`.
    Text,
    /// `application/openmetrics-text; version=1.0.0`.
    OpenMetrics,
}

impl Form {
    /// The one that a request's Accept header prefers; text where it does not say.
    pub fn accepted(accept: &str) -> Form {
        // Prometheus lists what it takes in the order of its preference, with descending weights.
        let at = |name: &str| accept.find(name).unwrap_or(usize::MAX);
        let open = at("application/openmetrics-text");
        if open != usize::MAX && open < at("text/plain") { Form::OpenMetrics } else { Form::Text }
    }

    pub fn content_type(self) -> &'static str {
        match self {
            Form::Text => "text/plain; version=0.0.4; charset=utf-8",
            Form::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

type Labels = Vec<(&'static str, String)>;

/// All figures of this node.
pub fn text(node: &Node, state: &State, form: Form) -> String {
    let mut out = String::with_capacity(state.jvms.len() * 8192 + 8192);
    let jvms: Vec<_> =
        state.jvms.values().filter(|jvm| node.is_shown(jvm)).map(|jvm| (jvm.labels(), jvm)).collect();
    family_of_each(&mut out, form, catalogue::JVM, &jvms);
    family_of_each(&mut out, form, catalogue::NODE, &[(Labels::new(), &state.node)]);
    family_of_each(&mut out, form, catalogue::OWN, &[(Labels::new(), &state.own)]);
    if form == Form::OpenMetrics {
        out.push_str("# EOF\n");
    }
    out
}

/// All samples of a family stand together.
fn family_of_each<T>(out: &mut String, form: Form, metrics: &[Metric<T>], of: &[(Labels, &T)]) {
    let mut points = Points::default();
    for metric in metrics {
        let mut is_begun = false;
        for (labels, one) in of {
            points.0.clear();
            (metric.get)(one, &mut points);
            for (own, value) in points.0.iter().filter(|(_, value)| value.is_finite()) {
                if !is_begun {
                    begin(out, form, metric);
                    is_begun = true;
                }
                sample(out, &metric.sample(), labels.iter().chain(own), *value);
            }
        }
    }
}

fn begin<T>(out: &mut String, form: Form, metric: &Metric<T>) {
    let (name, kind) = match (form, metric.kind) {
        (Form::Text, Kind::Counter) => (metric.sample(), "counter"),
        (Form::OpenMetrics, Kind::Counter) => (metric.family(), "counter"),
        (Form::OpenMetrics, Kind::Info) => (metric.family(), "info"),
        (_, Kind::Info) => (metric.sample(), "gauge"),
        (_, Kind::Gauge) => (metric.family(), "gauge"),
    };
    // Writing to a String does not fail.
    let _ = writeln!(out, "# HELP {name} {}", metric.help);
    let _ = writeln!(out, "# TYPE {name} {kind}");
    if let (Form::OpenMetrics, Some(unit)) = (form, metric.unit.suffix()) {
        let _ = writeln!(out, "# UNIT {name} {unit}");
    }
}

fn sample<'a>(
    out: &mut String,
    name: &str,
    labels: impl Iterator<Item = &'a (&'static str, String)>,
    value: f64,
) {
    out.push_str(name);
    let mut before = '{';
    for (label, value) in labels {
        out.push(before);
        out.push_str(label);
        out.push_str("=\"");
        escape(out, value);
        out.push('"');
        before = ',';
    }
    if before == ',' {
        out.push('}');
    }
    let _ = writeln!(out, " {value}");
}

/// In a label's value.
fn escape(out: &mut String, value: &str) {
    for letter in value.chars() {
        match letter {
            '\\' => out.push_str("\\\\"),
            '"' => out.push_str("\\\""),
            '\n' => out.push_str("\\n"),
            letter => out.push(letter),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::map::Area;
    use crate::map::rows::Measure;
    use crate::os::identity::Identity;
    use crate::record::Key;
    use crate::record::writer::JvmFacts;
    use crate::serve::Who;
    use crate::serve::node::Limits;
    use crate::serve::summary::{AreaNow, Summary};
    use std::time::Duration;

    fn node() -> Node {
        let node = Node::new(Limits { min_age: Duration::ZERO, every: Duration::ZERO, memory_bytes: 0 });
        let facts = JvmFacts {
            main: Some("a\"b\\c.jar".to_string()),
            gc: Some("g1".to_string()),
            ..JvmFacts::default()
        };
        let of = Identity { pod: Some("orders-0".to_string()), ..Identity::default() };
        let who = Who { of, ..Who::default() };
        node.found(1, &facts, who, Some(1.5), None);
        let key = Key::process;
        node.looked(
            1,
            &vec![(key(Measure::KernelResident), Some(7)), (key(Measure::CollectionTime), Some(1_500_000))],
        );
        let area = AreaNow { area: Area::JavaHeap, resident_bytes: 1 << 40, committed_bytes: None };
        node.read(1, Summary { areas: vec![area], ..Summary::default() }, Vec::new(), None);
        node
    }

    #[test]
    fn both_forms() {
        let node = node();
        let state = node.state();
        let (text, open) = (text(&node, &state, Form::Text), super::text(&node, &state, Form::OpenMetrics));
        let labels = r#"{pod="orders-0",jvm="a\"b\\c.jar""#;
        for form in [&text, &open] {
            assert!(form.contains(&format!(
                "marusa_jvm_memory_resident_bytes{labels},area=\"java_heap\"}} 1099511627776\n"
            )));
            assert!(form.contains(&format!("marusa_jvm_kernel_resident_bytes{labels}}} 7\n")));
            assert!(form.contains(&format!("marusa_jvm_gc_duration_seconds_total{labels}}} 1.5\n")));
            assert!(form.contains(&format!("marusa_jvm_info{labels},gc=\"g1\"}} 1\n")));
            assert!(!form.contains("swapped"), "what is not known has no line");
        }
        assert!(
            text.contains("# TYPE marusa_jvm_gc_duration_seconds_total counter\n") && !text.contains("# EOF")
        );
        assert!(open.contains(
            "# TYPE marusa_jvm_gc_duration_seconds counter\n# UNIT marusa_jvm_gc_duration_seconds seconds\n"
        ));
        assert!(open.contains("# TYPE marusa_jvm info\n") && open.ends_with("# EOF\n"));
    }

    #[test]
    fn the_form_that_prometheus_asks_for() {
        let asked =
            "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.2,*/*;q=0.1";
        assert_eq!(Form::accepted(asked), Form::OpenMetrics);
        assert_eq!(Form::accepted("text/plain;version=0.0.4,application/openmetrics-text;q=0.1"), Form::Text);
        assert_eq!((Form::accepted("*/*"), Form::accepted("")), (Form::Text, Form::Text));
    }
}
