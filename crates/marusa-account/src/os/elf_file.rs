//! The loadable segments of an ELF file on disk: what the loader will map of it, before anything is mapped. Layout: elf(5).

use super::input_file;
use super::symbols::number;
use crate::base::Bytes;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

const HEADER_BYTES: usize = 64;
const ENTRY_BYTES: usize = 56;
const ENTRIES_MAX: usize = 128;
const PT_LOAD: u32 = 1;
const PF_W: u32 = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// In the file.
    pub offset: u64,
    /// From the start of the image.
    pub address: u64,
    /// The length of the file.
    pub bytes: Bytes,
    pub writable: bool,
}

pub fn segments(path: &Path) -> io::Result<Vec<Segment>> {
    let mut file = input_file::open(path)?;
    let mut header = [0; HEADER_BYTES];
    file.read_exact(&mut header)?;
    let entries = number(&header, 56, 2) as usize;
    let is_elf =
        header[..6] == [0x7f, b'E', b'L', b'F', 2, 1] && number(&header, 54, 2) as usize == ENTRY_BYTES;
    if !is_elf || entries > ENTRIES_MAX {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "no 64-bit little-endian ELF file"));
    }
    file.seek(SeekFrom::Start(number(&header, 32, 8)))?;
    let mut table = vec![0; entries * ENTRY_BYTES];
    file.read_exact(&mut table)?;
    let of = |entry: &[u8]| {
        let (kind, flags) = (number(entry, 0, 4) as u32, number(entry, 4, 4) as u32);
        (kind == PT_LOAD).then(|| Segment {
            offset: number(entry, 8, 8),
            address: number(entry, 16, 8),
            bytes: number(entry, 32, 8),
            writable: flags & PF_W != 0,
        })
    };
    Ok(table.chunks_exact(ENTRY_BYTES).filter_map(of).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_program_and_what_is_none() {
        let found = segments(Path::new("/proc/self/exe")).expect("an ELF file");
        assert!(found.iter().any(|segment| segment.writable) && found.len() >= 2, "{found:?}");
        assert!(found.iter().all(|segment| segment.offset % 4096 == segment.address % 4096));
        assert!(segments(Path::new("/proc/self/maps")).is_err());
        assert!(segments(Path::new("/no/such/file")).is_err());
    }
}
