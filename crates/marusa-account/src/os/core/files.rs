//! The files that a dead process had mapped, where they still are what they were. By default the kernel leaves unchanged
//! pages of files out of a core, so the text and the constants of libjvm.so come from the file, if it is the same: the first
//! page of an ELF file is in the core (core(5), coredump_filter, bit 4), and holds its build id and all its segments.

use super::headers::Headers;
use super::memory::CoreMemory;
use crate::base::limits::CORE_FILES_MAX;
use crate::base::{Addr, Gap, PAGE, Range, Why};
use crate::os::elf::Image;
use crate::os::file_bytes::FileBytes;
use crate::os::foreign;
use crate::os::host;
use crate::os::maps::Mapping;
use crate::os::memory::{Fault, Memory};
use crate::os::process;
use crate::os::symbols::Table;
use crate::os::target::OsView;
use std::collections::{HashMap, HashSet};
use std::sync::OnceLock;
use std::time::SystemTime;

const NAMES_SHOWN_MAX: usize = 4;

/// A file that is the same as when the process had it mapped.
pub struct Found {
    pub bytes: FileBytes,
    symbols: OnceLock<Option<Table>>,
}

impl Found {
    /// Its symbol table, for a process that had the file mapped from `start` on.
    pub fn symbols(&self, start: Addr) -> Option<&Table> {
        self.symbols.get_or_init(|| Table::read(&self.bytes, start)).as_ref()
    }
}

/// Windows of one file that are kept: 256 KiB.
const WINDOWS: usize = 4;

/// All files of one core.
#[derive(Default)]
pub struct Files {
    /// By the number in a mapping's inode, less one.
    pub found: Vec<Option<Found>>,
    /// What is wrong with a file, by path.
    pub troubles: HashMap<String, Gap>,
    pub gaps: Vec<Gap>,
}

impl Files {
    /// `held`: the core's own bytes alone.
    pub fn look(held: &CoreMemory, view: &OsView, headers: &Headers, written: Option<SystemTime>) -> Files {
        let mut files = Files::default();
        let mut others = Vec::new();
        let root = match foreign::Root::own() {
            Ok(root) => root,
            Err(error) => {
                files.gaps.push(process::gap("the files that the core names", &error));
                return files;
            }
        };
        // Each is held open, and others want to open files, too.
        let files_max = CORE_FILES_MAX.min(host::open_files_max() / 2);
        for mapping in view.mappings.iter().filter(|mapping| mapping.is_file()) {
            let place = mapping.inode as usize - 1;
            if place >= files_max || files.found.get(place).is_some_and(Option::is_some) {
                continue;
            }
            if files.found.len() <= place {
                files.found.resize_with(place + 1, || None);
            }
            if files.troubles.contains_key(&mapping.path) {
                continue;
            }
            match check(&root, held, mapping, written) {
                Ok(found) => files.found[place] = Some(found),
                Err(gap) => {
                    files.troubles.insert(mapping.path.clone(), gap);
                }
            }
        }
        let needed = needed(view, headers);
        let mut troubles: Vec<(&String, &Gap)> =
            files.troubles.iter().filter(|(path, _)| needed.contains(path.as_str())).collect();
        troubles.sort_by_key(|(path, _)| *path);
        for (path, gap) in troubles {
            if path.contains("libjvm.so") || path.contains("/libc") {
                files.gaps.push(gap.clone());
            } else {
                others.push(gap.what.clone());
            }
        }
        files.gaps.extend(summary(others));
        files
    }
}

fn summary(mut others: Vec<String>) -> Option<Gap> {
    let more = others.len().saturating_sub(NAMES_SHOWN_MAX);
    others.truncate(NAMES_SHOWN_MAX);
    let ending = if more > 0 { format!(" and {more} more") } else { String::new() };
    (!others.is_empty()).then(|| {
        Gap::new(
            format!("bytes of files that the core leaves out: {}{ending}", others.join("; ")),
            Why::NotRecorded,
        )
    })
}

/// The files of which the core leaves out bytes that a reader may want.
fn needed<'a>(view: &'a OsView, headers: &Headers) -> HashSet<&'a str> {
    let is_out = |range: Range| {
        let after = headers.loads.partition_point(|load| load.range.end <= range.start);
        headers.loads.get(after).is_some_and(|load| load.range.start.plus(load.dumped) < range.end)
    };
    let wanted = view.mappings.iter().filter(|mapping| mapping.rights.read && is_out(mapping.range));
    wanted.map(|mapping| mapping.path.as_str()).collect()
}

