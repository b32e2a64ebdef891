//! Which arena a thread allocates from: glibc keeps the arena's address in a thread-local variable (`thread_arena`, malloc/
//! arena.c), and a thread's locals lie at the upper end of its stack, above all frames (nptl/allocatestack.c).

use super::Arena;
use crate::base::{Addr, Range};
use crate::os::memory::Memory;
use std::collections::HashMap;

/// How much of a stack's upper end is looked at: `struct pthread` has 2.3 KB, the locals of the libraries of a JVM less.
const LOCALS_BYTES: u64 = 16 << 10;

/// The number of the arena of the thread with this stack. The first word from above that is an arena's address is taken:
/// frames further down may hold others.
pub fn of(memory: &dyn Memory, stack: Range, arenas: &[Arena]) -> Option<usize> {
    let place = place(memory, stack, &places(arenas))?;
    arenas.get(place).map(|arena| arena.number)
}

/// Each arena's place in the list, by its address: a target may have tens of thousands of arenas, and of threads.
fn places(arenas: &[Arena]) -> HashMap<u64, usize> {
    arenas.iter().enumerate().rev().map(|(place, arena)| (arena.at.0, place)).collect()
}

fn place(memory: &dyn Memory, stack: Range, places: &HashMap<u64, usize>) -> Option<usize> {
    const PIECE: u64 = 4096;
    let mut end = stack.end;
    while end.0 > stack.start.0.max(stack.end.0.saturating_sub(LOCALS_BYTES)) {
        let start = Addr((end.0 - 1) & !(PIECE - 1));
        // An absent page is one that the thread never wrote to: no local lies there.
        let words = memory.scan(start, (end.0 - start.0) as usize / 8).unwrap_or_default();
        if let Some(place) = words.iter().rev().filter(|word| **word != 0).find_map(|word| places.get(word)) {
            return Some(*place);
        }
        end = start;
    }
    None
}

/// Notes the threads of each arena: (id, stack).
pub fn note(memory: &dyn Memory, stacks: impl Iterator<Item = (i32, Range)>, arenas: &mut [Arena]) {
    let places = places(arenas);
    for (tid, stack) in stacks {
        if let Some(arena) = place(memory, stack, &places).and_then(|place| arenas.get_mut(place)) {
            arena.threads.push(tid);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::{Gap, Why};
    use crate::os::memory::Pieces;

    fn arena(number: usize, at: u64) -> Arena {
        let figures = Err(Gap::new("figures", Why::NotRead));
        Arena {
            at: Addr(at),
            number,
            heaps: Vec::new(),
            system_bytes: 0,
            attached_threads: None,
            threads: Vec::new(),
            figures,
        }
    }

    #[test]
    fn the_arena_named_nearest_to_the_upper_end_is_the_threads() {
        let arenas = [arena(0, 0x7000_0000), arena(1, 0x8000_0030)];
        let stack = Range::new(Addr(0x10_0000), Addr(0x12_0000));
        let mut memory = Pieces::default();
        assert_eq!(of(&memory, stack, &arenas), None, "nothing resident");
        let mut page = vec![0u64; 512];
        page[10] = 0x7000_0000;
        page[500] = 0x8000_0030;
        memory.put_words(Addr(0x11_f000), &page);
        assert_eq!(of(&memory, stack, &arenas), Some(1));
        page[500] = 0x8000_0031;
        memory.put_words(Addr(0x11_f000), &page);
        assert_eq!(of(&memory, stack, &arenas), Some(0));
        assert_eq!(of(&memory, Range::new(Addr(0), Addr(8)), &arenas), None);
    }
}
