//! One change of the host, as data: a plan is a list of them that a person can read.

use super::content::Content;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The mode of each file that a plan makes: programs of the host read it, and only root writes it.
pub const FILE_MODE: u32 = 0o644;

/// A change, and what a person needs to agree to it.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// "12 more huge 2 MiB pages".
    pub what: String,
    pub why: String,
    /// What it takes from others, or what may go wrong.
    pub risk: Option<String>,
    pub change: Change,
}

/// What is changed.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Change {
    /// The number in a file of /proc/sys or /sys becomes larger by this much, so that what others have put there stays.
    Add { file: String, by: u64 },
    /// A file of /sys whose words are choices, as "always [madvise] never".
    Choose { file: String, word: String },
    /// A file of /proc/sys or /sys that holds one number which is not a sum: a group, a limit.
    Set { file: String, value: u64 },
    /// A file that is not there yet. Its text is made of these values when the step is made, and of nothing else.
    Create { file: String, content: Content },
    /// A directory that is not there yet.
    #[serde(alias = "folder")]
    Directory { path: String },
    /// A tmpfs on an empty directory; `options` as mount(8) takes them: "huge=always,size=600m".
    MountTmpfs { at: String, options: String },
    /// What is in one directory, copied into another, which is empty and on a tmpfs that an earlier step mounted.
    /// `linked`: files and directories below `from` that are not copied: links in the copy lead to them.
    CopyTree {
        from: String,
        to: String,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        linked: Vec<String>,
    },
    /// A new file of zeros that the host swaps to for as long as the change lasts.
    SwapFile { file: String, bytes: u64 },
    /// A new cgroup with a memory limit.
    MemoryGroup { path: String, limit_bytes: u64 },
}

impl Change {
    /// The file or directory that changes.
    pub fn place(&self) -> &str {
        match self {
            Change::Add { file, .. }
            | Change::Choose { file, .. }
            | Change::Set { file, .. }
            | Change::Create { file, .. }
            | Change::SwapFile { file, .. } => file,
            Change::Directory { path } | Change::MemoryGroup { path, .. } => path,
            Change::MountTmpfs { at, .. } => at,
            Change::CopyTree { to, .. } => to,
        }
    }

    /// What the kernel holds is gone with the next boot; files stay.
    pub fn ends_with_boot(&self) -> bool {
        !matches!(self, Change::Create { .. } | Change::Directory { .. } | Change::SwapFile { .. })
    }
}
