//! A core as a snapshot: the same readers as for a live process. Only one name is found here, that of `[heap]`, for it needs
//! malloc: the kernel does not write it into a core.

use super::take::interpret;
use super::types::{Snapshot, Source, Taken, Want};
use crate::alloc::glibc::find as glibc;
use crate::base::{Addr, Gap, Range, Why};
use crate::os::core::Core;
use crate::os::loaded;
use crate::os::maps::find_mapping;
use crate::os::target::{OsView, Target};
use std::collections::HashSet;
use std::time::Instant;

/// How far above the executable the kernel starts the heap: at random within 32 MiB on x86-64 and 1 GiB on aarch64
/// (`arch_randomize_brk`).
const HEAP_ABOVE_BYTES_MAX: u64 = 1 << 30;

/// Why a core gives no account of a JVM.
#[derive(Debug, thiserror::Error)]
pub enum NoAccount {
    #[error("it is the core of no JVM: it maps neither libjvm.so nor libj9vm; its command is {0:?}")]
    NoJvm(String),
    #[error(
        "it is a truncated core: it ends within its notes, before the list of its mapped files (ulimit -c, or a full disk)"
    )]
    Cut,
    #[error("the JVM in it cannot be read: {0}")]
    Library(Gap),
}

/// The snapshot of the moment at which the core was written.
pub fn read(core: &Core, want: Want) -> Result<Snapshot, NoAccount> {
    let started = Instant::now();
    let mut view = core.view().clone();
    let Some(library) = loaded::any_vm(&view.mappings) else {
        // A core without its list of files may be that of a JVM, and says so itself.
        return Err(match core.is_cut_within_notes() {
            true => NoAccount::Cut,
            false => NoAccount::NoJvm(view.process.command),
        });
    };
    let trouble = core.trouble(&library.path).cloned();
    let (memory, symbols) = (core.memory(), core.symbols());
    let heap = heap_start(&Target { view: &view, memory: &memory, symbols: &symbols }, core.entry());
    match heap {
        Some(start) => name_heap(&mut view, start),
        None => view.gaps.push(
            Gap::new("the mapping of the heap that brk makes", Why::NotRecorded)
                .hint("no mapping above the executable begins where glibc's malloc says"),
        ),
    }
    let at = core.written.clone().unwrap_or_default();
    let taken = Taken { at, source: Source::Core, ..Taken::default() };
    let mut snapshot = interpret(view, taken, &memory, &symbols, want);
    snapshot.taken.took_ms = started.elapsed().as_secs_f64() * 1e3;
    match (&snapshot.jvm, trouble) {
        (Err(_), Some(trouble)) => Err(NoAccount::Library(trouble)),
        _ => Ok(snapshot),
    }
}

/// Where `[heap]` starts: a private writable mapping above the executable at whose first byte malloc says that brk began
/// (`mp_.sbrk_base`, a word of libc's data).
fn heap_start(target: &Target, entry: Option<Addr>) -> Option<Addr> {
    let mappings = &target.view.mappings;
    let executable = &find_mapping(mappings, entry?)?.path;
    let end = mappings.iter().filter(|mapping| mapping.path == *executable).map(|m| m.range.end).max()?;
    let libc = glibc::library(target, &mut Vec::new()).ok()?;
    let words: HashSet<u64> = glibc::data(target, &libc).into_iter().flat_map(|(_, words)| words).collect();
    let near = Range::sized(end, HEAP_ABOVE_BYTES_MAX);
    mappings
        .iter()
        .filter(|mapping| near.has(mapping.range.start) && mapping.is_anonymous() && mapping.rights.write)
        .map(|mapping| mapping.range.start)
        .find(|start| words.contains(&start.0))
}

/// Advice to use huge pages splits the heap into several mappings.
fn name_heap(view: &mut OsView, start: Addr) {
    let mut at = start;
    for mapping in view.mappings.iter_mut().filter(|mapping| mapping.range.start >= start) {
        if mapping.range.start != at || !mapping.is_anonymous() || !mapping.rights.write {
            break;
        }
        at = mapping.range.end;
        mapping.path = "[heap]".to_string();
    }
}
