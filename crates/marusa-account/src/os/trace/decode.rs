//! From the bytes of an event to what happened: which tracepoints are read, and which of their fields.
//!
//! A kernel that lacks a tracepoint, or a field of one, gives a gap for it; the others are read.

use super::event::{Event, Mm, What, status};
use super::format::{Field, Format};
use crate::base::{Gap, Known, Why};
use std::collections::BTreeMap;

/// The smallest order of an allocation that is traced.
pub const ALLOCATION_ORDER_MIN: u32 = 2;
/// 2 MiB of 4 KiB: blocks below are broken out of a huge page.
const HUGE_ORDER: u32 = 9;
/// `TRACE_FLAG_HARDIRQ`, `TRACE_FLAG_SOFTIRQ` and `TRACE_FLAG_NMI` of include/linux/trace_events.h: who was on the CPU has no part
/// in what an interrupt does.
const IN_INTERRUPT: i64 = 0x08 | 0x10 | 0x40;
/// `include/uapi/linux/sched.h`.
const CLONE_THREAD: u64 = 0x0001_0000;

/// A tracepoint that is read. The last three say whose a thread is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    CompactionBegin,
    CompactionEnd,
    CompactionTry,
    CompactionDeferred,
    ReclaimBegin,
    ReclaimEnd,
    GroupReclaimBegin,
    GroupReclaimEnd,
    Throttled,
    PageAlloc,
    ExtFrag,
    ScanPmd,
    ScanFile,
    Collapse,
    CollapseFile,
    KcompactdWake,
    KcompactdSleep,
    KswapdWake,
    KswapdSleep,
    Born,
    Renamed,
    Exited,
}

/// Each tracepoint: its system, its name, the fields of it that are read (in the order in which `Layout::what` takes them), and
/// the one that is a status.
const TABLE: [(Source, &str, &str, &[&str], &str); 22] = {
    use Source::*;
    [
        (CompactionBegin, "compaction", "mm_compaction_begin", &["sync"], ""),
        (CompactionEnd, "compaction", "mm_compaction_end", &["sync", "status"], "status"),
        (CompactionTry, "compaction", "mm_compaction_try_to_compact_pages", &["order"], ""),
        (CompactionDeferred, "compaction", "mm_compaction_deferred", &["order"], ""),
        (ReclaimBegin, "vmscan", "mm_vmscan_direct_reclaim_begin", &["order"], ""),
        (ReclaimEnd, "vmscan", "mm_vmscan_direct_reclaim_end", &["nr_reclaimed"], ""),
        (GroupReclaimBegin, "vmscan", "mm_vmscan_memcg_reclaim_begin", &["order"], ""),
        (GroupReclaimEnd, "vmscan", "mm_vmscan_memcg_reclaim_end", &["nr_reclaimed"], ""),
        (Throttled, "vmscan", "mm_vmscan_throttled", &["usec_delayed"], ""),
        (PageAlloc, "kmem", "mm_page_alloc", &["order", "pfn"], ""),
        (ExtFrag, "kmem", "mm_page_alloc_extfrag", &["alloc_order", "fallback_order"], ""),
        (ScanPmd, "huge_memory", "mm_khugepaged_scan_pmd", &["mm", "status"], "status"),
        (ScanFile, "huge_memory", "mm_khugepaged_scan_file", &["mm", "result"], "result"),
        (Collapse, "huge_memory", "mm_collapse_huge_page", &["mm", "status"], "status"),
        (CollapseFile, "huge_memory", "mm_khugepaged_collapse_file", &["mm", "result"], "result"),
        (KcompactdWake, "compaction", "mm_compaction_kcompactd_wake", &["nid", "order"], ""),
        (KcompactdSleep, "compaction", "mm_compaction_kcompactd_sleep", &["nid"], ""),
        (KswapdWake, "vmscan", "mm_vmscan_kswapd_wake", &["nid", "order"], ""),
        (KswapdSleep, "vmscan", "mm_vmscan_kswapd_sleep", &["nid"], ""),
        (Born, "task", "task_newtask", &["pid", "comm", "clone_flags"], ""),
        (Renamed, "task", "task_rename", &["pid", "newcomm"], ""),
        (Exited, "sched", "sched_process_exit", &["pid", "comm"], ""),
    ]
};

/// What a record says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record {
    Event(Event),
    Life { at_ns: u64, life: Life },
}

impl Record {
    pub fn at_ns(&self) -> u64 {
        match self {
            Record::Event(event) => event.at_ns,
            Record::Life { at_ns, .. } => *at_ns,
        }
    }
}

