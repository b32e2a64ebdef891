//! The raw views of one moment.

use super::page_settings::PageSettings;
use crate::alloc::AllocView;
use crate::base::{Bytes, Gap, Known, Range, Why};
use crate::jvm::JvmView;
use crate::jvm::hotspot::histogram::HeapWant;
use crate::os::OsView;
use crate::os::elf::Image;
use crate::os::host::Host;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Everything that one pass read.
#[derive(Clone, Debug)]
pub struct Snapshot {
    pub taken: Taken,
    pub os: OsView,
    /// The executables and libraries that are loaded.
    pub images: Vec<Image>,
    pub jvm: Known<JvmView>,
    pub alloc: Known<AllocView>,
    pub links: Vec<Link>,
}

/// What a snapshot holds beyond what every account needs. Each costs time: the page sizes some milliseconds and, on hosts
/// with folios between 4 KiB and 2 MiB, up to a tenth of a second; smaps 20 ms for a gigabyte of small pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Want {
    /// The folio of every resident page (`os::folios`).
    pub page_sizes: bool,
    /// The kernel's sums and flags of every mapping (`os::smaps`).
    pub smaps: bool,
    /// Without malloc's blocks and what points to them, which take longest: `record` reads a JVM so whose account takes too long.
    pub is_shallow: bool,
    /// Who holds malloc's blocks: the Java heap and all blocks are read for it.
    pub holders: bool,
    /// What class loaders hold.
    pub loaders: LoaderDetail,
    /// Buffers outside the heap and who holds them: the Java heap is read some times for it.
    pub buffers: bool,
    /// The objects of the Java heap by class: all of the heap is read for it.
    pub heap: Option<HeapWant>,
}

impl Want {
    /// Sizes of pages are asked for while objects are counted, so they come first.
    pub fn objects_by_page_size(&self) -> bool {
        self.page_sizes && self.heap.is_some()
    }
}

/// How much of what class loaders hold is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LoaderDetail {
    #[default]
    None,
    /// Their count and metaspace, some microseconds a loader.
    Brief,
    /// Also classes, resident bytes, blocks of malloc and compiled code.
    All,
}

/// What a snapshot was read from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    #[default]
    Live,
    /// A file that `marusa freeze` wrote.
    Frozen,
    Core,
}

/// When and how.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Taken {
    /// RFC 3339, UTC.
    pub at: String,
    pub took_ms: f64,
    /// Belongs to this snapshot, not to the one that a file keeps.
    #[serde(skip)]
    pub source: Source,
    /// Whether the target was asked over the attach protocol (`audit`).
    pub attached: bool,
    /// VmRSS and HugetlbPages right after the pages were scanned.
    pub kernel_resident_bytes: Option<Bytes>,
    /// How far the kernel's figure moved between the start and the end of the reading.
    pub changed_while_reading_bytes: Option<Bytes>,
    /// Release of the kernel: "6.18.44".
    pub kernel: String,
    /// `None`: a file of an earlier version, or a core.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<Host>,
    /// Whether a file has what the holders of malloc's blocks are found by.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub holders: bool,
    /// Whether it has what the loaders of classes are found by.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub loaders: bool,
    /// The same of buffers outside the heap.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub buffers: bool,
    /// What decides the size of pages, where it was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page_settings: Option<PageSettings>,
}

/// An anonymous mapping without a claim that a library points to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    pub range: Range,
    pub library: String,
    pub how: String,
}

impl Snapshot {
    /// Leaves out what a file holds though it is not wanted, so that a frozen snapshot gives what a live one gives, and says
    /// what is wanted and not there.
    pub fn keep_only(&mut self, want: Want) {
        fn keep<T>(is_wanted: bool, part: &mut Option<Known<T>>, what: &str) {
            let kept = || part.take().unwrap_or_else(|| Err(Gap::new(what, Why::NotRecorded)));
            *part = is_wanted.then(kept);
        }
        keep(want.page_sizes, &mut self.os.page_sizes, "sizes of folios");
        keep(want.smaps, &mut self.os.smaps, "smaps");
    }

    /// The stacks of all threads, as far as they were found.
    pub fn stacks(&self) -> Vec<Range> {
        let threads = self.jvm.iter().flat_map(|jvm| &jvm.threads);
        threads.filter_map(|thread| thread.stack.as_ref().ok().copied()).collect()
    }

    /// Why the holders of malloc's blocks were not read to the end, though they were asked for.
    pub fn holders_given_up(&self) -> Option<&Gap> {
        let holders = self.jvm.as_ref().ok()?.holders.as_ref()?;
        holders.gaps.iter().find(|gap| gap.why.is_given_up())
    }

    /// The gaps of every view.
    pub fn gaps(&self) -> Vec<Gap> {
        fn of<T>(part: &Known<T>, own: impl Fn(&T) -> Vec<Gap>) -> Vec<Gap> {
            part.as_ref().map_or_else(|gap| vec![gap.clone()], own)
        }
        let mut gaps = self.os.gaps.clone();
        gaps.extend(self.os.pages.as_ref().err().cloned());
        gaps.extend(self.os.page_sizes.iter().flat_map(|sizes| of(sizes, |sizes| sizes.gaps.clone())));
        gaps.extend(self.os.smaps.iter().flat_map(|smaps| smaps.as_ref().err().cloned()));
        gaps.extend(of(&self.jvm, JvmView::gaps));
        gaps.extend(of(&self.alloc, |alloc| alloc.gaps.clone()));
        gaps
    }
}
