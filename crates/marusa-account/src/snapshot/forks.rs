//! Libraries that start processes by a `fork` of their own: agents, and libraries of JNI that have processes to start. No option of
//! the JVM changes that, and what it costs grows with the memory of the JVM (mm/memory.c, `copy_page_range`). The slot of the call
//! says whether one does: the dynamic linker fills it at the first call.

use super::types::Snapshot;
use crate::base::limits::FORKING_IMAGES_MAX;
use crate::os::elf::Image;
use crate::os::elf_imports::{Import, import};
use crate::os::live::Live;
use crate::os::process::Process;
use std::collections::HashSet;

/// Of libc. `posix_spawn`, `system` and `popen` copy no memory since glibc 2.29.
const CALLS: [&str; 3] = ["fork", "__fork", "forkpty"];

/// A library that can start processes by `fork`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forker {
    /// As mapped, with " (deleted)".
    pub path: String,
    pub import: Import,
}

/// The ones that are not the JDK's, whose own starts `launchMechanism` decides. One whose tables cannot be read is left out.
pub fn read(process: &Process, snapshot: &Snapshot) -> Vec<Forker> {
    let Ok(memory) = Live::open(process, &snapshot.os) else { return Vec::new() };
    let home = snapshot.jvm.as_ref().ok().and_then(|jvm| jvm.java_home()).unwrap_or("/");
    let mut seen = HashSet::new();
    let is_foreign = |path: &str| !path.strip_prefix(home).is_some_and(|rest| rest.starts_with('/'));
    let foreign = snapshot.images.iter().filter(|image| is_foreign(&image.path) && seen.insert(&image.path));
    foreign
        .take(FORKING_IMAGES_MAX)
        .filter_map(|loaded| {
            let mut mappings = snapshot.os.mappings.iter();
            let first = mappings.find(|mapping| mapping.offset == 0 && mapping.path == loaded.path)?;
            let image = Image::read(&memory, first).ok()?;
            let import = import(&image, &memory, &CALLS).ok()??;
            Some(Forker { path: loaded.path.clone(), import })
        })
        .collect()
}
