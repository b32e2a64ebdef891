//! The frozen snapshot: the kernel's view, and the bytes and symbols from which the runtime's and malloc's views were
//! read. Loading it runs the same readers again, so a file written by an old version gains from every repair of a reader.
//!
//! Form: a magic line, then gzip of: length of the header (u64, little endian), the header (JSON), and the pieces of
//! memory: how far behind the end of the piece before it, length (both LEB128: most pieces are one word of malloc's), bytes.
//! In form 1 a piece has its address (u64) and its length (u32). The file is as hostile as the target: every length is checked, and
//! what is unpacked is bounded by the bytes of the file (`os::unpacked`).

use super::anonymise;
use super::frozen_check;
use super::page_settings;
use super::take::{Taking, interpret};
use super::types::{LoaderDetail, Snapshot, Source, Taken, Want};
use crate::base::limits::FROZEN_PIECE_BYTES_MAX;
use crate::base::{Addr, Bytes, Gap, Known, Why, varint};
use crate::os::Symbols;
use crate::os::flat::Flat;
use crate::os::machine;
use crate::os::memory::Memory;
use crate::os::process::Process;
use crate::os::recording::{Recording, RecordingSymbols, SymbolTable};
use crate::os::target::OsView;
use crate::os::unpacked::Unpacked;
use flate2::{Compression, write::GzEncoder};
use serde::{Deserialize, Serialize};
use std::io::{self, Read, Write};

const MAGIC: &[u8; 16] = b"marusa-frozen 2\n";
const MAGIC_OF_FORM_1: &[u8; 16] = b"marusa-frozen 1\n";

/// Everything that is needed to read the runtime again.
pub struct Frozen {
    pub taken: Taken,
    pub os: OsView,
    pub memory: Flat,
    pub symbols: SymbolTable,
}

#[derive(Serialize, Deserialize)]
struct Header {
    schema: String,
    taken: Taken,
    os: OsView,
    symbols: Vec<(String, String, Addr)>,
}

/// Why a file is not a frozen snapshot.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error(
        "it is neither a frozen snapshot (its first bytes would be \"marusa-frozen\") nor a core dump (an ELF file)"
    )]
    Foreign,
    #[error("it is truncated or damaged: {0}")]
    Damaged(String),
    #[error("reading it was given up: {0}")]
    GivenUp(Why),
}

