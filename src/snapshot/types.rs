//! The raw views of one moment.

use super::page_settings::PageSettings;
use crate::alloc::AllocView;
use crate::base::{Bytes, Gap, Known, Range};
use crate::jvm::JvmView;
use crate::os::OsView;
use serde::{Deserialize, Serialize};

/// Everything that one pass read.
#[derive(Clone, Debug)]
pub struct Snapshot {
    pub taken: Taken,
    pub os: OsView,
    /// The executables and libraries that are loaded.
    pub images: Vec<LoadedImage>,
    pub jvm: Known<JvmView>,
    pub alloc: Known<AllocView>,
    pub links: Vec<Link>,
}

/// When and how.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Taken {
    /// RFC 3339, UTC.
    pub at: String,
    pub took_ms: f64,
    /// Whether the target was asked over the attach protocol (`audit`).
    pub attached: bool,
    /// VmRSS and HugetlbPages right after the pages were scanned.
    pub kernel_resident_bytes: Option<Bytes>,
    /// How far the kernel's figure moved between the start and the end of the reading.
    pub changed_while_reading_bytes: Option<Bytes>,
    /// Release of the kernel: "6.18.44".
    pub kernel: String,
    /// What decides the size of pages, where it was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page_settings: Option<PageSettings>,
}

/// An executable or library, and its loadable segments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadedImage {
    /// As mapped, with " (deleted)".
    pub path: String,
    pub segments: Vec<(Range, bool)>,
}

/// An anonymous mapping that nobody claimed but that a library points to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    pub range: Range,
    pub library: String,
    pub how: String,
}

impl Snapshot {
    /// The gaps of every view.
    pub fn gaps(&self) -> Vec<Gap> {
        let mut gaps = self.os.gaps.clone();
        if let Err(gap) = &self.os.pages {
            gaps.push(gap.clone());
        }
        match &self.jvm {
            Ok(jvm) => gaps.extend(jvm.gaps()),
            Err(gap) => gaps.push(gap.clone()),
        }
        match &self.alloc {
            Ok(alloc) => gaps.extend(alloc.gaps.iter().cloned()),
            Err(gap) => gaps.push(gap.clone()),
        }
        gaps
    }
}
