//! docs/metrics.md is the catalogue of what `marusa serve` exports.

use crate::ratchets::root;
use marusa::serve::catalogue::{JVM, JVM_LABELS, Kind, Metric, NODE, OWN};
use std::fmt::Write;
use std::fs;

fn rows<T>(out: &mut String, title: &str, metrics: &[Metric<T>]) {
    let _ = write!(
        out,
        "\n## {title}\n\n| Prometheus | OpenTelemetry, unit | kind | labels | |\n| --- | --- | --- | --- | --- |\n"
    );
    for metric in metrics {
        let kind = match metric.kind {
            Kind::Gauge => "gauge",
            Kind::Counter => "counter",
            Kind::Info => "info",
        };
        let labels: Vec<String> = metric.labels.iter().map(|label| format!("`{label}`")).collect();
        let (sample, name, unit) = (metric.sample(), metric.name, metric.unit.ucum());
        let _ = writeln!(
            out,
            "| `{sample}` | `{name}`, {unit} | {kind} | {} | {} |",
            labels.join(" "),
            metric.help
        );
    }
}

#[test]
fn the_page_of_metrics_is_the_catalogue() {
    let labels: Vec<String> = JVM_LABELS.iter().map(|label| format!("`{label}`")).collect();
    let mut page = format!(
        "# Metrics of marusa serve\n\nThis page is generated from src/serve/catalogue.rs. An unknown figure has no series. \
         The figures of a JVM also have the\nlabels {} if known. No label has a pid, arguments, a path or a thread's name.\n",
        labels.join(", ")
    );
    rows(&mut page, "For each JVM", JVM);
    rows(&mut page, "For the node", NODE);
    rows(&mut page, "For Marusa itself", OWN);
    let path = root().join("docs/metrics.md");
    if std::env::var_os("MARUSA_BLESS").is_some() {
        fs::write(&path, &page).expect("written");
    }
    assert!(
        fs::read_to_string(&path).is_ok_and(|now| now == page),
        "MARUSA_BLESS=1 writes {}",
        path.display()
    );
}
