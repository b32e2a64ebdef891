//! Which words of the heap may be the header of an object: the first of them a mark word, the second with a class that there is.

use crate::base::{Addr, Range};
use crate::jvm::hotspot::holders::classes::{Classes, Form};
use crate::jvm::hotspot::objects::ClassWord;
use std::collections::HashMap;

/// Without compressed class words classes may lie anywhere.
const CLASS_SPAN_MAX: u64 = 8 << 30;
const LOCK_BITS: u64 = 3;
const MOVED: u64 = 3;
const UNLOCKED: u64 = 1;
const BIASED: u64 = 4;
const ADDRESS_BITS: u32 = 48;
/// The fields of an unlocked mark: 31 bits of hash above bit 8, since JDK 24 above bit 11; the uppermost are 0, except with compact
/// headers, which have the class there.
const UNLOCKED_BITS: u32 = 42;

/// Which classes there are, as bits.
pub struct Heads<'a> {
    pub classes: &'a Classes,
    word: ClassWord,
    /// The bytes of an instance, by class.
    pub wanted: HashMap<u64, u32>,
    /// `java.lang.Class`, and where a mirror has addresses of classes: what lies before one of them looks like a header.
    pub mirror: u64,
    in_mirror: Vec<u32>,
    all: Option<Bits>,
    arrays: Option<Bits>,
    pub length_at: u64,
}

struct Bits {
    from: u64,
    bits: Vec<u64>,
}

impl Bits {
    fn new(span: Range) -> Bits {
        Bits { from: span.start.0, bits: vec![0; (span.bytes() / 512 + 1) as usize] }
    }

    fn set(&mut self, class: Addr) {
        let at = (class.0 - self.from) / 8;
        self.bits[(at / 64) as usize] |= 1 << (at % 64);
    }

    #[inline(always)]
    fn has(&self, class: u64) -> bool {
        let at = class.wrapping_sub(self.from) / 8;
        self.bits.get((at / 64) as usize).is_some_and(|word| word >> (at % 64) & 1 == 1)
    }
}

impl<'a> Heads<'a> {
    /// `in_mirror`: where a mirror has addresses of classes.
    pub fn new(
        classes: &'a Classes,
        wanted: impl IntoIterator<Item = (Addr, u32)>,
        in_mirror: Vec<u32>,
    ) -> Heads<'a> {
        let span = classes.span();
        let (mut all, mut arrays) = (None, None);
        if span.bytes() <= CLASS_SPAN_MAX {
            let (mut each, mut of_references) = (Bits::new(span), Bits::new(span));
            for (class, form) in classes.each() {
                each.set(class);
                if form == Form::Objects {
                    of_references.set(class);
                }
            }
            (all, arrays) = (Some(each), Some(of_references));
        }
        let wanted = wanted.into_iter().map(|(class, bytes)| (class.0, bytes)).collect();
        let word = classes.word();
        let mirror = classes.each().find(|(_, form)| *form == Form::Mirror);
        let mirror = mirror.map_or(0, |(class, _)| class.0);
        Heads {
            classes,
            word,
            wanted,
            mirror,
            in_mirror,
            all,
            arrays,
            length_at: u64::from(word.header_bytes()),
        }
    }

    #[inline(always)]
    pub fn class(&self, mark: u64, next: u64) -> Option<u64> {
        let class = self.word.class(mark, next);
        let is_class = match &self.all {
            Some(bits) => bits.has(class),
            None => self.classes.form(Addr(class)).is_some(),
        };
        (is_class && self.is_mark(mark)).then_some(class)
    }

    fn is_mark(&self, mark: u64) -> bool {
        let has_class = matches!(self.word, ClassWord::InMark(..));
        match mark & LOCK_BITS {
            MOVED => false,
            _ if has_class => true,
            // Biased (up to JDK 17), with a thread's address above.
            UNLOCKED => mark >> UNLOCKED_BITS == 0 || mark & BIASED != 0 && mark >> ADDRESS_BITS == 0,
            // An address on a stack or of a monitor, or a hash.
            _ => mark != 0 && mark & BIASED == 0 && mark >> ADDRESS_BITS == 0,
        }
    }

    pub fn is_in_mirror(&self, at: Addr, mirror: Addr) -> bool {
        self.in_mirror.iter().any(|offset| mirror.plus(u64::from(*offset)) == at.plus(8))
    }

    pub fn is_array(&self, class: u64) -> bool {
        match &self.arrays {
            Some(bits) => bits.has(class),
            None => self.classes.form(Addr(class)) == Some(Form::Objects),
        }
    }
}
