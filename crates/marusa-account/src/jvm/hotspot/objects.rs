//! Objects in the Java heap: which class one names, what its fields point to, and how many bytes an array has.
//! src/hotspot/share/oops/{oop,arrayOop,markWord,klass}.hpp, JDK 8 to 28.

use super::Hotspot;
use super::symbols::Names;
use crate::base::{Addr, Bytes, Known};

/// Bytes of an object's fields that are looked at: `java.lang.Thread` has 104 in JDK 21 without compressed pointers.
const FIELD_BYTES_MAX: u64 = 160;
pub const NAME_BYTES_MAX: u32 = 512;
/// Generational ZGC keeps its colours below the address (src/hotspot/cpu/x86/gc/z/zAddress_x86.hpp, `ZPointer`).
const Z_SHIFTS: [u32; 4] = [13, 14, 15, 16];
/// In the union that JDK 27 reduced to its narrow member.
const WHOLE_OR_NARROW: &str = "_metadata._compressed_klass";
/// With compact headers the class is in the upper 22 bits of the mark word, whose upper half is read.
const COMPACT_SHIFT: u32 = 10;

pub struct Objects<'a> {
    vm: &'a Hotspot<'a>,
    /// Base and shift of compressed pointers to objects; `None` where they are whole words.
    oops: Option<(u64, u32)>,
    klasses: (u64, u32),
    /// Where the 4 bytes lie that have the class, and the place of the class in them.
    klass_at: u64,
    klass_shift: u32,
    klass_name: u64,
    layout_helper: u64,
    names: Names,
}

impl<'a> Objects<'a> {
    /// With class pointers that are not compressed there is a gap.
    pub fn new(vm: &'a Hotspot<'a>) -> Known<Objects<'a>> {
        let is_compressed = vm.flags.is_on("UseCompressedOops");
        let is_compact = vm.flags.is_on("UseCompactObjectHeaders");
        Ok(Objects {
            vm,
            oops: if is_compressed { Some(packing(vm, "CompressedOops", "_narrow_oop")?) } else { None },
            klasses: packing(vm, "CompressedKlassPointers", "_narrow_klass")?,
            klass_at: if is_compact {
                4
            } else {
                vm.structs.offset_of_any(&[("oopDesc", WHOLE_OR_NARROW), ("oopDesc", "_compressed_klass")])?
            },
            klass_shift: if is_compact { COMPACT_SHIFT } else { 0 },
            klass_name: vm.structs.offset("Klass", "_name")?,
            layout_helper: vm.structs.offset("Klass", "_layout_helper")?,
            names: Names::read(vm)?,
        })
    }

    /// Where an array has its first byte or character.
    pub fn first_of_bytes(&self) -> u64 {
        self.klass_at + 8
    }

    pub fn length(&self, array: Addr) -> Option<u32> {
        self.vm.memory().u32(array.plus(self.klass_at + 4)).ok()
    }

    /// What a handle, which is an object in JDK 8 to 15, leads to.
    pub fn of_handle(&self, handle: Addr) -> impl Iterator<Item = Addr> + use<> {
        // A handle since JDK 10 or 16, the object itself before.
        let behind = self.vm.memory().u64(handle).unwrap_or_default();
        let is_compressed = self.oops.is_some();
        let objects = [behind, handle.0].into_iter().flat_map(move |word| uncoloured(word, is_compressed));
        objects.filter(|object| !object.is_null())
    }

    /// The first field of `object` that points to an object of one of these classes.
    pub fn field_of(&self, object: Addr, classes: &[&str]) -> Option<Addr> {
        self.class_name(object)?;
        let step = if self.oops.is_some() { 4 } else { 8 };
        let first = (self.klass_at + 4).next_multiple_of(step);
        (first..FIELD_BYTES_MAX).step_by(step as usize).find_map(|offset| {
            let found = self.pointers(object.plus(offset));
            found.into_iter().find(|at| self.class_name(*at).is_some_and(|name| classes.contains(&&*name)))
        })
    }

    /// What the field at `at` may point to.
    fn pointers(&self, at: Addr) -> Vec<Addr> {
        match self.oops {
            Some((base, shift)) => match self.vm.memory().u32(at) {
                Ok(narrow) if narrow != 0 => vec![Addr(base.wrapping_add(u64::from(narrow) << shift))],
                _ => Vec::new(),
            },
            None => self.vm.memory().u64(at).map(|word| uncoloured(word, false)).unwrap_or_default(),
        }
    }

    pub fn class_name(&self, object: Addr) -> Option<String> {
        let memory = self.vm.memory();
        let symbol = memory.addr(self.klass(object)?.plus(self.klass_name)).ok()?;
        String::from_utf8(self.names.bytes(memory, symbol)?).ok()
    }

    /// The size of an array or an instance, its header included; the helper of an array has its header's bytes and the binary
    /// logarithm of an element's.
    pub fn bytes(&self, object: Addr) -> Option<Bytes> {
        let helper = self.vm.memory().u32(self.klass(object)?.plus(self.layout_helper)).ok()?;
        if helper >> 31 == 0 {
            return Some(u64::from(helper) & !7);
        }
        let (header, logarithm) = (u64::from(helper >> 16 & 0xff), helper & 0xff);
        let elements = u64::from(self.length(object)?).checked_shl(logarithm).filter(|_| logarithm <= 3)?;
        Some((header + elements).next_multiple_of(8))
    }

    fn klass(&self, object: Addr) -> Option<Addr> {
        if !object.is_aligned(8) || object.is_null() {
            return None;
        }
        let narrow = self.vm.memory().u32(object.plus(self.klass_at)).ok()? >> self.klass_shift;
        (narrow != 0).then(|| Addr(self.klasses.0.wrapping_add(u64::from(narrow) << self.klasses.1)))
    }
}

