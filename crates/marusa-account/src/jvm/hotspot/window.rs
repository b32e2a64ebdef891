//! Reading many small things that lie near each other: blocks of the code cache, classes, metadata.

use crate::base::Addr;
use crate::os::{Fault, Memory, Target};

/// The memory, for such walks: `Memory::read_among_many`.
pub struct Windows<'a>(&'a dyn Memory);

impl<'a> Windows<'a> {
    pub fn new(target: &'a Target<'a>) -> Windows<'a> {
        Windows(target.memory)
    }
    /// Fills `into` from `at`, whole or not at all.
    pub fn read(&self, at: Addr, into: &mut [u8]) -> Result<(), Fault> {
        self.0.read_among_many(at, into)
    }
    pub fn array<const N: usize>(&self, at: Addr) -> Result<[u8; N], Fault> {
        let mut bytes = [0; N];
        self.read(at, &mut bytes)?;
        Ok(bytes)
    }
    pub fn u64(&self, at: Addr) -> Result<u64, Fault> {
        self.array(at).map(u64::from_le_bytes)
    }
    pub fn addr(&self, at: Addr) -> Result<Addr, Fault> {
        self.u64(at).map(Addr)
    }
}

/// The `N` bytes at `at` in bytes that were read; `None` behind their end.
pub fn array<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}

/// The word at `at` in bytes that were read; 0 behind their end.
pub fn word(bytes: &[u8], at: usize) -> u64 {
    array(bytes, at).map_or(0, u64::from_le_bytes)
}
