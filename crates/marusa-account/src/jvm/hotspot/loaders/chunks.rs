//! The chunks of metaspace that a loader has, and what is in use of them. None of the structures is in vmStructs, so their
//! layouts are proved: the lock of the `ClassLoaderData` stands where the layout says, and the list of chunks has as many, and as
//! large ones, as its owner counts.
//!
//! * JDK 16 and later: `ClassLoaderMetaspace` {lock, type, arena, class space's arena}; `MetaspaceArena` {lock or alignment,
//!   chunk manager, growth policy, list of chunks, count}; `Metachunk` {base, used, committed words, level and state, node,
//!   previous, next} (src/hotspot/share/memory/metaspace/{metaspaceArena,metachunk}.hpp).
//! * JDK 11 to 15: `ClassLoaderMetaspace` {type, lock, manager, class space's manager}; `SpaceManager` {lock, types, first and
//!   current chunk, words of overhead, of all, in use, counts of four sizes of chunks} (metaspace/spaceManager.hpp).
//! * JDK 8: `Metaspace` {manager, class space's manager}; `SpaceManager` {lock, type, four lists of chunks, current chunk, words in
//!   use, of all, count of chunks} (memory/metaspace.cpp). In both a chunk begins with its words and the next chunk.

use super::data::LoaderData;
use crate::base::limits::LOADER_CHUNKS_MAX;
use crate::base::{Addr, Bytes, Range};
use crate::os::budget;

const WORD: u64 = 8;
/// The smallest chunk; the largest of JDK 25 has 16 MiB, its level is 0, and each level halves it.
const CHUNK_BYTES_MIN: u64 = 1 << 10;
const CHUNK_BYTES_MAX: u64 = 16 << 20;
const LEVEL_MAX: u64 = 14;
/// `Metachunk::State::InUse`.
const IN_USE: u64 = 1;
/// `Metaspace::MetaspaceType` has up to 8 values.
const TYPE_MAX: u32 = 8;
/// A chunk of JDK 8 to 15 that was made for one large piece of metadata.
const HUMONGOUS_BYTES_MAX: u64 = 1 << 30;

/// How this VM keeps chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// The offset of the first chunk in an arena.
    Arena(u64),
    Managers11,
    Managers8,
}

pub const FORMS: [Form; 4] = [Form::Arena(24), Form::Arena(32), Form::Managers11, Form::Managers8];

/// What the loader of a metaspace has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Held {
    pub used: Bytes,
    pub class_used: Bytes,
    pub committed: Bytes,
}

/// One of a loader's two spaces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Space {
    used: Bytes,
    committed: Bytes,
}

pub struct Chunks<'a> {
    /// Words of the target.
    pub words: &'a dyn Fn(Addr, usize) -> Option<Vec<u64>>,
    /// Whether the chunks of JDK 8 to 15 are looked at: they lie in the metaspace, each in another page.
    pub is_whole: bool,
}

