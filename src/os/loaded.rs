//! Which mapping begins the library of a VM, by the list of mappings alone: all processes of the host are asked, and reading their
//! memory would let each of them delay the answer.
//!
//! A program may load its VM from a file that exists in memory only (memfd_create(2)). The kernel shows that as
//! "/memfd:NAME (deleted)", with a name of the program's choice. Where no library is called libjvm.so, private mappings of such a
//! file with code are taken for it, if the process has libjava.so, which every HotSpot loads. Which of them it is, the readers see
//! by its symbols.

use super::maps::Mapping;
use std::collections::HashSet;

/// The name under which every HotSpot build ships its VM.
pub const HOTSPOT: &str = "libjvm.so";
const HOTSPOT_COMPANION: &str = "libjava.so";
/// What the kernel puts before the name of a file that exists in memory only.
const IN_MEMORY: &str = "memfd:";
/// A process may have any number of them.
const UNNAMED_MAX: usize = 8;

/// The mappings that may be the start of HotSpot's library, the likeliest first; none in a process without HotSpot.
pub fn hotspot(mappings: &[Mapping]) -> Vec<&Mapping> {
    let named: Vec<&Mapping> =
        mappings.iter().filter(|mapping| is_start(mapping) && name(mapping) == HOTSPOT).collect();
    let has_companion = || mappings.iter().any(|it| is_start(it) && name(it) == HOTSPOT_COMPANION);
    match named.is_empty() {
        true => {
            let unnamed = in_memory(mappings);
            if unnamed.is_empty() || !has_companion() { Vec::new() } else { unnamed }
        }
        false => named,
    }
}

/// OpenJ9's library, libj9vm29.so.
pub fn openj9(mappings: &[Mapping]) -> Option<&Mapping> {
    let is_openj9 = |mapping: &&Mapping| {
        is_start(mapping) && name(mapping).starts_with("libj9vm") && name(mapping).ends_with(".so")
    };
    mappings.iter().find(is_openj9)
}

/// The start of any VM's library. OpenJ9 ships a small libjvm.so too, so its own library comes first.
pub fn any_vm(mappings: &[Mapping]) -> Option<&Mapping> {
    openj9(mappings).or_else(|| hotspot(mappings).first().copied())
}

/// A library of the JDK in a file that has a path: the VM's, or where that lies in memory only, libjava.so.
pub fn in_jdk(mappings: &[Mapping]) -> Option<&Mapping> {
    let companion = || mappings.iter().find(|it| is_start(it) && name(it) == HOTSPOT_COMPANION);
    any_vm(mappings).filter(|vm| !vm.is_memory_file()).or_else(companion).filter(|it| !it.is_memory_file())
}

fn is_start(mapping: &Mapping) -> bool {
    mapping.offset == 0 && mapping.is_file()
}

/// The last part of the path, without what marks a file in memory.
fn name(mapping: &Mapping) -> &str {
    let name = mapping.file_name();
    name.strip_prefix(IN_MEMORY).unwrap_or(name)
}

/// Images with code in files that exist in memory only. Shared ones are other things: a heap, a compiler's code.
fn in_memory(mappings: &[Mapping]) -> Vec<&Mapping> {
    let may_be = |mapping: &&Mapping| mapping.is_file() && !mapping.rights.shared && mapping.is_memory_file();
    let with_code: HashSet<u64> =
        mappings.iter().filter(may_be).filter(|it| it.rights.execute).map(|it| it.inode).collect();
    let starts = mappings.iter().filter(may_be).filter(|it| it.offset == 0 && with_code.contains(&it.inode));
    starts.take(UNNAMED_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::os::maps;

    const COMPANION: &str = "7e0000000000-7e0000002000 r--p 00000000 fe:00 9 /jdk/lib/libjava.so\n";

    fn starts(text: &str) -> Vec<u64> {
        hotspot(&maps::parse(text.as_bytes()).0).iter().map(|mapping| mapping.range.start.0).collect()
    }

    #[test]
    fn a_library_in_memory_by_its_name() {
        let line = "7f0000000000-7f0000200000 r--p 00000000 00:01 7 /memfd:libjvm.so (deleted)\n";
        assert_eq!(starts(line), [0x7f00_0000_0000]);
        assert_eq!(starts(&line.replace("libjvm.so", "libjvm.so.1")), [0; 0]);
        let mappings = maps::parse(format!("{COMPANION}{line}").as_bytes()).0;
        assert_eq!(in_jdk(&mappings).map(Mapping::file_path), Some("/jdk/lib/libjava.so"));
        assert_eq!(in_jdk(&mappings[1..]), None);
        assert_eq!(starts(&line.replace("00000000 00:01", "00001000 00:01")), [0; 0], "not its start");
    }

    #[test]
    fn a_library_in_memory_of_another_name_has_code_and_a_companion() {
        let of = |name: &str, rights: &str| {
            format!(
                "7f0000000000-7f0000200000 r--p 00000000 00:01 7 /memfd:{name} (deleted)\n\
                 7f0000200000-7f0000900000 {rights} 00200000 00:01 7 /memfd:{name} (deleted)\n"
            )
        };
        assert_eq!(starts(&format!("{COMPANION}{}", of("", "r-xp"))), [0x7f00_0000_0000]);
        assert_eq!(starts(&of("vm", "r-xp")), [0; 0], "no libjava.so");
        assert_eq!(starts(&format!("{COMPANION}{}", of("java_heap", "rw-s"))), [0; 0], "the heap of ZGC");
        let named = "7f1000000000-7f1000200000 r--p 00000000 fe:00 8 /jdk/lib/server/libjvm.so\n";
        let all = format!("{COMPANION}{}{named}", of("vm", "r-xp"));
        assert_eq!(starts(&all), [0x7f10_0000_0000], "the one of the right name");
    }

    #[test]
    fn openj9_has_a_libjvm_too() {
        let text = b"7f0000000000-7f0000200000 r--p 00000000 fe:00 7 /jdk/lib/default/libjvm.so\n\
                     7f0100000000-7f0100200000 r--p 00000000 fe:00 8 /jdk/lib/default/libj9vm29.so (deleted)\n";
        let mappings = maps::parse(text).0;
        assert_eq!(any_vm(&mappings), mappings.get(1));
        assert_eq!(any_vm(&mappings[..1]), mappings.first());
    }
}
