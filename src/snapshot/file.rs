//! The frozen snapshot: the kernel's view, and the bytes and symbols from which the runtime's and malloc's views were
//! read. Loading it runs the same readers again, so a file written by an old version gains from every repair of a reader.
//!
//! Form: a magic line, then gzip of: length of the header (u64, little endian), the header (JSON), and the pieces of
//! memory: address (u64), length (u32), bytes. The file is as hostile as the target: every length is checked.

use super::anonymise;
use super::take::{Taking, interpret};
use super::types::{Snapshot, Taken};
use crate::base::{Addr, Known, Range};
use crate::os::Symbols;
use crate::os::memory::Memory;
use crate::os::process::Process;
use crate::os::recording::{Recording, RecordingSymbols, Sparse, SymbolTable};
use crate::os::target::OsView;
use flate2::{Compression, read::GzDecoder, write::GzEncoder};
use serde::{Deserialize, Serialize};
use std::io::{self, Read, Write};

const MAGIC: &[u8] = b"marusa-frozen 1\n";
/// Unpacked size that is read at most, in bytes.
const UNPACKED_BYTES_MAX: u64 = 2 << 30;
const HEADER_BYTES_MAX: u64 = 1 << 30;
const PIECE_BYTES_MAX: u32 = 1 << 20;

/// Everything that is needed to read the runtime again.
pub struct Frozen {
    pub taken: Taken,
    pub os: OsView,
    pub memory: Sparse,
    pub symbols: SymbolTable,
}

#[derive(Serialize, Deserialize)]
struct Header {
    schema: String,
    taken: Taken,
    os: OsView,
    symbols: Vec<(String, String, Addr)>,
}

/// Why a file is no frozen snapshot.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    #[error("it can not be read: {0}")]
    Io(#[from] io::Error),
    #[error("it is no frozen snapshot: the first bytes are not \"marusa-frozen 1\"")]
    Foreign,
    #[error("it is truncated or damaged: {0}")]
    Damaged(String),
}

/// Takes a snapshot of a live process and keeps what was read for it.
pub fn freeze(
    taking: Taking,
    process: &Process,
    memory: &dyn Memory,
    symbols: &dyn Symbols,
) -> Known<(Snapshot, Frozen)> {
    let mappings = taking.os.mappings.clone();
    let recording = Recording::of(memory, &mappings);
    let asked = RecordingSymbols::of(symbols);
    let snapshot = taking.finish(process, &recording, &asked)?;
    let mut frozen = Frozen {
        taken: snapshot.taken.clone(),
        os: snapshot.os.clone(),
        memory: recording.into_seen(),
        symbols: asked.into_seen(),
    };
    anonymise::anonymise(&mut frozen, &snapshot);
    Ok((snapshot, frozen))
}

impl Frozen {
    /// The snapshot, read again from the kept bytes.
    pub fn snapshot(&self) -> Snapshot {
        interpret(self.os.clone(), self.taken.clone(), &self.memory, &self.symbols)
    }

    pub fn save(&self, out: &mut dyn Write) -> io::Result<()> {
        let header = Header {
            schema: "marusa/frozen/1".to_string(),
            taken: self.taken.clone(),
            os: self.os.clone(),
            symbols: self
                .symbols
                .iter()
                .map(|((object, name), at)| (object.clone(), name.clone(), *at))
                .collect(),
        };
        let header = serde_json::to_vec(&header)?;
        out.write_all(MAGIC)?;
        let mut packed = GzEncoder::new(out, Compression::best());
        packed.write_all(&(header.len() as u64).to_le_bytes())?;
        packed.write_all(&header)?;
        for (at, bytes) in self.memory.pieces() {
            packed.write_all(&at.0.to_le_bytes())?;
            packed.write_all(&(bytes.len() as u32).to_le_bytes())?;
            packed.write_all(bytes)?;
        }
        packed.finish()?.flush()
    }

    pub fn load(input: &mut dyn Read) -> Result<Frozen, FileError> {
        let mut magic = [0; MAGIC.len()];
        input.read_exact(&mut magic).map_err(|_| FileError::Foreign)?;
        if magic != MAGIC {
            return Err(FileError::Foreign);
        }
        let mut unpacked = GzDecoder::new(input).take(UNPACKED_BYTES_MAX);
        let header = load_header(&mut unpacked)?;
        let memory = load_memory(&mut unpacked)?;
        check(&header.os)?;
        let symbols = header.symbols.into_iter().map(|(object, name, at)| ((object, name), at)).collect();
        Ok(Frozen { taken: header.taken, os: header.os, memory, symbols })
    }
}