impl Chunks<'_> {
    /// `None`: it has another form, or changed while it was read. `visit` gets what is committed of each chunk that is looked at.
    pub fn of(&self, form: Form, loader: &LoaderData, visit: &mut dyn FnMut(Range)) -> Option<Held> {
        let metaspace = (self.words)(loader.metaspace, 4)?;
        let is_type = |word: u64| word as u32 <= TYPE_MAX;
        let (own, class) = match form {
            Form::Arena(_) if metaspace[0] == loader.lock.0 && is_type(metaspace[1]) => {
                (metaspace[2], metaspace[3])
            }
            Form::Managers11 if metaspace[1] == loader.lock.0 && is_type(metaspace[0]) => {
                (metaspace[2], metaspace[3])
            }
            Form::Managers8 => (metaspace[0], metaspace[1]),
            _ => return None,
        };
        let own = self.space(form, Addr(own), loader.lock, visit)?;
        // Without compressed class pointers there is one space.
        let class = match class {
            0 => Space::default(),
            class => self.space(form, Addr(class), loader.lock, visit)?,
        };
        Some(Held {
            used: own.used + class.used,
            class_used: class.used,
            committed: own.committed + class.committed,
        })
    }

    fn space(&self, form: Form, at: Addr, lock: Addr, visit: &mut dyn FnMut(Range)) -> Option<Space> {
        match form {
            Form::Arena(first) => self.arena(at, first, visit),
            Form::Managers11 => {
                let words = (self.words)(at, 11)?;
                let counts = words[7..].iter().fold(0_u64, |sum, count| sum.saturating_add(*count));
                let space = space(words[6], words[4], words[5])?;
                (words[0] == lock.0).then_some(())?;
                self.listed(&words[2..3], counts, space, visit)
            }
            Form::Managers8 => {
                let words = (self.words)(at, 10)?;
                let space = space(words[7], 0, words[8])?;
                (words[0] == lock.0 && words[1] as u32 <= 1).then_some(())?;
                self.listed(&words[2..6], words[9], space, visit)
            }
        }
    }

    fn arena(&self, at: Addr, first: u64, visit: &mut dyn FnMut(Range)) -> Option<Space> {
        let words = (self.words)(at, (first / WORD) as usize + 2)?;
        let [mut chunk, count] = *words.last_chunk::<2>()?;
        let count = u64::from(count as u32);
        let (mut found, mut seen) = (Space::default(), 0);
        while chunk != 0 {
            seen += 1;
            if seen > count.min(LOADER_CHUNKS_MAX)
                || !Addr(chunk).is_aligned(WORD)
                || budget::check().is_err()
            {
                return None;
            }
            let words = (self.words)(Addr(chunk), 7)?;
            let (level, state) = (words[3] & 0xff, words[3] >> 8 & 0xff);
            let (used, committed) = (words[1].checked_mul(WORD)?, words[2].checked_mul(WORD)?);
            let is_sound = level <= LEVEL_MAX
                && state == IN_USE
                && used <= committed
                && committed <= CHUNK_BYTES_MAX >> level
                && words[0] != 0
                && Addr(words[0]).is_aligned(CHUNK_BYTES_MIN);
            if !is_sound {
                return None;
            }
            found.used += used;
            found.committed += committed;
            visit(Range::sized(Addr(words[0]), committed));
            chunk = words[6];
        }
        (seen == count).then_some(found)
    }

    /// Whether the lists have the chunks that their manager counts.
    fn listed(&self, lists: &[u64], count: u64, space: Space, visit: &mut dyn FnMut(Range)) -> Option<Space> {
        let is_sound = count <= LOADER_CHUNKS_MAX && space.committed / CHUNK_BYTES_MIN >= count;
        if !is_sound || (count == 0) != lists.iter().all(|first| *first == 0) {
            return None;
        }
        if !self.is_whole {
            return Some(space);
        }
        let (mut seen, mut bytes) = (0, 0);
        for first in lists {
            let mut chunk = *first;
            while chunk != 0 {
                seen += 1;
                if seen > count || !Addr(chunk).is_aligned(CHUNK_BYTES_MIN) || budget::check().is_err() {
                    return None;
                }
                let &[size, next] = &(self.words)(Addr(chunk), 2)?[..] else { return None };
                let size = size.checked_mul(WORD).filter(|size| *size <= HUMONGOUS_BYTES_MAX)?;
                bytes += size;
                visit(Range::sized(Addr(chunk), size));
                chunk = next;
            }
        }
        (seen == count && bytes == space.committed).then_some(space)
    }
}

/// A space from counts of words.
fn space(used: u64, overhead: u64, all: u64) -> Option<Space> {
    let words = used.checked_add(overhead).filter(|words| *words <= all)?;
    let committed = all.checked_mul(WORD).filter(|bytes| *bytes < 1 << 47 && words < 1 << 44)?;
    Some(Space { used: used * WORD, committed })
}

#[cfg(test)]
#[path = "chunks_tests.rs"]
mod tests;
