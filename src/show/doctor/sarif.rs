//! Findings as SARIF 2.1.0 (OASIS), for tools that gather those of many programs: the rules with their pages, a result for each
//! finding, and what could not be read as notifications of the run. Nothing here has a place in a file, so a result says where
//! it is by a logical location: the host, or a process.

use super::json::{cost, evidence, remedies};
use super::{Shown, subject};
use crate::doctor::{Entry, Finding, Level, Subject};
use serde_json::{Value, json};

const SCHEMA: &str = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/os/schemas/sarif-schema-2.1.0.json";

pub fn sarif(shown: &Shown) -> Value {
    let gaps = shown.gaps();
    let notifications: Vec<Value> = gaps
        .iter()
        .map(|(pid, gap)| {
            let of = pid.map_or(String::new(), |pid| format!("pid {pid}: "));
            json!({"level": "note", "message": {"text": format!("{of}{gap}")}})
        })
        .collect();
    json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": {
                "driver": {
                    "name": "marusa",
                    "semanticVersion": env!("CARGO_PKG_VERSION"),
                    "rules": shown.catalog.iter().map(rule).collect::<Vec<Value>>(),
                }
            },
            "invocations": [{
                "executionSuccessful": true,
                "toolExecutionNotifications": notifications,
            }],
            "results": shown.findings.iter().map(|it| result(shown, it)).collect::<Vec<Value>>(),
        }]
    })
}

/// SARIF knows no critical: that is "error".
fn level(level: Level) -> &'static str {
    match level {
        Level::Info => "note",
        Level::Warn => "warning",
        Level::Critical => "error",
    }
}

fn rule(entry: &Entry) -> Value {
    let worst = entry.levels.last().copied().unwrap_or(Level::Warn);
    json!({
        "id": entry.rule.id,
        "shortDescription": {"text": entry.rule.title},
        "help": {"text": entry.page, "markdown": entry.page},
        "defaultConfiguration": {"level": level(worst)},
    })
}

fn result(shown: &Shown, finding: &Finding) -> Value {
    let name = subject(shown, finding.subject);
    let (kind, pid, fixed) = match finding.subject {
        Subject::Host => ("host", None, "host".to_string()),
        // Not the pid: the same JVM has another one after its next start.
        Subject::Jvm(pid) => {
            let main = shown.patient(pid).and_then(|patient| patient.main.clone());
            ("process", Some(pid), main.unwrap_or_default())
        }
    };
    let index = shown.catalog.iter().position(|entry| entry.rule.id == finding.id);
    json!({
        "ruleId": finding.id,
        "ruleIndex": index.map_or(-1, |index| index as i64),
        "level": level(finding.level),
        "message": {"text": finding.title},
        "locations": [{"logicalLocations": [{"fullyQualifiedName": name, "kind": kind}]}],
        "partialFingerprints": {"marusa/1": format!("{} {fixed}", finding.id)},
        "properties": {
            "level": finding.level.word(),
            "pid": pid,
            "evidence": finding.evidence.iter().map(evidence).collect::<Vec<_>>(),
            "cost": cost(finding),
            "remedies": remedies(finding),
        },
    })
}
