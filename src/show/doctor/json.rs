//! Findings for programs, schema marusa/doctor/2. What is not known is null, with an entry in `gaps`.

use super::super::json::{HiddenRows, PidGap};
use super::{Shown, value};
use crate::base::{Bytes, Gap};
use crate::doctor::facts::gather::Patient;
use crate::doctor::if_xmx::IfXmx;
use crate::doctor::{Entry, Evidence, Finding, Level, Subject};
use crate::map::model::GapRow;
use crate::show::json::{Head, Here};
use schemars::JsonSchema;
use serde::Serialize;

/// `marusa doctor --json`.
#[derive(JsonSchema, Serialize)]
pub struct DoctorDocument<'a> {
    schema: &'static str,
    taken: Here,
    host: Option<HostRow<'a>>,
    jvms: Vec<PatientRow<'a>>,
    #[serde(flatten)]
    hidden: HiddenRows<'a>,
    rules: usize,
    ignored: &'a [String],
    counts: Counts,
    findings: Vec<FindingRow<'a>>,
    /// Where it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    if_xmx: Option<&'a IfXmx>,
    gaps: Vec<PidGap<Option<i32>>>,
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
    #[serde(flatten)]
    patient: &'a Patient,
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
    #[serde(flatten)]
    finding: &'a Finding,
    subject: SubjectRow<'a>,
    evidence: Vec<EvidenceRow<'a>>,
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
    #[serde(flatten)]
    evidence: &'a Evidence,
    value: String,
}

impl<'a> DoctorDocument<'a> {
    pub fn of(shown: &'a Shown) -> DoctorDocument<'a> {
        let host = &shown.gathered.facts.host;
        let patients = shown.gathered.patients.iter();
        let gap = |(pid, gap): (Option<i32>, &Gap)| PidGap { pid, gap: GapRow::from(gap) };
        DoctorDocument {
            schema: "marusa/doctor/2",
            taken: Here::now(),
            host: shown.has_host.then(|| HostRow {
                kernel: &host.kernel,
                cpus: host.cpus,
                memory_bytes: host.memory_bytes(),
                watched_seconds: host.seconds,
                seen_from_a_container: host.view.is_container,
                may_be_the_containers: &host.view.covered,
            }),
            jvms: patients
                .map(|patient| PatientRow { patient, examined: patient.unread.is_none() })
                .collect(),
            hidden: HiddenRows::of(&shown.gathered.hidden),
            rules: shown.rules(),
            ignored: shown.ignored,
            counts: Counts {
                critical: shown.count(Level::Critical),
                warn: shown.count(Level::Warn),
                info: shown.count(Level::Info),
            },
            findings: shown.findings.iter().map(|it| finding(shown, it)).collect(),
            if_xmx: shown.if_xmx,
            gaps: shown.gaps().into_iter().map(gap).collect(),
        }
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
    let evidence = finding.evidence.iter().map(evidence).collect();
    FindingRow { finding, subject, evidence, page: format!("docs/findings/{}.md", finding.id) }
}

pub(super) fn evidence(evidence: &Evidence) -> EvidenceRow<'_> {
    EvidenceRow { evidence, value: value(evidence) }
}

/// All that is looked for, schema marusa/doctor-rules/2.
#[derive(JsonSchema, Serialize)]
pub struct RulesDocument {
    #[serde(flatten)]
    head: Head,
    rules: Vec<RuleRow>,
}

#[derive(JsonSchema, Serialize)]
struct RuleRow {
    id: &'static str,
    title: &'static str,
    levels: &'static [Level],
    page: String,
}

impl RulesDocument {
    pub fn of(catalog: &[Entry]) -> RulesDocument {
        let rule = |entry: &Entry| RuleRow {
            id: entry.rule.id,
            title: entry.rule.title,
            levels: entry.levels,
            page: entry.rule.page(),
        };
        RulesDocument { head: Head::now("marusa/doctor-rules/2"), rules: catalog.iter().map(rule).collect() }
    }
}
