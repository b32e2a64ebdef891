//! `VM.native_memory`: what Native Memory Tracking counted. The summary by tag, and the detail report's map of reserved
//! and committed regions.
//!
//! Ask for `summary scale=b` and fall back to `summary` at `ReportError::BadScale` (JDK 8). Amounts below half the unit
//! are printed as 0 and lines of tags below the unit are left out.
//!
//! Source: memReporter.cpp, in services/ up to JDK 21 and in nmt/ after. Captured from JDK 8, 11, 17, 21 and 25.

use super::{Amount, ReportError, after, range};
use crate::base::limits::REPORT_LINES_MAX;
use crate::base::{Bytes, Range};

/// Reserved and committed bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Usage {
    pub reserved_bytes: Bytes,
    pub committed_bytes: Bytes,
}

/// The summary. Tags come in the report's order.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Summary {
    /// 1, or what `scale` asked for: no figure is more exact than this.
    pub unit_bytes: Bytes,
    pub tags: Vec<TagUsage>,
}

/// One tag. The parts are `None` where the report prints no such line.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct TagUsage {
    /// "Java Heap", "Shared class space".
    pub tag: String,
    pub mmap: Option<Usage>,
    /// "Thread" only. Committed: all of it (JDK 8), or what is resident (11 and on).
    pub stack: Option<Usage>,
    pub malloc_bytes: Option<Bytes>,
    pub arena_bytes: Option<Bytes>,
    /// "Native Memory Tracking" only: the headers of tracked blocks.
    pub tracking_overhead_bytes: Option<Bytes>,
}

impl Summary {
    pub fn tag(&self, name: &str) -> Option<&TagUsage> {
        self.tags.iter().find(|tag| tag.tag == name)
    }
}

pub fn summary(text: &str) -> Result<Summary, ReportError> {
    refusal(text)?;
    let mut summary = Summary::default();
    for (number, line) in text.lines().enumerate() {
        if number == REPORT_LINES_MAX {
            return Err(ReportError::OverLimit(REPORT_LINES_MAX));
        }
        let line = line.trim();
        if line == "Virtual memory map:" || line == "Details:" {
            break;
        }
        if let Some(rest) = line.strip_prefix("Total: ") {
            summary.unit_bytes = after(rest, "reserved=").ok_or(ReportError::UnknownForm)?.unit_bytes;
        } else if let Some((name, rest)) = line.strip_prefix('-').and_then(|rest| rest.split_once('(')) {
            let tag = || TagUsage { tag: name.trim().to_string(), ..TagUsage::default() };
            summary.tags.extend(usage(rest).map(|_| tag()));
        } else if let Some(tag) = summary.tags.last_mut() {
            part(line, tag);
        }
    }
    if summary.unit_bytes == 0 { Err(ReportError::UnknownForm) } else { Ok(summary) }
}

/// A line below a tag. That of "Class" has "(    reserved=..." lines too, which tell of metaspace and are not its own.
fn part(line: &str, tag: &mut TagUsage) {
    let bytes = |amount: Option<Amount>| amount.map(|amount| amount.bytes);
    if line.starts_with("(mmap:") {
        tag.mmap = usage(line);
    } else if line.starts_with("(stack:") {
        tag.stack = usage(line);
    } else if line.starts_with("(malloc=") {
        tag.malloc_bytes = bytes(after(line, "malloc="));
    } else if line.starts_with("(arena=") {
        tag.arena_bytes = bytes(after(line, "arena="));
    } else if line.starts_with("(tracking overhead=") {
        tag.tracking_overhead_bytes = bytes(after(line, "overhead="));
    }
}

fn usage(line: &str) -> Option<Usage> {
    Some(Usage {
        reserved_bytes: after(line, "reserved=")?.bytes,
        committed_bytes: after(line, "committed=")?.bytes,
    })
}

fn refusal(text: &str) -> Result<(), ReportError> {
    let start = text.trim_start();
    if start.starts_with("Native memory tracking is not enabled") {
        return Err(ReportError::NmtOff);
    }
    if start.starts_with("Incorrect scale value") {
        return Err(ReportError::BadScale);
    }
    Ok(())
}

/// A reserved region of the detail report, with the committed parts of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Region {
    pub range: Range,
    pub tag: String,
    /// The whole region, where the report says "reserved and committed".
    pub committed: Vec<Range>,
}

/// The section "Virtual memory map:" of `VM.native_memory detail`, in the report's order: JDK 8 to 17 by address, 21 and
/// on downwards.
pub fn regions(text: &str) -> Result<Vec<Region>, ReportError> {
    refusal(text)?;
    let lines = text.lines().skip_while(|line| line.trim() != "Virtual memory map:").skip(1);
    let mut regions: Vec<Region> = Vec::new();
    for (number, line) in lines.enumerate() {
        if number == REPORT_LINES_MAX {
            return Err(ReportError::OverLimit(REPORT_LINES_MAX));
        }
        // ZGC's file map (25) and the call sites come after.
        if line.starts_with("Memory map of") || line.trim() == "Details:" {
            break;
        }
        let Some((bounds, rest)) = line.trim().strip_prefix('[').and_then(|rest| rest.split_once(']')) else {
            continue;
        };
        let Some(range) = range(bounds) else { continue };
        let rest = rest.trim();
        if let Some((how, tag)) = rest.split_once(" for ") {
            let tag = tag.strip_suffix(" from").unwrap_or(tag).trim().to_string();
            let whole = how.starts_with("reserved and committed");
            regions.push(Region { range, tag, committed: if whole { vec![range] } else { Vec::new() } });
        } else if let (true, Some(region)) = (rest.starts_with("committed"), regions.last_mut())
            && region.committed != [region.range]
        {
            region.committed.push(range);
        }
    }
    Ok(regions)
}

#[cfg(test)]
#[path = "nmt_tests.rs"]
mod tests;