pub fn uncoloured(word: u64, is_compressed: bool) -> Vec<Addr> {
    let shifts = if is_compressed { &[] } else { &Z_SHIFTS[..] };
    [word].into_iter().chain(shifts.iter().map(|shift| word >> shift)).map(Addr).collect()
}

/// How an object names its class.
#[derive(Clone, Copy)]
pub enum ClassWord {
    Whole,
    /// Base and shift, at +8.
    Narrow(u64, u32),
    /// Base and shift, in the upper 22 bits of the mark word (-XX:+UseCompactObjectHeaders).
    InMark(u64, u32),
}

impl ClassWord {
    pub fn read(vm: &Hotspot) -> Known<ClassWord> {
        if !has_class_space(vm) {
            return Ok(ClassWord::Whole);
        }
        let (base, shift) = packing(vm, "CompressedKlassPointers", "_narrow_klass")?;
        Ok(match vm.flags.is_on("UseCompactObjectHeaders") {
            true => ClassWord::InMark(base, shift),
            false => ClassWord::Narrow(base, shift),
        })
    }

    /// Where the fields or the length of an array begin.
    pub fn header_bytes(self) -> u32 {
        match self {
            ClassWord::Whole => 16,
            ClassWord::Narrow(..) => 12,
            ClassWord::InMark(..) => 8,
        }
    }

    /// The class of an object with these first words.
    #[inline(always)]
    pub fn class(self, mark: u64, next: u64) -> u64 {
        match self {
            ClassWord::Whole => next,
            ClassWord::Narrow(base, shift) => base.wrapping_add((next & 0xffff_ffff) << shift),
            ClassWord::InMark(base, shift) => base.wrapping_add((mark >> 42) << shift),
        }
    }
}

/// Where a mirror has its size in words, that of its static fields included.
pub fn mirror_size_at(vm: &Hotspot) -> Option<u64> {
    let at = vm.structs.static_at("java_lang_Class", "_oop_size_offset").ok()?;
    vm.memory().u32(at).ok().map(u64::from)
}

/// Whether pointers to classes have 32 bits or less. JDK 27 has nothing else, and no flag for it (JDK-8363996).
pub fn has_class_space(vm: &Hotspot) -> bool {
    vm.flags.is_on("UseCompressedClassPointers") || vm.structs.offset("oopDesc", "_metadata._klass").is_err()
}

/// Base and shift, by the names of JDK 8 and 11, 17 and 21, and 25.
pub fn packing(vm: &Hotspot, owner: &str, member: &str) -> Known<(u64, u32)> {
    let find = |field: &str| {
        let long = format!("{member}.{field}");
        let first = vm.structs.static_at("Universe", &long);
        first.or_else(|_| vm.structs.static_at(owner, &long)).or_else(|_| vm.structs.static_at(owner, field))
    };
    let gap = |fault: crate::os::Fault| fault.gap(format!("{owner}, base and shift"));
    let base = vm.memory().u64(find("_base")?).map_err(gap)?;
    let shift = vm.memory().u32(find("_shift")?).map_err(gap)?;
    Ok((base, shift.min(31)))
}
