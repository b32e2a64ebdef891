//! What kind of thread: by the runtime's own view where it was read, by the kernel's name for threads born since.

use crate::base::word_of;
use crate::jvm::types::{JvmThread, ThreadKind};
use std::collections::HashMap;

#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, schemars::JsonSchema, serde::Serialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Java threads, and threads of native libraries.
    Application,
    Gc,
    Compiler,
    Vm,
}

impl Kind {
    pub fn word(self) -> String {
        word_of(&self)
    }
}

/// The kinds and names of the threads that one reading of the runtime gave.
#[derive(Clone, Debug, Default)]
pub struct Kinds {
    by_tid: HashMap<i32, (Kind, String)>,
    /// The kernel's name of the first thread, which all others bear until they give themselves their own.
    inherited: Option<String>,
}

impl Kinds {
    pub fn new(threads: &[JvmThread]) -> Kinds {
        let of = |thread: &JvmThread| match thread.kind {
            ThreadKind::Java => Kind::Application,
            // Also what the VM's threads look like whose objects changed while they were read.
            ThreadKind::Foreign => kind_of_name(&thread.name),
            ThreadKind::Gc => Kind::Gc,
            ThreadKind::Compiler => Kind::Compiler,
            ThreadKind::Vm | ThreadKind::Primordial => Kind::Vm,
        };
        let by_tid = threads.iter().map(|thread| (thread.tid, (of(thread), thread.name.clone()))).collect();
        let first = threads.iter().find(|thread| thread.kind == ThreadKind::Primordial);
        Kinds { by_tid, inherited: first.map(|thread| thread.name.clone()) }
    }

    /// The kind, and the longest name that is known; `comm` is the kernel's.
    pub fn of<'a>(&'a self, tid: i32, comm: &'a str) -> (Kind, &'a str) {
        let is_inherited = |name: &str| self.inherited.as_deref() == Some(name);
        match self.by_tid.get(&tid) {
            // It was just born at that sample, so that its name did not even show its kind.
            Some((Kind::Application, name)) if is_inherited(name) && !is_inherited(comm) => {
                (kind_of_name(comm), comm)
            }
            Some((kind, name)) if !name.is_empty() => (*kind, name),
            Some((kind, _)) => (*kind, comm),
            None => (kind_of_name(comm), comm),
        }
    }
}

/// By the first letters of the kernel's 15, as HotSpot names its threads in JDK 11 to 25. JDK 8 names none of them, so threads
/// that are born after the reading of the runtime count as the application's.
fn kind_of_name(comm: &str) -> Kind {
    const COMPILER: &[&str] = &["C1 Comp", "C2 Comp", "JVMCI"];
    const GC: &[&str] = &[
        "GC Thread#",
        "G1 ",
        "GC task",
        "ZWorker",
        "ZDriver",
        "ZDirector",
        "ZStat",
        "ZUncommit",
        "ZUnmap",
        "XWorker",
        "XDriver",
        "Shenandoah",
        "ParGC",
        "StringDedup",
        "StrDedup",
        "RuntimeWorker",
    ];
    const VM: &[&str] = &["VM Thread", "VM Periodic"];
    let begins = |starts: &[&str]| starts.iter().any(|start| comm.starts_with(start));
    match comm {
        _ if begins(COMPILER) => Kind::Compiler,
        _ if begins(GC) => Kind::Gc,
        _ if begins(VM) => Kind::Vm,
        _ => Kind::Application,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::{Gap, Why};

    #[test]
    fn the_runtime_decides_and_names_only_where_it_was_not_asked() {
        let thread = |tid, name: &str, kind| JvmThread {
            compiling: None,
            tid,
            name: name.to_string(),
            kind,
            stack: Err(Gap::new("stack", Why::NotRead)),
            object: None,
        };
        let kinds = Kinds::new(&[
            thread(7, "G1 is what I call my thread", ThreadKind::Java),
            thread(8, "", ThreadKind::Compiler),
            thread(14, "C1 CompilerThre", ThreadKind::Foreign),
            thread(15, "java", ThreadKind::Primordial),
            thread(16, "java", ThreadKind::Java),
        ]);
        assert_eq!(kinds.of(7, "G1 is what I ca"), (Kind::Application, "G1 is what I call my thread"));
        assert_eq!(kinds.of(8, "java"), (Kind::Compiler, "java"));
        assert_eq!(kinds.of(14, "C1 CompilerThre").0, Kind::Compiler);
        assert_eq!(kinds.of(15, "java"), (Kind::Vm, "java"));
        assert_eq!(kinds.of(16, "java"), (Kind::Application, "java"));
        assert_eq!(kinds.of(16, "worker"), (Kind::Application, "worker"), "it was just born at the sample");
        assert_eq!(kinds.of(16, "C1 CompilerThre"), (Kind::Compiler, "C1 CompilerThre"));
        assert_eq!(kinds.of(9, "C2 CompilerThre"), (Kind::Compiler, "C2 CompilerThre"));
        assert_eq!(kinds.of(10, "ZWorkerYoung#1").0, Kind::Gc);
        assert_eq!(kinds.of(11, "VM Thread").0, Kind::Vm);
        assert_eq!(kinds.of(12, "http-nio-8080-e").0, Kind::Application);
        assert_eq!(kinds.of(13, "Zebra").0, Kind::Application);
    }
}
