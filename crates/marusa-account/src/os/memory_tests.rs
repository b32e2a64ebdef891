use super::*;

/// Memory made of literal bytes, for tests: each piece is (address, bytes).
#[derive(Default)]
pub struct Pieces(pub std::collections::BTreeMap<Addr, Vec<u8>>);

impl Pieces {
    /// Lays `bytes` down at `at`. Pieces must not overlap.
    pub fn put(&mut self, at: Addr, bytes: &[u8]) {
        self.0.insert(at, bytes.to_vec());
    }
    pub fn put_words(&mut self, at: Addr, words: &[u64]) {
        self.put(at, &words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>());
    }
}

impl Memory for Pieces {
    fn read(&self, at: Addr, into: &mut [u8]) -> Result<(), Fault> {
        let mut done = 0;
        while done < into.len() {
            let here = at.plus(done as u64);
            let (start, bytes) =
                self.0.range(..=here).next_back().ok_or(Fault { at: here, why: Why::NotRecorded })?;
            let skip = (here.0 - start.0) as usize;
            if skip >= bytes.len() {
                return Err(Fault { at: here, why: Why::NotRecorded });
            }
            let take = (bytes.len() - skip).min(into.len() - done);
            into[done..done + take].copy_from_slice(&bytes[skip..skip + take]);
            done += take;
        }
        Ok(())
    }
}

#[test]
fn a_c_string_ends_at_its_nul_or_at_the_bound() {
    let mut memory = Pieces::default();
    memory.put(
        Addr(0x1000),
        b"java_heap\0rest of the page, as long as sixty-four bytes and more, no NUL in it",
    );
    assert_eq!(memory.c_string(Addr(0x1000), 100), Ok("java_heap".to_string()));
    assert_eq!(memory.c_string(Addr(0x100a), 8).map_err(|fault| fault.why), Err(Why::BadData(Addr(0x100a))));
}

#[test]
fn a_read_across_two_pieces_is_whole_and_a_hole_is_a_fault() {
    let mut memory = Pieces::default();
    memory.put(Addr(0x1000), &[1, 2]);
    memory.put(Addr(0x1002), &[3, 4]);
    assert_eq!(memory.u32(Addr(0x1000)), Ok(0x04030201));
    assert_eq!(memory.u32(Addr(0x1002)), Err(Fault { at: Addr(0x1004), why: Why::NotRecorded }));
}
