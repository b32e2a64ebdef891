//! The threads of the process: Java threads by the VM's own list, all others by the C library's (`stacks`).
//!
//! The VM's threads are distinguished from foreign ones by their `Thread` object, whose `OSThread` must hold the same thread id.
//! JDK 8 gives native threads no name of their own, so names come from the VM first and from the kernel last.

use super::stacks::{self, Block, Blocks, Seed};
use super::thread_names::ThreadNames;
use super::{Found, Hotspot, thread_list};
use crate::base::limits::C_STRING_BYTES_MAX;
use crate::base::{Addr, Gap, Known, Range, Why};
use crate::jvm::types::{How, JvmThread, Kind, ThreadKind};
use crate::os::process::Task;
use crate::os::status::Status;
use std::collections::HashMap;

/// Claims every stack and names every thread.
pub fn read(vm: &Hotspot, found: &mut Found) -> Vec<JvmThread> {
    let objects = thread_list::objects(vm, found).into_iter();
    let java: Vec<Seed> = objects.filter_map(|object| java_thread(vm, object).ok()).collect();
    let blocks = found.note(stacks::read(vm.memory(), &java)).unwrap_or_default();
    let tasks = Tasks::new(vm, &java);
    let mut threads = Vec::new();
    let by_tid: HashMap<i32, &Seed> = java.iter().map(|thread| (thread.tid, thread)).collect();
    for block in blocks.blocks.iter().filter(|block| block.tid > 0) {
        threads.extend(of_block(vm, block, by_tid.get(&block.tid).copied(), &tasks));
    }
    let with_block: std::collections::HashSet<i32> = blocks.blocks.iter().map(|block| block.tid).collect();
    for thread in java.iter().filter(|thread| !with_block.contains(&thread.tid)) {
        threads.extend(of_java(vm, thread, &tasks));
    }
    add_rest(vm, &mut threads, found);
    claim(&threads, &blocks, found);
    threads.sort_by_key(|thread| thread.tid);
    threads
}

fn java_thread(vm: &Hotspot, object: Addr) -> Known<Seed> {
    let base = vm.addr(object, "JavaThread", "_stack_base")?;
    let bytes = vm.word(object, "JavaThread", "_stack_size")?;
    let system = vm.addr(object, "JavaThread", "_osthread")?;
    Ok(Seed {
        object,
        tid: thread_id(vm, system)?,
        block: vm.addr(system, "OSThread", "_pthread_id")?,
        stack: Range::new(base.minus(bytes), base),
    })
}

fn thread_id(vm: &Hotspot, system: Addr) -> Known<i32> {
    let at = system.plus(vm.structs.offset("OSThread", "_thread_id")?);
    vm.memory().i32(at).map_err(|fault| fault.gap("OSThread::_thread_id"))
}

/// What the kernel calls the threads, by the id that they have inside their pid namespace.
struct Tasks {
    by_inner: HashMap<i32, (i32, String)>,
    primordial: i32,
    compilers: CompilerTables,
}

impl Tasks {
    fn new(vm: &Hotspot, java: &[Seed]) -> Tasks {
        let view = vm.target.view;
        let primordial = view.status.namespace_pids.last().copied().unwrap_or(view.process.pid);
        let mut by_inner = by_inner(&view.status, &view.tasks);
        name_from_heap(vm, java, primordial, &mut by_inner);
        let compilers = CompilerTables::new(vm, java, &by_inner);
        Tasks { by_inner, primordial, compilers }
    }

    fn kind_of_java(&self, vm: &Hotspot, object: Addr, name: &str) -> ThreadKind {
        let is_compiler = name.is_empty() && self.compilers.has(vm, object);
        if is_compiler { ThreadKind::Compiler } else { java_kind(name) }
    }

    /// The id outside and the kernel's name; the id inside and no name when it is not known.
    fn task(&self, inner: i32) -> (i32, &str) {
        self.by_inner.get(&inner).map_or((inner, ""), |(tid, name)| (*tid, name.as_str()))
    }
}

/// By the id inside, the id outside and the kernel's name. A thread that began after the list was read, or ended before its id
/// inside was asked for, is not there.
fn by_inner(status: &Status, tasks: &[Task]) -> HashMap<i32, (i32, String)> {
    let is_inner = status.namespace_pids.len() > 1;
    let inner = |task: &Task| if is_inner { task.inner_tid } else { Some(task.tid) };
    tasks.iter().filter_map(|task| Some((inner(task)?, (task.tid, task.name.clone())))).collect()
}

