//! All classes by what the header of an object holds: its size, or how an array's follows from its length. Asked for each object
//! of a heap, so a look-up is a multiplication and mostly one comparison, and allocates nothing.

use crate::base::{Addr, Gap, Known, Why};
use crate::jvm::hotspot::Hotspot;
use crate::jvm::hotspot::class_graph;
use crate::jvm::hotspot::holders::fields::Layout;
use crate::jvm::hotspot::objects::{ClassWord, mirror_size_at};
use crate::jvm::hotspot::symbols::Names;
use crate::jvm::hotspot::window::Windows;
use std::hash::{BuildHasher, RandomState};

const MIRROR: &str = "java/lang/Class";
const STRING: &str = "java/lang/String";
/// The class of what fills unused memory: of JDK 21 and on, of 19, and before (src/hotspot/share/memory/universe.cpp,
/// `_fillerArrayKlass`).
const FILLERS: [&str; 3] = ["[Ljdk/internal/vm/FillerElement;", "Ljdk/internal/vm/FillerArray;", "[I"];
const OBJECT_BYTES_MAX: u64 = 1 << 40;
/// The shift of flat arrays of JDK 28, whose elements are the fields of value objects; 3 for others.
const ELEMENT_SHIFT_MAX: u32 = 6;

/// What sort of class, as far as a walk must know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Instance,
    /// `java.lang.Class`: each instance has a size of its own.
    Mirror,
    String,
    Array,
    /// `byte[]`, `char[]`.
    Bytes,
    Chars,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    /// 0: free.
    class: u64,
    /// `Klass::_layout_helper`.
    layout: i32,
    number: u32,
    form: Form,
}

/// What an object's first words say of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// The number of the class.
    pub number: u32,
    pub form: Form,
    /// `None`: another word of the object has it.
    pub bytes: Option<u64>,
}

/// Shared by threads.
pub struct ClassTable {
    word: ClassWord,
    slots: Vec<Slot>,
    shift: u32,
    key: u64,
    /// Symbols, by the number of the class.
    symbols: Vec<Addr>,
    names: Names,
    /// The alignment of objects.
    pub alignment: u64,
    pub header_bytes: u64,
    /// Where a mirror has its size, in words.
    pub mirror_size_at: Option<u64>,
    pub filler: Option<u32>,
    /// Where a String leads to its contents; `None`: not requested.
    pub value_at: Option<u64>,
    /// Where an array of bytes or characters has its first one.
    pub text_at: u64,
    /// Pointers have 4 bytes.
    pub is_narrow: bool,
    /// Why some classes may be missing.
    pub torn: Option<Gap>,
}

struct Class {
    at: Addr,
    name: Addr,
    layout: i32,
    form: Form,
}

impl ClassTable {
    /// `has_texts`: where Strings have their contents is read, too.
    pub fn read(vm: &Hotspot, has_texts: bool) -> Known<ClassTable> {
        let windows = Windows::new(vm.target);
        let (word, names) = (ClassWord::read(vm)?, Names::read(vm)?);
        let is = |symbol, name: &str| names.is(&windows, vm.memory(), symbol, name);
        let (mut classes, mut fillers) = (Vec::new(), [None; 3]);
        let counts = class_graph::walk(vm, &windows, &mut |seen| {
            let form = match seen.layout {
                0.. if is(seen.name, MIRROR) => Form::Mirror,
                0.. if is(seen.name, STRING) => Form::String,
                0.. => Form::Instance,
                _ if is(seen.name, "[B") => Form::Bytes,
                _ if is(seen.name, "[C") => Form::Chars,
                _ => Form::Array,
            };
            if form == Form::Array
                && let Some(place) = FILLERS.iter().position(|name| is(seen.name, name))
            {
                fillers[place] = Some(classes.len() as u32);
            }
            classes.push(Class { at: seen.class, name: seen.name, layout: seen.layout, form });
        });
        if classes.is_empty() {
            return Err(counts.classes.err().unwrap_or_else(|| Gap::new("classes", Why::NotRead)));
        }
        let alignment = vm.flags.number("ObjectAlignmentInBytes").unwrap_or(8);
        let mut table = ClassTable::of(word, names, &classes);
        table.alignment = if alignment.is_power_of_two() { alignment.clamp(8, 256) } else { 8 };
        table.mirror_size_at = mirror_size_at(vm);
        table.filler = fillers.into_iter().flatten().next();
        if has_texts {
            let string = classes.iter().find(|class| class.form == Form::String);
            let layout = Layout::read(vm)?;
            let field = string.and_then(|string| layout.offset(&windows, vm.memory(), string.at, b"value"));
            let missing = || Gap::new("String.value", Why::NotInThisRuntime);
            table.value_at = Some(field.map(u64::from).ok_or_else(missing)?);
            let bytes = classes.iter().find(|class| class.form == Form::Bytes);
            table.text_at = bytes.map_or(table.text_at, |class| u64::from(class.layout as u32 >> 16 & 0xff));
            table.is_narrow = vm.flags.is_on("UseCompressedOops");
        }
        table.torn =
            counts.classes.err().map(|gap| gap.hint("objects of classes that were not read are unknown"));
        Ok(table)
    }

