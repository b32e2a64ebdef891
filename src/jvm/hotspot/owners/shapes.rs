//! Blocks that show by themselves what they are: a length in them fits the size of the block, a pointer in them points
//! to where it must. One such coincidence in a random block is rare, so each shape asks for two or more.

use super::index::Index;
use super::zones::{Zones, has};
use crate::base::{PAGE, Range};
use crate::jvm::hotspot::Hotspot;
use crate::jvm::types::JvmView;

/// What a block looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Shape {
    None,
    /// A `Symbol` (JDK 8 to 19).
    Symbol,
    /// A node of the symbol table with the `Symbol` in it (JDK 20 on).
    SymbolNode,
    /// A `Chunk` of an `Arena`.
    Chunk,
    /// An `ImmutableOopMapSet`.
    OopMaps,
    /// A block of an `OopStorage`.
    OopBlock,
    /// A link and a pointer into a block: a node of a table of handles, or of symbols that lie in an arena.
    InnerNode,
    /// A link and a pointer to a class: a node of a table of classes.
    ClassNode,
    /// A `BufferNode` of G1.
    Buffer,
    /// A `JNIHandleBlock`.
    HandleBlock,
    /// A `z_stream` of zlib.
    ZStream,
    /// The name of a lock.
    LockName,
}

impl Shape {
    /// How many words from the start may point to other blocks.
    pub fn words_with_pointers(self) -> usize {
        match self {
            Shape::Symbol | Shape::SymbolNode | Shape::OopMaps | Shape::LockName => 0,
            // `Chunk::_next`; the rest is what the arena's users left there.
            Shape::Chunk => 1,
            Shape::Buffer => 2,
            Shape::None
            | Shape::OopBlock
            | Shape::InnerNode
            | Shape::HandleBlock
            | Shape::ClassNode
            | Shape::ZStream => usize::MAX,
        }
    }
}

/// The offsets that the shapes need.
#[derive(Debug, Default)]
pub struct Shapes {
    symbol: Option<SymbolFields>,
    /// Entries of each kind of buffer.
    buffers: Vec<u64>,
    handle_block: Option<HandleBlockFields>,
    zones: Zones,
}

#[derive(Clone, Copy, Debug)]
struct SymbolFields {
    length: usize,
    references: usize,
    body: usize,
    /// JDK 20 on: behind the link of the table's node (src/hotspot/share/classfile/symbolTable.cpp).
    is_in_node: bool,
}

/// `OopStorage::Block`: 64 oops, aligned to 64 bytes, then a bitmap, the storage's address, and the address that malloc
/// returned (src/hotspot/share/gc/shared/oopStorage.inline.hpp, JDK 11 to 25).
const OOP_BLOCK_ALIGNMENT: u64 = 64;
const OOP_BLOCK_OOPS_BYTES: usize = 512;
const OOP_BLOCK_BYTES_MAX: u64 = 800;
/// `Chunk::tiny_size` is the least of an arena (src/hotspot/share/memory/arena.hpp).
const CHUNK_LENGTH_MIN: u64 = 160;

impl Shapes {
    pub fn read(vm: &Hotspot, view: &JvmView) -> Shapes {
        let flag = |name: &str| vm.flags.number(name).ok();
        let buffers = ["G1SATBBufferSize", "G1UpdateBufferSize"].into_iter().filter_map(flag).collect();
        Shapes {
            symbol: SymbolFields::read(vm),
            buffers,
            handle_block: HandleBlockFields::read(vm),
            zones: Zones::read(vm, view),
        }
    }

    /// What the block at `payload`, which begins with `bytes`, looks like.
    #[inline]
    pub fn of(&self, payload: Range, bytes: &[u8], index: &Index) -> Shape {
        if let Some(symbol) = &self.symbol {
            if !symbol.is_in_node {
                if symbol.is_at(payload, bytes, 0) {
                    return Shape::Symbol;
                }
            } else if symbol.is_at(payload, bytes, 8) && index.may_hold(word(bytes, 0)) {
                return Shape::SymbolNode;
            }
        }
        if is_chunk(payload, bytes, index) {
            return Shape::Chunk;
        }
        if are_oop_maps(payload, bytes) {
            return Shape::OopMaps;
        }
        match payload.bytes() {
            16..=40 => self.small(payload, bytes, index),
            112..=160 if self.is_z_stream(bytes, index) => Shape::ZStream,
            520..=OOP_BLOCK_BYTES_MAX if is_oop_block(payload, bytes) => Shape::OopBlock,
            280..=340 if self.is_handle_block(payload, bytes, index) => Shape::HandleBlock,
            _ if self.is_buffer(payload, bytes, index) => Shape::Buffer,
            _ => Shape::None,
        }
    }

    fn small(&self, payload: Range, bytes: &[u8], index: &Index) -> Shape {
        // A text, not a pointer.
        if word(bytes, 0) >> 48 != 0 && is_lock_name(bytes) {
            return Shape::LockName;
        }
        if !fits(payload, 16) || !is_link(word(bytes, 0), index) {
            return Shape::None;
        }
        let to = word(bytes, 8);
        if !to.is_multiple_of(8) || to == 0 {
            return Shape::None;
        }
        if has(&self.zones.classes, to) {
            return Shape::ClassNode;
        }
        let is_inside = index.at_start(to).is_none() && index.holding(to).is_some();
        if is_inside { Shape::InnerNode } else { Shape::None }
    }

