//! `map --by page-size` in JSON: why bytes are on small pages, what the JVM claims, and the host's settings.

use crate::map::why::Finding;
use crate::snapshot::Snapshot;
use serde_json::{Value, json};

/// One entry for each part and reason; `bytes` of a part sum to what it has on small pages, but for "never_touched".
pub fn findings(findings: &[Finding]) -> Vec<Value> {
    let value = |finding: &Finding| {
        json!({
            "area": finding.area.name(),
            "part": finding.part,
            "reason": finding.reason.code(),
            "bytes": finding.bytes,
            "partly_touched_bytes": finding.partly_touched_bytes,
            "evidence": finding.reason.text(),
            "remedy": finding.remedy(),
        })
    };
    findings.iter().map(value).collect()
}

/// The settings of the host; `null` where they were not read.
pub fn host(snapshot: &Snapshot) -> Value {
    let Some(settings) = &snapshot.taken.page_settings else { return Value::Null };
    let mut value = serde_json::to_value(&settings.host).unwrap_or(Value::Null);
    value["thp_enabled_for_process"] = json!(snapshot.os.status.thp_enabled);
    value
}
