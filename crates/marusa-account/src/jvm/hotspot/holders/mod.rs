//! Who holds the blocks of malloc that are there: the field of a Java class whose value is a block's address, else the C++
//! type of the block, else the library whose data leads to it, else a thread whose stack does, else nothing.
//!
//! Java objects keep native addresses in fields of type `long`. From a block that a field holds, pointers are followed through
//! native memory: what is reached belongs to the nearest holder, by the number of steps; of two that are as near, to the one
//! that holds more blocks. Blocks of the VM itself are never given to another holder. What no field leads to is followed from the
//! data of libraries and from the VM's blocks, then from stacks and other memory. The rest is reached by nothing that was
//! looked at: most likely it leaked, unless its address is packed, encoded or only in a register.

pub(super) mod classes;
pub(super) mod fields;
mod heap;
mod mappings;
mod native;
mod rows;
mod spread;
mod types;

use super::Hotspot;
use super::owners::index::Index;
use super::window::Windows;
use crate::base::blocks::{Block, Blocks, Label};
use crate::base::{Addr, Gap, Range, Why};
use crate::jvm::types::{How, JvmView, Kind};
use crate::jvm::{HOLDER_UNKNOWN, HeldBy, Holders, UNREACHED, VM_HOLDER};
use crate::os::elf::Image;
use classes::{Classes, FieldsOf, Form};
use fields::LONG;
use heap::{Hit, Hits};
use mappings::Held;
use rows::{Row, Rows};
use spread::Spread;
use std::collections::{HashMap, HashSet};
use types::Types;

const OTHER_MEMORY: &str = "other memory";

/// Finds the holder of every block. `held`: all memory of malloc.
pub fn read(
    vm: &Hotspot,
    view: &JvmView,
    blocks: &dyn Blocks,
    held: &[Range],
    libraries: &[Image],
) -> Holders {
    let others = mappings::without_owner(vm, view, held, libraries);
    let held = mappings::Held::new(vm, blocks, &others);
    let index = &held.index;
    let mut gaps = Vec::new();
    if index.is_cut {
        gaps.push(Gap::new("holders of malloc's blocks", Why::OverLimit));
    }
    let vm_blocks = VmBlocks::of(view, blocks, index);
    let gaps_before = gaps.len();
    let fields = fields(vm, view, &held, &mut gaps);
    // What was not read of the heap may lead to the rest.
    let rest = match gaps.len() == gaps_before {
        true => (HeldBy::Unreached, UNREACHED),
        false => (HeldBy::Unknown, HOLDER_UNKNOWN),
    };
    let graph = native::read(vm.target, &held, libraries);
    if graph.is_cut {
        gaps.push(Gap::new("pointers between malloc's blocks", Why::OverLimit));
    }
    let mut types = Types::new(vm.target);
    let paths = libraries.iter().map(|library| library.path.as_str()).collect();
    let mut spread = Spread::new(index, &graph, paths, &mut types, vm_blocks.is_certain);
    let mut rows = Rows::default();
    let held_by_fields = fields.blocks.iter().map(|(block, field)| (*block, *field));
    spread.from(held_by_fields.collect(), false);
    rows.take(&mut spread, &held, |field, _| Row::of(HeldBy::of(fields.forms[field]), &fields.names[field]));
    spread.leave_to_vm(&vm_blocks.by_shape);
    libraries_and_vm(vm, &held, (libraries, &view.library), &mut spread, &mut rows);
    threads_and_others(vm, view, &held, &others, &mut spread, &mut rows);
    spread.rest();
    rows.take(&mut spread, &held, |_, _| Row::of(rest.0, rest.1));
    let vm_library = &view.library;
    (0..index.len()).filter(|block| spread.is_vm[*block]).for_each(|block| {
        let row = Row { library: Some(vm_library.clone()), ..Row::of(HeldBy::LibraryData, VM_HOLDER) };
        rows.add(row, index.payload(block));
    });
    spread.keep_heads(vm.memory(), index);
    gaps.extend(spread.types.is_cut.then(|| Gap::new("C++ types of malloc's blocks", Why::OverLimit)));
    rows.finish(&spread.types.found, gaps)
}

