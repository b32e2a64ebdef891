//! Takes out of a frozen snapshot what is private: the command line, the user, the container, names of home
//! directories, the texts of the perf memory (which hold the command line once more), and the values of flags that are
//! text and that the account does not show (-XX:OnError and the like).

use super::file::Frozen;
use super::types::Snapshot;
use crate::base::limits::{C_STRING_BYTES_MAX, PERF_MEMORY_BYTES_MAX};
use crate::base::{Addr, Range};
use crate::jvm::hotspot::vmstructs::VmStructs;
use crate::jvm::hotspot::{find, flags, perf_memory, vm_work};
use crate::os::flat::Flat;
use crate::os::{Memory, Target};

const HOME: &str = "/home/";

pub fn anonymise(frozen: &mut Frozen, snapshot: &Snapshot) {
    let process = &mut frozen.os.process;
    process.set_arguments(Vec::new());
    process.user = String::new();
    process.container = None;
    process.executable = without_user(&process.executable);
    for limit in frozen.taken.page_settings.iter_mut().flat_map(|settings| &mut settings.host.limits) {
        // The directory above names the container.
        limit.file = limit.file.rsplit('/').next().unwrap_or_default().to_string();
    }
    for mapping in &mut frozen.os.mappings {
        mapping.path = without_user(&mapping.path);
    }
    frozen.symbols = std::mem::take(&mut frozen.symbols)
        .into_iter()
        .map(|((object, name), at)| ((without_user(&object), name), at))
        .collect();
    let extents = snapshot.jvm.iter().flat_map(|jvm| &jvm.extents);
    for extent in extents.filter(|extent| extent.part == vm_work::PERF_MEMORY) {
        blank_perf_memory(&mut frozen.memory, extent.range);
    }
    let target = Target { view: &frozen.os, memory: &frozen.memory, symbols: &frozen.symbols };
    let structs = find::library(&target).and_then(|image| VmStructs::read(target.memory, &image));
    let Ok(structs) = structs else { return };
    // Read, though it may not have been claimed.
    if let Ok(range) = perf_memory::range(&frozen.memory, &structs) {
        blank_perf_memory(&mut frozen.memory, range);
    }
    let texts = flags::texts(&frozen.memory, &structs);
    blank_flags(&mut frozen.memory, texts);
}

/// "/home/alice/app.jar" becomes "/home/user/app.jar", "/tmp/hsperfdata_alice/7" "/tmp/hsperfdata_user/7". Nothing else of a
/// path is changed: the readers look at it.
fn without_user(path: &str) -> String {
    let mut path = path.to_string();
    for before in [HOME, "/hsperfdata_"] {
        if let Some(start) = path.find(before).map(|at| at + before.len())
            && let Some(length) = path[start..].find('/')
        {
            path.replace_range(start..start + length, "user");
        }
    }
    path
}

/// The names and numbers stay. A block that makes no sense goes whole.
fn blank_perf_memory(memory: &mut Flat, range: Range) {
    let bytes = range.bytes().min(PERF_MEMORY_BYTES_MAX);
    let block = known_from(memory, range.start, bytes as usize);
    let texts = perf_memory::texts(&block);
    let spared = if texts.is_empty() { None } else { Some(block.len()) };
    for text in texts {
        memory.fill(range.start.plus(text.start as u64), text.len() as u64, 0);
    }
    let kept = spared.unwrap_or(0) as u64;
    memory.fill(range.start.plus(kept), range.bytes().saturating_sub(kept), 0);
}

/// What is known in a row from `at`.
fn known_from(memory: &Flat, at: Addr, bytes_max: usize) -> Vec<u8> {
    let mut known = Vec::new();
    for (start, bytes) in memory.pieces_from(at) {
        if start != at.plus(known.len() as u64) || known.len() >= bytes_max {
            break;
        }
        known.extend_from_slice(&bytes[..bytes.len().min(bytes_max - known.len())]);
    }
    known
}

fn blank_flags(memory: &mut Flat, texts: Vec<(String, Addr)>) {
    for (name, at) in texts {
        if !flags::KEPT.contains(&name.as_str()) {
            memory.blank_text(at, C_STRING_BYTES_MAX as u64);
            continue;
        }
        let Ok(text) = memory.c_string(at, C_STRING_BYTES_MAX) else { continue };
        if let Some((alice, _)) = text.strip_prefix(HOME).and_then(|rest| rest.split_once('/')) {
            memory.fill(at.plus(HOME.len() as u64), alice.len() as u64, b'x');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_name_of_the_user_goes() {
        assert_eq!(without_user("/home/alice/lib/app.jar (deleted)"), "/home/user/lib/app.jar (deleted)");
        assert_eq!(without_user("/usr/lib/libjvm.so"), "/usr/lib/libjvm.so");
        assert_eq!(without_user("/tmp/hsperfdata_alice/7"), "/tmp/hsperfdata_user/7");
        assert_eq!(without_user("/home"), "/home");
    }

    /// One text counter, at offset 32: 24 bytes of head, "name" at 20, its data at 32.
    fn perf_block(length: i32) -> Vec<u8> {
        let words = |words: &[i32]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
        let mut block = [vec![0xca, 0xfe, 0xc0, 0xc0, 1, 2, 0, 1], vec![0; 16], words(&[32, 1])].concat();
        block.extend(words(&[length, 20, 8]));
        block.extend([b'B', 0, 1, 3]);
        block.extend(words(&[32]));
        block.extend(b"command\0\0\0\0\0hunter2\0");
        block
    }

    fn blanked(block: &[u8]) -> Vec<u8> {
        let at = Addr(0x10ff0);
        let mut memory = Flat::of([(at, block)]);
        blank_perf_memory(&mut memory, Range::sized(at, 0x8000));
        known_from(&memory, at, 0x8000)
    }

    #[test]
    fn texts_of_the_perf_memory_go_and_names_stay() {
        let left = String::from_utf8_lossy(&blanked(&perf_block(40))).into_owned();
        assert!(left.contains("command") && !left.contains("hunter2"), "{left:?}");
    }

    #[test]
    fn a_perf_memory_that_makes_no_sense_goes_whole() {
        for length in [-1, 0, 41, i32::MAX] {
            let left = blanked(&perf_block(length));
            assert!(left.len() == perf_block(40).len() && left.iter().all(|byte| *byte == 0), "{left:?}");
        }
        let mut damaged = perf_block(40);
        damaged[0] = 0;
        assert!(blanked(&damaged).iter().all(|byte| *byte == 0));
    }

    #[test]
    fn flags_that_the_account_shows_stay_but_for_the_home_directory() {
        let mut memory =
            Flat::of([(Addr(0x1000), &b"echo hunter2\0"[..]), (Addr(0x2000), &b"/home/alice/app.jsa\0"[..])]);
        let texts =
            vec![("OnError".to_string(), Addr(0x1000)), ("SharedArchiveFile".to_string(), Addr(0x2000))];
        blank_flags(&mut memory, texts);
        assert_eq!(memory.c_string(Addr(0x1000), 64), Ok(String::new()));
        assert_eq!(memory.c_string(Addr(0x2000), 64), Ok("/home/xxxxx/app.jsa".to_string()));
    }

    #[test]
    fn a_text_goes_to_its_end_and_no_further() {
        let mut memory = Flat::of([(Addr(0x1ffc), &b"hunter2\0next"[..])]);
        memory.blank_text(Addr(0x1ffc), 4096);
        assert_eq!(known_from(&memory, Addr(0x1ffc), 100), b"\0\0\0\0\0\0\0\0next");
    }
}
