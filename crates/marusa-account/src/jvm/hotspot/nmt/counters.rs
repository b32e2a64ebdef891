//! Native Memory Tracking's own counters, read where they lie: `MallocMemorySummary::_snapshot`.
//!
//! By tag, malloc and arena counters, and at the end one counter of all. Up to JDK 17 a counter is {count, size} and the last
//! one counts headers: its size is 16 times its count (services/mallocTracker.hpp, `_tracking_header`). Later a
//! counter is {count, size, peak count, peak size} and the last one is the sum (nmt/mallocTracker.hpp, `_all_mallocs`). So
//! the table proves itself; where libjvm has no symbol table it is found by that.

use super::super::Hotspot;
use super::header::HEADER_BYTES;
use super::image_bytes;
use crate::base::{Gap, Known, Why};
use crate::jvm::types::NmtCount;

/// Words of one counter, in both eras.
const COUNTER_WORDS: [usize; 2] = [2, 4];
/// A VM has more blocks than this before it runs any Java.
const BLOCKS_LEAST: u64 = 256;
const BLOCKS_END: u64 = 1 << 40;
/// No sum of sizes; pointers are larger.
const BYTES_END: u64 = 1 << 44;
/// The counters change while they are read, but not much.
const MOVED_BLOCKS_MAX: u64 = 4_096;

pub fn read(vm: &Hotspot, names: &[String]) -> Known<Vec<NmtCount>> {
    let gap = |why| Gap::new("Native Memory Tracking's counters", why);
    let longest = (names.len() * 2 + 1) * 4;
    match vm.target.symbols.find(&vm.image.path, "_ZN19MallocMemorySummary9_snapshotE") {
        Some(at) => {
            let read = |count| vm.memory().words(at, count);
            let words = read(longest).or_else(|_| read((names.len() * 2 + 1) * 2));
            let words = words.map_err(|fault| fault.gap("MallocMemorySummary::_snapshot"))?;
            interpret(&words, names).ok_or_else(|| gap(Why::BadData(at)))
        }
        None => by_shape(vm, names, longest).ok_or_else(|| gap(Why::NotInThisRuntime)),
    }
}

/// The counts, if `words` starts with a table that proves itself.
fn interpret(words: &[u64], names: &[String]) -> Option<Vec<NmtCount>> {
    COUNTER_WORDS.into_iter().find_map(|width| {
        let table = words.get(..(names.len() * 2 + 1) * width)?;
        proves_itself(table, width).then(|| {
            let entries = table.chunks(width * 2);
            let counts = names.iter().zip(entries).map(|(tag, entry)| NmtCount {
                tag: tag.clone(),
                blocks: entry[0],
                bytes: entry[1],
                arena_bytes: entry[width + 1],
            });
            counts.collect()
        })
    })
}

fn proves_itself(table: &[u64], width: usize) -> bool {
    let (entries, all) = table.split_at(table.len() - width);
    let (all_blocks, all_bytes) = (all[0], all[1]);
    if !(BLOCKS_LEAST..BLOCKS_END).contains(&all_blocks) || !(all_blocks..BYTES_END).contains(&all_bytes) {
        return false;
    }
    // Much is used in every VM; other numbers that happen to add up are few.
    let used = entries.chunks(width * 2).filter(|entry| entry[0] > 0 && entry[1] >= entry[0]).count();
    if used * 3 < entries.len() / (width * 2) {
        return false;
    }
    let sum = |at: usize| entries.chunks(width * 2).fold(0_u64, |sum, entry| sum.saturating_add(entry[at]));
    let moved = all_blocks / 100 + 16;
    // "Thread Stack" counts threads where the memory is not malloc's: JDK 11, `MemTracker::record_thread_stack`.
    let blocks_agree =
        sum(0).abs_diff(all_blocks) <= moved.min(MOVED_BLOCKS_MAX).saturating_add(threads(entries, width));
    let bytes_agree = match width {
        2 => all_bytes == all_blocks.saturating_mul(HEADER_BYTES),
        _ => sum(1).abs_diff(all_bytes) <= all_bytes / 20 + (1 << 20),
    };
    blocks_agree && bytes_agree
}

/// Entries that count and have no bytes.
fn threads(entries: &[u64], width: usize) -> u64 {
    let empty = entries.chunks(width * 2).filter(|entry| entry[1] == 0);
    empty.fold(0, |sum, entry| sum.saturating_add(entry[0]))
}

/// The table in the VM's zeroed data.
fn by_shape(vm: &Hotspot, names: &[String], longest: usize) -> Option<Vec<NmtCount>> {
    vm.image.data().flat_map(|segment| vm.target.resident(segment)).find_map(|range| {
        let bytes = image_bytes(vm, range);
        let words: Vec<u64> = bytes.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word)).collect();
        let (from, counts) = (0..words.len()).find_map(|from| {
            let table = &words[from..words.len().min(from + longest)];
            Some((from, interpret(table, names)?))
        })?;
        let to = bytes.len().min((from + longest) * 8);
        vm.memory().used(range.start.plus(from as u64 * 8), &bytes[from * 8..to]);
        Some(counts)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> Vec<String> {
        ["Java Heap", "Class", "Thread Stack", "Unknown"].map(str::to_string).to_vec()
    }

    #[test]
    fn the_table_of_jdk_17_proves_itself_by_its_headers() {
        // malloc count, size, arena count, size of each tag; headers: count, size.
        let mut words = vec![0, 0, 0, 0, 900, 70_000, 2, 64, 20, 0, 0, 0, 100, 4_000, 0, 0, 1_000, 16_000];
        let counts = interpret(&words, &names()).expect("a good table");
        let class = NmtCount { tag: "Class".into(), blocks: 900, bytes: 70_000, arena_bytes: 64 };
        assert_eq!((counts.len(), &counts[1]), (4, &class));
        words[17] = 16_001;
        assert_eq!(interpret(&words, &names()), None);
    }

    #[test]
    fn the_table_of_jdk_21_proves_itself_by_its_sum() {
        let entry = |count, size, arena| [count, size, count, size, 1, arena, 1, arena];
        let mut words =
            [entry(0, 0, 0), entry(900, 70_000, 64), entry(0, 0, 0), entry(100, 4_000, 0)].concat();
        words.extend([1_000, 74_000, 1_200, 80_000, 0, 0]);
        let counts = interpret(&words, &names()).expect("a good table");
        assert_eq!((counts[1].bytes, counts[1].arena_bytes, counts[3].blocks), (70_000, 64, 100));
        words[32] = 10_000;
        assert_eq!(interpret(&words, &names()), None);
        assert_eq!(interpret(&[], &names()), None);
        assert_eq!(interpret(&vec![u64::MAX; 100], &names()), None);
    }
}