/// The VM's own blocks, by their labels.
struct VmBlocks {
    is_certain: Vec<bool>,
    /// The ones that only look like the VM's: a Java field that leads to one says more.
    by_shape: Vec<usize>,
}

impl VmBlocks {
    fn of(view: &JvmView, blocks: &dyn Blocks, index: &Index) -> VmBlocks {
        let owner = |label: Label| view.block_owners.get(usize::from(label).checked_sub(1)?);
        let mut found = VmBlocks { is_certain: vec![false; index.len()], by_shape: Vec::new() };
        let mut next = 0;
        blocks.each(&mut |block: Block| {
            // Mappings lie between malloc's blocks.
            next += index.starts()[next..].iter().take_while(|start| **start < block.payload.start.0).count();
            if index.starts().get(next) != Some(&block.payload.start.0) {
                return next < index.len();
            }
            match owner(block.label).filter(|owner| !is_of_program(owner.kind)) {
                Some(owner) if owner.how == How::Shape => found.by_shape.push(next),
                Some(_) => found.is_certain[next] = true,
                None => {}
            }
            next += 1;
            next < index.len()
        });
        found
    }
}

fn is_of_program(kind: Kind) -> bool {
    matches!(kind, Kind::DirectBuffers | Kind::UnsafeMemory | Kind::Unknown | Kind::NativeLibrary)
}

/// The fields that hold blocks.
#[derive(Default)]
struct FieldHolders {
    names: Vec<String>,
    forms: Vec<Form>,
    /// Block and field, the ones that hold the most blocks first.
    blocks: Vec<(usize, usize)>,
}

fn fields(vm: &Hotspot, view: &JvmView, held: &Held, gaps: &mut Vec<Gap>) -> FieldHolders {
    let windows = Windows::new(vm.target);
    let read = || {
        let classes = Classes::read(vm, &windows)?;
        let hits = heap::read(vm, view.gc.clone()?, held, &classes)?;
        let named = FieldsOf::new(vm, &windows, &classes, |kind| kind == LONG)?;
        Ok((named_hits(&hits, &named), hits.is_cut, hits.has_moved))
    };
    match read() {
        Ok((holders, is_cut, has_moved)) => {
            let moved = Gap::new("holders in Java objects that moved while the heap was read", Why::Torn);
            gaps.extend(has_moved.then(|| {
                moved.hint("collections ran during each pass over the heap; run the command again")
            }));
            gaps.extend(is_cut.then(|| Gap::new("addresses of blocks in the Java heap", Why::OverLimit)));
            holders
        }
        Err(gap) => {
            gaps.push(gap);
            FieldHolders::default()
        }
    }
}

fn named_hits(hits: &Hits, fields: &FieldsOf) -> FieldHolders {
    let mut places: HashMap<(Addr, u32, bool), Option<usize>> = HashMap::new();
    let mut by_name: HashMap<String, usize> = HashMap::new();
    let mut holders = FieldHolders::default();
    let mut found: Vec<(usize, usize)> = Vec::new();
    for hit in &hits.found {
        let key = key(hit);
        let place = *places.entry(key).or_insert_with(|| {
            let name = name(hit, fields)?;
            Some(*by_name.entry(name.clone()).or_insert_with(|| {
                holders.names.push(name);
                holders.forms.push(hit.form);
                holders.names.len() - 1
            }))
        });
        found.extend(place.map(|place| (hit.block as usize, place)));
    }
    let mut counts = vec![HashSet::new(); holders.names.len()];
    for (block, place) in &found {
        counts[*place].insert(*block);
    }
    // Of a buffer and of what frees it, the shorter name is the buffer's.
    found.sort_by_key(|(block, place)| {
        let name = &holders.names[*place];
        (rank(holders.forms[*place]), std::cmp::Reverse(counts[*place].len()), name.len(), name, *block)
    });
    holders.blocks = found;
    holders
}

