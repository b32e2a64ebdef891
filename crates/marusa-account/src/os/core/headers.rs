//! The head of a core file: what it is, and where in it the memory and the notes lie. Every
//! place is checked against the length of the file, for a core is often cut short (ulimit, a full disk).
//!
//! Layouts: elf(5); which mappings the kernel writes, and with which flags: fs/coredump.c (`vma_dump_size`) and
//! fs/binfmt_elf.c (`elf_core_dump`), Linux 2.6.24 to 6.18. gdb's gcore writes the same form (gdb/gcore.c).

use super::CoreError;
use crate::base::limits::{CORE_NOTE_BYTES_MAX, MAPPINGS_MAX};
use crate::base::{Addr, PAGE, Range};
use crate::os::file_bytes::FileBytes;
use crate::os::maps::Rights;

const HEADER_BYTES: usize = 64;
const PROGRAM_HEADER_BYTES: usize = 56;
const SECTION_HEADER_BYTES: u64 = 64;
/// `e_phnum` when there are more headers than fit: the number stands in the first section header.
const MANY_HEADERS: u16 = 0xffff;

const X86_64: u16 = 62;
const AARCH64: u16 = 183;

/// One mapping of the process as the core shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    pub range: Range,
    pub rights: Rights,
    /// Where in the file its bytes begin.
    pub offset: u64,
    /// How many of its bytes, from its start, the writer meant to dump.
    pub dumped: u64,
    /// How many of those the file holds.
    pub held: u64,
}

/// All that the headers say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Headers {
    /// Sorted by address, disjoint.
    pub loads: Vec<Load>,
    /// Where in the file notes lie; cut to what is there.
    pub notes: Vec<(u64, u64)>,
    /// Some of them are missing, or their ends: the file was cut.
    pub notes_are_cut: bool,
    /// gdb aligns nothing in its cores (gdb/gcore.c), and marks all memory readable.
    pub is_by_gdb: bool,
    /// Headers that make no sense or overlap others.
    pub strange: usize,
}

impl Headers {
    pub fn parse(file: &FileBytes) -> Result<Headers, CoreError> {
        let start =
            file.copy(0, file.length().min(HEADER_BYTES as u64), HEADER_BYTES as u64).unwrap_or_default();
        let count = check(&start, file)?;
        let table = u64_at(&start, 32).unwrap_or_default();
        let mut headers = Headers { is_by_gdb: true, ..Headers::default() };
        for index in 0..count {
            let at = table.checked_add(index * PROGRAM_HEADER_BYTES as u64);
            let mut header = [0; PROGRAM_HEADER_BYTES];
            at.and_then(|at| file.read(at, &mut header))
                .ok_or_else(|| CoreError::Damaged(format!("it ends within its {count} program headers")))?;
            headers.add(&header, file.length());
        }
        headers.is_by_gdb &= !headers.loads.is_empty();
        headers.sort();
        Ok(headers)
    }

    /// Bytes of the file that describe its memory: the length of the file says nothing, for it may have holes.
    pub fn described_bytes(&self) -> u64 {
        let notes = self.notes.iter().map(|(_, bytes)| *bytes);
        notes.fold(self.loads.len() as u64 * PROGRAM_HEADER_BYTES as u64, u64::saturating_add)
    }

    /// Whether segments lie over each other in the file. No writer does that, and a small file would be a large memory.
    pub fn overlap_in_file(&self, file_bytes: u64) -> bool {
        self.loads.iter().map(|load| load.held).fold(0, u64::saturating_add) > file_bytes
    }

    fn add(&mut self, header: &[u8], file_bytes: u64) {
        const PT_LOAD: u32 = 1;
        const PT_NOTE: u32 = 4;
        let word = |at| u64_at(header, at).unwrap_or_default();
        let (offset, in_file) = (word(8), word(32));
        let held = in_file.min(file_bytes.saturating_sub(offset));
        match u32_at(header, 0) {
            Some(PT_LOAD) => {
                self.is_by_gdb &= word(48) <= 1;
                let (start, bytes) = (Addr(word(16)), word(40));
                // The page of [vsyscall] ends below the end of all addresses.
                let is_sane = start.is_aligned(PAGE) && bytes.is_multiple_of(PAGE);
                match start.0.checked_add(bytes) {
                    Some(end) if is_sane && bytes > 0 => self.loads.push(Load {
                        range: Range::of(start.0, end),
                        rights: rights(u32_at(header, 4).unwrap_or_default()),
                        offset,
                        dumped: in_file.min(bytes),
                        held: held.min(bytes),
                    }),
                    _ => self.strange += 1,
                }
            }
            Some(PT_NOTE) => {
                self.notes_are_cut |= held < in_file;
                self.notes.extend((held > 0).then_some((offset, held.min(CORE_NOTE_BYTES_MAX))));
            }
            _ => {}
        }
    }