    fn of(word: ClassWord, names: Names, classes: &[Class]) -> ClassTable {
        let bits = (classes.len().max(16) * 4).next_power_of_two().trailing_zeros();
        let free = Slot { class: 0, layout: 0, number: 0, form: Form::Instance };
        let mut table = ClassTable {
            word,
            slots: vec![free; 1 << bits],
            shift: u64::BITS - bits,
            // Not known to the target, or its classes could be made to collide.
            key: RandomState::new().hash_one(1) | 1,
            symbols: Vec::with_capacity(classes.len()),
            names,
            alignment: 8,
            header_bytes: u64::from(word.header_bytes()),
            mirror_size_at: None,
            filler: None,
            value_at: None,
            text_at: u64::from(word.header_bytes()) + 4,
            is_narrow: false,
            torn: None,
        };
        for class in classes {
            let number = table.symbols.len() as u32;
            table.symbols.push(class.name);
            let place = table.place(class.at.0);
            table.slots[place] = Slot { class: class.at.0, layout: class.layout, number, form: class.form };
        }
        table
    }

    pub fn len(&self) -> usize {
        self.symbols.len()
    }

    /// The slot that has the class, or the free one where it belongs.
    #[inline(always)]
    fn place(&self, class: u64) -> usize {
        let last = self.slots.len() - 1;
        let mut place = (class.wrapping_mul(self.key) >> self.shift) as usize & last;
        while self.slots[place].class != class && self.slots[place].class != 0 {
            place = (place + 1) & last;
        }
        place
    }

    /// What these words are if an object begins there.
    #[inline(always)]
    pub fn head(&self, words: [u64; 3]) -> Option<Head> {
        let class = self.word.class(words[0], words[1]);
        let slot = self.slots[self.place(class)];
        if slot.class == 0 || class == 0 {
            return None;
        }
        let bytes = match slot.form {
            Form::Mirror if self.mirror_size_at.is_some() => None,
            _ if slot.layout >= 0 => Some((slot.layout & !7) as u64),
            _ => Some(self.array_bytes(slot.layout as u32, words)?),
        };
        let bytes = bytes.map(|bytes| bytes.next_multiple_of(self.alignment));
        // An abstract class has no size.
        let is_sane = bytes.is_none_or(|bytes| (self.header_bytes..OBJECT_BYTES_MAX).contains(&bytes));
        is_sane.then_some(Head { number: slot.number, form: slot.form, bytes })
    }

    /// The helper of an array has its header's bytes and the binary logarithm of an element's
    /// (src/hotspot/share/oops/klass.hpp, `layout_helper`).
    #[inline]
    fn array_bytes(&self, layout: u32, words: [u64; 3]) -> Option<u64> {
        let (header, shift) = (u64::from(layout >> 16 & 0xff), layout & 0xff);
        let length = self.array_length(words);
        (shift <= ELEMENT_SHIFT_MAX && length >> 31 == 0).then(|| header + (length << shift))
    }

    #[inline]
    pub fn array_length(&self, words: [u64; 3]) -> u64 {
        match self.word {
            ClassWord::Whole => words[2] & 0xffff_ffff,
            ClassWord::Narrow(..) => words[1] >> 32,
            ClassWord::InMark(..) => words[1] & 0xffff_ffff,
        }
    }

