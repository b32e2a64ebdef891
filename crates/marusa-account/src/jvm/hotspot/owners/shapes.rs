//! Blocks that show by themselves what they are: a length in them fits the size of the block, a pointer in them points
//! to where it must. One such coincidence in a random block is rare, so each shape asks for two or more.

use super::index::Index;
use super::symbol::SymbolFields;
use super::zones::{Zones, has};
use crate::base::{Addr, Range};
use crate::jvm::hotspot::Hotspot;
use crate::jvm::hotspot::window::word;
use crate::jvm::types::JvmView;
use crate::os::Memory;
use crate::os::machine::base_page;

/// What a block looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Shape {
    None,
    /// A `Symbol` in a block of its own.
    Symbol,
    /// A node of the symbol table that points to its `Symbol`, in a block or in an arena's chunk.
    SymbolEntry,
    /// A node of the symbol table with the `Symbol` in it.
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
    /// An `ObjectMonitor`, which points into a block of handles (JDK 16 on).
    Monitor,
    /// A `z_stream` of zlib.
    ZStream,
    /// The name of a lock.
    LockName,
}

impl Shape {
    /// How many words from the start may point to other blocks.
    pub fn words_with_pointers(self) -> usize {
        match self {
            Shape::Symbol | Shape::SymbolEntry | Shape::SymbolNode | Shape::OopMaps | Shape::LockName => 0,
            // `Chunk::_next`; the rest is what the arena's users left there.
            Shape::Chunk => 1,
            Shape::Buffer => 2,
            Shape::None
            | Shape::OopBlock
            | Shape::InnerNode
            | Shape::Monitor
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
    /// Bytes of an `ObjectMonitor`.
    monitor: Option<u64>,
    zones: Zones,
}

/// `OopStorage::Block`: 64 oops, aligned to 64 bytes, then a bitmap, the storage's address, and the address that malloc
/// returned (src/hotspot/share/gc/shared/oopStorage.inline.hpp, JDK 11 to 25).
const OOP_BLOCK_ALIGNMENT: u64 = 64;
const OOP_BLOCK_OOPS_BYTES: usize = 512;
const OOP_BLOCK_BYTES_MAX: u64 = 800;
const OOP_BLOCK_BYTES: std::ops::RangeInclusive<u64> = 520..=OOP_BLOCK_BYTES_MAX;
/// A node of a table, as malloc rounds it up: a link and a pointer, and in some one thing more.
pub const NODE_BYTES_MIN: u64 = 16;
pub const NODE_BYTES_MAX: u64 = 40;
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
            monitor: vm.structs.size_of("ObjectMonitor").ok(),
            zones: Zones::read(vm, view),
        }
    }

    /// What the block at `payload`, which begins with `bytes`, looks like.
    pub fn of(&self, payload: Range, bytes: &[u8], index: &Index) -> Shape {
        match payload.bytes() {
            NODE_BYTES_MIN..=NODE_BYTES_MAX => {
                let blocks = [index.at_start(word(bytes, 0)), index.at_start(word(bytes, 8))];
                self.of_small(payload, bytes, blocks, index)
            }
            _ => self.of_large(payload, bytes, index),
        }
    }

    /// As `of`, for a block as small as a table's node, with the blocks that start where its first two words point.
    #[inline]
    pub fn of_small(&self, payload: Range, bytes: &[u8], blocks: [Option<usize>; 2], index: &Index) -> Shape {
        match self.by_length(payload, bytes, index) {
            Shape::None => self.small(payload, bytes, blocks, index),
            shape => shape,
        }
    }

    #[inline]
    fn by_length(&self, payload: Range, bytes: &[u8], index: &Index) -> Shape {
        if let Some(symbol) = &self.symbol {
            if !symbol.is_in_node {
                if symbol.is_at(payload, bytes, 0) {
                    return Shape::Symbol;
                }
            } else if symbol.is_at(payload, bytes, 8) && index.may_hold(word(bytes, 0)) {
                return Shape::SymbolNode;
            }
        }
        if payload.bytes() >= CHUNK_LENGTH_MIN && is_chunk(payload, bytes, index) {
            return Shape::Chunk;
        }
        if are_oop_maps(payload, bytes) { Shape::OopMaps } else { Shape::None }
    }

    /// As `of`, for any other block.
    pub fn of_large(&self, payload: Range, bytes: &[u8], index: &Index) -> Shape {
        let shape = self.by_length(payload, bytes, index);
        if shape != Shape::None {
            return shape;
        }
        match payload.bytes() {
            184..=264 if self.is_monitor(payload, bytes, index) => Shape::Monitor,
            112..=160 if self.is_z_stream(bytes, index) => Shape::ZStream,
            520..=OOP_BLOCK_BYTES_MAX if is_oop_block(payload, bytes) => Shape::OopBlock,
            280..=340 if self.is_handle_block(payload, bytes, index) => Shape::HandleBlock,
            _ if self.is_buffer(payload, bytes, index) => Shape::Buffer,
            _ => Shape::None,
        }
    }

    /// Whether `word` points to a class.
    pub fn is_class(&self, word: u64) -> bool {
        has(&self.zones.classes, word)
    }

    /// The pieces of a symbol that made it one: (where, bytes, whether it is a letter).
    pub fn evidence_of_symbol(
        &self,
        memory: &dyn Memory,
        start: Addr,
        shape: Shape,
    ) -> Vec<(Addr, usize, bool)> {
        let Some(symbol) = &self.symbol else { return Vec::new() };
        let skip = if shape == Shape::SymbolNode { 8 } else { 0 };
        let mut bytes = [0; 32];
        let header = &mut bytes[..skip + symbol.body];
        let Ok(()) = memory.read_once(start, header) else { return Vec::new() };
        let text = start.plus((skip + symbol.body) as u64);
        let last = text.plus(u64::from(half(header, skip + symbol.length)).saturating_sub(1));
        // `_hash_and_refcount` has more in it than the count.
        let field = |offset| (start.plus((skip + offset) as u64), size_of::<u16>(), false);
        vec![
            (start, skip, false),
            field(symbol.length),
            field(symbol.references),
            (text, 1, true),
            (last, 1, true),
        ]
    }

    /// The pieces of any other block that made its shape: (offset, bytes).
    pub fn evidence(&self, memory: &dyn Memory, payload: Range, shape: Shape) -> Vec<(u64, usize)> {
        let start = payload.start;
        match shape {
            Shape::Chunk | Shape::InnerNode | Shape::ClassNode => vec![(0, 16)],
            Shape::Monitor => vec![(8, 8)],
            Shape::OopMaps => {
                let count = {
                    let mut bytes = [0; 4];
                    memory.read_once(start, &mut bytes).map_or(0, |()| u32::from_le_bytes(bytes))
                };
                vec![(0, 16), (u64::from(count.max(1)) * 8, 8)]
            }
            Shape::OopBlock => {
                let skip = start.up_to(OOP_BLOCK_ALIGNMENT).0 - start.0;
                vec![(skip + OOP_BLOCK_OOPS_BYTES as u64 + 8, 16)]
            }
            Shape::Buffer => {
                let last = self.buffers.iter().filter(|entries| fits(payload, 16 + 8 * **entries));
                // An empty buffer holds what the memory held before.
                let last = last.map(|entries| 8 + 8 * entries).filter(|offset| {
                    let word = memory.peek_words(start.plus(*offset), 1);
                    word.is_ok_and(|word| has(&self.zones.heap, word[0]))
                });
                [(0, 16)].into_iter().chain(last.map(|offset| (offset, 8))).collect()
            }
            Shape::HandleBlock => {
                let fields =
                    self.handle_block.map(|fields| (fields.top as u64, fields.next + 16 - fields.top));
                fields.into_iter().collect()
            }
            Shape::ZStream => vec![(56, 24)],
            Shape::SymbolEntry => vec![(8, 8)],
            Shape::LockName | Shape::None | Shape::Symbol | Shape::SymbolNode => Vec::new(),
        }
    }

    #[inline]
    fn small(&self, payload: Range, bytes: &[u8], blocks: [Option<usize>; 2], index: &Index) -> Shape {
        let [link, to] = [word(bytes, 0), word(bytes, 8)];
        // A text, not a pointer.
        if link >> 48 != 0 && is_lock_name(bytes) {
            return Shape::LockName;
        }
        let is_node = (link == 0 || blocks[0].is_some()) && fits(payload, 16);
        if !is_node || blocks[1].is_some() || !to.is_multiple_of(8) || to == 0 {
            return Shape::None;
        }
        if has(&self.zones.classes, to) {
            return Shape::ClassNode;
        }
        if index.holding(to).is_some() { Shape::InnerNode } else { Shape::None }
    }

    /// `_object` is the second word (src/hotspot/share/runtime/objectMonitor.hpp).
    fn is_monitor(&self, payload: Range, bytes: &[u8], index: &Index) -> bool {
        let object = word(bytes, 8);
        self.monitor.is_some_and(|bytes| fits(payload, bytes))
            && object.is_multiple_of(8)
            && index
                .holding(object)
                .is_some_and(|block| OOP_BLOCK_BYTES.contains(&index.payload(block).bytes()))
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

/// Locks have a copy of their name each, seen in 11 to 25; most are those of `MethodData`.
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
    fits(payload, bytes)
        || payload.end.is_aligned(base_page()) && payload.bytes().wrapping_sub(bytes) < base_page()
}

fn is_link(word: u64, index: &Index) -> bool {
    word == 0 || index.at_start(word).is_some()
}

/// Whether an arena's chunk may have this length.
pub fn is_chunk_length(length: u64) -> bool {
    length >= CHUNK_LENGTH_MIN && length.is_multiple_of(8)
}

/// `Chunk::_next`, `Chunk::_len`, then `_len` bytes. While code is compiled the next one may be newer than the walk.
fn is_chunk(payload: Range, bytes: &[u8], index: &Index) -> bool {
    let length = word(bytes, 8);
    is_chunk_length(length)
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

fn number(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..).and_then(|rest| rest.first_chunk::<4>()).map_or(0, |word| u32::from_le_bytes(*word))
}
pub fn half(bytes: &[u8], at: usize) -> u16 {
    bytes.get(at..).and_then(|rest| rest.first_chunk::<2>()).map_or(0, |word| u16::from_le_bytes(*word))
}

#[cfg(test)]
#[path = "shapes_tests.rs"]
mod tests;