    fn sort(&mut self) {
        let before = self.loads.len();
        self.loads.sort_by_key(|load| load.range.start);
        let mut end = Addr::NULL;
        self.loads.retain(|load| {
            let is_apart = load.range.start >= end;
            if is_apart {
                end = load.range.end;
            }
            is_apart
        });
        self.strange += before - self.loads.len();
        self.notes.sort_unstable();
    }
}

/// Whether this is a core that this program can read; the number of its program headers.
fn check(bytes: &[u8], file: &FileBytes) -> Result<u64, CoreError> {
    const CORE: u16 = 4;
    if let Some(tool) = packer(bytes) {
        return Err(CoreError::Packed(tool));
    }
    if bytes.get(..4) != Some(b"\x7fELF") {
        return Err(CoreError::Foreign);
    }
    if bytes.len() < HEADER_BYTES {
        return Err(CoreError::Damaged("it ends within its header".to_string()));
    }
    if bytes[4..6] != [2, 1] {
        return Err(CoreError::Machine("a 32-bit or big-endian machine".to_string()));
    }
    let (kind, machine) = (u16_at(bytes, 16), u16_at(bytes, 18).unwrap_or_default());
    if kind != Some(CORE) {
        return Err(CoreError::NoCore);
    }
    let ours = if cfg!(target_arch = "aarch64") { AARCH64 } else { X86_64 };
    if machine != ours {
        return Err(CoreError::Machine(machine_name(machine)));
    }
    if u16_at(bytes, 54) != Some(PROGRAM_HEADER_BYTES as u16) {
        return Err(CoreError::Damaged("its program headers have no known size".to_string()));
    }
    let count = match u16_at(bytes, 56).unwrap_or_default() {
        MANY_HEADERS => u64::from(headers_in_section(bytes, file)?),
        count => u64::from(count),
    };
    if count == 0 || count > MAPPINGS_MAX as u64 {
        return Err(CoreError::Damaged(format!("it claims {count} program headers")));
    }
    Ok(count)
}

/// `sh_info` of the first section header.
fn headers_in_section(bytes: &[u8], file: &FileBytes) -> Result<u32, CoreError> {
    let section = u64_at(bytes, 40).and_then(|at| file.copy(at, SECTION_HEADER_BYTES, SECTION_HEADER_BYTES));
    section
        .and_then(|section| u32_at(&section, 44))
        .ok_or_else(|| CoreError::Damaged("the number of its program headers is missing".to_string()))
}

/// The command that unpacks a file with these first bytes.
pub fn packer(bytes: &[u8]) -> Option<&'static str> {
    let starts: [(&[u8], &str); 5] = [
        (&[0x28, 0xb5, 0x2f, 0xfd], "zstd -d"),
        (&[0x04, 0x22, 0x4d, 0x18], "lz4 -d"),
        (&[0xfd, b'7', b'z', b'X', b'Z'], "xz -d -k"),
        (&[0x1f, 0x8b], "gzip -d -k"),
        (b"BZh", "bzip2 -d -k"),
    ];
    starts.into_iter().find(|(start, _)| bytes.starts_with(start)).map(|(_, tool)| tool)
}

fn machine_name(machine: u16) -> String {
    match machine {
        X86_64 => "x86-64".to_string(),
        AARCH64 => "aarch64".to_string(),
        other => format!("another machine (ELF number {other})"),
    }
}

fn rights(flags: u32) -> Rights {
    Rights { execute: flags & 1 != 0, write: flags & 2 != 0, read: flags & 4 != 0, shared: false }
}

/// `length` bytes from `at`, if they are all there.
pub fn slice(bytes: &[u8], at: u64, length: u64) -> Option<&[u8]> {
    let (at, end) = (usize::try_from(at).ok()?, usize::try_from(at.checked_add(length)?).ok()?);
    bytes.get(at..end)
}
pub fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(bytes.get(at..at.checked_add(2)?)?.try_into().ok()?))
}
pub fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?))
}
pub fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at.checked_add(8)?)?.try_into().ok()?))
}

#[cfg(test)]
#[path = "headers_tests.rs"]
pub mod tests;
