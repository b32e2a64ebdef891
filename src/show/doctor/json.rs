//! Findings for programs, schema marusa/doctor/1. What is not known is null, with an entry in `gaps`.

use super::{Shown, kind, value};
use crate::base::{Bytes, Gap};
use crate::doctor::facts::gather::Patient;
use crate::doctor::{Entry, Evidence, Finding, Level, Subject};
use schemars::JsonSchema;
use serde::Serialize;

#[derive(JsonSchema, Serialize)]
pub struct DoctorDocument<'a> {
    schema: &'static str,
    took_ms: f64,
    host: Option<HostRow<'a>>,
    jvms: Vec<PatientRow<'a>>,
    hidden_processes: usize,
    rules: usize,
    ignored: &'a [String],
    counts: Counts,
    findings: Vec<FindingRow<'a>>,
    gaps: Vec<PidGap<'a>>,
}

#[derive(JsonSchema, Serialize)]
struct HostRow<'a> {
    kernel: &'a str,
    cpus: u32,
    memory_bytes: Option<Bytes>,
    watched_seconds: f64,
    seen_from_a_container: bool,
    may_be_the_containers: &'a [String],
}

#[derive(JsonSchema, Serialize)]
struct PatientRow<'a> {
    pid: i32,
    main: Option<&'a str>,
    user: &'a str,
    container: Option<&'a str>,
    version: Option<&'a str>,
    gc: Option<&'a str>,
    resident_bytes: Option<Bytes>,
    examined: bool,
}

#[derive(JsonSchema, Serialize)]
struct Counts {
    critical: usize,
    warn: usize,
    info: usize,
}

#[derive(JsonSchema, Serialize)]
struct FindingRow<'a> {
    id: &'static str,
    level: &'static str,
    subject: SubjectRow<'a>,
    title: &'a str,
    evidence: Vec<EvidenceRow<'a>>,
    cost: CostRow,
    remedies: Vec<RemedyRow<'a>>,
    page: String,
}

#[derive(JsonSchema, Serialize)]
struct SubjectRow<'a> {
    kind: &'static str,
    pid: Option<i32>,
    main: Option<&'a str>,
}

#[derive(JsonSchema, Serialize)]
pub(super) struct EvidenceRow<'a> {
    what: &'a str,
    value: String,
    number: Option<f64>,
    unit: &'a str,
    source: &'a str,
}

#[derive(JsonSchema, Serialize)]
pub(super) struct CostRow {
    bytes: Option<Bytes>,
    cpu_percent: Option<f64>,
    stall_ms: Option<f64>,
}

#[derive(JsonSchema, Serialize)]
pub(super) struct RemedyRow<'a> {
    kind: &'static str,
    text: &'a str,
}

#[derive(JsonSchema, Serialize)]
struct PidGap<'a> {
    pid: Option<i32>,
    what: &'a str,
    why: String,
    hint: Option<&'a str>,
}

impl<'a> DoctorDocument<'a> {
    pub fn of(shown: &'a Shown) -> DoctorDocument<'a> {
        let host = &shown.gathered.facts.host;
        DoctorDocument {
            schema: "marusa/doctor/1",
            took_ms: shown.took_ms,
            host: shown.has_host.then(|| HostRow {
                kernel: &host.kernel,
                cpus: host.cpus,
                memory_bytes: host.memory_bytes(),
                watched_seconds: host.seconds,
                seen_from_a_container: host.view.is_container,
                may_be_the_containers: &host.view.covered,
            }),
            jvms: shown.gathered.patients.iter().map(patient).collect(),
            hidden_processes: shown.gathered.hidden,
            rules: shown.rules(),
            ignored: shown.ignored,
            counts: Counts {
                critical: shown.count(Level::Critical),
                warn: shown.count(Level::Warn),
                info: shown.count(Level::Info),
            },
            findings: shown.findings.iter().map(|it| finding(shown, it)).collect(),
            gaps: shown.gaps().into_iter().map(gap).collect(),
        }
    }
}

fn patient(patient: &Patient) -> PatientRow<'_> {
    PatientRow {
        pid: patient.pid,
        main: patient.main.as_deref(),
        user: &patient.user,
        container: patient.container.as_deref(),
        version: patient.version.as_deref(),
        gc: patient.gc.as_deref(),
        resident_bytes: patient.resident_bytes,
        examined: patient.unread.is_none(),
    }
}

fn finding<'a>(shown: &'a Shown, finding: &'a Finding) -> FindingRow<'a> {
    let subject = match finding.subject {
        Subject::Host => SubjectRow { kind: "host", pid: None, main: None },
        Subject::Jvm(pid) => {
            let main = shown.patient(pid).and_then(|it| it.main.as_deref());
            SubjectRow { kind: "jvm", pid: Some(pid), main }
        }
    };
    FindingRow {
        id: finding.id,
        level: finding.level.word(),
        subject,
        title: &finding.title,
        evidence: finding.evidence.iter().map(evidence).collect(),
        cost: cost(finding),
        remedies: remedies(finding),
        page: format!("docs/findings/{}.md", finding.id),
    }
}

pub(super) fn evidence(evidence: &Evidence) -> EvidenceRow<'_> {
    EvidenceRow {
        what: &evidence.what,
        value: value(evidence),
        number: evidence.number,
        unit: evidence.unit,
        source: &evidence.source,
    }
}

pub(super) fn cost(finding: &Finding) -> CostRow {
    CostRow {
        bytes: finding.cost.bytes,
        cpu_percent: finding.cost.cpu_percent,
        stall_ms: finding.cost.stall_ms,
    }
}

pub(super) fn remedies(finding: &Finding) -> Vec<RemedyRow<'_>> {
    finding.remedies.iter().map(|remedy| RemedyRow { kind: kind(remedy), text: remedy.text() }).collect()
}

fn gap((pid, gap): (Option<i32>, &Gap)) -> PidGap<'_> {
    PidGap { pid, what: &gap.what, why: gap.why.to_string(), hint: gap.hint.as_deref() }
}

/// All that is looked for, schema marusa/doctor-rules/1.
#[derive(JsonSchema, Serialize)]
pub struct RulesDocument {
    schema: &'static str,
    rules: Vec<RuleRow>,
}

#[derive(JsonSchema, Serialize)]
struct RuleRow {
    id: &'static str,
    title: &'static str,
    levels: Vec<&'static str>,
    page: String,
}

impl RulesDocument {
    pub fn of(catalog: &[Entry]) -> RulesDocument {
        let rule = |entry: &Entry| RuleRow {
            id: entry.rule.id,
            title: entry.rule.title,
            levels: entry.levels.iter().map(|level| level.word()).collect(),
            page: entry.rule.page(),
        };
        RulesDocument { schema: "marusa/doctor-rules/1", rules: catalog.iter().map(rule).collect() }
    }
}