/// The virtual tables that only compiler threads have: `CompilerThread` is a class of its own. A core has none of the kernel's
/// thread names, and the heap lacks a name while a collector moves it. libjvm's symbol table names the virtual table where the
/// library ships one; else the compiler threads that have a name show it.
struct CompilerTables(Vec<Addr>);

impl CompilerTables {
    fn new(vm: &Hotspot, java: &[Seed], by_inner: &HashMap<i32, (i32, String)>) -> CompilerTables {
        let name = |thread: &Seed| by_inner.get(&thread.tid).map_or("", |(_, name)| name.as_str());
        // The kernel named all: not needed.
        if java.iter().all(|thread| !name(thread).is_empty()) {
            return CompilerTables(Vec::new());
        }
        let named = java.iter().filter(|thread| !name(thread).is_empty());
        let (compilers, others): (Vec<_>, Vec<_>) =
            named.partition(|thread| java_kind(name(thread)) == ThreadKind::Compiler);
        let tables = |threads: Vec<&Seed>| -> Vec<Addr> {
            threads.into_iter().filter_map(|thread| table_of(vm, thread.object)).collect()
        };
        let (mut compilers, others) = (tables(compilers), tables(others));
        compilers.retain(|table| !others.contains(table));
        compilers.extend(vm.symbol("_ZTV14CompilerThread").map(|table| table.plus(VTABLE_HEADER_BYTES)));
        CompilerTables(compilers)
    }

    fn has(&self, vm: &Hotspot, object: Addr) -> bool {
        !self.0.is_empty() && table_of(vm, object).is_some_and(|table| self.0.contains(&table))
    }
}

/// What precedes the functions of a virtual table: the offset to the top and the type (Itanium C++ ABI 2.5.2).
const VTABLE_HEADER_BYTES: u64 = 16;

/// Its first word.
fn table_of(vm: &Hotspot, object: Addr) -> Option<Addr> {
    vm.memory().addr(object).ok()
}

/// The length of a name that the kernel keeps (`TASK_COMM_LEN` less its NUL).
const KERNEL_NAME_BYTES: usize = 15;

/// Whether the kernel's name is this one, whole or cut: behind 15 bytes, or, from JDK 26 on, in its middle ("Referen..andler";
/// JDK-8368124, os_linux.cpp, `os::set_native_thread_name`).
fn is_cut(kernel: &str, name: &str) -> bool {
    let parts = kernel.split_once("..").filter(|(start, end)| (start.len(), end.len()) == (7, 6));
    let in_middle = |(start, end): (&str, &str)| name.starts_with(start) && name.ends_with(end);
    name.starts_with(kernel) || parts.is_some_and(in_middle)
}

/// How often names are read that a collector moved while they were read.
const NAME_TRIES: usize = 3;

/// Names the Java threads that the kernel's view has no name for, the one they were all born with (JDK 8 names none), or one
/// that may be cut. A name that does not start with the kernel's was read while a collector moved it: it is read again, from
/// memory that no other reader kept from before.
fn name_from_heap(vm: &Hotspot, java: &[Seed], primordial: i32, by_inner: &mut HashMap<i32, (i32, String)>) {
    let inherited = by_inner.get(&primordial).map(|(_, name)| name.clone()).unwrap_or_default();
    let is_short = |name: &str| name == inherited || name.len() == KERNEL_NAME_BYTES;
    let has_short = |thread: &Seed| by_inner.get(&thread.tid).is_some_and(|(_, name)| is_short(name));
    let mut rest: Vec<Seed> = java.iter().filter(|thread| has_short(thread)).copied().collect();
    let mut read = |vm: &Hotspot| {
        let Ok(names) = ThreadNames::new(vm) else { return true };
        rest.retain(|thread| {
            let Some((_, name)) = by_inner.get_mut(&thread.tid) else { return false };
            let found = names.name(thread.object).filter(|found| *name == inherited || is_cut(name, found));
            let is_missing = found.is_none();
            *name = found.unwrap_or_else(|| std::mem::take(name));
            is_missing
        });
        rest.is_empty()
    };
    if !read(vm) {
        (1..NAME_TRIES).any(|_| vm.now(&mut read));
    }
}

