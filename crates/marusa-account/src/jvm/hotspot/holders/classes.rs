//! All classes by what an object's header holds, so that a word of the heap may be asked whether it begins an object, and of which
//! class. Fields are read when the first object of a class is met that may hold something.

use super::fields::{Field, Layout};
use crate::base::{Addr, Gap, Known, Range};
use crate::jvm::hotspot::Hotspot;
use crate::jvm::hotspot::class_graph;
use crate::jvm::hotspot::objects::{ClassWord, mirror_size_at};
use crate::jvm::hotspot::symbols::Names;
use crate::jvm::hotspot::window::Windows;
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

const MIRROR: &str = "java/lang/Class";
const LONGS: &str = "[J";
/// Bytes of a mirror, and of one whose size is not known: what follows it is then taken for part of it.
const MIRROR_BYTES: std::ops::RangeInclusive<u64> = 16..=64 << 10;
const UNKNOWN_MIRROR_BYTES: u64 = 2048;

/// What is known of a class before its fields are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Bytes of an instance.
    Instance(u32),
    /// `java.lang.Class`: an instance has the static fields of the class that it mirrors behind its own.
    Mirror,
    /// `long[]`.
    Longs,
    /// An array of references.
    Objects,
}

/// The upper bits of the layout helper of such an array, and by how many bits it is shifted to have them alone: two bits up to
/// JDK 27; four since, where a flat array, whose elements are the fields of value objects, has another value
/// (src/hotspot/share/oops/klass.hpp, `_lh_array_tag_shift`).
const OBJECTS_TAG: [(&str, i32, u32); 2] =
    [("Klass::_lh_array_tag_ref_value", -8, 28), ("Klass::_lh_array_tag_obj_value", -2, 30)];

#[derive(Clone, Copy)]
struct Class {
    form: Form,
    name: Addr,
}

/// The classes of which an object may hold an address. Shared by threads.
pub struct Classes {
    word: ClassWord,
    by_address: HashMap<u64, Class>,
    /// The lowest and the highest address.
    span: Range,
    pub mirror_size_at: Option<u64>,
}

impl Classes {
    pub fn read(vm: &Hotspot, windows: &Windows) -> Known<Classes> {
        let word = ClassWord::read(vm)?;
        let names = Names::read(vm)?;
        let [of_28, before] = OBJECTS_TAG;
        let (_, tag, shift) = if vm.structs.constant(of_28.0).is_ok() { of_28 } else { before };
        let mut by_address = HashMap::new();
        let (mut low, mut high) = (u64::MAX, 0);
        let counts = class_graph::walk(vm, windows, &mut |seen| {
            let form = match seen.layout {
                0.. if names.is(windows, vm.memory(), seen.name, MIRROR) => Form::Mirror,
                // The lowest bit says how it is allocated.
                layout @ 0.. => Form::Instance((layout & !7) as u32),
                layout if layout >> shift == tag => Form::Objects,
                _ if names.is(windows, vm.memory(), seen.name, LONGS) => Form::Longs,
                _ => return,
            };
            by_address.insert(seen.class.0, Class { form, name: seen.name });
            (low, high) = (low.min(seen.class.0), high.max(seen.class.0));
        });
        match by_address.is_empty() {
            true => {
                Err(counts.classes.err().unwrap_or_else(|| Gap::new("classes", crate::base::Why::NotRead)))
            }
            false => Ok(Classes {
                word,
                by_address,
                span: Range::new(Addr(low), Addr(high + 1)),
                mirror_size_at: mirror_size_at(vm),
            }),
        }
    }

    /// The form and the class of an object whose first words these may be.
    #[inline]
    pub fn of_head(&self, mark: u64, next: u64) -> Option<(Form, Addr)> {
        let class = self.word.class(mark, next);
        if !self.span.has(Addr(class)) {
            return None;
        }
        self.by_address.get(&class).map(|it| (it.form, Addr(class)))
    }

    /// The classes whose name is wanted, with it. A recording keeps only those names.
    pub fn named(
        &self,
        vm: &Hotspot,
        windows: &Windows,
        is_wanted: impl Fn(&str) -> bool,
    ) -> Known<Vec<(Addr, String)>> {
        let names = Names::read(vm)?;
        let text = |(at, class): (&u64, &Class)| {
            let text = names.peeked(windows, vm.memory(), class.name, &is_wanted)?;
            Some((Addr(*at), text))
        };
        Ok(self.by_address.iter().filter_map(text).collect())
    }