/// The beginnings and ends of threads: what says whose a thread is that ended before it could be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Life {
    /// `parent` is the thread that called clone; a thread of the same process where `is_thread`.
    Born {
        tid: i32,
        parent: i32,
        is_thread: bool,
        name: String,
    },
    Renamed {
        tid: i32,
        name: String,
    },
    Exited {
        tid: i32,
        name: String,
    },
}

/// How the events of this kernel are read.
#[derive(Clone, Debug)]
pub struct Decoder {
    layouts: BTreeMap<u16, Layout>,
    kind: Field,
    pid: Field,
    flags: Option<Field>,
}

#[derive(Clone, Debug)]
struct Layout {
    source: Source,
    fields: Vec<Field>,
    statuses: Vec<(i64, &'static str)>,
}

impl Source {
    /// All of them.
    pub fn all() -> impl Iterator<Item = Source> {
        TABLE.iter().map(|row| row.0)
    }

    fn row(self) -> &'static (Source, &'static str, &'static str, &'static [&'static str], &'static str) {
        &TABLE[self as usize]
    }

    /// "compaction/mm_compaction_begin": its directory below `events`.
    pub fn directory(self) -> String {
        format!("{}/{}", self.row().1, self.row().2)
    }

    /// "compaction:mm_compaction_begin".
    pub fn name(self) -> String {
        format!("{}:{}", self.row().1, self.row().2)
    }

    /// What the kernel is to keep back; `None`: nothing.
    ///
    /// Allocations: single pages except those of page tables. A page table is of order 0, cannot be moved (migratetype 0), is
    /// zeroed, and is charged to the process: `GFP_PGTABLE_USER` of include/asm-generic/pgalloc.h. Where the kernel does not
    /// say which bits those are, page tables are left out.
    pub fn filter(self, format: &Format) -> Option<String> {
        let large = format!("order >= {ALLOCATION_ORDER_MIN}");
        match self {
            Source::PageAlloc => match (format.flag("__GFP_ZERO"), format.flag("__GFP_ACCOUNT")) {
                (Some(zeroed), Some(charged)) if format.field("migratetype").is_some() => Some(format!(
                    "{large} || (order == 0 && migratetype == 0 && gfp_flags & {charged:#x} && gfp_flags & {zeroed:#x})"
                )),
                _ => Some(large),
            },
            _ => None,
        }
    }
}

impl Decoder {
    /// From the formats of the events that this kernel has; what it lacks is a gap.
    pub fn new(formats: &BTreeMap<Source, Format>) -> Known<(Decoder, Vec<Gap>)> {
        let common = |name: &str| formats.values().find_map(|format| format.field(name));
        let (Some(kind), Some(pid)) = (common("common_type"), common("common_pid")) else {
            return Err(Gap::new("tracepoints of memory", Why::NotInThisKernel));
        };
        let mut decoder = Decoder { layouts: BTreeMap::new(), kind, pid, flags: common("common_flags") };
        let mut gaps = Vec::new();
        for source in Source::all() {
            let Some(format) = formats.get(&source) else {
                gaps.push(Gap::new(format!("tracepoint {}", source.name()), Why::NotInThisKernel));
                continue;
            };
            match Layout::new(source, format) {
                Ok(layout) => {
                    decoder.layouts.insert(format.id, layout);
                }
                Err(field) => {
                    let what = format!("field {field} of tracepoint {}", source.name());
                    gaps.push(Gap::new(what, Why::NotInThisKernel));
                }
            }
        }
        Ok((decoder, gaps))
    }

    /// The tracepoints that can be read here.
    pub fn sources(&self) -> impl Iterator<Item = Source> {
        self.layouts.values().map(|layout| layout.source)
    }

