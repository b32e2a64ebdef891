//! Findings as SARIF 2.1.0 (OASIS), for tools that gather those of many programs: the rules with their pages, a result for each
//! finding, and what could not be read as notifications of the run. Nothing here has a place in a file, so a result says where
//! it is by a logical location: the host, or a process.

use super::json::{EvidenceRow, evidence};
use super::{Shown, subject};
use crate::base::Gap;
use crate::doctor::{Cost, Entry, Finding, Level, Remedy, Subject};
use serde::Serialize;
use std::collections::BTreeMap;

const SCHEMA: &str = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/os/schemas/sarif-schema-2.1.0.json";

#[derive(Serialize)]
pub struct Sarif<'a> {
    #[serde(rename = "$schema")]
    schema: &'static str,
    version: &'static str,
    runs: [Run<'a>; 1],
}

/// An object of one or two keys.
type Map<T> = BTreeMap<&'static str, T>;

#[derive(Serialize)]
struct Run<'a> {
    tool: Map<Driver>,
    invocations: [Invocation; 1],
    results: Vec<Result<'a>>,
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
    short_description: Map<&'static str>,
    help: Map<&'static str>,
    default_configuration: Map<&'static str>,
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
    message: Map<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Result<'a> {
    rule_id: &'static str,
    rule_index: i64,
    level: &'static str,
    message: Map<&'a str>,
    locations: [Map<[Map<String>; 1]>; 1],
    partial_fingerprints: Map<String>,
    properties: Properties<'a>,
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
        Notification { level: "note", message: [("text", format!("{of}{gap}"))].into() }
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
    let run = Run { tool: [("driver", driver)].into(), invocations: [invocation], results };
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
        short_description: [("text", entry.rule.title)].into(),
        help: [("text", entry.page), ("markdown", entry.page)].into(),
        default_configuration: [("level", level(worst))].into(),
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
    let name = subject(shown, finding.subject);
    let place = [("fullyQualifiedName", name), ("kind", kind.to_string())].into();
    Result {
        rule_id: finding.id,
        rule_index: index.map_or(-1, |index| index as i64),
        level: level(finding.level),
        message: [("text", finding.title.as_str())].into(),
        locations: [[("logicalLocations", [place])].into()],
        partial_fingerprints: [("marusa/1", format!("{} {fixed}", finding.id))].into(),
        properties: Properties {
            level: finding.level,
            pid,
            evidence: finding.evidence.iter().map(evidence).collect(),
            cost: &finding.cost,
            remedies: &finding.remedies,
        },
    }
}
