//! The parts of an ELF image that can be read where it is loaded: program headers, exported symbols by the GNU hash, the
//! build id, and the range of its writable data. Read through `Memory`, so a frozen file or a core serves as well as a
//! live process, and a library that was deleted from the disk as well as one that is still there.
//!
//! Layouts: elf(5); DT_GNU_HASH and DT_HASH: glibc elf/dl-lookup.c (`do_lookup_x`), bloom filter skipped. Temurin's
//! JDK 11 is linked with the older DT_HASH alone.

use super::machine::is_aarch64;
use super::maps::Mapping;
use super::memory::{Fault, Memory};
use super::symbols::number;
use crate::base::{Addr, Range, Why};

const PROGRAM_HEADERS_MAX: u16 = 128;
const DYNAMIC_ENTRIES_MAX: u64 = 256;
const CHAIN_MAX: u64 = 100_000;

/// A loaded shared object or executable.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Image {
    /// The path as mapped.
    pub path: String,
    /// What is added to the addresses in the file.
    pub bias: u64,
    /// The loadable segments: where they lie, and whether they are writable.
    pub segments: Vec<(Range, bool)>,
    dynamic: Option<Range>,
    notes: Vec<Range>,
}

impl Image {
    /// The segments that were writable when it was loaded.
    pub fn data(&self) -> impl Iterator<Item = Range> {
        self.segments.iter().filter(|(_, is_writable)| *is_writable).map(|(range, _)| *range)
    }

    /// All segments.
    pub fn ranges(&self) -> impl Iterator<Item = Range> {
        self.segments.iter().map(|(range, _)| *range)
    }
}

/// What a program file is for: 32-bit or 64-bit, and the number of its processor (`EM_*`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Made {
    pub is_64_bit: bool,
    pub machine: u16,
}

impl Made {
    const X86_64: u16 = 62;
    const AARCH64: u16 = 183;

    /// `None`: not an ELF file of little-endian numbers.
    pub fn read(memory: &dyn Memory, first: &Mapping) -> Option<Made> {
        let mut header = [0; 20];
        memory.read(first.range.start, &mut header).ok()?;
        let is_little_elf = header[..4] == *b"\x7fELF" && header[5] == 1;
        is_little_elf.then(|| Made { is_64_bit: header[4] == 2, machine: number(&header, 18, 2) as u16 })
    }

    /// Whether programs of the machine whose memory is read are made so.
    pub fn is_native(self) -> bool {
        self.is_64_bit && self.machine == if is_aarch64() { Made::AARCH64 } else { Made::X86_64 }
    }

    /// "aarch64".
    pub fn name(self) -> String {
        let bits = if self.is_64_bit { 64 } else { 32 };
        match self.machine {
            Made::X86_64 if self.is_64_bit => "x86-64".to_string(),
            Made::AARCH64 => "aarch64".to_string(),
            3 => "x86, 32-bit".to_string(),
            40 => "Arm, 32-bit".to_string(),
            243 => format!("RISC-V, {bits}-bit"),
            other => format!("processor {other} of ELF, {bits}-bit"),
        }
    }
}

impl Image {
    /// Reads the headers of the image whose first mapping (offset 0) is `first`.
    pub fn read(memory: &dyn Memory, first: &Mapping) -> Result<Image, Fault> {
        let start = first.range.start;
        let bad = Fault { at: start, why: Why::BadData(start) };
        let mut header = [0; 64];
        memory.read(start, &mut header)?;
        let is_elf64_little = header[..6] == [0x7f, b'E', b'L', b'F', 2, 1];
        if !is_elf64_little {
            return Err(bad);
        }
        let table = number(&header, 32, 8);
        let entry_bytes = number(&header, 54, 2) as u16;
        let entries = number(&header, 56, 2) as u16;
        if entry_bytes != 56 || entries > PROGRAM_HEADERS_MAX {
            return Err(bad);
        }
        let mut bytes = vec![0; entries as usize * 56];
        memory.read(start.plus(table), &mut bytes)?;
        Image::from_program_headers(first, &bytes).ok_or(bad)
    }

    fn from_program_headers(first: &Mapping, bytes: &[u8]) -> Option<Image> {
        const PT_LOAD: u32 = 1;
        const PT_DYNAMIC: u32 = 2;
        const PT_NOTE: u32 = 4;
        const PF_W: u32 = 2;
        let headers = || bytes.as_chunks::<56>().0.iter();
        let lowest = headers()
            .find(|header| number(*header, 0, 4) as u32 == PT_LOAD)
            .map(|header| number(header, 16, 8) & !0xfff)?;
        let bias = first.range.start.0.wrapping_sub(lowest);
        let range = |header: &[u8; 56]| {
            Range::sized(Addr(bias.wrapping_add(number(header, 16, 8))), number(header, 40, 8))
        };
        let mut image =
            Image { path: first.path.clone(), bias, segments: Vec::new(), dynamic: None, notes: Vec::new() };
        for header in headers() {
            match number(header, 0, 4) as u32 {
                PT_LOAD => image.segments.push((range(header), number(header, 4, 4) as u32 & PF_W != 0)),
                PT_DYNAMIC => image.dynamic = Some(range(header)),
                PT_NOTE => image.notes.push(range(header)),
                _ => {}
            }
        }
        Some(image)
    }

