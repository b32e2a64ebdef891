//! Symbols of the files that a process maps, local ones too, from `.symtab`; the exported ones, from `.dynsym`, where a file was
//! stripped of that. A bonus, never a need. Layouts: elf(5).

use super::file_bytes::FileBytes;
use super::foreign;
use super::maps::Mapping;
use super::process::Process;
use super::target::Symbols;
use crate::base::Addr;
use crate::base::limits::SYMBOL_BYTES_MAX;
use std::cell::RefCell;
use std::collections::HashMap;

/// Headers are few and near each other.
const WINDOWS: usize = 4;
const HEADER_BYTES: u64 = 64;
const SEGMENT_BYTES: u64 = 56;
const SECTION_BYTES: u64 = 64;
const SYMBOL_BYTES: usize = 24;
const SYMBOL_NAME_BYTES_MAX: usize = 4096;
/// Names of a file that end alike.
const SAME_ENDINGS_MAX: usize = 64;

/// Reads a mapped file's symbol table at the first question about it.
pub struct LiveSymbols<'a> {
    process: &'a Process,
    mappings: &'a [Mapping],
    tables: RefCell<HashMap<String, Option<Table>>>,
}

impl<'a> LiveSymbols<'a> {
    pub fn new(process: &'a Process, mappings: &'a [Mapping]) -> LiveSymbols<'a> {
        LiveSymbols { process, mappings, tables: RefCell::default() }
    }

    fn open(&self, object: &str) -> Option<Table> {
        let first = self.mappings.iter().find(|mapping| mapping.path == object && mapping.offset == 0)?;
        let file = FileBytes::of(foreign::mapped(self.process, first)?, WINDOWS).ok()?;
        Table::read(&file, first.range.start)
    }
}

impl Symbols for LiveSymbols<'_> {
    fn find(&self, object: &str, name: &str) -> Option<Addr> {
        let mut tables = self.tables.borrow_mut();
        tables.entry(object.to_string()).or_insert_with(|| self.open(object)).as_ref()?.find(name)
    }

    fn name_at(&self, object: &str, at: Addr) -> Option<String> {
        let mut tables = self.tables.borrow_mut();
        tables.entry(object.to_string()).or_insert_with(|| self.open(object)).as_ref()?.name_at(at)
    }
}

/// The symbol table of one file, copied.
pub struct Table {
    symbols: Vec<u8>,
    names: Vec<u8>,
    /// What is added to the addresses in the file.
    bias: u64,
}

impl Table {
    /// The symbols of a file that is mapped from `start` on. `None`: not a 64-bit little-endian ELF file, or no such table.
    pub fn read(file: &FileBytes, start: Addr) -> Option<Table> {
        const SHT_SYMTAB: u64 = 2;
        const SHT_DYNSYM: u64 = 11;
        let header = file.copy(0, HEADER_BYTES, HEADER_BYTES)?;
        if header[..6] != [0x7f, b'E', b'L', b'F', 2, 1] {
            return None;
        }
        let bias = start.0.wrapping_sub(lowest_address(file, &header)?);
        let (at, count) = (number(&header, 40, 8), number(&header, 60, 2));
        if number(&header, 58, 2) != SECTION_BYTES {
            return None;
        }
        let sections = file.copy(at, count * SECTION_BYTES, u64::from(u16::MAX) * SECTION_BYTES)?;
        let sections: Vec<&[u8]> = sections.chunks_exact(SECTION_BYTES as usize).collect();
        let of_type = |kind| sections.iter().find(|section| number(section, 4, 4) == kind);
        let symbols = of_type(SHT_SYMTAB).or_else(|| of_type(SHT_DYNSYM))?;
        let names = sections.get(usize::try_from(number(symbols, 40, 4)).ok()?)?;
        let bytes =
            |section: &[u8]| file.copy(number(section, 24, 8), number(section, 32, 8), SYMBOL_BYTES_MAX);
        Some(Table { symbols: bytes(symbols)?, names: bytes(names)?, bias })
    }

    /// The names are searched first, at the speed of memory, then the symbols for the places of the name: linkers let a name end
    /// another one, so it may begin anywhere.
    pub fn find(&self, name: &str) -> Option<Addr> {
        let ended = [name.as_bytes(), b"\0"].concat();
        let found = memchr::memmem::find_iter(&self.names, &ended).take(SAME_ENDINGS_MAX);
        let places: Vec<[u8; 4]> =
            found.filter_map(|at| Some(u32::try_from(at).ok()?.to_le_bytes())).collect();
        // The first entry stands for no symbol.
        let symbols = self.symbols.as_chunks::<SYMBOL_BYTES>().0.get(1..)?;
        let found = symbols.iter().find(|symbol| places.iter().any(|place| symbol[..4] == *place))?;
        Some(Addr(number(found, 8, 8).wrapping_add(self.bias)))
    }

    pub fn name_at(&self, at: Addr) -> Option<String> {
        let value = at.0.wrapping_sub(self.bias).to_le_bytes();
        let symbols = self.symbols.as_chunks::<SYMBOL_BYTES>().0.get(1..)?;
        let found = symbols.iter().find(|symbol| symbol[8..16] == value)?;
        let name = self.names.get(number(found, 0, 4) as usize..)?;
        let end = name.iter().take(SYMBOL_NAME_BYTES_MAX).position(|byte| *byte == 0)?;
        Some(String::from_utf8_lossy(&name[..end]).into_owned())
    }
}

