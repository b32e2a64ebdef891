//! `map --by page-size` in JSON: why bytes are on small pages, what the JVM claims, and the host's settings.

use crate::base::Bytes;
use crate::map::page_claims::Claim;
use crate::map::page_use::{PageUse, Provider};
use crate::map::require::Answer;
use crate::map::why::{Finding, Reason};
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

/// Beside each mapping of `--by mapping`: what holds back most of its small pages.
pub fn why_of_mappings(mappings: &mut [Value], reasons: &[Option<Reason>]) {
    for (mapping, reason) in mappings.iter_mut().zip(reasons) {
        mapping["why_not_larger"] = json!(reason.as_ref().map(Reason::code));
    }
}

/// The settings of the host; `null` where they were not read.
pub fn host(snapshot: &Snapshot) -> Value {
    let Some(settings) = &snapshot.taken.page_settings else { return Value::Null };
    let mut value = serde_json::to_value(&settings.host).unwrap_or(Value::Null);
    value["thp_enabled_for_process"] = json!(snapshot.os.status.thp_enabled);
    value
}

/// What the JVM says and what is.
pub fn claims(claims: &[Claim]) -> Vec<Value> {
    let value = |claim: &Claim| {
        json!({
            "about": claim.about,
            "source": claim.source,
            "says": claim.says,
            "verdict": claim.verdict.word(),
            "is": used(&claim.is),
        })
    };
    claims.iter().map(value).collect()
}

/// One entry for each --require.
pub fn requirements(answers: &[Answer]) -> Vec<Value> {
    let value = |answer: &Answer| {
        json!({
            "requirement": answer.requirement.text,
            "met": answer.met,
            "fitting_bytes": answer.fitting_bytes,
            "found": used(&answer.found),
            "reasons": answer.reasons.iter().map(held_back).collect::<Vec<Value>>(),
        })
    };
    answers.iter().map(value).collect()
}

fn held_back((reason, bytes): &(Reason, Bytes)) -> Value {
    json!({"reason": reason.code(), "evidence": reason.text(), "bytes": bytes})
}

fn size(((provider, page_bytes), bytes): (&(Provider, Bytes), &Bytes)) -> Value {
    json!({"provider": provider.name(), "page_bytes": page_bytes, "bytes": bytes})
}

pub fn used(pages: &PageUse) -> Value {
    json!({
        "resident_bytes": pages.resident_bytes,
        "pages": pages.by.iter().map(size).collect::<Vec<Value>>(),
    })
}
