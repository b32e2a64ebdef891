//! Names of Java threads, out of the Java heap, where the kernel's are cut after 15 bytes or not known: a core does not
//! hold them.
//!
//! The name is the first field of a thread's object that is a String, and the characters are the only array that a String
//! has: so no offset of a Java class is needed. src/java.base/share/classes/java/lang/{Thread,String}.java, JDK 8 to 25.

use super::Hotspot;
use crate::base::{Addr, Known};

/// Bytes of an object's fields that are looked at: `java.lang.Thread` has 104 in JDK 21 without compressed pointers.
const FIELD_BYTES_MAX: u64 = 160;
const NAME_BYTES_MAX: u32 = 512;
/// Generational ZGC keeps its colours below the address (src/hotspot/cpu/x86/gc/z/zAddress_x86.hpp, `ZPointer`).
const Z_SHIFTS: [u32; 4] = [13, 14, 15, 16];

pub struct ThreadNames<'a> {
    vm: &'a Hotspot<'a>,
    /// Base and shift of compressed pointers to objects; `None` where they are whole words.
    oops: Option<(u64, u32)>,
    klasses: (u64, u32),
    klass_at: u64,
    klass_name: u64,
    symbol_length: u64,
    symbol_body: u64,
}

impl<'a> ThreadNames<'a> {
    /// With class pointers that are not compressed, or lie in the mark word, there is a gap.
    pub fn new(vm: &'a Hotspot<'a>) -> Known<ThreadNames<'a>> {
        let is_compressed = vm.flags.is_on("UseCompressedOops");
        Ok(ThreadNames {
            vm,
            oops: if is_compressed { Some(packing(vm, "CompressedOops", "_narrow_oop")?) } else { None },
            klasses: packing(vm, "CompressedKlassPointers", "_narrow_klass")?,
            klass_at: vm.structs.offset("oopDesc", "_metadata._compressed_klass")?,
            klass_name: vm.structs.offset("Klass", "_name")?,
            symbol_length: vm.structs.offset("Symbol", "_length")?,
            symbol_body: vm.structs.offset_of_any(&[("Symbol", "_body[0]"), ("Symbol", "_body")])?,
        })
    }

    /// The name of the `JavaThread` at `thread`.
    pub fn name(&self, thread: Addr) -> Option<String> {
        let handle = self.vm.word(thread, "JavaThread", "_threadObj").ok()?;
        // A handle since JDK 16, the object itself before.
        let behind = self.vm.memory().u64(Addr(handle)).unwrap_or_default();
        let objects = [behind, handle].into_iter().flat_map(|word| self.uncoloured(word));
        objects.filter(|object| !object.is_null()).find_map(|object| self.name_of_object(object))
    }

    fn name_of_object(&self, object: Addr) -> Option<String> {
        let string = self.field_of(object, &["java/lang/String"])?;
        let array = self.field_of(string, &["[B", "[C"])?;
        let is_wide = self.class_name(array)? == "[C";
        let start = array.plus(self.klass_at + 8);
        let length = self.vm.memory().u32(array.plus(self.klass_at + 4)).ok()?;
        let bytes =
            length.checked_mul(if is_wide { 2 } else { 1 }).filter(|bytes| *bytes <= NAME_BYTES_MAX)?;
        let mut text = vec![0; bytes as usize];
        self.vm.memory().read_text(start, &mut text).ok()?;
        Some(decoded(&text, is_wide))
    }

    /// The first field of `object` that points to an object of one of these classes.
    fn field_of(&self, object: Addr, classes: &[&str]) -> Option<Addr> {
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
            None => self.vm.memory().u64(at).map(|word| self.uncoloured(word)).unwrap_or_default(),
        }
    }

    fn uncoloured(&self, word: u64) -> Vec<Addr> {
        let shifts = if self.oops.is_none() { &Z_SHIFTS[..] } else { &[] };
        [word].into_iter().chain(shifts.iter().map(|shift| word >> shift)).map(Addr).collect()
    }

    fn class_name(&self, object: Addr) -> Option<String> {
        let memory = self.vm.memory();
        if !object.is_aligned(8) || object.is_null() {
            return None;
        }
        let narrow = memory.u32(object.plus(self.klass_at)).ok().filter(|narrow| *narrow != 0)?;
        let klass = Addr(self.klasses.0.wrapping_add(u64::from(narrow) << self.klasses.1));
        let symbol = memory.addr(klass.plus(self.klass_name)).ok()?;
        let length = memory.u16(symbol.plus(self.symbol_length)).ok()?;
        let mut text = vec![0; usize::from(length).min(NAME_BYTES_MAX as usize)];
        memory.read_text(symbol.plus(self.symbol_body), &mut text).ok()?;
        String::from_utf8(text).ok()
    }
}

/// Base and shift, by the names of JDK 8 and 11, 17 and 21, and 25.
fn packing(vm: &Hotspot, owner: &str, member: &str) -> Known<(u64, u32)> {
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

/// Characters of two bytes each, or of one: since JDK 9 a String that has others than Latin-1 keeps two bytes for each in
/// its array of bytes; then there are bytes that are no letters.
fn decoded(text: &[u8], is_wide: bool) -> String {
    let has_control = text.iter().any(|byte| *byte < 0x20 || (0x7f..0xa0).contains(byte));
    if is_wide || (has_control && text.len().is_multiple_of(2)) {
        let pairs = text.as_chunks::<2>().0.iter().map(|pair| u16::from_le_bytes(*pair));
        return char::decode_utf16(pairs)
            .map(|letter| letter.unwrap_or(char::REPLACEMENT_CHARACTER))
            .collect();
    }
    text.iter().map(|byte| char::from(*byte)).collect()
}

#[cfg(test)]
mod tests {
    use super::decoded;

    #[test]
    fn names_of_one_and_of_two_bytes_a_letter() {
        assert_eq!(decoded(b"C2 CompilerThread0", false), "C2 CompilerThread0");
        assert_eq!(decoded(&[0xe9, b't', 0xe9], false), "été");
        assert_eq!(decoded(&[0x1f, 0x04, b'-', 0, b'1', 0], false), "П-1");
        assert_eq!(decoded(&[b'm', 0, b'a', 0], true), "ma");
        assert_eq!(decoded(&[], false), "");
    }
}
