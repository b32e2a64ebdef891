//! The account: spans of memory, whose bytes they are, and their sums.

use super::area::Area;
use crate::base::{Bytes, Gap, Range};
use crate::os::page_kind::PageKind;
use std::collections::BTreeMap;

/// Who owns bytes of a span, and how that is known.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Owner {
    pub area: Area,
    /// "eden", "card table", "libc.so.6 text".
    pub part: String,
    /// Which one of many: the thread, the library's path, the arena.
    pub instance: Instance,
    /// The proof in a few words: "vmStructs", "arena ring", "mapped file".
    pub how: String,
}

/// What groups owners under `--by thread|library|arena`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Instance {
    None,
    Thread(i32),
    Library(String),
    /// Memory of one arena of malloc.
    Arena(usize),
    /// Chunks that malloc mapped one by one.
    Mmapped,
    /// Memory of an allocator that is not walked.
    OtherAllocator,
}

impl Instance {
    /// Whether it is malloc's memory, for any owner of the block.
    pub fn is_mallocs(&self) -> bool {
        matches!(self, Instance::Arena(_) | Instance::Mmapped | Instance::OtherAllocator)
    }
}

/// Memory in a row within one mapping, and its owners. Mostly one owner's; malloc's pages hold blocks of many.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    pub range: Range,
    /// Index into the mappings of the snapshot.
    pub mapping: usize,
    /// At least one, each of another owner; what they reserve sums to `range`.
    pub shares: Vec<Share>,
}

/// What one owner has of a span.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Share {
    /// Index into `MemoryMap::owners`.
    pub owner: usize,
    pub figures: Figures,
}

impl Span {
    /// The figures of all owners together.
    pub fn figures(&self) -> Figures {
        let mut sum = Figures::default();
        self.shares.iter().for_each(|share| sum.add(&share.figures));
        sum
    }
}

/// Sums over spans. All in bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    pub reserved: Bytes,
    /// In mappings with any right of access; memory that is mapped twice counts once.
    pub committed: Bytes,
    /// In memory; memory that is mapped twice counts once.
    pub resident: Bytes,
    /// In memory, but already counted at another address.
    pub aliased: Bytes,
    pub swapped: Bytes,
    /// `resident`, each page divided by the number of page tables that map it; exact only if `sharing_unknown` is 0.
    pub proportional: Bytes,
    /// Resident bytes of which the sharing is not known; they count whole in `proportional`.
    pub sharing_unknown: Bytes,
    /// The part of `resident` in pages that belong to no file: private memory, and private copies of a file's pages.
    pub anonymous: Bytes,
    /// `resident` by bytes of a mapped page; by those of its folio where the snapshot has the page sizes.
    pub by_page_size: BTreeMap<u64, Bytes>,
    /// `resident` by kind of page; empty where the snapshot has no page sizes.
    pub by_page_kind: BTreeMap<PageKind, Bytes>,
}

impl Figures {
    pub fn add(&mut self, other: &Figures) {
        self.reserved += other.reserved;
        self.committed += other.committed;
        self.resident += other.resident;
        self.aliased += other.aliased;
        self.swapped += other.swapped;
        self.proportional += other.proportional;
        self.sharing_unknown += other.sharing_unknown;
        self.anonymous += other.anonymous;
        for (kind, bytes) in &other.by_page_kind {
            *self.by_page_kind.entry(*kind).or_default() += bytes;
        }
        for (size, bytes) in &other.by_page_size {
            *self.by_page_size.entry(*size).or_default() += bytes;
        }
    }
}

/// The whole account of one snapshot.
#[derive(Clone, Debug)]
pub struct MemoryMap {
    /// Sorted, disjoint, covering every mapping.
    pub spans: Vec<Span>,
    pub owners: Vec<Owner>,
    /// Bytes in use by owner, where the owner knows: same index as `owners`.
    pub in_use: Vec<Option<Bytes>>,
    pub balance: Balance,
    pub gaps: Vec<Gap>,
}

impl MemoryMap {
    /// The shares of all spans, each with its owner, in the order of addresses.
    pub fn shares(&self) -> impl Iterator<Item = (&Owner, &Share)> {
        self.spans.iter().flat_map(|span| &span.shares).map(|share| (&self.owners[share.owner], share))
    }
}

/// Our sum against the kernel's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Balance {
    pub total: Figures,
    pub unattributed: Bytes,
    /// VmRSS and HugetlbPages, right after the pages were scanned; `None` if not readable.
    pub kernel_resident: Option<Bytes>,
    /// By how much the kernel's figure moved while we read.
    pub changed_while_reading: Option<Bytes>,
    pub page_tables: Option<Bytes>,
    pub proportional: Option<Bytes>,
}

impl Balance {
    /// Kernel's figure less ours, aliases included, since the kernel counts each mapping of a page.
    pub fn difference(&self) -> Option<i64> {
        Some(self.kernel_resident? as i64 - (self.total.resident + self.total.aliased) as i64)
    }
}
