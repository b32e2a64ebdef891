//! What `--json` prints of a real JVM fits the schema that `marusa schema` prints.

use crate::common::*;
use serde_json::Value;

/// Fails with each place that does not fit.
fn fits(name: &str, document: &Value) {
    let schema = marusa(&["schema", name]);
    assert!(schema.status.success(), "{}", text(&schema.stderr));
    let schema: Value = serde_json::from_slice(&schema.stdout).expect("a schema is JSON");
    let validator = jsonschema::validator_for(&schema).expect("a schema");
    let wrong: Vec<String> =
        validator.iter_errors(document).map(|error| format!("{}: {error}", error.instance_path())).collect();
    assert!(wrong.is_empty(), "{name}:\n{}", wrong.join("\n"));
    assert_eq!(document["schema"], format!("marusa/{name}/1"));
}

fn printed(arguments: &[&str]) -> Value {
    let output = marusa(arguments);
    assert!(output.status.success(), "{arguments:?}: {}", text(&output.stderr));
    let said = text(&output.stdout);
    // `top` prints a document a line.
    serde_json::from_str(&said)
        .or_else(|_| serde_json::from_str(said.lines().next().unwrap_or_default()))
        .expect("JSON")
}

#[test]
fn every_document_of_a_real_jvm_fits_its_schema() {
    let Some(java) = java("21") else { return };
    let options = ["-Xmx64m", "-XX:+UseSerialGC", "-XX:NativeMemoryTracking=summary"];
    let jvm = Jvm::start(&java, &options, &["marusa.Idle"]);
    let pid = jvm.pid.to_string();
    let recording = std::env::temp_dir().join(format!("marusa-schemas-{pid}.marusa"));
    let path = recording.display().to_string();
    let _ = std::fs::remove_file(&recording);
    let recorded = ["record", &pid, "-o", &path, "--every", "200ms", "--for", "2s", "--json"];
    for (name, arguments) in [
        ("list", &["list", "--json"][..]),
        ("map", &["map", &pid, "--json"]),
        ("map", &["map", &pid, "--json", "--by", "mapping"]),
        ("map", &["map", &pid, "--json", "--by", "page-size", "--zeros", "--require", "heap=4K"]),
        ("top", &["top", &pid, "--json", "--count", "1"]),
        ("diff", &["diff", &pid, &pid, "--json"]),
        ("doctor", &["doctor", &pid, "--json", "--watch", "100ms"]),
        ("doctor-rules", &["doctor", "--list", "--json"]),
        ("recorded", &recorded),
        ("leak", &["leak", &path, "--json", "--parts"]),
        ("diff", &["diff", &path, "--json"]),
    ] {
        fits(name, &printed(arguments));
    }
    std::fs::remove_file(&recording).expect("ours");
    let unknown = marusa(&["schema", "nothing"]);
    assert_eq!(unknown.status.code(), Some(2), "{}", text(&unknown.stderr));
    assert!(text(&unknown.stderr).contains("choose one of diff, doctor"), "{}", text(&unknown.stderr));
}
