//! The memory of each library: what the kernel maps for it and, where holders were looked for, what malloc's blocks keep for it.

use super::{Amounts, Knowledge, amounts};
use crate::base::Bytes;
use crate::jvm::Holders;
use crate::map::account::by_library;
use crate::map::{Figures, MemoryMap};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(from = "amounts::LibraryWire")]
pub struct LibraryAccount {
    #[serde(flatten)]
    pub amounts: Amounts,
    pub path: String,
    /// In use, of blocks that are of a type of the library, point into it or are reached from its data. Not in `resident_bytes`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub malloc_bytes: Option<Bytes>,
}

/// The largest first.
pub(super) fn libraries(map: &MemoryMap, known: Knowledge, holders: Option<&Holders>) -> Vec<LibraryAccount> {
    let library = |(path, _, figures): (&str, _, Figures)| LibraryAccount {
        amounts: known.amounts(figures, None),
        path: path.to_string(),
        malloc_bytes: holders.map(|holders| holders.libraries.get(path).copied().unwrap_or(0)),
    };
    let mut libraries: Vec<LibraryAccount> = by_library(map).into_iter().map(library).collect();
    if holders.is_some() {
        let all = |it: &LibraryAccount| it.amounts.resident_bytes + it.malloc_bytes.unwrap_or(0);
        libraries.sort_by_key(|it| std::cmp::Reverse(all(it)));
    }
    libraries
}
