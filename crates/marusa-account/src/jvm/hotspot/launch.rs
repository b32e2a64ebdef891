//! What the VM was started with, by its own copy: a program that loads the VM itself has other arguments, and any process may
//! write a title over its own. These are texts of the user: they are only shown as `base::redact` shows a command, and peeked
//! at, so that no frozen file keeps them.
//!
//! `Arguments::_jvm_args_array` and `_java_command` are in vmStructs from JDK 8 to 25 (runtime/vmStructs.cpp).

use super::vmstructs::VmStructs;
use crate::base::Addr;
use crate::base::limits::{LAUNCH_OPTIONS_MAX, LAUNCH_TEXTS_BYTES_MAX};
use crate::os::Memory;

/// Bytes that are read at a time: they never cross the end of a page.
const PIECE_BYTES: u64 = 64;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Launch {
    /// Without the class path.
    pub options: Vec<String>,
    /// The main class or jar and its arguments in one line; empty where the program that loaded the VM did not tell it.
    pub java_command: String,
}

/// `None`: the VM has none, or they cannot be read.
pub fn read(memory: &dyn Memory, structs: &VmStructs) -> Option<Launch> {
    let word = |name: &str| {
        let at = structs.static_at("Arguments", name).ok()?;
        memory.peek_words(at, 1).ok()?.first().copied()
    };
    let count = (word("_num_jvm_args")? & u64::from(u32::MAX)) as usize;
    let array = Addr(word("_jvm_args_array")?);
    if count > LAUNCH_OPTIONS_MAX {
        return None;
    }
    let pointers = if array == Addr::NULL { Vec::new() } else { memory.peek_words(array, count).ok()? };
    let mut left = LAUNCH_TEXTS_BYTES_MAX;
    let mut text = |at: u64| text(memory, Addr(at), &mut left);
    let options = pointers.into_iter().map(&mut text).collect::<Option<Vec<String>>>()?;
    let java_command = word("_java_command").filter(|at| *at != 0).and_then(&mut text).unwrap_or_default();
    let launch = Launch { options, java_command };
    (launch != Launch::default()).then_some(launch)
}

/// A C string, peeked at.
fn text(memory: &dyn Memory, at: Addr, left: &mut usize) -> Option<String> {
    let mut found = Vec::new();
    loop {
        let here = at.plus(found.len() as u64);
        let mut piece = vec![0; (PIECE_BYTES - here.0 % PIECE_BYTES) as usize];
        memory.peek(here, &mut piece).ok()?;
        let end = piece.iter().position(|byte| *byte == 0);
        let length = end.unwrap_or(piece.len());
        *left = left.checked_sub(length)?;
        found.extend_from_slice(&piece[..length]);
        if end.is_some() {
            return Some(String::from_utf8_lossy(&found).into_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jvm::hotspot::vmstructs::Field;
    use crate::os::memory::Pieces;

    fn vm(count: u64) -> (VmStructs, Pieces) {
        let field = |name, at| ("Arguments", name, Field::Static { at: Addr(at) });
        let fields = [
            field("_num_jvm_args", 0x1000),
            field("_jvm_args_array", 0x1008),
            field("_java_command", 0x1010),
        ];
        let mut memory = Pieces::default();
        // The number is an int; what follows it is not part of it.
        memory.put_words(Addr(0x1000), &[count | 7 << 32, 0x2000, 0x3100]);
        memory.put_words(Addr(0x2000), &[0x3000, 0x3040]);
        memory.put(Addr(0x3000), &padded(b"-Xmx64m"));
        memory.put(Addr(0x3040), &padded(&[b"-Dlong=".to_vec(), vec![b'x'; 100]].concat()));
        memory.put(Addr(0x3100), &padded(b"com.example.Main a"));
        (VmStructs::with(&fields, &[], &[]), memory)
    }

    fn padded(text: &[u8]) -> Vec<u8> {
        let mut bytes = text.to_vec();
        bytes.resize((text.len() + 1).next_multiple_of(64), 0);
        bytes
    }

    #[test]
    fn options_and_the_command() {
        let (structs, memory) = vm(2);
        let launch = read(&memory, &structs).expect("it is there");
        assert_eq!(launch.options[0], "-Xmx64m");
        assert_eq!(launch.options[1].len(), 107);
        assert_eq!(launch.java_command, "com.example.Main a");
    }

    #[test]
    fn a_number_that_is_too_large_or_texts_that_are_not_there_give_nothing() {
        let (structs, mut memory) = vm(1 << 20);
        assert_eq!(read(&memory, &structs), None);
        memory.put_words(Addr(0x1000), &[2, 0x2000, 0]);
        memory.put_words(Addr(0x2000), &[0x3000, 0x9000]);
        assert_eq!(read(&memory, &structs), None);
        assert_eq!(read(&memory, &VmStructs::default()), None);
    }

    #[test]
    fn texts_without_an_end_stop_at_the_bound() {
        let (structs, mut memory) = vm(2);
        memory.put_words(Addr(0x2000), &[0x10000, 0x10000]);
        memory.put(Addr(0x10000), &vec![b'x'; LAUNCH_TEXTS_BYTES_MAX + 4096]);
        assert_eq!(read(&memory, &structs), None);
    }
}
