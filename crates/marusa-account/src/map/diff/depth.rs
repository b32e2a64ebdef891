//! What two accounts can be compared by. An account may have been read less deeply than another: the runtime or the chunks of
//! malloc could not be read at that moment (a full budget, a process that was torn, missing rights). The same bytes are then in
//! other areas, and would look as if they had moved. So areas that only one of the two distinguishes are compared as one sum,
//! and the comparison says which these are and why.

use crate::map::area::Area;
use crate::map::malloc::owners::HEADERS;
use crate::map::sums::{Sum, Sums};
use std::collections::BTreeSet;

/// The part that has what was not distinguished at one of the moments.
pub const NOT_DISTINGUISHED: &str = "not distinguished at one of the two moments";

/// Each JVM has these, once its runtime can be read.
const OF_RUNTIME: [Area; 4] = [Area::JavaHeap, Area::ClassMetadata, Area::JitCode, Area::Stack];
/// Areas of resident memory with no known owner.
const UNCLAIMED: [Area; 3] = [Area::NativeLibrary, Area::MappedFile, Area::Unattributed];
/// Areas that have memory of malloc.
const OF_MALLOC: [Area; 9] = [
    Area::Gc,
    Area::JitWork,
    Area::DirectBuffers,
    Area::JvmWork,
    Area::NativeLibrary,
    Area::MallocUnknown,
    Area::MallocFreed,
    Area::Overhead,
    Area::Unattributed,
];

/// The areas that one of the two accounts does not distinguish.
#[derive(Clone, Debug, PartialEq, Eq, schemars::JsonSchema, serde::Serialize)]
pub struct Lost {
    /// Compared as one sum.
    pub areas: BTreeSet<Area>,
    /// "the Java heap could not be read at the first moment"
    pub why: String,
    #[serde(skip)]
    what: Reader,
}

/// Who could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reader {
    Runtime,
    Area(Area),
    Malloc,
}

/// The areas that one account distinguishes and the other does not.
pub fn lost(before: &Sums, now: &Sums) -> Vec<Lost> {
    if before.areas.is_empty() || now.areas.is_empty() {
        return Vec::new();
    }
    let of_runtime = |sums: &Sums| OF_RUNTIME[..3].iter().any(|area| sums.areas.contains_key(area));
    let of_malloc =
        |sums: &Sums| sums.parts.keys().any(|(area, part)| *area == Area::Overhead && part == HEADERS);
    let mut found = Vec::new();
    let mut note = |what: Reader, is_read: [bool; 2], name: &str, areas: BTreeSet<Area>| {
        let moment = match is_read {
            [false, true] => "first",
            [true, false] => "second",
            _ => return,
        };
        found.push(Lost { why: format!("{name} could not be read at the {moment} moment"), areas, what });
    };
    let runtime = [of_runtime(before), of_runtime(now)];
    let rest = Area::ALL.iter().copied().filter(|area| *area != Area::Code).collect();
    note(Reader::Runtime, runtime, "the Java runtime", rest);
    if runtime == [true, true] {
        for area in OF_RUNTIME {
            let is_read = [before, now].map(|sums| sums.areas.contains_key(&area));
            let areas = UNCLAIMED.into_iter().chain([area]).collect();
            note(Reader::Area(area), is_read, &format!("the area '{}'", area.title()), areas);
        }
    }
    note(
        Reader::Malloc,
        [of_malloc(before), of_malloc(now)],
        "malloc's chunks",
        OF_MALLOC.into_iter().collect(),
    );
    found
}

/// Both accounts with only the areas that both distinguish.
pub fn alike(before: &Sums, now: &Sums, lost: &[Lost]) -> (Sums, Sums) {
    let joined: BTreeSet<Area> = lost.iter().flat_map(|lost| lost.areas.iter().copied()).collect();
    let (mut before, mut now) = (joined_in(before, &joined), joined_in(now, &joined));
    let is_runtime = lost.iter().any(|lost| lost.what == Reader::Runtime);
    if is_runtime || lost.iter().any(|lost| lost.what == Reader::Area(Area::Stack)) {
        before.threads.clear();
        now.threads.clear();
    }
    if is_runtime {
        before.libraries.clear();
        now.libraries.clear();
    }
    before.arenas.retain(|at, _| now.arenas.contains_key(at));
    now.arenas.retain(|at, _| before.arenas.contains_key(at));
    (before, now)
}

fn joined_in(sums: &Sums, joined: &BTreeSet<Area>) -> Sums {
    let mut sums = sums.clone();
    let mut one = Sum::default();
    for sum in joined.iter().filter_map(|area| sums.areas.remove(area)) {
        one.reserved = one.reserved.saturating_add(sum.reserved);
        one.committed = one.committed.saturating_add(sum.committed);
        one.resident = one.resident.saturating_add(sum.resident);
    }
    sums.parts.retain(|(area, _), _| !joined.contains(area));
    sums.areas.insert(Area::Unattributed, one);
    sums.parts.insert((Area::Unattributed, NOT_DISTINGUISHED.to_string()), one);
    sums
}
