//! The VM's performance counters ("hsperfdata"), read from its memory: also there with -XX:+PerfDisableSharedMem, absent
//! with -XX:-UsePerfData. Fresh at collections and class loads, stale in between.
//!
//! Layout: src/hotspot/share/runtime/perfMemory.hpp (`PerfDataPrologue`, `PerfDataEntry`), the same from JDK 8 to 25.

use super::vmstructs::VmStructs;
use super::window::array;
use crate::base::limits::{PERF_COUNTERS_MAX, PERF_MEMORY_BYTES_MAX};
use crate::base::{self, Gap, Known, Why};
use crate::os::Memory;
use std::collections::BTreeMap;
use std::ops::Range;

const MAGIC: [u8; 4] = [0xca, 0xfe, 0xc0, 0xc0];
const PROLOGUE_BYTES: usize = 32;

/// The counters by name: "sun.rt.javaCommand", "sun.gc.metaspace.used".
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PerfMemory {
    numbers: BTreeMap<String, i64>,
    texts: BTreeMap<String, String>,
}

impl PerfMemory {
    pub fn read(memory: &dyn Memory, structs: &VmStructs) -> Known<PerfMemory> {
        let range = range(memory, structs)?;
        let mut block = vec![0; range.bytes() as usize];
        // Names and texts; the texts do not leave with a frozen file (snapshot/anonymise.rs).
        memory.read_text(range.start, &mut block).map_err(|fault| fault.gap("performance counters"))?;
        parse(&block).ok_or_else(|| Gap::new("performance counters", Why::BadData(range.start)))
    }

    pub fn number(&self, name: &str) -> Option<i64> {
        self.numbers.get(name).copied()
    }
    pub fn text(&self, name: &str) -> Option<&str> {
        self.texts.get(name).map(String::as_str)
    }
}

/// The used part of the block.
pub fn range(memory: &dyn Memory, structs: &VmStructs) -> Known<base::Range> {
    let start = structs.read_static(memory, "PerfMemory", "_start")?;
    let top = structs.read_static(memory, "PerfMemory", "_top")?;
    if start == 0 || top.checked_sub(start).is_none_or(|bytes| bytes > PERF_MEMORY_BYTES_MAX) {
        return Err(Gap::new("performance counters", Why::NotInThisRuntime).hint("-XX:-UsePerfData"));
    }
    Ok(base::Range::of(start, top))
}

/// Parses a block or a file. Entries that make no sense are left out.
pub fn parse(block: &[u8]) -> Option<PerfMemory> {
    let mut counters = PerfMemory::default();
    for range in entries(block)? {
        let entry = &block[range];
        counters.add(entry, word(entry, 4), word(entry, 8), word(entry, 16));
    }
    Some(counters)
}

/// Where in a block the texts lie: the command line, properties, paths.
pub fn texts(block: &[u8]) -> Vec<Range<usize>> {
    let text = |range: Range<usize>| {
        let entry = &block[range.clone()];
        let is_text = entry.get(12) == Some(&b'B');
        let from = word(entry, 16)?.min(entry.len());
        is_text.then_some(range.start + from..range.end)
    };
    entries(block).into_iter().flatten().filter_map(text).collect()
}

/// A word that counts or measures.
fn word(bytes: &[u8], at: usize) -> Option<usize> {
    usize::try_from(i32::from_le_bytes(array(bytes, at)?)).ok()
}

/// Where in a block the entries lie, each within the block and not empty.
fn entries(block: &[u8]) -> Option<Vec<Range<usize>>> {
    if block.get(..4)? != MAGIC || *block.get(4)? != 1 {
        return None;
    }
    let mut at = word(block, 24)?.max(PROLOGUE_BYTES);
    let mut found = Vec::new();
    for _ in 0..word(block, 28)?.min(PERF_COUNTERS_MAX) {
        let Some(length) = word(block, at).filter(|length| *length >= 20) else { break };
        let Some(end) = at.checked_add(length).filter(|end| *end <= block.len()) else { break };
        found.push(at..end);
        at = end;
    }
    Some(found)
}

impl PerfMemory {
    fn add(&mut self, entry: &[u8], name_at: Option<usize>, count: Option<usize>, data_at: Option<usize>) {
        let (Some(name_at), Some(count), Some(data_at)) = (name_at, count, data_at) else { return };
        let (Some(name), Some(data)) = (entry.get(name_at..), entry.get(data_at..)) else { return };
        let name = c_text(name);
        match entry[12] {
            b'J' if count == 0 => {
                if let Some(value) = data.first_chunk::<8>() {
                    self.numbers.insert(name, i64::from_le_bytes(*value));
                }
            }
            b'B' => {
                self.texts.insert(name, c_text(&data[..count.min(data.len())]));
            }
            _ => {}
        }
    }
}

fn c_text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(name: &str, count: i32, kind: u8, data: &[u8]) -> Vec<u8> {
        let data_at = (20 + name.len() + 1).next_multiple_of(8);
        let length = (data_at + data.len()).next_multiple_of(8);
        let mut entry = Vec::new();
        for word in [length as i32, 20, count] {
            entry.extend(word.to_le_bytes());
        }
        entry.extend([kind, 0, 1, 1]);
        entry.extend((data_at as i32).to_le_bytes());
        entry.extend(name.as_bytes());
        entry.resize(data_at, 0);
        entry.extend(data);
        entry.resize(length, 0);
        entry
    }

    fn block(entries: &[Vec<u8>], count: i32) -> Vec<u8> {
        let mut block = MAGIC.to_vec();
        block.extend([1, 2, 0, 1]);
        block.resize(24, 0);
        block.extend(32_i32.to_le_bytes());
        block.extend(count.to_le_bytes());
        block.extend(entries.iter().flatten());
        block
    }

    #[test]
    fn a_number_and_a_text() {
        let entries = [
            entry("sun.gc.metaspace.used", 0, b'J', &7_i64.to_le_bytes()),
            entry("sun.rt.javaCommand", 16, b'B', b"com.Main a\0\0\0\0\0\0"),
        ];
        let counters = parse(&block(&entries, 2)).expect("a good block");
        assert_eq!(counters.number("sun.gc.metaspace.used"), Some(7));
        assert_eq!(counters.text("sun.rt.javaCommand"), Some("com.Main a"));
    }

    #[test]
    fn only_the_data_of_texts_is_text() {
        let number = entry("sun.gc.metaspace.used", 0, b'J', &7_i64.to_le_bytes());
        let text = entry("sun.rt.javaCommand", 16, b'B', b"com.Main hunter2");
        let block = block(&[number, text], 2);
        let found: Vec<&[u8]> = texts(&block).into_iter().map(|range| &block[range]).collect();
        assert_eq!(found, [b"com.Main hunter2"]);
        assert!(texts(b"no block").is_empty());
    }

    #[test]
    fn hostile_lengths_end_the_walk() {
        let mut bad = entry("x", 0, b'J', &[0; 8]);
        bad[..4].copy_from_slice(&i32::MAX.to_le_bytes());
        assert_eq!(parse(&block(&[bad.clone()], i32::MAX)), Some(PerfMemory::default()));
        bad[..4].copy_from_slice(&(-1_i32).to_le_bytes());
        assert_eq!(parse(&block(&[bad], 5)), Some(PerfMemory::default()));
        assert_eq!(parse(b"\xca\xfe"), None);
    }
}
