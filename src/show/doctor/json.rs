//! Findings for programs, schema marusa/doctor/1. What is not known is null, with an entry in `gaps`.

use super::{Shown, kind, value};
use crate::base::Gap;
use crate::doctor::facts::gather::Patient;
use crate::doctor::{Evidence, Finding, Level, Subject};
use serde_json::{Value, json};

pub fn json(shown: &Shown) -> Value {
    let facts = &shown.gathered.facts;
    let host = shown.has_host.then(|| {
        json!({
            "kernel": facts.host.kernel,
            "cpus": facts.host.cpus,
            "memory_bytes": facts.host.memory_bytes(),
            "watched_seconds": facts.host.seconds,
            "seen_from_a_container": facts.host.view.is_container,
            "may_be_the_containers": facts.host.view.covered,
        })
    });
    json!({
        "schema": "marusa/doctor/1",
        "took_ms": shown.took_ms,
        "host": host,
        "jvms": shown.gathered.patients.iter().map(patient).collect::<Vec<Value>>(),
        "hidden_processes": shown.gathered.hidden,
        "rules": shown.rules(),
        "ignored": shown.ignored,
        "counts": {
            "critical": shown.count(Level::Critical),
            "warn": shown.count(Level::Warn),
            "info": shown.count(Level::Info),
        },
        "findings": shown.findings.iter().map(|it| finding(shown, it)).collect::<Vec<Value>>(),
        "gaps": shown.gaps().into_iter().map(gap).collect::<Vec<Value>>(),
    })
}

fn patient(patient: &Patient) -> Value {
    json!({
        "pid": patient.pid,
        "main": patient.main,
        "user": patient.user,
        "container": patient.container,
        "version": patient.version,
        "gc": patient.gc,
        "resident_bytes": patient.resident_bytes,
        "examined": patient.unread.is_none(),
    })
}

fn finding(shown: &Shown, finding: &Finding) -> Value {
    let subject = match finding.subject {
        Subject::Host => json!({"kind": "host", "pid": null, "main": null}),
        Subject::Jvm(pid) => {
            json!({"kind": "jvm", "pid": pid, "main": shown.patient(pid).and_then(|it| it.main.clone())})
        }
    };
    json!({
        "id": finding.id,
        "level": finding.level.word(),
        "subject": subject,
        "title": finding.title,
        "evidence": finding.evidence.iter().map(evidence).collect::<Vec<Value>>(),
        "cost": cost(finding),
        "remedies": remedies(finding),
        "page": format!("docs/findings/{}.md", finding.id),
    })
}

pub(super) fn evidence(evidence: &Evidence) -> Value {
    json!({
        "what": evidence.what,
        "value": value(evidence),
        "number": evidence.number,
        "unit": evidence.unit,
        "source": evidence.source,
    })
}

pub(super) fn cost(finding: &Finding) -> Value {
    json!({
        "bytes": finding.cost.bytes,
        "cpu_percent": finding.cost.cpu_percent,
        "stall_ms": finding.cost.stall_ms,
    })
}

pub(super) fn remedies(finding: &Finding) -> Vec<Value> {
    finding.remedies.iter().map(|remedy| json!({"kind": kind(remedy), "text": remedy.text()})).collect()
}

fn gap((pid, gap): (Option<i32>, &Gap)) -> Value {
    json!({"pid": pid, "what": gap.what, "why": gap.why.to_string(), "hint": gap.hint})
}