    /// One that has a single segment.
    #[cfg(test)]
    pub(super) fn made_up(bias: u64, segment: Range, dynamic: Range) -> Image {
        let segments = vec![(segment, true)];
        Image { path: String::new(), bias, segments, dynamic: Some(dynamic), notes: Vec::new() }
    }

    /// All that the image occupies, gaps between its segments included.
    pub fn extent(&self) -> Range {
        let start = self.segments.iter().map(|(range, _)| range.start).min().unwrap_or_default();
        let end = self.segments.iter().map(|(range, _)| range.end).max().unwrap_or_default();
        Range::new(start, end)
    }

    /// The address of an exported symbol in the target.
    pub fn exported(&self, memory: &dyn Memory, name: &str) -> Result<Option<Addr>, Fault> {
        match self.exports(memory)? {
            Some(exports) => exports.find(memory, name),
            None => Ok(None),
        }
    }

    /// GNU build id in hexadecimal.
    pub fn build_id(&self, memory: &dyn Memory) -> Option<String> {
        const NT_GNU_BUILD_ID: u32 = 3;
        for note in &self.notes {
            let mut bytes = vec![0; note.bytes().min(4096) as usize];
            if memory.read(note.start, &mut bytes).is_err() {
                continue;
            }
            let mut rest = &bytes[..];
            while rest.len() >= 12 {
                let (name_bytes, value_bytes) = (number(rest, 0, 4) as usize, number(rest, 4, 4) as usize);
                let value_at = 12 + name_bytes.saturating_add(3) / 4 * 4;
                let Some(value) = rest.get(value_at..value_at.saturating_add(value_bytes)) else { break };
                if number(rest, 8, 4) as u32 == NT_GNU_BUILD_ID && rest.get(12..16) == Some(b"GNU\0") {
                    return Some(value.iter().map(|byte| format!("{byte:02x}")).collect());
                }
                rest = rest.get(value_at + value_bytes.saturating_add(3) / 4 * 4..).unwrap_or(&[]);
            }
        }
        None
    }

    /// Tags and values of the dynamic section; empty if the image has none.
    pub(super) fn dynamic_entries(&self, memory: &dyn Memory) -> Result<Vec<(u64, u64)>, Fault> {
        let dynamic = self.dynamic.unwrap_or_default();
        let mut entries = Vec::new();
        for index in 0..(dynamic.bytes() / 16).min(DYNAMIC_ENTRIES_MAX) {
            let at = dynamic.start.plus(index * 16);
            match (memory.u64(at)?, memory.u64(at.plus(8))?) {
                (0, _) => break,
                entry => entries.push(entry),
            }
        }
        Ok(entries)
    }

    /// Where the table lies whose place a dynamic entry has: glibc relocates these entries in place; musl and a file image do not.
    pub(super) fn address(&self, value: u64) -> Addr {
        if value < self.bias { Addr(value.wrapping_add(self.bias)) } else { Addr(value) }
    }

    /// Where the exported symbols are found, for a caller who asks for many.
    pub fn exports(&self, memory: &dyn Memory) -> Result<Option<Exports>, Fault> {
        const DT_HASH: u64 = 4;
        const DT_STRTAB: u64 = 5;
        const DT_SYMTAB: u64 = 6;
        const DT_GNU_HASH: u64 = 0x6fff_fef5;
        let (mut strings, mut symbols, mut hash, mut old_hash) = (None, None, None, None);
        for (tag, value) in self.dynamic_entries(memory)? {
            let address = self.address(value);
            match tag {
                DT_STRTAB => strings = Some(address),
                DT_SYMTAB => symbols = Some(address),
                DT_GNU_HASH => hash = Some(Hash::Gnu(address)),
                DT_HASH => old_hash = Some(Hash::SystemV(address)),
                _ => {}
            }
        }
        Ok(match (strings, symbols, hash.or(old_hash)) {
            (Some(strings), Some(symbols), Some(hash)) => {
                Some(Exports { strings, symbols, hash, bias: self.bias })
            }
            _ => None,
        })
    }
}

/// The tables of the exported symbols of an image.
#[derive(Clone, Copy)]
pub struct Exports {
    strings: Addr,
    symbols: Addr,
    hash: Hash,
    bias: u64,
}

#[derive(Clone, Copy)]
enum Hash {
    Gnu(Addr),
    SystemV(Addr),
}

