//! What each group of alike class loaders holds: metaspace, classes, blocks of malloc, compiled code.
//!
//! A hidden class (an anonymous one before JDK 15) that may be unloaded alone has a `ClassLoaderData` of its own; what that has
//! belongs to the loader of its host. A figure that is not known of one loader of a group is not known of the group.

mod chunks;
mod code;
mod data;
mod groups;
mod malloc;

use super::class_graph::{self, loader_addrs, words_now};
use super::window::Windows;
use super::{Hotspot, code_cache};
use crate::base::blocks::Blocks;
use crate::base::{Addr, Bytes, Gap, Known, Range, Why, holding, joined};
use crate::jvm::Loaders;
use crate::jvm::types::{JvmView, Kind};
use crate::os::budget;
use chunks::{Chunks, FORMS, Form, Held};
use data::Layout;
use groups::Groups;

/// Loaders on which a form is tried.
const TRIED_MAX: usize = 64;

/// The count of loaders and their metaspace alone, for a reader that comes again and again.
pub fn brief(vm: &Hotspot) -> Loaders {
    let mut gaps = Vec::new();
    let groups = grouped(vm, None, &mut gaps);
    finish(groups, gaps)
}

/// All of it. `blocks`: `None` where malloc's heap was not walked.
pub fn read(vm: &Hotspot, view: &JvmView, blocks: Option<&dyn Blocks>) -> Loaders {
    let mut gaps = Vec::new();
    let mut groups = grouped(vm, Some(view), &mut gaps);
    if let Ok(groups) = &mut groups {
        let classes = classes(vm, groups);
        code::add(vm, groups).unwrap_or_else(|gap| {
            groups.forget(|row| row.code_bytes = None);
            gaps.push(gap);
        });
        let in_malloc = classes.and_then(|of_classes| {
            let blocks = blocks.ok_or_else(|| {
                Gap::new("blocks of malloc that class loaders have", Why::NotRead)
                    .hint("malloc's heap could not be walked, or is another allocator's")
            })?;
            malloc::add(vm, view, blocks, &of_classes, groups)
        });
        in_malloc.unwrap_or_else(|gap| {
            groups.forget(|row| row.malloc_bytes = None);
            gaps.push(gap);
        });
    }
    finish(groups, gaps)
}

fn finish(groups: Known<Groups>, mut gaps: Vec<Gap>) -> Loaders {
    let rows = groups.map(|groups| groups.finish(&mut gaps)).unwrap_or_else(|gap| {
        gaps.push(gap);
        Vec::new()
    });
    Loaders { rows, gaps }
}

/// The loaders and their metaspace. With `view`, the chunks are looked at, too.
fn grouped<'a>(vm: &'a Hotspot, view: Option<&JvmView>, gaps: &mut Vec<Gap>) -> Known<Groups<'a>> {
    let (loaders, torn) = loader_addrs(vm)?;
    // Some of a group's loaders would be missing.
    torn.map_or(Ok(()), Err)?;
    let layout = Layout::read(vm, &loaders)?;
    // A program that loads classes just now has chunks in new pages.
    let words = |at, count| words_now(vm, at, count).ok();
    let chunks = Chunks { words: &words, is_whole: view.is_some() };
    let extents = view.iter().flat_map(|view| &view.extents);
    let nodes = joined(
        extents
            .filter(|extent| matches!(extent.kind, Kind::Metaspace | Kind::ClassSpace))
            .map(|extent| extent.range),
    );
    let form = form(vm, &layout, &chunks, &loaders);
    if let Err(gap) = &form {
        gaps.push(gap.clone());
    }
    let mut groups = Groups::new(vm, view.is_some());
    // The oldest first, as they lie in memory.
    for at in loaders.iter().rev() {
        budget::checked("class loaders")?;
        let Some(loader) = layout.loader(vm, *at)? else { continue };
        let mut resident = 0;
        let held = match &form {
            _ if loader.metaspace.is_null() => Some(Held::default()),
            Ok(form) => chunks.of(*form, &loader, &mut |chunk| resident += resident_in(vm, &nodes, chunk)),
            Err(_) => None,
        };
        groups.add(&loader, held, view.map(|_| resident));
    }
    Ok(groups)
}

/// The form that some loader proves.
fn form(vm: &Hotspot, layout: &Layout, chunks: &Chunks, loaders: &[Addr]) -> Known<Form> {
    let whole = Chunks { is_whole: true, ..*chunks };
    for at in loaders.iter().rev().take(TRIED_MAX) {
        let loader = layout.loader(vm, *at).ok().flatten();
        let Some(loader) = loader.filter(|loader| !loader.metaspace.is_null()) else { continue };
        let is_proved =
            |form: &&Form| whole.of(**form, &loader, &mut |_| {}).is_some_and(|held| held.used > 0);
        if let Some(form) = FORMS.iter().find(is_proved) {
            return Ok(*form);
        }
    }
    Err(Gap::new("metaspace of class loaders", Why::NotInThisRuntime))
}

/// The resident bytes of a chunk that lies in the known nodes of the metaspace.
fn resident_in(vm: &Hotspot, nodes: &[Range], chunk: Range) -> Bytes {
    let is_known = holding(nodes, chunk.start).is_some_and(|node| node.covers(chunk));
    if is_known { vm.target.view.resident_bytes(chunk) } else { 0 }
}

/// A pointer from a class to malloc, and its group.
type OfClass = (u64, u32);

/// Counts classes, and gives what they point to in malloc.
fn classes(vm: &Hotspot, groups: &mut Groups) -> Known<Vec<OfClass>> {
    let windows = Windows::new(vm.target);
    let mut pointers = Vec::new();
    let counts = class_graph::walk(vm, &windows, &mut |seen| {
        let Some(group) = groups.count_class(seen.loader) else { return };
        pointers.extend(seen.aside.iter().filter(|at| **at != 0).map(|at| (*at, group)));
    });
    if let Err(gap) = counts.classes {
        groups.forget(|row| (row.classes, row.hidden_classes) = (None, None));
        // Their pointers to malloc are missing, too.
        return Err(Gap { what: format!("by class loader, malloc and {}", gap.what), ..gap });
    }
    Ok(pointers)
}