fn load_header(unpacked: &mut dyn Read) -> Result<Header, FileError> {
    let mut length = [0; 8];
    unpacked.read_exact(&mut length).map_err(damaged)?;
    let length = u64::from_le_bytes(length);
    if length > HEADER_BYTES_MAX {
        return Err(FileError::Damaged(format!("its header claims {length} bytes")));
    }
    let mut header = Vec::new();
    unpacked.take(length).read_to_end(&mut header).map_err(damaged)?;
    if header.len() as u64 != length {
        return Err(FileError::Damaged("it ends within its header".to_string()));
    }
    serde_json::from_slice(&header).map_err(|error| FileError::Damaged(format!("its header: {error}")))
}

fn load_memory(unpacked: &mut dyn Read) -> Result<Sparse, FileError> {
    let mut memory = Sparse::default();
    let mut piece = Vec::new();
    loop {
        let mut head = [0; 12];
        match read_or_end(unpacked, &mut head).map_err(damaged)? {
            0 => return Ok(memory),
            12 => {}
            _ => return Err(FileError::Damaged("it ends within a piece of memory".to_string())),
        }
        let at = u64::from_le_bytes([head[0], head[1], head[2], head[3], head[4], head[5], head[6], head[7]]);
        let length = u32::from_le_bytes([head[8], head[9], head[10], head[11]]);
        if length > PIECE_BYTES_MAX {
            return Err(FileError::Damaged(format!("a piece of memory claims {length} bytes")));
        }
        piece.resize(length as usize, 0);
        unpacked.read_exact(&mut piece).map_err(damaged)?;
        memory.put(Addr(at), &piece);
    }
}

fn read_or_end(input: &mut dyn Read, into: &mut [u8]) -> io::Result<usize> {
    let mut done = 0;
    while done < into.len() {
        match input.read(&mut into[done..])? {
            0 => break,
            step => done += step,
        }
    }
    Ok(done)
}

/// The readers rely on sorted, disjoint mappings, and on runs that stay within them.
fn check(os: &OsView) -> Result<(), FileError> {
    if !is_sorted(os.mappings.iter().map(|mapping| mapping.range)) {
        return Err(FileError::Damaged("its mappings are not sorted".to_string()));
    }
    if let Ok(pages) = &os.pages {
        let inside = pages.iter().all(|run| {
            crate::os::maps::find_mapping(&os.mappings, run.range.start)
                .is_some_and(|mapping| mapping.range.covers(run.range))
        });
        if !inside || !is_sorted(pages.iter().map(|run| run.range)) {
            return Err(FileError::Damaged("its runs of pages do not fit its mappings".to_string()));
        }
    }
    Ok(())
}

/// Whether the ranges are sorted, disjoint and not empty.
fn is_sorted(mut ranges: impl Iterator<Item = Range>) -> bool {
    let mut end = Addr::NULL;
    ranges.all(|range| {
        let good = range.start >= end && range.start < range.end;
        end = range.end;
        good
    })
}

fn damaged(error: io::Error) -> FileError {
    FileError::Damaged(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn small() -> Frozen {
        let (mappings, _) = crate::os::maps::parse(b"1000-3000 rw-p 00000000 00:00 0 \n");
        let os = OsView {
            process: Default::default(),
            status: Default::default(),
            mappings,
            pages: Ok(Vec::new()),
            tasks: Vec::new(),
            gaps: Vec::new(),
        };
        let mut memory = Sparse::default();
        memory.put(Addr(0x1ffc), &[1, 2, 3, 4, 5, 6, 7, 8]);
        let symbols = SymbolTable::from([(("libjvm.so".to_string(), "x".to_string()), Addr(7))]);
        Frozen { taken: Taken::default(), os, memory, symbols }
    }

    #[test]
    fn what_is_saved_is_loaded() {
        let mut bytes = Vec::new();
        small().save(&mut bytes).expect("written");
        let loaded = Frozen::load(&mut &bytes[..]).expect("read");
        assert_eq!(loaded.os.mappings, small().os.mappings);
        assert_eq!(loaded.memory.u64(Addr(0x1ffc)), Ok(0x0807060504030201));
        assert_eq!(loaded.symbols.find("libjvm.so", "x"), Some(Addr(7)));
    }

    #[test]
    fn every_truncation_is_an_error_and_a_foreign_file_says_so() {
        let mut bytes = Vec::new();
        small().save(&mut bytes).expect("written");
        for length in 0..bytes.len() - 8 {
            assert!(Frozen::load(&mut &bytes[..length]).is_err(), "{length} of {} bytes", bytes.len());
        }
        assert!(matches!(Frozen::load(&mut &b"\x7fELF and more of it"[..]), Err(FileError::Foreign)));
    }
}
