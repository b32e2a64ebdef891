//! Names of Java threads, out of the Java heap, where the kernel's are cut after 15 bytes or not known: a core does not
//! hold them.
//!
//! The name is the first field of a thread's object that is a String, and the characters are the only array that a String
//! has: so no offset of a Java class is needed. src/java.base/share/classes/java/lang/{Thread,String}.java, JDK 8 to 25.

use super::Hotspot;
use super::objects::{NAME_BYTES_MAX, Objects};
use crate::base::{Addr, Known};

pub struct ThreadNames<'a> {
    vm: &'a Hotspot<'a>,
    objects: Objects<'a>,
}

impl<'a> ThreadNames<'a> {
    pub fn new(vm: &'a Hotspot<'a>) -> Known<ThreadNames<'a>> {
        Ok(ThreadNames { vm, objects: Objects::new(vm)? })
    }

    /// The name of the `JavaThread` at `thread`.
    pub fn name(&self, thread: Addr) -> Option<String> {
        let handle = self.vm.word(thread, "JavaThread", "_threadObj").ok()?;
        self.objects.of_handle(Addr(handle)).find_map(|object| self.name_of_object(object))
    }

    fn name_of_object(&self, object: Addr) -> Option<String> {
        let string = self.objects.field_of(object, &["java/lang/String"])?;
        let array = self.objects.field_of(string, &["[B", "[C"])?;
        let is_wide = self.objects.class_name(array)? == "[C";
        let start = array.plus(self.objects.first_of_bytes());
        let length = self.objects.length(array)?;
        let bytes =
            length.checked_mul(if is_wide { 2 } else { 1 }).filter(|bytes| *bytes <= NAME_BYTES_MAX)?;
        let mut text = vec![0; bytes as usize];
        self.vm.memory().read_text(start, &mut text).ok()?;
        Some(decoded(&text, is_wide))
    }
}

/// Characters of two bytes each, or of one: since JDK 9 a String that has others than Latin-1 keeps two bytes for each in
/// its array of bytes; then there are bytes that are not letters.
pub fn decoded(text: &[u8], is_wide: bool) -> String {
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