    fn is_handle_block(&self, payload: Range, bytes: &[u8], index: &Index) -> bool {
        let Some(fields) = &self.handle_block else { return false };
        let handles = fields.top as u64 / 8;
        fits(payload, fields.bytes)
            && word(bytes, fields.top) <= handles
            && is_link(word(bytes, fields.next), index)
            && is_link(word(bytes, fields.next + 8), index)
            && word(bytes, fields.next + 8) != 0
    }

    /// `z_stream`: the state at word 7, `zalloc` and `zfree` at words 8 and 9 (zlib.h, 1.0 to 1.3).
    fn is_z_stream(&self, bytes: &[u8], index: &Index) -> bool {
        has(&self.zones.libraries, word(bytes, 64))
            && has(&self.zones.libraries, word(bytes, 72))
            && index.at_start(word(bytes, 56)).is_some()
    }

    /// `BufferNode`: `_index`, `_next`, then the buffer, filled from its end (src/hotspot/share/gc/shared/bufferNode.hpp; in
    /// ptrQueue.hpp up to JDK 20, where the index counts bytes).
    fn is_buffer(&self, payload: Range, bytes: &[u8], index: &Index) -> bool {
        self.buffers.iter().any(|entries| {
            let is_full_to = word(bytes, 0);
            fits(payload, 16 + 8 * entries)
                && is_full_to <= 8 * entries
                && is_link(word(bytes, 8), index)
                && (is_full_to == *entries
                    || is_full_to == 8 * entries
                    || has(&self.zones.heap, word(bytes, 8 + 8 * *entries as usize)))
        })
    }
}

/// `JNIHandleBlock`: 32 handles, `_top`, `_next`, `_last` and more (src/hotspot/share/runtime/jniHandles.hpp).
#[derive(Clone, Copy, Debug)]
struct HandleBlockFields {
    top: usize,
    next: usize,
    bytes: u64,
}

impl HandleBlockFields {
    fn read(vm: &Hotspot) -> Option<HandleBlockFields> {
        let top = vm.structs.offset("JNIHandleBlock", "_top").ok()? as usize;
        let next = vm.structs.offset("JNIHandleBlock", "_next").ok()? as usize;
        Some(HandleBlockFields { top, next, bytes: vm.structs.size_of("JNIHandleBlock").ok()? })
    }
}

/// Up to JDK 20 each lock has a copy of its name; those of `MethodData` are many (src/hotspot/share/oops/methodData.hpp).
fn is_lock_name(bytes: &[u8]) -> bool {
    let Some(end) = bytes.iter().position(|byte| *byte == 0) else { return false };
    let text = &bytes[..end];
    text.len() > 6
        && text.ends_with(b"lock")
        && text.iter().all(|byte| byte.is_ascii_graphic() || *byte == b' ')
}
/// Whether a request for `bytes` may have given this payload: malloc rounds up, and leaves no rest under 32 bytes
/// (malloc/malloc.c, `checked_request2size`, `MINSIZE`).
pub fn fits(payload: Range, bytes: u64) -> bool {
    let chunk = payload.bytes().saturating_add(8 + 15) & !15;
    let least = (bytes.saturating_add(8 + 15) & !15).max(32);
    chunk == least || chunk == least.saturating_add(16)
}

/// As `fits`, for a block that malloc may have mapped by itself: in whole pages, with a header of 16 bytes.
pub fn fits_pages(payload: Range, bytes: u64) -> bool {
    fits(payload, bytes) || payload.end.is_aligned(PAGE) && payload.bytes().wrapping_sub(bytes) < PAGE
}

fn is_link(word: u64, index: &Index) -> bool {
    word == 0 || index.at_start(word).is_some()
}

