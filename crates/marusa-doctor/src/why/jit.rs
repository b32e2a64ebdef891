//! Memory of the compilers: a method that takes very much of it while it is compiled. It is freed when the method is done, so it is
//! named by any sample that saw it.

use super::{Answer, Look, Seen, Sure};
use crate::base::{Bytes, counted, human};
use crate::map::Area;
use crate::map::sums::group_of;
use std::collections::BTreeMap;

/// The arenas of a long method take 5 to 15 MiB.
const ARENAS_LARGE: Bytes = 48 << 20;
/// Less than that is named if methods of one kind take it at several samples in turn: whatever warms up compiles other methods each
/// time, and one method for some seconds.
const ARENAS_AGAIN: Bytes = 4 << 20;
const LOOKS_AGAIN: usize = 3;

pub fn answer(seen: &Seen) -> Option<Answer> {
    // By the name without numbers: generated classes have them.
    let mut kinds: BTreeMap<String, (usize, &str, Bytes)> = BTreeMap::new();
    for look in seen.looks {
        let mut largest: BTreeMap<String, (&str, Bytes)> = BTreeMap::new();
        for (_, compiling) in look.account.compilations() {
            let bytes = compiling.arena_bytes.unwrap_or(0);
            let kind = largest.entry(group_of(&compiling.method)).or_insert((&compiling.method, bytes));
            if bytes > kind.1 {
                *kind = (&compiling.method, bytes);
            }
        }
        for (kind, (method, bytes)) in largest.into_iter().filter(|(_, (_, bytes))| *bytes >= ARENAS_AGAIN) {
            let seen = kinds.entry(kind).or_insert((0, method, bytes));
            seen.0 += usize::from(!look.is_extra);
            if bytes > seen.2 {
                (seen.1, seen.2) = (method, bytes);
            }
        }
    }
    let is_named = |(looks, _, bytes): &(usize, &str, Bytes)| *bytes >= ARENAS_LARGE || *looks >= LOOKS_AGAIN;
    let (looks, method, bytes) = kinds.into_values().filter(is_named).max_by_key(|(_, _, bytes)| *bytes)?;
    let work = |look: &Look| look.resident_of(&[Area::JitWork]) as Bytes;
    let most = seen.looks.iter().map(work).max().unwrap_or(0);
    let mut answer =
        Answer::new("JIT compiler arenas: a method that takes much memory to compile", Some(method));
    answer.bytes = Some(most.max(bytes));
    answer.how = format!(
        "arenas of the compiler thread: {} at most, in {looks} of {}; freed when it is compiled",
        human(bytes),
        counted(seen.regular().count(), "sample")
    );
    answer.sure = Sure::Certain;
    answer.next = Some(format!("-XX:CompileCommand=exclude,{method}"));
    answer.fixed_by("split the method, or leave it interpreted; what malloc keeps of it afterwards `marusa trim` gives back");
    answer.area = Some(Area::JitWork);
    Some(answer)
}