/// The start of the page of the first loadable segment.
fn lowest_address(file: &FileBytes, header: &[u8]) -> Option<u64> {
    const PT_LOAD: u64 = 1;
    let (at, count) = (number(header, 32, 8), number(header, 56, 2));
    if number(header, 54, 2) != SEGMENT_BYTES {
        return None;
    }
    let segments = file.copy(at, count * SEGMENT_BYTES, u64::from(u16::MAX) * SEGMENT_BYTES)?;
    let loads =
        segments.chunks_exact(SEGMENT_BYTES as usize).filter(|segment| number(segment, 0, 4) == PT_LOAD);
    Some(loads.map(|segment| number(segment, 16, 8)).min()? & !0xfff)
}

pub(super) fn number(bytes: &[u8], at: usize, length: usize) -> u64 {
    bytes[at..at + length].iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::{Object, ObjectSymbol};
    use std::fs::File;
    use std::os::unix::fs::FileExt;

    #[test]
    fn a_function_of_this_program_is_where_it_is() {
        let me = Process::own().expect("myself");
        let mappings = me.mappings().expect("mine");
        let own = std::env::current_exe().expect("this program");
        let path = own.to_str().expect("UTF-8");
        let start = mappings.iter().find(|it| it.path == path && it.offset == 0).expect("mapped").range.start;
        let bytes = std::fs::read(&own).expect("readable");
        let elf = object::File::parse(&bytes[..]).expect("an ELF file");
        let symbols = LiveSymbols::new(&me, &mappings);
        assert_eq!(symbols.find(path, "no such symbol"), None);
        assert_eq!(symbols.find("/no/such/file", "main"), None);
        let main = elf.symbols().find(|symbol| symbol.name() == Ok("main")).expect("main");
        assert_eq!(symbols.find(path, "main"), Some(start.plus(main.address())));
    }

    /// A segment from 0x1000 on, and the symbols `a_main` at 0x1111 and `main`, whose name ends the other's, at 0x1234.
    fn small() -> Vec<u8> {
        let words = |words: &[(u64, usize)]| {
            let padded = |(word, length): &(u64, usize)| {
                let mut bytes = word.to_le_bytes().to_vec();
                bytes.resize(*length, 0);
                bytes
            };
            words.iter().flat_map(padded).collect::<Vec<u8>>()
        };
        let mut file = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
        // Program headers at 64, section headers at 120.
        file.extend(words(&[(3, 2), (62, 2), (1, 4), (0, 8), (64, 8), (120, 8), (0, 4)]));
        file.extend(words(&[(64, 2), (56, 2), (1, 2), (64, 2), (2, 2), (0, 2)]));
        file.extend(words(&[(1, 4), (4, 4), (0, 8), (0x1000, 8), (0, 8), (0x400, 8), (0x400, 8), (4096, 8)]));
        // The symbols at 248, of which the second section has the names, at 320.
        file.extend(words(&[(0, 4), (2, 4), (0, 16), (248, 8), (72, 8), (1, 4), (0, 4), (8, 8), (24, 8)]));
        file.extend(words(&[(0, 4), (3, 4), (0, 16), (320, 8), (8, 8), (0, 4), (0, 4), (1, 8), (0, 8)]));
        file.extend(words(&[
            (0, 24),
            (1, 4),
            (0x12, 4),
            (0x1111, 8),
            (8, 8),
            (3, 4),
            (0x12, 4),
            (0x1234, 8),
            (8, 8),
        ]));
        file.extend(b"\0a_main\0");
        assert_eq!(file.len(), 328);
        file
    }

    fn main_of(file: &FileBytes) -> Option<Addr> {
        Table::read(file, Addr(0x7000))?.find("main")
    }

    #[test]
    fn a_name_may_be_the_end_of_another_one() {
        let table = Table::read(&FileBytes::given(small()), Addr(0x7000)).expect("a table");
        assert_eq!(table.find("main"), Some(Addr(0x7234)));
        assert_eq!(table.find("a_main"), Some(Addr(0x7111)));
        assert_eq!((table.find("ain"), table.find("_mai")), (None, None));
    }

    #[test]
    fn a_file_that_is_cut_or_damaged_anywhere_has_no_symbols_or_others() {
        let whole = small();
        for length in 0..whole.len() {
            assert_eq!(main_of(&FileBytes::given(whole[..length].to_vec())), None, "{length}");
        }
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] = 0xff;
            let _ = main_of(&FileBytes::given(damaged));
        }
    }

    #[test]
    fn truncation_while_symbols_are_read_ends_nothing() {
        let whole = small();
        let path = tempfile::NamedTempFile::new().expect("a file");
        let writer = path.reopen().expect("open");
        writer.write_all_at(&whole, 0).expect("written");
        let end = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            let cutting = scope.spawn(|| {
                while !end.load(std::sync::atomic::Ordering::Relaxed) {
                    writer.set_len(0).expect("cut");
                    writer.write_all_at(&whole, 0).expect("written");
                }
            });
            for _ in 0..2_000 {
                let file = FileBytes::of(File::open(path.path()).expect("there"), WINDOWS).expect("read");
                assert!(main_of(&file).is_none_or(|at| at == Addr(0x7234)));
            }
            end.store(true, std::sync::atomic::Ordering::Relaxed);
            cutting.join().expect("no panic");
        });
    }
}
