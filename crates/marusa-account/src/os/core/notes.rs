//! The notes of a core: who the process was, its threads, its mapped files, its auxiliary vector.
//!
//! Layouts: include/uapi/linux/elfcore.h and include/linux/elfcore.h (`elf_prstatus`, `elf_prpsinfo`), fs/binfmt_elf.c
//! (`fill_files_note`, `fill_siginfo_note`); the same on x86-64 and aarch64 up to the registers. Thread and process ids are
//! those inside the pid namespace of the process.

use super::headers::{slice, u32_at, u64_at};
use crate::base::limits::{CORE_ONE_NOTE_BYTES_MAX, CORE_PATH_BYTES_MAX, MAPPINGS_MAX, THREADS_MAX};
use crate::base::{PAGE, Range};
use crate::os::file_bytes::FileBytes;
use std::collections::HashMap;

/// A mapped file, one range of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MappedFile {
    pub range: Range,
    /// In bytes.
    pub offset: u64,
    /// Into `Notes::paths`.
    pub path: usize,
}

/// All that the notes say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Notes {
    pub pid: Option<i32>,
    pub uid: Option<u32>,
    /// The first 79 bytes of the command.
    pub arguments: String,
    /// The thread that the core was made for comes first.
    pub threads: Vec<i32>,
    /// What ended the process; 0 and `None` for a core of a process that went on.
    pub signal: Option<i32>,
    /// Key and value.
    pub auxiliary: Vec<(u64, u64)>,
    /// The vector's bytes as the process has them on its stack.
    pub auxiliary_bytes: Vec<u8>,
    pub files: Vec<MappedFile>,
    /// Each path once, " (deleted)" as the kernel prints it.
    pub paths: Vec<String>,
    /// Notes that end before they should.
    pub damaged: usize,
    /// Where in `paths` each path is.
    places: HashMap<String, usize>,
}

/// Keys of the auxiliary vector: include/uapi/linux/auxvec.h.
pub const AT_PAGESZ: u64 = 6;
pub const AT_ENTRY: u64 = 9;
pub const AT_RANDOM: u64 = 25;
pub const AT_SYSINFO_EHDR: u64 = 33;

impl Notes {
    /// Reads every note of one segment, which lies at `at` in the file; `self` gathers over several. The registers of each
    /// thread, most of the bytes, are passed over.
    pub fn add(&mut self, file: &FileBytes, at: u64, bytes: u64) {
        const NT_PRSTATUS: u32 = 1;
        const NT_PRPSINFO: u32 = 3;
        const NT_AUXV: u32 = 6;
        const NT_SIGINFO: u32 = 0x5349_4749;
        const NT_FILE: u32 = 0x4649_4c45;
        let end = at.saturating_add(bytes).min(file.length());
        let mut at = at;
        while end.saturating_sub(at) >= 12 {
            let Some(Note { is_cores, kind, value: (value_at, value_bytes), next }) = note(file, at, end)
            else {
                self.damaged += 1;
                return;
            };
            at = next;
            if !is_cores || ![NT_PRSTATUS, NT_PRPSINFO, NT_AUXV, NT_SIGINFO, NT_FILE].contains(&kind) {
                continue;
            }
            let Some(value) = file.copy(value_at, value_bytes, CORE_ONE_NOTE_BYTES_MAX) else {
                self.damaged += 1;
                continue;
            };
            let value = &value[..];
            let understood = match kind {
                NT_PRSTATUS => self.thread(value),
                NT_PRPSINFO => self.process(value),
                NT_AUXV => self.auxiliary(value),
                NT_SIGINFO => {
                    self.signal = u32_at(value, 0).map(|number| number as i32).filter(|number| *number != 0);
                    Some(())
                }
                _ => self.files(value),
            };
            self.damaged += usize::from(understood.is_none());
        }
    }

    pub fn auxiliary_value(&self, key: u64) -> Option<u64> {
        self.auxiliary.iter().find(|(found, _)| *found == key).map(|(_, value)| *value)
    }

