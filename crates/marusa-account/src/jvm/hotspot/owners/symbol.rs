//! A `Symbol` (src/hotspot/share/oops/symbol.hpp): some hundred thousand of them are what many JVMs have most of.

use super::shapes::{fits, half};
use crate::base::Range;
use crate::jvm::hotspot::Hotspot;

#[derive(Clone, Copy, Debug)]
pub struct SymbolFields {
    pub length: usize,
    pub references: usize,
    pub body: usize,
    /// Behind the link of the table's node: seen in 21 and 25; in 11 and 17 the node points to the symbol.
    pub is_in_node: bool,
}

impl SymbolFields {
    pub fn read(vm: &Hotspot) -> Option<SymbolFields> {
        let offset = |name| vm.structs.offset("Symbol", name).ok().filter(|offset| *offset <= 16);
        let references = offset("_refcount").or_else(|| offset("_hash_and_refcount"));
        let body = offset("_body[0]").or_else(|| offset("_body"));
        Some(SymbolFields {
            length: offset("_length")? as usize,
            references: references? as usize,
            body: body? as usize,
            is_in_node: vm.major.is_some_and(|major| major >= 20),
        })
    }

    /// `Symbol::byte_size`: the body has room for two bytes in any case; in whole words before the nodes held symbols. In the
    /// blocks of 21.0.8 it is counted twice, in those of 25.0.2 once. The text is modified UTF-8, in which
    /// no byte is 0; its first and last are looked at.
    #[inline(always)]
    pub fn is_at(&self, payload: Range, bytes: &[u8], skip: usize) -> bool {
        let length = usize::from(half(bytes, skip + self.length));
        let end = skip + self.body + length;
        if length == 0 || end > bytes.len() || half(bytes, skip + self.references) == 0 {
            return false;
        }
        let symbol = (end - skip).max(8) as u64;
        let whole = symbol.next_multiple_of(8);
        let fits = match skip {
            0 => fits(payload, symbol) || fits(payload, whole),
            _ => fits(payload, 8 + symbol) || fits(payload, 8 + 2 * symbol),
        };
        fits && bytes[skip + self.body] != 0 && bytes[end - 1] != 0
    }
}
