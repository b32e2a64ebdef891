//! The documents of `/api/v1`: the JVMs of this node, what the doctor found, and the last while of one JVM.

use crate::base::Bytes;
use crate::map::Area;
use crate::map::rows::Measure;
use crate::os::identity::Identity;
use crate::record::writer::Ending;
use crate::serve::history::{Clock, MomentRow};
use crate::serve::jvm::{JvmNow, Who};
use crate::serve::node::{Node, State};
use crate::serve::summary::{AreaNow, FoundNow};
use crate::show::json::Head;
use schemars::JsonSchema;
use serde::Serialize;

/// `/api/v1/jvms`.
#[derive(JsonSchema, Serialize)]
pub struct JvmsDocument {
    #[serde(flatten)]
    head: Head,
    /// JVMs that are younger than `--min-age` are left out.
    jvms: Vec<JvmRow>,
    /// The last ones that ended.
    ended: Vec<EndedRow>,
}

/// Who and where a JVM is. What is not known is `null`.
#[derive(JsonSchema, Serialize)]
pub struct WhoRow {
    /// Unique over hosts and time.
    jvm_id: Option<String>,
    /// The label `jvm` of its metrics.
    jvm: String,
    pid: i32,
    #[serde(flatten)]
    of: Identity,
}

impl WhoRow {
    fn of(who: &Who, name: &str, pid: i32) -> WhoRow {
        WhoRow { jvm_id: who.id.clone(), jvm: name.to_string(), pid, of: who.of.clone() }
    }
}

#[derive(JsonSchema, Serialize)]
pub struct JvmRow {
    #[serde(flatten)]
    who: WhoRow,
    main: Option<String>,
    server: Option<String>,
    user: String,
    version: Option<String>,
    gc: Option<String>,
    started: Option<String>,
    kernel_resident_bytes: Option<Bytes>,
    heap_used_bytes: Option<Bytes>,
    heap_max_bytes: Option<Bytes>,
    group_held_bytes: Option<Bytes>,
    group_limit_bytes: Option<Bytes>,
    /// Age of the account that `areas` are of; `null`: none was read.
    account_age_seconds: Option<f64>,
    /// Resident bytes by area.
    areas: Vec<AreaNow>,
    findings: Vec<FoundNow>,
    /// Why the last account could not be read.
    unread: Option<String>,
}

#[derive(JsonSchema, Serialize)]
pub struct EndedRow {
    #[serde(flatten)]
    who: WhoRow,
    /// Milliseconds since 1970.
    ended_ms: i64,
    ending: Ending,
    /// The last sample of it.
    last: Option<MomentRow>,
}

impl JvmsDocument {
    pub fn of(node: &Node, state: &State) -> JvmsDocument {
        let shown = state.jvms.values().filter(|jvm| node.is_shown(jvm));
        let clock = Clock::now();
        let ended = state.ended.iter().rev().map(|jvm| EndedRow {
            who: WhoRow::of(&jvm.who, &jvm.name, jvm.pid),
            ended_ms: clock.wall_ms(jvm.ended_at),
            ending: jvm.ending,
            last: jvm.last.as_ref().map(|row| row.shown(clock)),
        });
        JvmsDocument {
            head: Head::now("marusa/serve-jvms/1"),
            jvms: shown.map(JvmRow::of).collect(),
            ended: ended.collect(),
        }
    }
}

impl JvmRow {
    fn of(jvm: &JvmNow) -> JvmRow {
        let facts = jvm.facts.clone();
        JvmRow {
            who: WhoRow::of(&jvm.who, &jvm.name, facts.pid),
            main: facts.main,
            server: facts.server,
            user: facts.user,
            version: facts.version,
            gc: facts.gc,
            started: facts.started,
            kernel_resident_bytes: jvm.figure(Measure::KernelResident),
            heap_used_bytes: jvm.figure(Measure::HeapUsed),
            heap_max_bytes: facts.max_heap_bytes,
            group_held_bytes: jvm.figure(Measure::GroupCurrent),
            group_limit_bytes: jvm.figure(Measure::GroupLimit),
            account_age_seconds: jvm.account_age_seconds(),
            areas: jvm.areas().cloned().collect(),
            findings: jvm.findings().to_vec(),
            unread: jvm.unread.clone(),
        }
    }
}

/// `/api/v1/findings`.
#[derive(JsonSchema, Serialize)]
pub struct FindingsDocument {
    #[serde(flatten)]
    head: Head,
    host_findings: Vec<FoundNow>,
    jvms: Vec<JvmFindings>,
}

#[derive(JsonSchema, Serialize)]
pub struct JvmFindings {
    #[serde(flatten)]
    who: WhoRow,
    findings: Vec<FoundNow>,
}

impl FindingsDocument {
    pub fn of(node: &Node, state: &State) -> FindingsDocument {
        let shown = state.jvms.values().filter(|jvm| node.is_shown(jvm) && !jvm.findings().is_empty());
        let jvms = shown.map(|jvm| JvmFindings {
            who: WhoRow::of(&jvm.who, &jvm.name, jvm.facts.pid),
            findings: jvm.findings().to_vec(),
        });
        FindingsDocument {
            head: Head::now("marusa/serve-findings/1"),
            host_findings: state.node.findings.clone(),
            jvms: jvms.collect(),
        }
    }
}

/// `/api/v1/history?jvm=ID`.
#[derive(JsonSchema, Serialize)]
pub struct HistoryDocument {
    #[serde(flatten)]
    head: Head,
    #[serde(flatten)]
    who: WhoRow,
    /// The order of `areas` in each moment.
    areas: Vec<&'static str>,
    moments: Vec<MomentRow>,
}

impl HistoryDocument {
    /// `None`: no JVM has that id.
    pub fn of(state: &State, id: &str) -> Option<HistoryDocument> {
        let (jvm, clock) = (jvm(state, id)?, Clock::now());
        Some(HistoryDocument {
            head: Head::now("marusa/serve-history/1"),
            who: WhoRow::of(&jvm.who, &jvm.name, jvm.facts.pid),
            areas: Area::ALL.iter().map(|area| area.name()).collect(),
            moments: jvm.history.rows().map(|row| row.shown(clock)).collect(),
        })
    }
}

/// By its id.
pub fn jvm<'a>(state: &'a State, id: &str) -> Option<&'a JvmNow> {
    state.jvms.values().find(|jvm| jvm.who.id.as_deref() == Some(id))
}