    /// Whether a mark word is of an object neither locked nor moved (src/hotspot/share/oops/markWord.hpp; bit 2 was that of
    /// biased locks up to JDK 17).
    #[inline]
    pub fn is_plain_mark(&self, mark: u64) -> bool {
        match self.word {
            ClassWord::InMark(..) => mark & 7 == 1,
            _ => mark & 3 == 1 && (mark & 4 != 0 || mark >> 39 == 0),
        }
    }

    /// As `jcmd` prints it.
    pub fn name(&self, vm: &Hotspot, number: u32) -> Option<String> {
        let symbol = self.symbols.get(number as usize)?;
        self.names.text(vm.memory(), *symbol).map(|name| as_printed(&name))
    }
}

/// A hidden class's "Name+0x0123456789abcdef" is printed with a slash (src/hotspot/share/oops/klass.cpp,
/// `convert_hidden_name_to_java`).
fn as_printed(name: &str) -> String {
    let dotted = name.replace('/', ".");
    match dotted.rfind("+0x") {
        Some(at) if !dotted.starts_with('[') => format!("{}/{}", &dotted[..at], &dotted[at + 1..]),
        _ => dotted,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl ClassTable {
        /// With narrow class words: the class itself. Each with its layout helper.
        pub fn made_up(classes: &[(u64, i32, Form)]) -> ClassTable {
            let class = |(at, layout, form): &(u64, i32, Form)| Class {
                at: Addr(*at),
                name: Addr::NULL,
                layout: *layout,
                form: *form,
            };
            let classes: Vec<Class> = classes.iter().map(class).collect();
            ClassTable {
                mirror_size_at: Some(16),
                ..ClassTable::of(ClassWord::Narrow(0, 0), Names::default(), &classes)
            }
        }
    }

    /// The helper of an array: tag, header, type, logarithm of the bytes of an element.
    fn array(header: u32, shift: u32) -> i32 {
        (0xc000_0000 | header << 16 | 8 << 8 | shift) as i32
    }

    #[test]
    fn sizes_of_instances_arrays_and_forged_lengths() {
        let table = ClassTable::made_up(&[
            (0x5000, 24, Form::Instance),
            (0x5008, 25, Form::Instance),
            (0x6000, array(16, 0), Form::Bytes),
            (0x7000, array(16, 3), Form::Array),
            (0x8000, 0, Form::Instance),
            (0x9000, 96, Form::Mirror),
        ]);
        let bytes = |class: u64, length: u64| {
            table.head([1, class | length << 32, 0]).map(|head| (head.number, head.bytes))
        };
        assert_eq!(bytes(0x5000, 7), Some((0, Some(24))));
        assert_eq!(bytes(0x5008, 7), Some((1, Some(24))), "the lowest bit says how it is allocated");
        assert_eq!(bytes(0x6000, 3), Some((2, Some(24))));
        assert_eq!(bytes(0x7000, 0x7fff_ffff), Some((3, Some(16 + (0x7fff_ffff << 3)))));
        assert_eq!(bytes(0x7000, 0x8000_0000), None, "a negative length");
        assert_eq!(bytes(0x8000, 0), None, "an interface has no instances");
        assert_eq!(bytes(0x9000, 0), Some((5, None)), "a mirror has its size elsewhere");
        assert_eq!(bytes(0x5001, 0), None);
        assert_eq!(bytes(0, 0), None);
    }

    #[test]
    fn names_as_jcmd_prints_them() {
        for (symbol, name) in [
            ("java/lang/String", "java.lang.String"),
            ("[Ljava/lang/Object;", "[Ljava.lang.Object;"),
            ("a/B$$Lambda+0x00007f0000001000", "a.B$$Lambda/0x00007f0000001000"),
            ("[La/B$$Lambda+0x00007f0000001000;", "[La.B$$Lambda+0x00007f0000001000;"),
        ] {
            assert_eq!(as_printed(symbol), name);
        }
    }

    #[test]
    fn marks_of_objects_at_rest() {
        let table = ClassTable::made_up(&[(0x5000, 24, Form::Instance)]);
        let is = |mark| table.is_plain_mark(mark);
        assert!(
            is(1) && is(0x29) && is(0x12_3456_7801) && is(0x7f00_1234_5605),
            "plain, aged, hashed, biased"
        );
        assert!(!is(0) && !is(0x7f00_1234_5678) && !is(2) && !is(3) && !is(1 << 40 | 1));
    }
}
