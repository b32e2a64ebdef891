//! The files that a dead process had mapped, where they still are what they were. By default the kernel leaves unchanged
//! pages of files out of a core, so the text and the constants of libjvm.so come from the file, if it is the same: the first
//! page of an ELF file is in the core (coredump_filter(5), bit 4), and holds its build id and all its segments.

use super::headers::Headers;
use super::memory::CoreMemory;
use crate::base::limits::CORE_FILES_MAX;
use crate::base::{Gap, PAGE, Range, Why};
use crate::os::elf::Image;
use crate::os::maps::Mapping;
use crate::os::memory::Memory;
use crate::os::target::OsView;
use object::Object;
use object::read::elf::ElfFile64;
use std::collections::HashMap;
use std::fs::File;
use std::time::SystemTime;

const NAMES_SHOWN_MAX: usize = 4;

/// A file that is the same as when the process had it mapped.
pub struct Found {
    map: memmap2::Mmap,
}

impl Found {
    pub fn bytes(&self) -> &[u8] {
        &self.map
    }
}

/// All files of one core.
#[derive(Default)]
pub struct Files {
    /// By the number in a mapping's inode, less one.
    pub found: Vec<Option<Found>>,
    /// What is wrong with a file whose bytes are needed, by path.
    pub troubles: HashMap<String, Gap>,
    pub gaps: Vec<Gap>,
}

impl Files {
    /// `held`: the core's own bytes alone.
    pub fn look(held: &CoreMemory, view: &OsView, headers: &Headers, written: Option<SystemTime>) -> Files {
        let mut files = Files::default();
        let mut others = Vec::new();
        for mapping in view.mappings.iter().filter(|mapping| mapping.is_file()) {
            let place = mapping.inode as usize - 1;
            if place >= CORE_FILES_MAX || files.found.get(place).is_some_and(Option::is_some) {
                continue;
            }
            if files.found.len() <= place {
                files.found.resize_with(place + 1, || None);
            }
            if files.troubles.contains_key(&mapping.path) {
                continue;
            }
            match check(held, mapping, written) {
                Ok(found) => files.found[place] = Some(found),
                Err(gap) => {
                    files.troubles.insert(mapping.path.clone(), gap);
                }
            }
        }
        files.troubles.retain(|path, _| is_needed(view, headers, path));
        let mut troubles: Vec<(&String, &Gap)> = files.troubles.iter().collect();
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

/// Whether the core leaves out bytes of the file that a reader may want.
fn is_needed(view: &OsView, headers: &Headers, path: &str) -> bool {
    let is_out = |range: Range| {
        let after = headers.loads.partition_point(|load| load.range.end <= range.start);
        headers.loads.get(after).is_some_and(|load| load.range.start.plus(load.dumped) < range.end)
    };
    view.mappings.iter().any(|mapping| mapping.path == path && mapping.rights.read && is_out(mapping.range))
}

/// The file behind the first mapping of a path, if it is provably the same.
fn check(held: &CoreMemory, first: &Mapping, written: Option<SystemTime>) -> Result<Found, Gap> {
    let path = first.file_path();
    let gap = |what: &str| Gap::new(format!("{path}: {what}"), Why::NotRecorded);
    let opened = File::open(path).and_then(|file| Ok((file.metadata()?, file)));
    let (metadata, file) = opened.map_err(|error| {
        gap(&format!("the file can not be read ({error})"))
            .hint("a core leaves unchanged pages of files out: put the same file there")
    })?;
    if !metadata.is_file() || metadata.len() == 0 {
        return Err(gap("no file with bytes"));
    }
    // SAFETY: the map is read only and private to us. A file truncated meanwhile would raise SIGBUS: libraries are replaced
    // by rename, not truncated.
    let map = unsafe { memmap2::Mmap::map(&file) }.map_err(|error| gap(&error.to_string()))?;
    let mut page = [0; PAGE as usize];
    let has_start = first.offset == 0 && held.read(first.range.start, &mut page).is_ok();
    if has_start {
        let there = &map[..map.len().min(page.len())];
        return match there == &page[..there.len()] {
            true => Ok(Found { map }),
            false => Err(another(held, first, &map)),
        };
    }
    match (metadata.modified().ok(), written) {
        (Some(changed), Some(written)) if changed <= written => Ok(Found { map }),
        _ => Err(gap("the file was changed after the core was written")),
    }
}

/// Both build ids, as far as there are any.
fn another(held: &CoreMemory, first: &Mapping, file: &[u8]) -> Gap {
    let theirs = Image::read(held, first).ok().and_then(|image| image.build_id(held));
    let id = ElfFile64::<object::LittleEndian>::parse(file)
        .ok()
        .and_then(|elf| Some(elf.build_id().ok()??.to_vec()));
    let ours = id.map(|id| id.iter().map(|byte| format!("{byte:02x}")).collect::<String>());
    let name = |id: Option<String>| id.unwrap_or("unknown".to_string());
    let what = format!("{} of another build", first.file_path());
    Gap::new(what, Why::NotRecorded).hint(format!(
        "the core's build id is {}, the file's is {}",
        name(theirs),
        name(ours)
    ))
}