    /// `pr_pid` of `elf_prstatus`.
    fn thread(&mut self, value: &[u8]) -> Option<()> {
        let tid = u32_at(value, 32)? as i32;
        if tid > 0 && self.threads.len() < THREADS_MAX {
            self.threads.push(tid);
        }
        Some(())
    }

    fn process(&mut self, value: &[u8]) -> Option<()> {
        self.uid = Some(u32_at(value, 16)?);
        self.pid = Some(u32_at(value, 24)? as i32).filter(|pid| *pid > 0);
        let arguments = value.get(56..136)?;
        let end = arguments.iter().position(|byte| *byte == 0).unwrap_or(arguments.len());
        self.arguments = String::from_utf8_lossy(&arguments[..end]).trim_end().to_string();
        Some(())
    }

    fn auxiliary(&mut self, value: &[u8]) -> Option<()> {
        let pair = |at: usize| Some((u64_at(value, at)?, u64_at(value, at + 8)?));
        self.auxiliary = (0..value.len() / 16).map_while(|index| pair(index * 16)).collect();
        let end = self.auxiliary.iter().position(|(key, _)| *key == 0)?;
        self.auxiliary.truncate(end);
        self.auxiliary_bytes = value[..end * 16].to_vec();
        Some(())
    }

    /// Count, page size; start, end, offset in pages of each; then the paths, each with its NUL.
    fn files(&mut self, value: &[u8]) -> Option<()> {
        let (count, unit) = (u64_at(value, 0)?, u64_at(value, 8)?);
        let names = slice(value, 16, count.checked_mul(24)?).map(|table| &value[16 + table.len()..])?;
        if count > MAPPINGS_MAX.saturating_sub(self.files.len()) as u64 {
            return None;
        }
        let mut names = names.split(|byte| *byte == 0);
        for index in 0..count as usize {
            let word = |nth: usize| u64_at(value, 16 + index * 24 + nth * 8);
            let (start, end, offset) = (word(0)?, word(1)?, word(2)?);
            let name = names.next().filter(|name| name.len() <= CORE_PATH_BYTES_MAX)?;
            let path = String::from_utf8_lossy(name).into_owned();
            let is_aligned = start.is_multiple_of(PAGE) && end.is_multiple_of(PAGE);
            if start >= end || !is_aligned || path.is_empty() {
                continue;
            }
            let path = *self.places.entry(path.clone()).or_insert_with(|| {
                self.paths.push(path);
                self.paths.len() - 1
            });
            let offset = offset.saturating_mul(unit);
            self.files.push(MappedFile { range: Range::of(start, end), offset, path });
        }
        Some(())
    }

    /// To be called when all segments are added.
    pub fn sort(&mut self) {
        self.files.sort_by_key(|file| file.range.start);
    }
}

struct Note {
    /// "CORE": the kernel's own notes about the process, not those of an architecture ("LINUX").
    is_cores: bool,
    kind: u32,
    /// Where it lies in the file, and its length.
    value: (u64, u64),
    next: u64,
}

/// The note at `at`; each part is padded to 4 bytes. `None`: it does not end before `end`.
fn note(file: &FileBytes, at: u64, end: u64) -> Option<Note> {
    let mut head = [0; 12];
    file.read(at, &mut head)?;
    let (owner_bytes, value_bytes) = (u64::from(u32_at(&head, 0)?), u64::from(u32_at(&head, 4)?));
    let mut owner = [0; 5];
    let is_cores = owner_bytes == 5 && file.read(at + 12, &mut owner).is_some() && &owner == b"CORE\0";
    let value_at = at + 12 + owner_bytes.next_multiple_of(4);
    if value_at + value_bytes > end {
        return None;
    }
    let next = value_at + value_bytes.next_multiple_of(4);
    Some(Note { is_cores, kind: u32_at(&head, 8)?, value: (value_at, value_bytes), next })
}

#[cfg(test)]
#[path = "notes_tests.rs"]
pub mod tests;
