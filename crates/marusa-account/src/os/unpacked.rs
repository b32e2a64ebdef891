//! Unpacks a gzip stream of a stranger: what comes out is bounded by what went in, so a small file cannot fill the memory.

use super::budget;
use crate::base::limits::{FROZEN_UNPACKED_BYTES_MAX, INPUT_BYTES_FREE, INPUT_FACTOR};
use flate2::read::GzDecoder;
use std::cell::Cell;
use std::io::{self, Read};
use std::rc::Rc;

/// The unpacked bytes of a stream: at most `INPUT_FACTOR` times the bytes read of it so far, and `INPUT_BYTES_FREE`.
pub struct Unpacked<'a> {
    decoder: GzDecoder<Counted<'a>>,
    packed: Rc<Cell<u64>>,
    bytes: u64,
}

struct Counted<'a> {
    input: &'a mut dyn Read,
    bytes: Rc<Cell<u64>>,
}

impl Read for Counted<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(into)?;
        self.bytes.set(self.bytes.get().saturating_add(read as u64));
        Ok(read)
    }
}

impl<'a> Unpacked<'a> {
    pub fn of(input: &'a mut dyn Read) -> Unpacked<'a> {
        let packed = Rc::<Cell<u64>>::default();
        let decoder = GzDecoder::new(Counted { input, bytes: packed.clone() });
        Unpacked { decoder, packed, bytes: 0 }
    }

    /// Bytes that were read of the stream.
    pub fn packed_bytes(&self) -> u64 {
        self.packed.get()
    }
}

impl Read for Unpacked<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        budget::check_now().map_err(io::Error::other)?;
        let read = self.decoder.read(into)?;
        self.bytes = self.bytes.saturating_add(read as u64);
        let allowed = INPUT_BYTES_FREE.saturating_add(self.packed.get().saturating_mul(INPUT_FACTOR));
        if self.bytes > allowed.min(FROZEN_UNPACKED_BYTES_MAX) {
            let what = format!("it unpacks to more than {INPUT_FACTOR} times its length");
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, what));
        }
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::{Compression, write::GzEncoder};
    use std::io::Write;

    fn packed(bytes: usize, byte: impl Fn(usize) -> u8) -> Vec<u8> {
        let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
        packed.write_all(&(0..bytes).map(byte).collect::<Vec<u8>>()).expect("a Vec takes everything");
        packed.finish().expect("a Vec takes everything")
    }

    #[test]
    fn what_is_small_or_packed_as_files_are_comes_out_whole_and_a_bomb_does_not() {
        let read = |file: &[u8]| {
            let (mut input, mut bytes) = (file, Vec::new());
            Unpacked::of(&mut input).read_to_end(&mut bytes).map_err(|error| error.kind())
        };
        let free = INPUT_BYTES_FREE as usize;
        assert_eq!(read(&packed(free, |_| 0)), Ok(free), "a thousandfold, but small");
        assert_eq!(read(&packed(2 * free, |_| 0)), Err(io::ErrorKind::FileTooLarge));
        let mixed = packed(free + (1 << 20), |at| if at % 16 == 0 { fastrand::u8(..) } else { 7 });
        assert_eq!(read(&mixed), Ok(free + (1 << 20)));
    }
}
