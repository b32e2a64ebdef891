//! What an account is of: the process, and when and how it was read.

use crate::snapshot::{Snapshot, Source};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// When and how the snapshot was taken.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(default)]
pub struct Taken {
    /// RFC 3339, UTC; empty where a file has none.
    pub at: String,
    pub source: Source,
    pub took_ms: f64,
    pub target_stopped_ms: u64,
    pub attached: bool,
    pub kernel: String,
}

#[derive(Clone, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(default)]
pub struct Process {
    pub pid: i32,
    pub namespace_pid: i32,
    pub command: String,
    /// "Kafka"; for people.
    #[serde(skip)]
    pub server: Option<String>,
    pub user: String,
    pub container: Option<String>,
    pub started: Option<String>,
    /// Threads as the kernel counts them: Java threads, the VM's, and others.
    pub threads: usize,
}

impl Taken {
    pub fn of(snapshot: &Snapshot) -> Taken {
        let taken = &snapshot.taken;
        Taken {
            at: taken.at.clone(),
            source: taken.source,
            took_ms: (taken.took_ms * 100.0).round() / 100.0,
            target_stopped_ms: 0,
            attached: taken.attached,
            kernel: taken.kernel.clone(),
        }
    }
}

impl Process {
    pub fn of(snapshot: &Snapshot) -> Process {
        let process = &snapshot.os.process;
        Process {
            pid: process.pid,
            namespace_pid: process.namespace_pid,
            command: process.command.clone(),
            server: process.server.clone(),
            user: process.user.clone(),
            container: process.container.clone(),
            started: process.started.clone(),
            threads: snapshot.os.tasks.len(),
        }
    }
}