/// The file behind the first mapping of a path, if it is provably the same.
fn check(
    root: &foreign::Root,
    held: &CoreMemory,
    first: &Mapping,
    written: Option<SystemTime>,
) -> Result<Found, Gap> {
    let path = first.file_path();
    let gap = |what: &str| Gap::new(format!("{path}: {what}"), Why::NotRecorded);
    if !path.starts_with('/') {
        return Err(gap("the core names no file"));
    }
    let opened = root.open(path).and_then(|file| Ok((file.metadata()?, FileBytes::of(file, WINDOWS)?)));
    let (metadata, bytes) = opened.map_err(|error| {
        gap(&format!("cannot read the file ({error})"))
            .hint("a core leaves unchanged pages of files out: put the same file there")
    })?;
    let mut page = [0; PAGE as usize];
    let has_start = first.offset == 0 && held.read(first.range.start, &mut page).is_ok();
    let found = |bytes| Ok(Found { bytes, symbols: OnceLock::new() });
    if has_start {
        let start = bytes.copy(0, bytes.length().min(PAGE), PAGE).unwrap_or_default();
        if is_same_start(&page[..start.len()], &start) && !start.is_empty() {
            return found(bytes);
        }
        let (theirs, ours) = (id_in_core(held, first), id_in_file(&bytes, first));
        let is_same = theirs.is_some() && theirs == ours;
        return if is_same { found(bytes) } else { Err(another(path, theirs, ours)) };
    }
    match (metadata.modified().ok(), written) {
        (Some(changed), Some(written)) if changed <= written => found(bytes),
        _ => Err(gap("the file was changed after the core was written")),
    }
}

/// Whether two first pages of an ELF file are the same except for the place and number of the sections, which strip(1) changes
/// and no loader reads: `e_shoff`, `e_shnum`, `e_shstrndx`. Many builds have no build id.
fn is_same_start(core: &[u8], file: &[u8]) -> bool {
    let is_elf = core.starts_with(b"\x7fELF");
    let counts = |at: usize| !is_elf || !((40..48).contains(&at) || (60..64).contains(&at));
    core.len() == file.len() && (0..core.len()).all(|at| core[at] == file[at] || !counts(at))
}

fn id_in_core(held: &CoreMemory, first: &Mapping) -> Option<String> {
    Image::read(held, first).ok()?.build_id(held)
}

/// The headers and the notes of a library lie in its first segment, which the loader maps from the start of the file on.
fn id_in_file(bytes: &FileBytes, first: &Mapping) -> Option<String> {
    let file = AsMapped { bytes, start: first.range.start };
    Image::read(&file, first).ok()?.build_id(&file)
}

/// A file as memory that has it from `start` on.
struct AsMapped<'a> {
    bytes: &'a FileBytes,
    start: Addr,
}

impl Memory for AsMapped<'_> {
    fn read(&self, at: Addr, into: &mut [u8]) -> Result<(), Fault> {
        let inside = at.0.checked_sub(self.start.0);
        inside.and_then(|inside| self.bytes.read(inside, into)).ok_or(Fault { at, why: Why::BadData(at) })
    }
}

fn another(path: &str, theirs: Option<String>, ours: Option<String>) -> Gap {
    let name = |id: Option<String>| id.map_or("no build id".to_string(), |id| format!("build id {id}"));
    Gap::new(format!("{path} of another build"), Why::NotRecorded).hint(format!(
        "the core has another first page and {}, the file {}: put the same file there",
        name(theirs),
        name(ours)
    ))
}

#[cfg(test)]
mod tests {
    use super::is_same_start;

    #[test]
    fn a_stripped_file_is_the_same_and_one_with_another_segment_is_not() {
        let mut core = [0; 128];
        core[..4].copy_from_slice(b"\x7fELF");
        let with = |at: usize| {
            let mut file = core;
            file[at] = 1;
            is_same_start(&core, &file)
        };
        assert!(with(40) && with(47) && with(60) && with(63));
        assert!(!with(39) && !with(48) && !with(59) && !with(64) && !with(127));
        assert!(!is_same_start(&core, &core[..127]));
    }
}
