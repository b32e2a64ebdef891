//! Thread control blocks laid down as glibc and musl do, and broken ones.

use super::*;
use crate::os::memory::Pieces;

const BLOCK_BYTES: u64 = 0x900;
const LIST: u64 = 0x2c0;
const TID: u64 = 0x2d0;
const STACK: u64 = 0x690;
const SLOT: u64 = 0x318;
const USED_HEAD: u64 = 0x7000_0000;
const CACHE_HEAD: u64 = USED_HEAD + 32;

struct Thread {
    at: u64,
    tid: i32,
    stack: (u64, u64),
    object: u64,
}

fn thread(index: u64, tid: i32) -> Thread {
    let start = 0x1000_0000 + index * 0x10_0000;
    Thread {
        at: start + 0x10_0000 - BLOCK_BYTES,
        tid,
        stack: (start, 0x10_0000),
        object: 0x5000 + index * 64,
    }
}

/// glibc 2.36's places. `ring` holds the addresses of the links, head included.
fn put(memory: &mut Pieces, thread: &Thread, ring: &[u64]) {
    let mut words = vec![0_u64; BLOCK_BYTES as usize / 8];
    let mut set = |offset: u64, value: u64| words[offset as usize / 8] = value;
    let place = ring.iter().position(|link| *link == thread.at + LIST).unwrap();
    set(0, thread.at);
    set(0x10, thread.at);
    set(LIST, ring[(place + 1) % ring.len()]);
    set(LIST + 8, ring[(place + ring.len() - 1) % ring.len()]);
    set(TID, thread.tid as u64);
    set(SLOT, thread.object);
    set(STACK, thread.stack.0);
    set(STACK + 8, thread.stack.1);
    set(STACK + 16, 0x1000);
    memory.put_words(Addr(thread.at), &words);
}

fn seed(thread: &Thread) -> Seed {
    Seed {
        block: Addr(thread.at),
        tid: thread.tid,
        object: Addr(thread.object),
        stack: Range::of(thread.stack.0, thread.stack.0 + thread.stack.1),
    }
}

fn process() -> (Pieces, Vec<Thread>) {
    let mut memory = Pieces::default();
    let live: Vec<Thread> = (0..3).map(|index| thread(index, 100 + index as i32)).collect();
    let ended = thread(7, 0);
    let ring: Vec<u64> = [USED_HEAD].into_iter().chain(live.iter().map(|thread| thread.at + LIST)).collect();
    live.iter().for_each(|thread| put(&mut memory, thread, &ring));
    let cache = [CACHE_HEAD, ended.at + LIST];
    put(&mut memory, &ended, &cache);
    // Heads of the lists of used, user-made (empty) and cached stacks.
    let user = USED_HEAD + 16;
    memory.put_words(Addr(USED_HEAD), &[ring[1], ring[3], user, user, cache[1], cache[1]]);
    (memory, live)
}

#[test]
fn two_known_threads_lead_to_a_third_and_to_a_cached_stack() {
    let (memory, live) = process();
    let found = read(&memory, &[seed(&live[0]), seed(&live[1])]).unwrap();
    assert!(found.is_whole);
    let mut tids: Vec<i32> = found.blocks.iter().map(|block| block.tid).collect();
    tids.sort_unstable();
    assert_eq!(tids, [0, 100, 101, 102]);
    let third = found.blocks.iter().find(|block| block.tid == 102).unwrap();
    assert_eq!(third.stack, Range::of(0x1020_0000, 0x1030_0000));
    assert_eq!(third.object, Some(Addr(live[2].object)));
}

/// As glibc's on aarch64: no `self`, but `robust_prev` and the list of mutexes, which is empty.
#[test]
fn a_block_without_its_own_address_is_known_by_its_list_of_mutexes() {
    let (mut memory, live) = process();
    for at in live.iter().map(|thread| thread.at).chain([thread(7, 0).at]) {
        let bytes = memory.0.get_mut(&Addr(at)).unwrap();
        for (offset, word) in [(0, 0), (0x10, 0), (0x2e0, at + 0x2e8), (0x2e8, at + 0x2e8)] {
            bytes[offset..offset + 8].copy_from_slice(&u64::to_le_bytes(word));
        }
    }
    let found = read(&memory, &[seed(&live[0]), seed(&live[1])]).unwrap();
    assert!(found.is_whole);
    assert_eq!(found.blocks.len(), 4);
}

#[test]
fn a_link_that_leads_nowhere_ends_the_walk_and_is_said() {
    let (mut memory, live) = process();
    let torn = memory.0.get_mut(&Addr(live[2].at)).unwrap();
    torn[LIST as usize..LIST as usize + 8].copy_from_slice(&0xdead_0000_u64.to_le_bytes());
    let found = read(&memory, &[seed(&live[0]), seed(&live[1])]).unwrap();
    assert!(!found.is_whole);
    assert_eq!(found.blocks.len(), 3, "what was seen before counts");
}

#[test]
fn a_thread_that_does_not_point_at_itself_teaches_nothing() {
    let seed = Seed { block: Addr(0x1000), tid: 1, object: Addr(8), stack: Range::of(0x1800, 0x2000) };
    assert_eq!(read(&Pieces::default(), &[seed]).unwrap_err().why, Why::NotInThisRuntime);
}