/// Takes a snapshot of a live process and keeps what was read for it.
pub fn freeze(
    taking: Taking,
    process: &Process,
    memory: &dyn Memory,
    symbols: &dyn Symbols,
) -> Known<(Snapshot, Frozen)> {
    let (mappings, want) = (taking.os.mappings.clone(), taking.want);
    let recording = Recording::of(memory, &mappings);
    let asked = RecordingSymbols::of(symbols);
    let mut snapshot = taking.finish(process, &recording, &asked)?;
    (snapshot.taken.holders, snapshot.taken.buffers) = (want.holders, want.buffers);
    snapshot.taken.loaders = want.loaders == LoaderDetail::All;
    snapshot.taken.page_settings = Some(page_settings::read(process, &snapshot));
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
        self.snapshot_with(Want::default())
    }

    /// With holders and loaders, where the file has what they need.
    pub fn snapshot_with(&self, want: Want) -> Snapshot {
        let taken = Taken { source: Source::Frozen, ..self.taken.clone() };
        let mut os = self.os.clone();
        const HOLDERS: &str = "`marusa freeze --holders` keeps what they are found by";
        let mut kept = |is_wanted: bool, is_kept: bool, what: &str, hint: &str| {
            if is_wanted && !is_kept {
                os.gaps.push(Gap::new(what, Why::NotRecorded).hint(hint));
            }
            is_wanted && is_kept
        };
        let holders = kept(want.holders, self.taken.holders, "holders of malloc's blocks", HOLDERS);
        let buffers = kept(want.buffers, self.taken.buffers, "buffers outside the heap", HOLDERS);
        let hint = "an earlier version wrote the file; a new one of `marusa freeze` has them";
        let is_asked = want.loaders != LoaderDetail::None;
        let has_loaders = kept(is_asked, self.taken.loaders, "class loaders", hint);
        let loaders = if has_loaders { want.loaders } else { LoaderDetail::None };
        interpret(os, taken, &self.memory, &self.symbols, Want { holders, buffers, loaders, ..want })
    }

    pub fn save(&self, out: &mut dyn Write) -> io::Result<()> {
        self.save_with(out, &mut |_, _| {})
    }

    /// `progress` hears of the bytes that are packed so far, and of all that there are.
    pub fn save_with(&self, out: &mut dyn Write, progress: &mut dyn FnMut(Bytes, Bytes)) -> io::Result<()> {
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
        let pieces = self.memory.pieces();
        let all = pieces.iter().map(|(_, bytes)| bytes.len() as Bytes).sum::<Bytes>() + header.len() as Bytes;
        let mut done = header.len() as Bytes;
        progress(done, all);
        let mut end = Addr::NULL;
        for (at, bytes) in pieces {
            let mut head = Vec::new();
            varint::put(&mut head, at.0 - end.0);
            varint::put(&mut head, bytes.len() as u64);
            packed.write_all(&head)?;
            packed.write_all(bytes)?;
            end = at.plus(bytes.len() as u64);
            done += bytes.len() as Bytes;
            progress(done, all);
        }
        packed.finish()?.flush()
    }

    pub fn load(input: &mut dyn Read) -> Result<Frozen, FileError> {
        let mut magic = [0; MAGIC.len()];
        input.read_exact(&mut magic).map_err(|_| FileError::Foreign)?;
        let next_piece = match &magic {
            MAGIC => next_piece,
            MAGIC_OF_FORM_1 => next_piece_of_form_1,
            _ => return Err(FileError::Foreign),
        };
        let mut unpacked = Unpacked::of(input);
        let header = load_header(&mut unpacked)?;
        let memory = load_memory(&mut unpacked, next_piece)?;
        let host = header.taken.host.as_ref();
        let is_aarch64 = host.is_some_and(|host| host.architecture.as_deref() == Some("aarch64"));
        machine::of_file(host.and_then(|host| host.page_bytes), is_aarch64);
        frozen_check::check(&header.os, unpacked.packed_bytes()).map_err(|why| FileError::Damaged(why.0))?;
        let symbols = header.symbols.into_iter().map(|(object, name, at)| ((object, name), at)).collect();
        Ok(Frozen { taken: header.taken, os: header.os, memory, symbols })
    }
}

fn load_header(unpacked: &mut dyn Read) -> Result<Header, FileError> {
    let mut length = [0; 8];
    unpacked.read_exact(&mut length).map_err(damaged)?;
    let length = u64::from_le_bytes(length);
    let mut header = Vec::new();
    // A length that is not true costs nothing: only what is there is read.
    unpacked.take(length).read_to_end(&mut header).map_err(damaged)?;
    if header.len() as u64 != length {
        return Err(FileError::Damaged("it ends within its header".to_string()));
    }
    serde_json::from_slice(&header).map_err(|error| FileError::Damaged(format!("its header: {error}")))
}

/// Where the next piece of memory lies, by the end of the one before, and its length.
type NextPiece = fn(&mut dyn Read, Addr) -> Result<Option<(Addr, u64)>, FileError>;

fn load_memory(unpacked: &mut dyn Read, next_piece: NextPiece) -> Result<Flat, FileError> {
    let mut memory = Flat::default();
    let (mut piece, mut end) = (Vec::new(), Addr::NULL);
    while let Some((at, length)) = next_piece(unpacked, end)? {
        if length > FROZEN_PIECE_BYTES_MAX {
            return Err(FileError::Damaged(format!("a piece of memory claims {length} bytes")));
        }
        piece.resize(length as usize, 0);
        unpacked.read_exact(&mut piece).map_err(damaged)?;
        let is_behind = memory.push(at, &piece);
        is_behind.ok_or_else(|| FileError::Damaged("its pieces of memory are not sorted".to_string()))?;
        end = at.plus(length);
    }
    Ok(memory)
}

