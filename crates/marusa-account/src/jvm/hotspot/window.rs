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
    pub fn u64(&self, at: Addr) -> Result<u64, Fault> {
        let mut bytes = [0; 8];
        self.read(at, &mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    }
    pub fn addr(&self, at: Addr) -> Result<Addr, Fault> {
        self.u64(at).map(Addr)
    }
}

/// The word at `at` in bytes that were read; 0 behind their end.
pub fn word(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..).and_then(|rest| rest.first_chunk::<8>()).map_or(0, |word| u64::from_le_bytes(*word))
}
