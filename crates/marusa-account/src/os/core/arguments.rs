//! The whole command of a dead process. The note that names it ends after 79 bytes; the process has all of it at the end
//! of its first stack, below the auxiliary vector, whose bytes are known: argc, argv, 0, environment, 0, the vector
//! (fs/binfmt_elf.c, `create_elf_tables`).

use super::notes::Notes;
use crate::base::limits::C_STRING_BYTES_MAX;
use crate::base::{Addr, Gap, Range, Why};
use crate::os::memory::Memory;
use crate::os::target::OsView;

/// Words below the vector that are looked at: the environment and the arguments.
const WORDS_MAX: u64 = 16_384;
const ARGUMENTS_MAX: usize = 4_096;
/// Above the vector lie the texts of the arguments and of the environment: 6 MiB at most (fs/exec.c, `bprm_stack_limits`).
const STACK_END_BYTES: u64 = 8 << 20;

pub fn read(memory: &dyn Memory, view: &OsView, notes: &Notes) -> Result<Vec<String>, Gap> {
    let missing = || {
        Gap::new("the end of the command", Why::NotRecorded)
            .hint("the first stack is not in the core: the command has at most 79 bytes")
    };
    let stack = view.mappings.iter().find(|mapping| mapping.path == "[stack]").ok_or_else(missing)?;
    let bytes = &notes.auxiliary_bytes;
    let end = Range::new(stack.range.start.max(stack.range.end.minus(STACK_END_BYTES)), stack.range.end);
    let vector = (bytes.len() >= 32).then(|| memory.find(end, bytes)).flatten().ok_or_else(missing)?;
    pointers(memory, stack.range, vector).and_then(|pointers| words(memory, &pointers)).ok_or_else(missing)
}

/// `argv`, from the number of arguments before it up to the 0 behind it.
fn pointers(memory: &dyn Memory, stack: Range, vector: Addr) -> Option<Vec<Addr>> {
    let mut zeros = 0;
    let mut found = Vec::new();
    let mut at = vector;
    for _ in 0..WORDS_MAX {
        at = at.minus(8);
        if at < stack.start {
            return None;
        }
        let word = memory.u64(at).ok()?;
        match (zeros, word) {
            (2, count) if count == found.len() as u64 => {
                found.reverse();
                return Some(found);
            }
            (2, pointer) if found.len() < ARGUMENTS_MAX && stack.has(Addr(pointer)) => {
                found.push(Addr(pointer))
            }
            (2, _) => return None,
            (_, 0) => zeros += 1,
            _ => {}
        }
    }
    None
}

fn words(memory: &dyn Memory, pointers: &[Addr]) -> Option<Vec<String>> {
    pointers.iter().map(|at| memory.c_string(*at, C_STRING_BYTES_MAX * 32).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::os::memory::Pieces;

    #[test]
    fn the_arguments_are_those_below_the_environment() {
        let stack = Range::of(0x7000, 0x8000);
        let mut memory = Pieces::default();
        memory.put_words(Addr(0x7100), &[2, 0x7f00, 0x7f05, 0, 0x7f0a, 0, 6, 4096]);
        memory.put(Addr(0x7f00), b"java\0-jar\0A=B\0");
        let found = pointers(&memory, stack, Addr(0x7130)).unwrap();
        assert_eq!(words(&memory, &found), Some(vec!["java".to_string(), "-jar".to_string()]));
        memory.put_words(Addr(0x7100), &[3, 0x7f00, 0x7f05, 0, 0x7f0a, 0, 6, 4096]);
        assert_eq!(pointers(&memory, stack, Addr(0x7130)), None, "the number does not fit");
    }
}