impl SymbolFields {
    fn read(vm: &Hotspot) -> Option<SymbolFields> {
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

    /// `Symbol::byte_size`: the body has room for two bytes in any case; in whole words before the nodes held symbols. JDK 21
    /// counts it twice (src/hotspot/share/classfile/symbolTable.cpp, `allocate_node`). The text is modified UTF-8, in which
    /// no byte is 0; its first and last are looked at.
    #[inline]
    fn is_at(&self, payload: Range, bytes: &[u8], skip: usize) -> bool {
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

/// `Chunk::_next`, `Chunk::_len`, then `_len` bytes. While code is compiled the next one may be newer than the walk.
fn is_chunk(payload: Range, bytes: &[u8], index: &Index) -> bool {
    let length = word(bytes, 8);
    length >= CHUNK_LENGTH_MIN
        && length.is_multiple_of(8)
        && fits_pages(payload, length.saturating_add(16))
        && word(bytes, 0).is_multiple_of(16)
        && index.may_hold(word(bytes, 0))
}

/// `ImmutableOopMapSet::_count` and `_size`, then pairs of offsets: of the code, which rise, and of the maps, which lie behind
/// the pairs (src/hotspot/share/compiler/oopMap.hpp, JDK 9 to 25).
fn are_oop_maps(payload: Range, bytes: &[u8]) -> bool {
    let (count, size) = (number(bytes, 0), number(bytes, 4));
    if count == 0
        || !(16..=1 << 24).contains(&size)
        || !fits(payload, u64::from(size))
        || u64::from(count) * 8 + 8 > u64::from(size)
    {
        return false;
    }
    let last = 8 + 8 * (count as usize - 1);
    let (first_code, last_code) = (number(bytes, 8), number(bytes, last));
    let last_map = number(bytes, last + 4);
    first_code <= last_code && u64::from(last_map) + 8 * u64::from(count) < u64::from(size)
}

fn is_oop_block(payload: Range, bytes: &[u8]) -> bool {
    if payload.bytes() > OOP_BLOCK_BYTES_MAX || bytes.len() < OOP_BLOCK_OOPS_BYTES + 64 {
        return false;
    }
    let skip = (payload.start.up_to(OOP_BLOCK_ALIGNMENT).0 - payload.start.0) as usize;
    word(bytes, skip + OOP_BLOCK_OOPS_BYTES + 16) == payload.start.0
}

pub fn word(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..).and_then(|rest| rest.first_chunk::<8>()).map_or(0, |word| u64::from_le_bytes(*word))
}
fn number(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..).and_then(|rest| rest.first_chunk::<4>()).map_or(0, |word| u32::from_le_bytes(*word))
}
fn half(bytes: &[u8], at: usize) -> u16 {
    bytes.get(at..).and_then(|rest| rest.first_chunk::<2>()).map_or(0, |word| u16::from_le_bytes(*word))
}

#[cfg(test)]
mod tests {
    use super::super::index::tests::Listed;
    use super::*;
    use crate::base::Addr;

    const AT: u64 = 0x7f00_0000_0010;

    fn index() -> Index {
        Index::of(&Listed::of(&[(AT, 1024), (AT + 2048, 1024)]))
    }

    fn symbol(is_in_node: bool) -> Shapes {
        let fields = SymbolFields { length: 4, references: 0, body: 6, is_in_node };
        Shapes { symbol: Some(fields), ..Shapes::default() }
    }

    /// The shape of a block that malloc gave for these bytes.
    fn shape(shapes: &Shapes, mut bytes: Vec<u8>) -> Shape {
        let rounded = ((bytes.len() + 8 + 15) & !15).max(32) - 8;
        bytes.resize(rounded, 0);
        shapes.of(Range::sized(Addr(AT), rounded as u64), &bytes, &index())
    }

    #[test]
    fn a_symbol_is_as_long_as_its_block() {
        // JDK 17: hash and references, length, text; in whole words.
        let text = |length: u8| [&[1, 0, 7, 7, length, 0], b"java/lang/Object$Inner".as_slice()].concat();
        assert_eq!(shape(&symbol(false), text(22)), Shape::Symbol);
        assert_eq!(shape(&symbol(false), text(60)), Shape::None);
        assert_eq!(shape(&symbol(false), [text(2), vec![0; 40]].concat()), Shape::None);
        // JDK 21: behind the link, and with the length counted twice.
        let node = [&[0; 8], text(22).as_slice()].concat();
        assert_eq!(shape(&symbol(true), node.clone()), Shape::SymbolNode);
        assert_eq!(shape(&symbol(true), [node, vec![0; 28]].concat()), Shape::SymbolNode);
    }

    #[test]
    fn a_chunk_of_an_arena_says_its_length() {
        let chunk = |next: u64, length: u64| {
            [next.to_le_bytes(), length.to_le_bytes()]
                .concat()
                .into_iter()
                .chain([7; 976])
                .collect::<Vec<u8>>()
        };
        assert_eq!(shape(&Shapes::default(), chunk(AT + 2048, 976)), Shape::Chunk);
        assert_eq!(shape(&Shapes::default(), chunk(AT + 2056, 976)), Shape::None, "no block may start there");
        assert_eq!(shape(&Shapes::default(), chunk(0, 900)), Shape::None);
    }

    #[test]
    fn oop_maps_count_their_bytes() {
        let maps = |size: u32| -> Vec<u8> {
            [2, size, 10, 0, 20, 4, 9, 9].iter().flat_map(|number: &u32| number.to_le_bytes()).collect()
        };
        assert_eq!(shape(&Shapes::default(), maps(32)), Shape::OopMaps);
        assert_eq!(shape(&Shapes::default(), maps(128)), Shape::None);
    }

    #[test]
    fn hostile_blocks_have_no_shape() {
        let shapes = Shapes { buffers: vec![u64::MAX / 16, 0], ..symbol(true) };
        for byte in [0, 1, 0x7f, 0xff] {
            for length in [0, 1, 8, 24, 40, 136, 312, 632, 1000] {
                assert_eq!(shape(&shapes, vec![byte; length]), Shape::None, "{length} times {byte}");
            }
        }
    }
}
