//! One large heap walked by two threads. Where a chunk begins is only known from the one before it, so the second thread
//! starts at a guess: a place in the middle from which a thousand chunks in a row make sense. The first thread proves the
//! guess by arriving exactly there; if it does not, it walks on alone, and what the second one found is dropped.

use super::plan::Common;
use super::region::Region;
use super::walker::Walker;
use super::window::{Source, Window};
use crate::base::{Addr, Bytes, Range};
use crate::os::budget;

/// Below this one thread is nearly as quick.
const SPLIT_BYTES_MIN: Bytes = if cfg!(any(test, fuzzing)) { 64 << 10 } else { 8 << 20 };
/// How far from the middle a beginning is looked for: behind it lies a block so large that there is little to walk.
const SEARCH_BYTES_MAX: Bytes = 1 << 20;

impl Common<'_> {
    /// Whether a heap of `bytes` is such a large part of `all` that one thread would still walk it when the others are done.
    pub fn is_worth_splitting(bytes: Bytes, all: Bytes) -> bool {
        bytes >= SPLIT_BYTES_MIN && bytes > all / 2
    }

    /// Walks `region` by two threads; whether all of it was walked. What was found is dropped where it was not.
    pub fn walk_split(&self, region: &mut Region, source: &(dyn Source + Sync)) -> bool {
        let range = region.map.range();
        let mut walker = self.walker(source);
        let Some(middle) = middle(&region.resident).map(|at| region.map.cut_before(at)) else { return false };
        walker.window.restart(region.resident.clone());
        let search = Range::new(middle, middle.plus(SEARCH_BYTES_MAX).min(range.end));
        let Some(join) = walker.find_chain(region, search) else { return false };
        let second = region.second_part(middle, join);
        let (is_first_walked, second) = std::thread::scope(|scope| {
            // On its own stack: two threads that write to one line of the cache wait for each other.
            let other = scope.spawn(budget::inherit(move || {
                let mut second = second;
                let is_walked = self.walker(source).walk_part(&mut second);
                (second, is_walked)
            }));
            walker.join = Some(join);
            (walker.walk(region, false).is_ok(), other.join().ok())
        });
        let Some((mut second, is_second_walked)) = second else { return false };
        let is_joined = is_first_walked && is_second_walked && walker.join.is_some();
        if is_joined {
            region.append(second, join);
        } else {
            second.links.give_back(&self.budget);
        }
        // Without a place to join it went past the guess, and on to the end.
        is_joined || is_first_walked && walker.join.is_none()
    }

    pub fn walker<'b>(&'b self, source: &'b dyn Source) -> Walker<'b> {
        Walker::new([Window::new(source), Window::new(source)], self.witness, self.key, &self.budget)
    }
}

/// Where half of what is resident lies before.
fn middle(resident: &[Range]) -> Option<Addr> {
    let all: Bytes = resident.iter().map(|range| range.bytes()).sum();
    let mut left = all / 2;
    resident.iter().find_map(|range| {
        let bytes = range.bytes();
        let found = (left < bytes).then(|| range.start.plus(left));
        left = left.saturating_sub(bytes);
        found
    })
}
