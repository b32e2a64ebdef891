//! Who holds the blocks of malloc, as the reader of a runtime found it.

use crate::base::{Bytes, Gap, Range};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The holder of the VM's own blocks.
pub const VM_HOLDER: &str = "HotSpot";
/// The holder of the blocks that nothing that was looked at leads to.
pub const UNREACHED: &str = "reached by nothing";

/// The holder of blocks that nothing else leads to, where Java objects may: the Java heap was not read whole.
pub const HOLDER_UNKNOWN: &str = "unknown: the Java heap was not read whole";

/// How a holder is known; the strongest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HeldBy {
    /// A field of a Java object has the address of the block, or of one that leads to it.
    Field,
    /// A static field of a Java class has.
    Static,
    /// The block, or the nearest one that leads to it, is a C++ object with a virtual table.
    Vtable,
    /// The data of a library leads to it, or a block of the VM.
    LibraryData,
    /// Only the stack of a thread leads to it, or memory without a known owner.
    ThreadArena,
    /// Nothing that was looked at leads to it.
    Unreached,
    /// The Java heap, which may lead to it, was not read whole.
    Unknown,
}

impl HeldBy {
    pub fn words(self) -> &'static str {
        match self {
            HeldBy::Field => "field",
            HeldBy::Static => "static field",
            HeldBy::Vtable => "virtual table",
            HeldBy::LibraryData => "library data",
            HeldBy::ThreadArena => "thread",
            HeldBy::Unreached => "unreached",
            HeldBy::Unknown => "unknown",
        }
    }
}

/// One holder and what it holds. Bytes are those of blocks in use, as large as malloc made them, in memory or not. A holder of
/// blocks and of mappings has two rows.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct Held {
    /// "org.rocksdb.LRUCache.nativeHandle_", a C++ type, the path of a library, a thread without its numbers.
    pub holder: String,
    pub how: HeldBy,
    /// The C++ type with most of the bytes; `None`: no block has a virtual table with a name.
    #[serde(rename = "type")]
    pub kind: Option<String>,
    /// The library of the type, or the one whose data it is.
    pub library: Option<String>,
    pub bytes: Bytes,
    pub blocks: u64,
    /// The part of `bytes` in blocks whose own address is in the field; `None`: the holder is not a field.
    pub direct_bytes: Option<Bytes>,
    /// The part of `blocks` for which the same holds.
    #[serde(default)]
    pub direct_blocks: Option<u64>,
    /// The types with the most bytes.
    pub types: Vec<HeldType>,
    /// Whether these are mappings that a library or program made for itself; their bytes are those in memory.
    #[serde(default)]
    pub is_mapping: bool,
    /// The blocks of 4 KiB and more.
    #[serde(skip)]
    pub large: Vec<Range>,
}

impl Held {
    /// "field", "library data, mappings".
    pub fn how_in_words(&self) -> String {
        let mappings = if self.is_mapping { ", mappings" } else { "" };
        format!("{}{mappings}", self.how.words())
    }

    /// What the blocks are: their C++ type, else the file name of the library, where the holder does not say it.
    pub fn of_what(&self) -> Option<&str> {
        let kind = self.kind.as_deref().filter(|kind| *kind != self.holder);
        let library = self.library.as_deref().filter(|library| *library != self.holder);
        kind.or_else(|| library?.rsplit('/').next())
    }
}

#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct HeldType {
    #[serde(rename = "type")]
    pub name: Option<String>,
    pub library: String,
    pub bytes: Bytes,
    pub blocks: u64,
}

/// All holders, the largest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Holders {
    pub rows: Vec<Held>,
    /// By path: what blocks hold that are of a type of the library, point into it or are reached from its data.
    pub libraries: BTreeMap<String, Bytes>,
    pub gaps: Vec<Gap>,
}

impl Holders {
    /// The result of a reading that was stopped.
    pub fn given_up(gap: Gap) -> Holders {
        let gap = Gap { what: "holders of malloc's blocks".to_string(), ..gap };
        Holders { gaps: vec![gap], ..Holders::default() }
    }

    /// `None`: they were not read to the end.
    pub fn complete(&self) -> Option<&Holders> {
        self.gaps.iter().all(|gap| !gap.why.is_given_up()).then_some(self)
    }
}