    pub fn form(&self, class: Addr) -> Option<Form> {
        self.by_address.get(&class.0).map(|class| class.form)
    }

    /// The bytes of the mirror whose header is `words[head]`.
    pub fn mirror_bytes(&self, words: &[u64], head: usize) -> u64 {
        let size = self.mirror_size_at.and_then(|at| {
            let word = words.get(head + at as usize / 8)?;
            Some((word >> (at % 8 * 8) & 0xffff_ffff) * 8)
        });
        size.filter(|bytes| MIRROR_BYTES.contains(bytes)).unwrap_or(UNKNOWN_MIRROR_BYTES)
    }

    pub fn word(&self) -> ClassWord {
        self.word
    }

    pub fn span(&self) -> Range {
        self.span
    }

    pub fn each(&self) -> impl Iterator<Item = (Addr, Form)> {
        self.by_address.iter().map(|(at, class)| (Addr(*at), class.form))
    }

    /// The offset of the first element of a `long[]`, and that of its length.
    pub fn longs_at(&self) -> (u32, u32) {
        let length = self.word.header_bytes();
        ((length + 4).next_multiple_of(8), length)
    }
}

/// The fields of classes, each read once. For one thread.
pub struct FieldsOf<'a> {
    vm: &'a Hotspot<'a>,
    windows: &'a Windows<'a>,
    classes: &'a Classes,
    layout: Layout,
    names: Names,
    /// Where a mirror has the address of its class.
    mirrored_at: Option<u64>,
    known: RefCell<HashMap<Addr, Rc<Vec<Field>>>>,
    /// By the first letter of its signature.
    is_wanted: fn(u8) -> bool,
}

impl<'a> FieldsOf<'a> {
    pub fn new(
        vm: &'a Hotspot<'a>,
        windows: &'a Windows<'a>,
        classes: &'a Classes,
        is_wanted: fn(u8) -> bool,
    ) -> Known<FieldsOf<'a>> {
        let mirrored_at = vm.structs.static_at("java_lang_Class", "_klass_offset").ok();
        let mirrored_at = mirrored_at.and_then(|at| vm.memory().u32(at).ok()).map(u64::from);
        Ok(FieldsOf {
            vm,
            windows,
            classes,
            layout: Layout::read(vm)?,
            names: Names::read(vm)?,
            mirrored_at,
            known: RefCell::default(),
            is_wanted,
        })
    }

    pub fn of(&self, class: Addr) -> Rc<Vec<Field>> {
        let known = self.known.borrow().get(&class).cloned();
        known.unwrap_or_else(|| {
            let fields = Rc::new(self.layout.fields(self.windows, self.vm.memory(), class, self.is_wanted));
            self.known.borrow_mut().insert(class, fields.clone());
            fields
        })
    }

    /// "class.field" of the field at `offset` of an instance, and its signature.
    pub fn of_instance(&self, class: Addr, offset: u32) -> Option<(String, String)> {
        self.found(class, |field| !field.is_static && field.offset == offset)
    }

    fn found(&self, class: Addr, is_it: impl Fn(&Field) -> bool) -> Option<(String, String)> {
        let fields = self.of(class);
        let field = fields.iter().find(|field| is_it(field))?;
        Some((format!("{}.{}", self.name(class)?, field.name), field.signature.clone()))
    }

    /// The same of the static field at `offset` of a mirror.
    pub fn of_static(&self, mirror: Addr, offset: u32) -> Option<(String, String)> {
        let class = self.vm.memory().addr(mirror.plus(self.mirrored_at?)).ok()?;
        self.classes.form(class)?;
        self.found(class, |field| field.is_static && field.offset == offset)
    }

    pub fn name(&self, class: Addr) -> Option<String> {
        let symbol = self.classes.by_address.get(&class.0)?.name;
        Some(self.names.text(self.vm.memory(), symbol)?.replace('/', "."))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Classes {
        /// With narrow class words: the class itself.
        pub fn made_up(classes: &[(u64, Form)]) -> Classes {
            let class = |(at, form): &(u64, Form)| (*at, Class { form: *form, name: Addr::NULL });
            Classes {
                word: ClassWord::Narrow(0, 0),
                by_address: classes.iter().map(class).collect(),
                span: Range::new(Addr(0), Addr(1 << 32)),
                mirror_size_at: Some(24),
            }
        }
    }
}