fn of_block(vm: &Hotspot, block: &Block, java: Option<&Seed>, tasks: &Tasks) -> Option<JvmThread> {
    let (tid, comm) = tasks.task(block.tid);
    // Its block is not on its stack: `add_rest` gives it the kernel's mapping.
    if block.tid == tasks.primordial && java.is_none() {
        return None;
    }
    let own = block.object.filter(|object| is_thread_object(vm, *object, block.tid));
    let object = java.map(|thread| thread.object).or(own);
    let name = match (java, own) {
        (None, Some(object)) => native_name(vm, object, comm).unwrap_or_else(|| comm.to_string()),
        _ => comm.to_string(),
    };
    let kind = match (java, own) {
        (Some(thread), _) => tasks.kind_of_java(vm, thread.object, &name),
        (None, Some(_)) => native_kind(&name),
        (None, None) => ThreadKind::Foreign,
    };
    let stack = match java.map(|thread| thread.stack) {
        _ if !block.stack.is_empty() => Ok(block.stack),
        Some(stack) if !stack.is_empty() => Ok(stack),
        _ => Err(Gap::new(format!("stack of thread {tid}"), Why::BadData(block.at))),
    };
    Some(JvmThread { tid, name, kind, stack, object, compiling: None })
}

/// A Java thread that the C library's list did not show: the VM's own bounds, which leave out the guard.
fn of_java(vm: &Hotspot, thread: &Seed, tasks: &Tasks) -> Option<JvmThread> {
    let (tid, comm) = tasks.task(thread.tid);
    let stack = match vm.target.mapping(thread.stack.end.minus(1)) {
        _ if thread.stack.is_empty() => Err(Gap::new(format!("stack of thread {tid}"), Why::Torn)),
        Some(mapping) if mapping.path == "[stack]" => Ok(mapping.range),
        _ => Ok(thread.stack),
    };
    let kind = tasks.kind_of_java(vm, thread.object, comm);
    Some(JvmThread { tid, name: comm.to_string(), kind, stack, object: Some(thread.object), compiling: None })
}

/// Threads without a block that was found, the primordial one among them.
fn add_rest(vm: &Hotspot, threads: &mut Vec<JvmThread>, found: &mut Found) {
    let view = vm.target.view;
    let known: std::collections::HashSet<i32> = threads.iter().map(|thread| thread.tid).collect();
    let mut missing = 0;
    for task in view.tasks.iter().filter(|task| !known.contains(&task.tid)) {
        let is_primordial = task.tid == view.process.pid;
        let stack = view.mappings.iter().find(|mapping| is_primordial && mapping.path == "[stack]");
        missing += usize::from(stack.is_none());
        threads.push(JvmThread {
            tid: task.tid,
            name: task.name.clone(),
            kind: if is_primordial { ThreadKind::Primordial } else { ThreadKind::Foreign },
            stack: stack
                .map(|mapping| mapping.range)
                .ok_or_else(|| Gap::new(format!("stack of thread {}", task.tid), Why::NotInThisRuntime)),
            object: None,
            compiling: None,
        });
    }
    if missing > 0 {
        found.gaps.push(
            Gap::new(format!("stacks of {}", crate::base::counted(missing, "thread")), Why::Torn)
                .hint("threads that began or ended during the reading have none"),
        );
    }
}

fn claim(threads: &[JvmThread], blocks: &Blocks, found: &mut Found) {
    for thread in threads {
        let Ok(stack) = thread.stack else { continue };
        let (part, how) = match thread.kind {
            ThreadKind::Java => ("Java thread stacks", How::VmStructs),
            ThreadKind::Compiler => ("compiler thread stacks", How::VmStructs),
            ThreadKind::Gc => ("GC thread stacks", in_list()),
            ThreadKind::Vm => ("VM thread stacks", in_list()),
            ThreadKind::Primordial => ("primordial thread stack", How::Shape),
            ThreadKind::Foreign => ("foreign thread stacks", in_list()),
        };
        found.claim(stack, Kind::Stack, part, None, how);
    }
    // The C library keeps up to 40 MB of stacks of ended threads for the next ones (nptl/allocatestack.c, stack_cache_maxsize).
    for block in blocks.blocks.iter().filter(|block| block.tid <= 0) {
        found.claim(block.stack, Kind::Stack, "stacks of ended threads", Some(0), in_list());
    }
    if !blocks.is_whole && !blocks.blocks.is_empty() {
        found.gaps.push(Gap::new("the C library's list of threads", Why::Torn));
    }
}

