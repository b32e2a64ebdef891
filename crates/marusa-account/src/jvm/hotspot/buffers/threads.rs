//! The JDK's temporary buffers by thread: `sun.nio.ch.Util.bufferCache` is a thread local, so from each thread's object its
//! `threadLocals` lead to the `BufferCache`s (java/lang/{Thread,ThreadLocal}.java, sun/nio/ch/Util.java, JDK 8 to 25).

use super::single::Single;
use crate::base::alike::group_of;
use crate::jvm::types::{JvmThread, JvmView};
use crate::os::budget;
use std::collections::{HashMap, HashSet};

/// What is cleaned up when a thread ends has a table of its own in JDK 25.
const LOCALS: [&[&str]; 2] = [&["threadLocals"], &["holder", "terminatingThreadLocals"]];

/// The threads of caches, by the caches' plain addresses.
#[derive(Default)]
pub struct Caches(HashMap<u64, String>);

impl Caches {
    /// `caches`: the ones that matter.
    pub fn read(single: &Single, view: &JvmView, caches: &HashSet<u64>) -> Caches {
        let mut found = HashMap::new();
        for thread in &view.threads {
            if budget::check_now().is_err() || found.len() == caches.len() {
                break;
            }
            let Some(object) = object_of(single, thread) else { continue };
            let values = locals(single, object).into_iter();
            for cache in values.filter(|value| caches.contains(value)) {
                found.insert(cache, group_of(&thread.name));
            }
        }
        Caches(found)
    }

    pub fn thread_of(&self, cache: u64) -> Option<&str> {
        self.0.get(&cache).map(String::as_str)
    }
}

/// The plain address of a thread's object of `java.lang.Thread`.
pub fn object_of(single: &Single, thread: &JvmThread) -> Option<u64> {
    let handle = single.vm.word(thread.object?, "JavaThread", "_threadObj").ok()?;
    single.of_handle(handle)
}

/// The values of its thread locals.
pub fn locals(single: &Single, object: u64) -> Vec<u64> {
    let table = |path: &&[&str]| {
        let locals = path.iter().try_fold(object, |at, name| single.reference(at, name))?;
        single.reference(locals, "table")
    };
    let entries = LOCALS.iter().filter_map(table).flat_map(|it| single.elements(it));
    entries.filter_map(|entry| single.reference(entry, "value")).collect()
}
