//! Symbols of the files that a process maps, local ones too, from `.symtab`. A bonus, never a need: many builds ship
//! without it.

use super::live::open_mapped;
use super::maps::Mapping;
use super::process::Process;
use super::target::Symbols;
use crate::base::Addr;
use object::read::elf::{ElfFile64, FileHeader};
use object::{LittleEndian, Object, ObjectSegment, ObjectSymbol, ObjectSymbolTable};
use std::cell::RefCell;
use std::collections::HashMap;

/// Reads a mapped file's symbol table at the first question about it.
pub struct LiveSymbols<'a> {
    process: &'a Process,
    mappings: &'a [Mapping],
    tables: RefCell<HashMap<String, Option<Table>>>,
}

struct Table {
    file: memmap2::Mmap,
    bias: u64,
}

impl<'a> LiveSymbols<'a> {
    pub fn new(process: &'a Process, mappings: &'a [Mapping]) -> LiveSymbols<'a> {
        LiveSymbols { process, mappings, tables: RefCell::default() }
    }

    fn open(&self, object: &str) -> Option<Table> {
        let first = self.mappings.iter().find(|mapping| mapping.path == object && mapping.offset == 0)?;
        let file = open_mapped(self.process, first)?;
        // SAFETY: the map is read only and private to us. A file truncated meanwhile would raise SIGBUS: libraries are
        // replaced by rename, not truncated, and their inode was checked.
        let file = unsafe { memmap2::Mmap::map(&file) }.ok()?;
        Some(Table { bias: bias(&file, first.range.start)?, file })
    }
}

impl Table {
    fn find(&self, name: &str) -> Option<Addr> {
        find_biased(&self.file, self.bias, name)
    }
}

/// What is added to the addresses in `file`, which is mapped from `start` on.
fn bias(file: &[u8], start: Addr) -> Option<u64> {
    let elf = ElfFile64::<LittleEndian>::parse(file).ok()?;
    if !elf.elf_header().is_type_64() {
        return None;
    }
    let lowest = elf.segments().map(|segment| segment.address()).min()? & !0xfff;
    Some(start.0.wrapping_sub(lowest))
}

fn find_biased(file: &[u8], bias: u64, name: &str) -> Option<Addr> {
    let elf = ElfFile64::<LittleEndian>::parse(file).ok()?;
    let symbols = elf.symbol_table()?;
    let found = symbols.symbols().find(|symbol| symbol.name_bytes() == Ok(name.as_bytes()))?;
    Some(Addr(found.address().wrapping_add(bias)))
}

/// Where the symbol `name` of `file` lies in the target, if the file is mapped from `start` on.
pub fn find_in(file: &[u8], start: Addr, name: &str) -> Option<Addr> {
    find_biased(file, bias(file, start)?, name)
}

impl Symbols for LiveSymbols<'_> {
    fn find(&self, object: &str, name: &str) -> Option<Addr> {
        let mut tables = self.tables.borrow_mut();
        tables.entry(object.to_string()).or_insert_with(|| self.open(object)).as_ref()?.find(name)
    }
}
