//! Blocks of malloc, as those see them who can tell whose a block is. The allocator knows where its blocks lie, the
//! runtime knows what it keeps in them; neither knows the other, so they speak through these.

use super::{Addr, Bytes, Range};

/// Whose a block is, as a number that the runtime gives: an index into its list of block owners plus one. 0: not known.
pub type Label = u8;

/// The label of a block with no known owner.
pub const UNKNOWN: Label = 0;
/// Labels that there may be: the allocator keeps them in a few bits a block.
pub const LABELS_MAX: usize = 96;

/// Given by a witness, while the heap is walked, to a block of which it saw something that is looked for again later, when it
/// may be gone. No owner's label; the runtime replaces it.
pub const SEEN: Label = LABELS_MAX as Label - 1;

/// A block in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// What the program may write: from the address that malloc returned to the end of the chunk.
    pub payload: Range,
    pub label: Label,
}

/// The first words of a block, little endian; words past its end are 0.
pub type Head = [u64; 4];

/// The first words of the block that these bytes are the start of.
#[inline]
pub fn head_of(bytes: &[u8]) -> Head {
    let mut head = [0; 4];
    head.iter_mut().zip(bytes.as_chunks::<8>().0).for_each(|(word, raw)| *word = u64::from_le_bytes(*raw));
    head
}

/// What one reading of a block's first words tells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Look {
    pub label: Label,
    /// Bytes that the program asked for, where a header says so: the rest of the block is overhead.
    pub requested_bytes: Option<Bytes>,
}

/// Identifies a block's owner from its first words. Asked once for each block in use while the heap is
/// walked, from several threads: it must be quick and know what it needs beforehand.
pub trait Witness: Sync {
    fn look(&self, payload: Range, head: &Head) -> Look;

    /// What of the head `look` goes by, the first words of it: a recording keeps this and nothing else of the block.
    fn evidence(&self, head: &Head) -> [u64; 2] {
        [head[0], head[1]]
    }

    /// Whether the runtime marks its blocks so well that they are found without knowing the allocator.
    fn marks_blocks(&self) -> bool {
        false
    }

    /// The first marked block that starts in `bytes` at or after `from`. The caller must find `Mark::footer` at the block's
    /// end, too.
    fn next_mark(&self, _bytes: &[u8], _from: usize) -> Option<Mark> {
        None
    }
}

/// The marks of a block: a header, and a footer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Where in the bytes that were looked at the header starts.
    pub at: usize,
    pub label: Label,
    pub header_bytes: Bytes,
    /// What the program asked for, behind the header; the footer follows at once.
    pub requested_bytes: Bytes,
    pub footer: [u8; 2],
}

/// A block that goes to another owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    /// Where the payload starts.
    pub payload: Addr,
    pub to: Label,
    /// Bytes of the payload that the program did not ask for.
    pub slack: Bytes,
}

/// A witness that knows no owner.
pub struct NoWitness;

impl Witness for NoWitness {
    fn look(&self, _payload: Range, _head: &Head) -> Look {
        Look::default()
    }
}

/// Where blocks come from: the heap of an allocator after it was walked, or mappings that a program made for itself. Every
/// allocator that can list its blocks in use gets owners and holders for them.
pub trait Blocks {
    /// Every block in use in the order of addresses, as far as `visit` returns `true`.
    fn each(&self, visit: &mut dyn FnMut(Block) -> bool);
    /// Where the memory starts that the program was given, if that is behind the start of the payload: an allocator may align a
    /// large block within its chunk. `words` reads the two words at an address.
    fn aligned(&self, _payload: Range, _words: &dyn Fn(Addr) -> Option<[u64; 2]>) -> Option<Addr> {
        None
    }
}

/// Blocks that keep their labels.
pub trait Labelled: Blocks {
    /// Gives the block whose payload starts at `payload` to an owner.
    fn label(&mut self, payload: Addr, label: Label);
    /// Gives blocks of one owner to others. An allocator that knows what blocks were rounded up by moves that along with them.
    fn hand_over(&mut self, _from: Label, moves: &[Move]) {
        for one in moves {
            self.label(one.payload, one.to);
        }
    }
    /// Gives each of the blocks whose payloads start at `starts`, in rising order, its label. An allocator that can do better
    /// than one search a block says how.
    fn relabel(&mut self, starts: &[u64], labels: &[Label]) {
        for (start, label) in starts.iter().zip(labels) {
            self.label(Addr(*start), *label);
        }
    }
}
