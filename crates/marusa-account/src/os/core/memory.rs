//! The bytes of a dead process: from the core, and, for pages of files that the core leaves out, from the files.

use super::files::Found;
use super::headers::Load;
use crate::base::{Addr, Range, Why, place_of};
use crate::os::budget;
use crate::os::file_bytes::FileBytes;
use crate::os::maps::{Mapping, find_mapping};
use crate::os::memory::{Bulk, Fault, Memory};
use crate::os::target::Symbols;

/// Several threads may read at once.
pub struct CoreMemory<'a> {
    bytes: &'a FileBytes,
    loads: &'a [Load],
    mappings: &'a [Mapping],
    /// By the number in a mapping's inode, less one.
    files: &'a [Option<Found>],
    /// What the process had changed of files' private memory is in the core (coredump_filter, bit 0), so the rest is as in
    /// the files.
    has_changed: bool,
}

impl<'a> CoreMemory<'a> {
    pub fn of(
        bytes: &'a FileBytes,
        loads: &'a [Load],
        mappings: &'a [Mapping],
        files: &'a [Option<Found>],
    ) -> CoreMemory<'a> {
        let has_changed = loads.iter().any(|load| load.rights.write && load.dumped == load.range.bytes());
        CoreMemory { bytes, loads, mappings, files, has_changed }
    }

    /// Where the bytes at `at` lie: the file, the place in it, and how many of `length` are in one piece.
    fn piece(&self, at: Addr, length: u64) -> Result<(&'a FileBytes, u64, u64), Fault> {
        let missing = Fault { at, why: Why::NotRecorded };
        let load = place_of(self.loads, at, |load| load.range).map(|place| &self.loads[place]);
        let load = load.ok_or(Fault { at, why: Why::BadData(at) })?;
        let inside = at.0 - load.range.start.0;
        if inside < load.held {
            return Ok((self.bytes, load.offset.saturating_add(inside), length.min(load.held - inside)));
        }
        // What was to be dumped and is cut off had been changed, perhaps.
        let mapping = find_mapping(self.mappings, at).ok_or(missing)?;
        if inside < load.dumped || !(self.has_changed || mapping.rights.execute) {
            return Err(missing);
        }
        let length = length.min(mapping.range.end.0 - at.0);
        let offset = mapping.offset.checked_add(at.0 - mapping.range.start.0).ok_or(missing)?;
        let file = file_of(self.files, mapping).ok_or(missing)?;
        Ok((&file.bytes, offset, length))
    }

    fn read_all(&self, at: Addr, into: &mut [u8]) -> Result<(), Fault> {
        budget::check().map_err(|why| Fault { at, why })?;
        if at.0.checked_add(into.len() as u64).is_none() {
            return Err(Fault { at, why: Why::BadData(at) });
        }
        let mut done = 0;
        while done < into.len() {
            let here = at.plus(done as u64);
            let (file, place, length) = self.piece(here, (into.len() - done) as u64)?;
            let step = &mut into[done..done + length as usize];
            // The file may have been cut since its headers were read.
            file.read(place, step)
                .filter(|()| length > 0)
                .ok_or(Fault { at: here, why: Why::NotRecorded })?;
            done += length as usize;
        }
        Ok(())
    }
}

impl Memory for CoreMemory<'_> {
    fn read(&self, at: Addr, into: &mut [u8]) -> Result<(), Fault> {
        self.read_all(at, into)
    }
    fn bulk(&self) -> Option<&dyn Bulk> {
        Some(self)
    }
}

impl Bulk for CoreMemory<'_> {
    fn read(&self, at: Addr, into: &mut [u8]) -> Result<(), Fault> {
        self.read_all(at, into)
    }
    fn resident(&self, _range: Range) -> Option<Vec<Range>> {
        None
    }
}

/// The file behind a mapping of a core, if it is there and the same.
fn file_of<'a>(files: &'a [Option<Found>], mapping: &Mapping) -> Option<&'a Found> {
    files.get(usize::try_from(mapping.inode.checked_sub(1)?).ok()?)?.as_ref()
}

/// Symbols of the files that are still there.
pub struct CoreSymbols<'a> {
    pub mappings: &'a [Mapping],
    pub files: &'a [Option<Found>],
}

impl Symbols for CoreSymbols<'_> {
    fn find(&self, object: &str, name: &str) -> Option<Addr> {
        let first = self.mappings.iter().find(|mapping| mapping.path == object && mapping.offset == 0)?;
        file_of(self.files, first)?.symbols(first.range.start)?.find(name)
    }

    fn name_at(&self, object: &str, at: Addr) -> Option<String> {
        let first = self.mappings.iter().find(|mapping| mapping.path == object && mapping.offset == 0)?;
        file_of(self.files, first)?.symbols(first.range.start)?.name_at(at)
    }
}
