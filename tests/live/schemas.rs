//! What `--json` prints of a real JVM fits the schema that `marusa schema` prints.

use crate::common::*;
use serde_json::Value;
use std::process::Output;

/// Fails with each place that does not fit.
fn fits(name: &str, document: &Value) {
    let schema = marusa(&["schema", name]);
    assert!(schema.status.success(), "{}", text(&schema.stderr));
    let schema: Value = serde_json::from_slice(&schema.stdout).expect("a schema is JSON");
    let validator = jsonschema::validator_for(&schema).expect("a schema");
    let wrong: Vec<String> =
        validator.iter_errors(document).map(|error| format!("{}: {error}", error.instance_path())).collect();
    assert!(wrong.is_empty(), "{name}:\n{}", wrong.join("\n"));
    assert!(document["schema"].as_str().is_some_and(|it| it.starts_with(&format!("marusa/{name}/"))));
    // A plan is a file that `pages apply` reads, too.
    if name == "pages-plan" {
        return;
    }
    for part in ["at", "took_ms", "attached", "kernel"] {
        assert!(!document["taken"][part].is_null(), "{name}: taken.{part}");
    }
    assert!(document["host"]["cpus"].as_u64().is_some(), "{name}: host.cpus");
}

fn printed(arguments: &[&str]) -> Value {
    let output = marusa(arguments);
    assert!(output.status.success(), "{arguments:?}: {}", text(&output.stderr));
    document(&output)
}

/// A document whose answer may be no: what is asked for is not on each machine.
fn printed_whatever(arguments: &[&str]) -> Value {
    document(&marusa(arguments))
}

fn document(output: &Output) -> Value {
    let said = text(&output.stdout);
    // `top` prints a document a line.
    serde_json::from_str(&said)
        .or_else(|_| serde_json::from_str(said.lines().next().unwrap_or_default()))
        .unwrap_or_else(|error| panic!("{error}: {said} {}", text(&output.stderr)))
}

#[test]
fn every_document_of_a_real_jvm_fits_its_schema() {
    let Some(java) = java("21") else { return };
    let options = ["-Xmx64m", "-XX:+UseSerialGC", "-XX:NativeMemoryTracking=summary"];
    let jvm = Jvm::start(&java, &options, &["marusa.Idle"]);
    let pid = jvm.pid.to_string();
    let recording = std::env::temp_dir().join(format!("marusa-schemas-{pid}.marusa"));
    let path = recording.display().to_string();
    let frozen = recording.with_extension("frozen").display().to_string();
    let _ = std::fs::remove_file(&recording);
    let recorded = ["record", &pid, "-o", &path, "--every", "200ms", "--for", "2s", "--json"];
    for (name, arguments) in [
        ("list", &["list", "--json"][..]),
        ("map", &["map", &pid, "--json"]),
        ("map", &["map", &pid, "--json", "--by", "mapping"]),
        ("map", &["map", &pid, "--json", "--by", "page-size", "--zeros", "--require", "heap=4K"]),
        ("container", &["container", "--host", "--json"]),
        ("top", &["top", &pid, "--json", "--count", "1"]),
        ("diff", &["diff", &pid, &pid, "--json"]),
        ("doctor", &["doctor", &pid, "--json", "--watch", "100ms"]),
        ("doctor-rules", &["doctor", "--list", "--json"]),
        ("recorded", &recorded),
        ("leak", &["leak", &path, "--json", "--parts"]),
        ("advice", &["advise", &path, "--json"]),
        ("why", &["why", &pid, "1s", "--json"]),
        ("diff", &["diff", &path, "--json"]),
        ("freeze", &["freeze", &pid, "-o", &frozen, "--json"]),
        ("audit", &["audit", &pid, "--json"]),
        ("trim", &["trim", &pid, "--dry-run", "--json"]),
        ("pages-plan", &["pages", "plan", &pid, "--json"]),
        ("pages-undo", &["pages", "undo", "--list", "--json"]),
        ("bench-account", &["bench", "account", "--dry-run", "--json"]),
        ("bench-fork", &["bench", "fork", "--dry-run", "--json", "--jdk", "21"]),
        ("bench-touch", &["bench", "touch", "--dry-run", "--json"]),
        ("bench-gc", &["bench", "gc", "--dry-run", "--json", "--jdk", "21"]),
        ("bench-reflection", &["bench", "reflection", "--dry-run", "--json", "--jdk", "21"]),
        ("bench-direct-buffers", &["bench", "direct-buffers", "--dry-run", "--json", "--jdk", "21"]),
    ] {
        fits(name, &printed(arguments));
    }
    if is_root() {
        let idle = ["compare", "--dry-run", "--json", "--arm", "a=-Xmx64m", "--arm", "b=-Xmx65m", "--"];
        let java = java.display().to_string();
        fits("compare", &printed(&[&idle[..], &[java.as_str(), "-version"]].concat()));
        fits("stalls", &printed(&["stalls", &pid, "0.1", "1", "--json"]));
        fits("tlb", &printed_whatever(&["tlb", &pid, "0.1", "1", "--json"]));
        fits("pages-collapse", &printed_whatever(&["pages", "collapse", &pid, "--dry-run", "--json"]));
        fits("pages-split", &printed_whatever(&["pages", "split", &pid, "--dry-run", "--json"]));
        fits("pages-verify", &printed_whatever(&["pages", "verify", &pid, "--json"]));
    }
    std::fs::remove_file(&recording).expect("ours");
    std::fs::remove_file(&frozen).expect("ours");
    let unknown = marusa(&["schema", "nothing"]);
    assert_eq!(unknown.status.code(), Some(2), "{}", text(&unknown.stderr));
    assert!(
        text(&unknown.stderr).contains("choose one of advice, audit, bench"),
        "{}",
        text(&unknown.stderr)
    );
}