impl Exports {
    /// The address of a symbol in the target.
    pub fn find(&self, memory: &dyn Memory, name: &str) -> Result<Option<Addr>, Fault> {
        let found = match self.hash {
            Hash::Gnu(table) => self.find_gnu(memory, table, name)?,
            Hash::SystemV(table) => self.find_system_v(memory, table, name)?,
        };
        let Some(entry) = found else { return Ok(None) };
        Ok(Some(Addr(memory.u64(entry.plus(8))?.wrapping_add(self.bias))))
    }

    /// The entry of the symbol table at `index`, if it has this name.
    fn named(&self, memory: &dyn Memory, index: u64, name: &str) -> Result<Option<Addr>, Fault> {
        let entry = self.symbols.plus(index * 24);
        let text = memory.c_string(self.strings.plus(memory.u32(entry)? as u64), name.len() + 64);
        Ok(text.is_ok_and(|text| text == name).then_some(entry))
    }

    /// nbucket, nchain, the buckets, the chains: each holds the index of the next symbol, 0 at the end.
    fn find_system_v(&self, memory: &dyn Memory, table: Addr, name: &str) -> Result<Option<Addr>, Fault> {
        let buckets = memory.u32(table)? as u64;
        let symbols = memory.u32(table.plus(4))? as u64;
        if buckets == 0 {
            return Ok(None);
        }
        let chains = table.plus(8 + buckets * 4);
        let mut index = memory.u32(table.plus(8 + system_v_hash(name) as u64 % buckets * 4))? as u64;
        for _ in 0..CHAIN_MAX {
            if index == 0 || index >= symbols {
                return Ok(None);
            }
            if let Some(entry) = self.named(memory, index, name)? {
                return Ok(Some(entry));
            }
            index = memory.u32(chains.plus(index * 4))? as u64;
        }
        Ok(None)
    }

    fn find_gnu(&self, memory: &dyn Memory, table: Addr, name: &str) -> Result<Option<Addr>, Fault> {
        let buckets = memory.u32(table)? as u64;
        let first_symbol = memory.u32(table.plus(4))? as u64;
        let bloom_words = memory.u32(table.plus(8))? as u64;
        if buckets == 0 {
            return Ok(None);
        }
        let bucket_table = table.plus(16 + bloom_words * 8);
        let chains = bucket_table.plus(buckets * 4);
        let wanted = gnu_hash(name);
        let start = memory.u32(bucket_table.plus(wanted as u64 % buckets * 4))? as u64;
        if start < first_symbol {
            return Ok(None);
        }
        for symbol in start..start.saturating_add(CHAIN_MAX) {
            let hash = memory.u32(chains.plus((symbol - first_symbol) * 4))?;
            if hash | 1 == wanted | 1
                && let Some(entry) = self.named(memory, symbol, name)?
            {
                return Ok(Some(entry));
            }
            if hash & 1 == 1 {
                return Ok(None);
            }
        }
        Ok(None)
    }
}

fn gnu_hash(name: &str) -> u32 {
    name.bytes().fold(5381_u32, |hash, byte| hash.wrapping_mul(33).wrapping_add(byte as u32))
}

fn system_v_hash(name: &str) -> u32 {
    name.bytes().fold(0_u32, |hash, byte| {
        let hash = (hash << 4).wrapping_add(byte as u32);
        let high = hash & 0xf000_0000;
        (hash ^ (high >> 24)) & !high
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::os::memory::Pieces;

    #[test]
    fn a_symbol_is_found_by_the_older_hash_and_a_cycle_ends() {
        // elf(5)'s function; "exit" hashes to 0x6cf04 (System V gABI, figure 5-12 with its own names).
        assert_eq!(system_v_hash("exit"), 0x6cf04);
        let mut memory = Pieces::default();
        let words = |numbers: &[u32]| numbers.iter().flat_map(|n| n.to_le_bytes()).collect::<Vec<u8>>();
        // One bucket, three symbols; chain 1 -> 2 -> 1.
        memory.put(Addr(0x1000), &words(&[1, 3, 1, 0, 2, 1]));
        memory.put(
            Addr(0x2000),
            &[vec![0; 24], words(&[1, 0, 0x10, 0, 8, 0]), words(&[5, 0, 0x20, 0, 8, 0])].concat(),
        );
        memory.put(Addr(0x3000), &[b"\0one\0two\0".to_vec(), vec![0; 128]].concat());
        let hash = Hash::SystemV(Addr(0x1000));
        let exports = Exports { strings: Addr(0x3000), symbols: Addr(0x2000), hash, bias: 0x100 };
        assert_eq!(exports.find(&memory, "two"), Ok(Some(Addr(0x120))));
        assert_eq!(exports.find(&memory, "three"), Ok(None));
    }
}
