//! Findings as SARIF 2.1.0 (OASIS), for tools that gather those of many programs: the rules with their pages, a result for each
//! finding, and what could not be read as notifications of the run. Nothing here has a place in a file, so a result says where
//! it is by a logical location: the host, or a process.

use super::json::{EvidenceRow, evidence};
use super::{Shown, subject};
use crate::base::Gap;
use crate::doctor::{Cost, Entry, Finding, Level, Remedy, Subject};
use serde::Serialize;

const SCHEMA: &str = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/os/schemas/sarif-schema-2.1.0.json";

#[derive(Serialize)]
pub struct Sarif<'a> {
    #[serde(rename = "$schema")]
    schema: &'static str,
    version: &'static str,
    runs: [Run<'a>; 1],
}

#[derive(Serialize)]
struct Run<'a> {
    tool: Tool,
    invocations: [Invocation; 1],
    results: Vec<Result<'a>>,
}

#[derive(Serialize)]
struct Tool {
    driver: Driver,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Driver {
    name: &'static str,
    semantic_version: &'static str,
    rules: Vec<Rule>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Rule {
    id: &'static str,
    short_description: Text<&'static str>,
    help: Help,
    default_configuration: Configuration,
}

#[derive(Serialize)]
struct Help {
    text: &'static str,
    markdown: &'static str,
}

#[derive(Serialize)]
struct Configuration {
    level: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Invocation {
    execution_successful: bool,
    tool_execution_notifications: Vec<Notification>,
}

#[derive(Serialize)]
struct Notification {
    level: &'static str,
    message: Text<String>,
}

#[derive(Serialize)]
struct Text<T> {
    text: T,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Result<'a> {
    rule_id: &'static str,
    rule_index: i64,
    level: &'static str,
    message: Text<&'a str>,
    locations: [Location; 1],
    partial_fingerprints: Fingerprints,
    properties: Properties<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Location {
    logical_locations: [Logical; 1],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Logical {
    fully_qualified_name: String,
    kind: &'static str,
}

#[derive(Serialize)]
struct Fingerprints {
    #[serde(rename = "marusa/1")]
    first: String,
}

/// As in `marusa doctor --json`.
#[derive(Serialize)]
struct Properties<'a> {
    level: Level,
    pid: Option<i32>,
    evidence: Vec<EvidenceRow<'a>>,
    cost: &'a Cost,
    remedies: &'a [Remedy],
}

pub fn sarif<'a>(shown: &'a Shown) -> Sarif<'a> {
    let notification = |(pid, gap): (Option<i32>, &Gap)| {
        let of = pid.map_or(String::new(), |pid| format!("pid {pid}: "));
        Notification { level: "note", message: Text { text: format!("{of}{gap}") } }
    };
    let driver = Driver {
        name: "marusa",
        semantic_version: env!("CARGO_PKG_VERSION"),
        rules: shown.catalog.iter().map(rule).collect(),
    };
    let invocation = Invocation {
        execution_successful: true,
        tool_execution_notifications: shown.gaps().into_iter().map(notification).collect(),
    };
    let results = shown.findings.iter().map(|it| result(shown, it)).collect();
    let run = Run { tool: Tool { driver }, invocations: [invocation], results };
    Sarif { schema: SCHEMA, version: "2.1.0", runs: [run] }
}

/// SARIF knows no critical: that is "error".
fn level(level: Level) -> &'static str {
    match level {
        Level::Info => "note",
        Level::Warn => "warning",
        Level::Critical => "error",
    }
}

fn rule(entry: &Entry) -> Rule {
    let worst = entry.levels.last().copied().unwrap_or(Level::Warn);
    Rule {
        id: entry.rule.id,
        short_description: Text { text: entry.rule.title },
        help: Help { text: entry.page, markdown: entry.page },
        default_configuration: Configuration { level: level(worst) },
    }
}

fn result<'a>(shown: &'a Shown, finding: &'a Finding) -> Result<'a> {
    let (kind, pid, fixed) = match finding.subject {
        Subject::Host => ("host", None, "host".to_string()),
        // Not the pid: the same JVM has another one after its next start.
        Subject::Jvm(pid) => {
            let main = shown.patient(pid).and_then(|patient| patient.main.clone());
            ("process", Some(pid), main.unwrap_or_default())
        }
    };
    let index = shown.catalog.iter().position(|entry| entry.rule.id == finding.id);
    Result {
        rule_id: finding.id,
        rule_index: index.map_or(-1, |index| index as i64),
        level: level(finding.level),
        message: Text { text: &finding.title },
        locations: [Location {
            logical_locations: [Logical { fully_qualified_name: subject(shown, finding.subject), kind }],
        }],
        partial_fingerprints: Fingerprints { first: format!("{} {fixed}", finding.id) },
        properties: Properties {
            level: finding.level,
            pid,
            evidence: finding.evidence.iter().map(evidence).collect(),
            cost: &finding.cost,
            remedies: &finding.remedies,
        },
    }
}
