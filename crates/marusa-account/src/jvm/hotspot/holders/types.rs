//! The C++ type of a block by its virtual table (Itanium C++ ABI, "Virtual Table Layout"): the first word of an object
//! points behind two words of a table in a library, the second of which leads to the type's information, whose second word
//! leads to its name. Stripping a library does not take these names away. `-fno-rtti` does; then the name is that of the
//! table's symbol, where the library exports it.

use crate::base::Addr;
use crate::base::printable::escaped;
use crate::os::maps::Mapping;
use crate::os::{Target, budget};
use cpp_demangle::{ParseOptions, Symbol};
use std::collections::HashMap;

const NAME_BYTES_MAX: usize = 1024;
const SHOWN_CHARS_MAX: usize = 200;
/// A name may say the same again and again, and nest.
const RECURSION_MAX: u32 = 96;
/// The offset to the top of the object, and the type's information.
const TABLE_HEADER_BYTES: u64 = 16;
const TYPES_MAX: usize = 100_000;

/// A type, and the library that has its table.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Type {
    /// `None`: the table has no information on the type.
    pub name: Option<String>,
    pub library: String,
}

/// The types by the addresses of their tables.
pub struct Types<'a> {
    target: &'a Target<'a>,
    known: HashMap<u64, Option<u32>>,
    places: HashMap<Type, u32>,
    pub found: Vec<Type>,
    /// There were more tables than are looked at.
    pub is_cut: bool,
}

impl<'a> Types<'a> {
    pub fn new(target: &'a Target<'a>) -> Types<'a> {
        Types { target, known: HashMap::new(), places: HashMap::new(), found: Vec::new(), is_cut: false }
    }

    /// The type, by its place in `found`, of an object that begins with this word.
    pub fn of_head(&mut self, head: u64) -> Option<u32> {
        if head < 1 << 16 || !head.is_multiple_of(8) || head >> 56 != 0 {
            return None;
        }
        if let Some(known) = self.known.get(&head) {
            return *known;
        }
        // Most first words are data or lead to other blocks.
        let table = Addr(head);
        let of = self.target.mapping(table).filter(|mapping| mapping.is_file() && !mapping.rights.execute)?;
        self.is_cut |= self.known.len() == TYPES_MAX || budget::check_now().is_err();
        if self.is_cut {
            return None;
        }
        let found = self.read(table, of).map(|of| self.place(of));
        self.known.insert(head, found);
        found
    }

    fn place(&mut self, of: Type) -> u32 {
        if let Some(place) = self.places.get(&of) {
            return *place;
        }
        let place = self.found.len() as u32;
        self.found.push(of.clone());
        self.places.insert(of, place);
        place
    }

    /// The library alone, of a block that points into it.
    pub fn of_library(&mut self, library: &str) -> u32 {
        self.place(Type { name: None, library: library.to_string() })
    }

    /// The table must lie in a file, and its first function in the code of the same one.
    fn read(&self, table: Addr, of: &Mapping) -> Option<Type> {
        let library = of.file_path();
        let memory = self.target.memory;
        let code = self.target.mapping(memory.addr(table).ok()?)?;
        if !code.rights.execute || code.file_path() != library {
            return None;
        }
        let name = self.name(table).or_else(|| {
            // The symbol of the table lies before its two first words.
            let symbol = self.target.symbols.name_at(&of.path, table.minus(TABLE_HEADER_BYTES))?;
            demangled(symbol.strip_prefix("_ZTV")?)
        });
        Some(Type { name, library: library.to_string() })
    }

    fn name(&self, table: Addr) -> Option<String> {
        let memory = self.target.memory;
        let information = memory.addr(table.minus(8)).ok().filter(|at| at.is_aligned(8) && !at.is_null())?;
        let name = memory.addr(information.plus(8)).ok()?;
        self.target.mapping(name).filter(|mapping| mapping.is_file())?;
        demangled(&memory.c_string(name, NAME_BYTES_MAX).ok()?)
    }
}

/// "N7rocksdb8LRUCacheE" as people write it.
fn demangled(name: &str) -> Option<String> {
    // A local type's name begins with an asterisk (libstdc++, typeinfo).
    let name = name.strip_prefix('*').unwrap_or(name);
    let is_mangled = name.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric());
    if !is_mangled || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'.') {
        return None;
    }
    let options = ParseOptions::default().recursion_limit(RECURSION_MAX);
    let symbol = Symbol::new_with_options(format!("_ZTS{name}"), &options).ok()?;
    let text = symbol.demangle().ok()?;
    let text = text.strip_prefix("typeinfo name for ").unwrap_or(&text);
    Some(escaped(text).chars().take(SHOWN_CHARS_MAX).collect())
}

#[cfg(test)]
mod tests {
    use super::demangled;

    #[test]
    fn names_of_types_are_demangled_and_others_are_none() {
        let name = demangled("N7rocksdb9lru_cache13LRUCacheShardE");
        assert_eq!(name.as_deref(), Some("rocksdb::lru_cache::LRUCacheShard"));
        assert_eq!(demangled("*N12_GLOBAL__N_14ThisE").as_deref(), Some("(anonymous namespace)::This"));
        assert_eq!(demangled("4Node").as_deref(), Some("Node"));
        for hostile in ["", "\u{1b}[2J", "N7rocksdb", "99999999999Node", "x y"] {
            assert_eq!(demangled(hostile), None, "{hostile:?}");
        }
        let deep = format!("{}i", "P".repeat(1000));
        assert!(demangled(&deep).is_none_or(|name| name.chars().count() <= 200));
    }
}
