//! Which mapping begins the library of a VM, by the list of mappings alone: all processes of the host are asked, and reading their
//! memory would let each of them delay the answer.
//!
//! A program may load its VM from a file that exists in memory only (memfd_create(2)). The kernel shows that as
//! "/memfd:NAME (deleted)", with a name of the program's choice. Where no library is called libjvm.so, private mappings of such a
//! file with code are taken for it, if the process has libjava.so, which every HotSpot loads. Which of them it is, the readers see
//! by its symbols.
//!
//! A native image of GraalVM has no such library: its code, collector and first heap are one executable file.

use super::maps::Mapping;
use crate::base::Range;
use std::collections::{HashMap, HashSet};

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
    let library = openj9(mappings).or_else(|| hotspot(mappings).first().copied());
    library.or_else(|| native_image(mappings))
}

/// What two segments of any program may both have of its file: the page in which one ends and the next begins (lld puts them so),
/// which is as large as the largest page that programs are linked for.
const SHARED_PAGE_BYTES_MAX: u64 = 64 << 10;

/// The code of a GraalVM native image: the file whose heap the loader has mapped with the other data, and its start-up code a
/// second time for the first isolate (com.oracle.svm.core.posix.linux.LinuxImageHeapProvider): privately, partly
/// writable, at another address. Images that are built without isolates use the first one, and look like any program.
pub fn native_image(mappings: &[Mapping]) -> Option<&Mapping> {
    let mut writable: HashMap<(&str, u64), Vec<Range>> = HashMap::new();
    for mapping in mappings.iter().filter(|it| it.is_file() && it.rights.write && !it.rights.shared) {
        let in_file = Range::of(mapping.offset, mapping.offset.saturating_add(mapping.range.bytes()));
        writable.entry((mapping.file_path(), mapping.inode)).or_default().push(in_file);
    }
    let is_twice = |code: &Mapping| {
        let Some(places) = writable.get(&(code.file_path(), code.inode)) else { return false };
        let pairs = places
            .iter()
            .enumerate()
            .flat_map(|(at, one)| places[..at].iter().map(move |other| (one, other)));
        pairs.into_iter().any(|(one, other)| one.intersect(*other).bytes() > SHARED_PAGE_BYTES_MAX)
    };
    mappings.iter().find(|it| it.is_file() && it.rights.execute && it.inode != 0 && is_twice(it))
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
    fn a_native_image_has_its_heap_twice() {
        let text = b"00400000-01905000 r-xp 00000000 fe:00 7 /app\n\
                     01b04000-03230000 rw-p 01504000 fe:00 7 /app\n\
                     7f3b3d880000-7f3b3e080000 r--p 01520000 fe:00 7 /app\n\
                     7f3b3e080000-7f3b3e68a000 rw-p 01d20000 fe:00 7 /app\n\
                     7f3b3e68a000-7f3b3ef90000 r--p 0232a000 fe:00 7 /app\n";
        let mappings = maps::parse(text).0;
        assert_eq!(any_vm(&mappings), mappings.first());
        assert_eq!(native_image(&mappings[..3]), None, "a program that reads its own file");
        assert_eq!(native_image(&mappings[1..]), None, "data without code");
        let other = String::from_utf8_lossy(text).replace("rw-p 01d20000 fe:00 7", "rw-p 01d20000 fe:00 8");
        assert_eq!(native_image(&maps::parse(other.as_bytes()).0), None, "of another file");
    }

    /// Marusa itself, linked statically.
    #[test]
    fn segments_that_share_a_page_of_their_file_are_not_a_heap() {
        let text = b"7f0000000000-7f00003e3000 r--p 00000000 fe:00 7 /bin/marusa\n\
                     7f00003e3000-7f0001099000 r-xp 003e2000 fe:00 7 /bin/marusa\n\
                     7f0001099000-7f00010e1000 rw-p 01097000 fe:00 7 /bin/marusa\n\
                     7f00010e1000-7f00010e4000 rw-p 010de000 fe:00 7 /bin/marusa\n";
        assert_eq!(native_image(&maps::parse(text).0), None);
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