    /// `Err`: an event of ours whose bytes are not as its format says. `Ok(None)`: not one of ours.
    pub fn decode(&self, at_ns: u64, cpu: u32, record: &[u8]) -> Result<Option<Record>, Undecoded> {
        let kind = self.kind.number(record).ok_or(Undecoded)?;
        let Some(layout) = u16::try_from(kind).ok().and_then(|kind| self.layouts.get(&kind)) else {
            return Ok(None);
        };
        let tid = self.pid.number(record).and_then(|tid| i32::try_from(tid).ok()).ok_or(Undecoded)?;
        if let Some(life) = layout.life(tid, record) {
            return life.map(|life| Some(Record::Life { at_ns, life })).ok_or(Undecoded);
        }
        let what = layout.what(record).ok_or(Undecoded)?;
        let flags = self.flags.and_then(|flags| flags.number(record)).unwrap_or(0);
        let tid = if flags & IN_INTERRUPT == 0 { tid } else { 0 };
        Ok(Some(Record::Event(Event { at_ns, cpu, tid, what })))
    }
}

/// The bytes of an event are not of the form that the kernel gives for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Undecoded;

impl Layout {
    /// `Err`: the field that is missing.
    fn new(source: Source, format: &Format) -> Result<Layout, &'static str> {
        let (_, _, _, names, of_status) = source.row();
        let fields: Result<Vec<Field>, &'static str> =
            names.iter().map(|name| format.field(name).ok_or(*name)).collect();
        let words = format.words(of_status);
        let statuses = words.iter().map(|(number, word)| (*number, status(word))).collect();
        Ok(Layout { source, fields: fields?, statuses })
    }

    fn number(&self, field: usize, record: &[u8]) -> Option<i64> {
        self.fields.get(field)?.number(record)
    }

    fn what(&self, record: &[u8]) -> Option<What> {
        let number = |field| self.number(field, record);
        let small = |field| u32::try_from(number(field)?).ok();
        let is = |field| Some(number(field)? != 0);
        let mm = || Some(Mm(number(0)? as u64));
        Some(match self.source {
            Source::CompactionBegin => What::CompactionBegin { is_sync: is(0)? },
            Source::CompactionEnd => What::CompactionEnd { is_sync: is(0)?, status: self.status(number(1)?) },
            Source::CompactionTry => What::CompactionTry { order: small(0)? },
            Source::CompactionDeferred => What::CompactionDeferred { order: small(0)? },
            Source::ReclaimBegin => What::ReclaimBegin { order: small(0)? },
            Source::ReclaimEnd => What::ReclaimEnd { pages: number(0)? as u64 },
            Source::GroupReclaimBegin => What::GroupReclaimBegin { order: small(0)? },
            Source::GroupReclaimEnd => What::GroupReclaimEnd { pages: number(0)? as u64 },
            Source::Throttled => What::Throttled { delayed_us: small(0)? },
            Source::PageAlloc => match small(0)? {
                0 => What::PageTable,
                // No page: the frame is all ones.
                order => What::PageAlloc { order, is_failed: number(1)? == -1 },
            },
            Source::ExtFrag => {
                let (order, fallback_order) = (small(0)?, small(1)?);
                What::ExtFrag { order, fallback_order, is_fragmenting: fallback_order < HUGE_ORDER }
            }
            Source::ScanPmd | Source::ScanFile => What::KhugepagedScan {
                status: self.status(number(1)?),
                is_file: self.source == Source::ScanFile,
                mm: mm()?,
            },
            Source::Collapse | Source::CollapseFile => What::Collapse {
                status: self.status(number(1)?),
                is_file: self.source == Source::CollapseFile,
                mm: mm()?,
            },
            Source::KcompactdWake => What::KcompactdWake { node: small(0)?, order: small(1)? },
            Source::KcompactdSleep => What::KcompactdSleep { node: small(0)? },
            Source::KswapdWake => What::KswapdWake { node: small(0)?, order: small(1)? },
            Source::KswapdSleep => What::KswapdSleep { node: small(0)? },
            Source::Born | Source::Renamed | Source::Exited => return None,
        })
    }

    /// `None`: it is not an event of a thread's life; `Some(None)`: it is one, but damaged.
    fn life(&self, current: i32, record: &[u8]) -> Option<Option<Life>> {
        let tid = || i32::try_from(self.number(0, record)?).ok();
        let name = || self.fields.get(1)?.text(record);
        let born = || {
            let is_thread = self.number(2, record)? as u64 & CLONE_THREAD != 0;
            Some(Life::Born { tid: tid()?, parent: current, is_thread, name: name()? })
        };
        match self.source {
            Source::Born => Some(born()),
            Source::Renamed => Some(tid().zip(name()).map(|(tid, name)| Life::Renamed { tid, name })),
            Source::Exited => Some(tid().zip(name()).map(|(tid, name)| Life::Exited { tid, name })),
            _ => None,
        }
    }

    fn status(&self, number: i64) -> &'static str {
        self.statuses.iter().find(|(known, _)| *known == number).map_or("other", |(_, status)| status)
    }
}

#[cfg(test)]
#[path = "decode_tests.rs"]
mod tests;