fn next_piece(unpacked: &mut dyn Read, end: Addr) -> Result<Option<(Addr, u64)>, FileError> {
    let Some(step) = read_number(unpacked)? else { return Ok(None) };
    let length = read_number(unpacked)?.ok_or_else(cut_short)?;
    let at = end.0.checked_add(step);
    let at = at.ok_or_else(|| FileError::Damaged("a piece of memory has no address".to_string()))?;
    Ok(Some((Addr(at), length)))
}

fn next_piece_of_form_1(unpacked: &mut dyn Read, _end: Addr) -> Result<Option<(Addr, u64)>, FileError> {
    let mut head = [0; 12];
    match read_or_end(unpacked, &mut head).map_err(damaged)? {
        0 => return Ok(None),
        12 => {}
        _ => return Err(cut_short()),
    }
    let number = |bytes: &[u8]| bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte));
    let [at, length] = [&head[..8], &head[8..]].map(number);
    Ok(Some((Addr(at), length)))
}

/// `None` at the end of the file.
fn read_number(input: &mut dyn Read) -> Result<Option<u64>, FileError> {
    let endless = || FileError::Damaged("a number in it does not end".to_string());
    let mut bytes = [0; 10];
    for index in 0..bytes.len() {
        match read_or_end(input, &mut bytes[index..=index]).map_err(damaged)? {
            0 if index == 0 => return Ok(None),
            0 => return Err(cut_short()),
            _ if bytes[index] & 0x80 == 0 => break,
            _ => {}
        }
    }
    varint::take(&mut &bytes[..]).map(Some).ok_or_else(endless)
}

fn cut_short() -> FileError {
    FileError::Damaged("it ends within a piece of memory".to_string())
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

fn damaged(error: io::Error) -> FileError {
    match error.get_ref().and_then(|inner| inner.downcast_ref::<Why>()) {
        Some(why) => FileError::GivenUp(*why),
        None => FileError::Damaged(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::read::GzDecoder;

    fn small() -> Frozen {
        let (mappings, _) = crate::os::maps::parse(b"1000-3000 rw-p 00000000 00:00 0 \n");
        let os = OsView {
            process: Default::default(),
            status: Default::default(),
            mappings,
            pages: Ok(Vec::new()),
            tasks: Vec::new(),
            gaps: Vec::new(),
            late: None,
            page_sizes: None,
            smaps: None,
        };
        let memory = Flat::of([(Addr(0x1ffc), &[1, 2, 3, 4, 5, 6, 7, 8][..])]);
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
    fn a_file_of_form_1_is_read() {
        let mut bytes = Vec::new();
        Frozen { memory: Flat::default(), ..small() }.save(&mut bytes).expect("written");
        let mut unpacked = Vec::new();
        GzDecoder::new(&bytes[16..]).read_to_end(&mut unpacked).expect("gzip");
        unpacked.extend([0xfc, 0x1f, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 1, 2, 3, 4]);
        let mut old = GzEncoder::new(MAGIC_OF_FORM_1.to_vec(), Compression::fast());
        old.write_all(&unpacked).expect("packed");
        let old = old.finish().expect("packed");
        let loaded = Frozen::load(&mut &old[..]).expect("read");
        assert_eq!(loaded.memory.u32(Addr(0x1ffc)), Ok(0x04030201));
    }

    #[test]
    fn numbers_of_every_length_and_one_without_end() {
        for number in [0, 127, 128, 0x7fff_1234_5678, u64::MAX] {
            let mut bytes = Vec::new();
            varint::put(&mut bytes, number);
            assert!(matches!(read_number(&mut &bytes[..]), Ok(Some(read)) if read == number));
        }
        assert!(read_number(&mut &[0x80; 20][..]).is_err() && read_number(&mut &[0x80; 3][..]).is_err());
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