fn in_list() -> How {
    How::PointedFrom("the C library's list of threads".to_string())
}

/// Whether `object` is the VM's `Thread` of the thread `tid`.
fn is_thread_object(vm: &Hotspot, object: Addr, tid: i32) -> bool {
    let system = vm.addr(object, "JavaThread", "_osthread");
    system.and_then(|system| thread_id(vm, system)).is_ok_and(|id| id == tid)
}

/// `NamedThread::_name`. The watcher thread is no `NamedThread`, so the kernel's name must agree, or be the program's
/// (JDK 8).
fn native_name(vm: &Hotspot, object: Addr, comm: &str) -> Option<String> {
    let at = vm.addr(object, "NamedThread", "_name").ok()?;
    let name = vm.memory().c_string(at, C_STRING_BYTES_MAX).ok()?;
    let is_text = name.len() > 2 && name.bytes().all(|byte| (0x20..0x7f).contains(&byte));
    let agrees = vm.major == Some(8) || is_cut(comm, &name);
    (is_text && agrees).then_some(name)
}

fn java_kind(name: &str) -> ThreadKind {
    let compiler = ["C1 Comp", "C2 Comp", "JVMCI"];
    if compiler.iter().any(|start| name.starts_with(start)) { ThreadKind::Compiler } else { ThreadKind::Java }
}

/// Names as the collectors give them, JDK 8 to 25: "GC Thread#0", "Gang worker#0 (Parallel GC Threads)", "G1 Conc#0",
/// "Concurrent Mark-Sweep GC Thread", "XDriver", "ZWorkerYoung#0", "Shenandoah GC Threads#1", "StringDedupProcessor".
fn native_kind(name: &str) -> ThreadKind {
    let starts = [
        "G1 ",
        "GC ",
        "Gang ",
        "Concurrent",
        "Shenandoah",
        "ParGC",
        "StrDedup",
        "StringDedup",
        "GC task",
        "RuntimeWorker",
    ];
    let is_z =
        |letter| name.starts_with(letter) && name[1..].starts_with(|next: char| next.is_ascii_uppercase());
    let is_gc = starts.iter().any(|start| name.starts_with(start)) || is_z('Z') || is_z('X');
    if is_gc { ThreadKind::Gc } else { ThreadKind::Vm }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_cut_at_the_end_or_in_the_middle() {
        for kernel in ["Reference Handler", "Reference Handl", "Referen..andler"] {
            assert!(is_cut(kernel, "Reference Handler"), "{kernel}");
        }
        for kernel in ["Referen..Handler", "Refere..andler", "Referen..ndlers", "reference"] {
            assert!(!is_cut(kernel, "Reference Handler"), "{kernel}");
        }
    }

    #[test]
    fn a_thread_that_ended_leaves_the_others_of_a_pid_namespace_their_names() {
        let task = |tid, inner_tid| Task { tid, name: format!("thread {tid}"), inner_tid };
        let tasks = [task(900, Some(1)), task(901, None), task(902, Some(3))];
        let status = |namespace_pids| Status { namespace_pids, ..Status::default() };
        let named = |inner, tid| (inner, (tid, format!("thread {tid}")));
        assert_eq!(by_inner(&status(vec![900, 1]), &tasks), HashMap::from([named(1, 900), named(3, 902)]));
        assert_eq!(by_inner(&status(vec![900]), &tasks).len(), 3);
    }

    #[test]
    fn kinds_by_the_names_of_many_jdks() {
        for name in [
            "GC task thread#0 (ParallelGC)",
            "G1 Conc#0",
            "ZWorkerYoung#1",
            "XDriver",
            "Shenandoah GC Threads#0",
        ] {
            assert_eq!(native_kind(name), ThreadKind::Gc, "{name}");
        }
        for name in ["VM Thread", "VM Periodic Tas", "X", "Zebra", "", "Zéro"] {
            assert_eq!(native_kind(name), ThreadKind::Vm, "{name}");
        }
        assert_eq!(java_kind("C2 CompilerThre"), ThreadKind::Compiler);
        assert_eq!(java_kind("main"), ThreadKind::Java);
    }
}