/// Hits of one key have one name: all instances of a class, but each mirror has fields of its own.
fn key(hit: &Hit) -> (Addr, u32, bool) {
    let offset = (hit.at.0 - hit.head.0) as u32;
    match hit.form {
        Form::Instance(_) => (hit.class, offset, false),
        Form::Mirror => (hit.head, offset, true),
        Form::Longs | Form::Objects => (hit.class, 0, false),
    }
}

fn name(hit: &Hit, fields: &FieldsOf) -> Option<String> {
    let offset = (hit.at.0 - hit.head.0) as u32;
    match hit.form {
        Form::Instance(_) => Some(fields.of_instance(hit.class, offset)?.0),
        Form::Mirror => Some(fields.of_static(hit.head, offset)?.0),
        Form::Longs => Some("long[]".to_string()),
        Form::Objects => None,
    }
}

fn rank(form: Form) -> u8 {
    match form {
        Form::Instance(_) => 0,
        Form::Mirror => 1,
        Form::Longs | Form::Objects => 2,
    }
}

impl HeldBy {
    fn of(form: Form) -> HeldBy {
        match form {
            Form::Instance(_) | Form::Longs | Form::Objects => HeldBy::Field,
            Form::Mirror => HeldBy::Static,
        }
    }
}

fn libraries_and_vm(
    vm: &Hotspot,
    held: &Held,
    (libraries, vm_library): (&[Image], &str),
    spread: &mut Spread,
    rows: &mut Rows,
) {
    let is_common = |library: &Image| native::is_common(&library.path);
    let data = |is_wanted: &dyn Fn(&Image) -> bool| -> Vec<(usize, usize)> {
        let wanted = libraries.iter().enumerate().filter(|(_, library)| is_wanted(library));
        let roots = wanted.flat_map(|(place, library)| {
            let mut found = Vec::new();
            library.data().for_each(|range| native::roots(vm.target, &held.index, range, &mut found));
            found.into_iter().map(move |block| (block, place))
        });
        roots.collect()
    };
    // The arenas of the VM are full of words that are left over: it comes behind the libraries of the program.
    spread.from(data(&|library| !is_common(library)), false);
    // What the VM's own blocks lead to.
    let vm_place = libraries.len();
    let mut roots = data(&is_common);
    roots.extend((0..held.index.len()).filter(|block| spread.is_vm[*block]).map(|block| (block, vm_place)));
    spread.from(roots, true);
    rows.take(spread, held, |place, of_type| match (of_type, libraries.get(place)) {
        (Some(of), _) => Row::of_type(of),
        (None, Some(library)) => {
            Row { library: Some(library.path.clone()), ..Row::of(HeldBy::LibraryData, &library.path) }
        }
        (None, None) => {
            Row { library: Some(vm_library.to_string()), ..Row::of(HeldBy::LibraryData, VM_HOLDER) }
        }
    });
}

fn threads_and_others(
    vm: &Hotspot,
    view: &JvmView,
    held: &Held,
    others: &[Range],
    spread: &mut Spread,
    rows: &mut Rows,
) {
    let (mut roots, mut names, mut places) = (Vec::new(), Vec::new(), HashMap::new());
    let mut add = |name: String, range: Range| {
        let mut found = Vec::new();
        native::roots(vm.target, &held.index, range, &mut found);
        // That a mapping points into itself says nothing of who holds it.
        found.retain(|block| held.index.payload(*block).start != range.start);
        let place = *places.entry(name).or_insert_with_key(|name| {
            names.push(name.clone());
            names.len() - 1
        });
        roots.extend(found.into_iter().map(|block| (block, place)));
    };
    for thread in &view.threads {
        if let Ok(stack) = &thread.stack {
            add(format!("thread {}", crate::base::alike::group_of(&thread.name)), *stack);
        }
    }
    others.iter().for_each(|range| add(OTHER_MEMORY.to_string(), *range));
    spread.from(roots, false);
    rows.take(spread, held, |place, of_type| match of_type {
        Some(of) => Row::of_type(of),
        None => Row::of(HeldBy::ThreadArena, &names[place]),
    });
}
