//! Which Java threads there are, by the VM's own list. The list is replaced whole, and the old one freed, whenever a Java thread
//! begins or ends: a pointer that was read with other data a few milliseconds ago may lead to other memory by now.
//! So it is read past the store of pages, wherever it lies now, and again until two samples agree.

use super::{Found, Hotspot};
use crate::base::limits::THREADS_MAX;
use crate::base::{Addr, Gap, Known, Why};
use crate::os::memory::{Fault, Memory};
use std::cell::RefCell;

/// Where hundreds of threads begin and end in a second, two samples in a row are some tens of microseconds apart.
const LOOKS_MAX: usize = 8;

/// The `JavaThread` objects; where no two samples agree, those of the last one, and a gap says so. JDK 8 to 11 chain them; since 17
/// (10, but vmStructs kept the chain) they are in a list: src/hotspot/share/runtime/threadSMR.hpp, `ThreadsList`.
pub fn objects(vm: &Hotspot, found: &mut Found) -> Vec<Addr> {
    let is_list = vm.structs.static_at("ThreadsSMRSupport", "_java_thread_list").is_ok();
    let look = |fresh: &Fresh| if is_list { listed(vm, fresh) } else { chained(vm, fresh) };
    let (objects, is_torn) = agreed(vm.memory(), look);
    if is_torn {
        found.gaps.push(
            Gap::new("the VM's list of Java threads", Why::Torn)
                .hint("it changed at each reading: threads began and ended all the time"),
        );
    }
    found.note(objects).unwrap_or_default()
}

/// What two samples in a row find; else what the last one found, and true.
fn agreed<T: PartialEq>(memory: &dyn Memory, look: impl Fn(&Fresh) -> Known<T>) -> (Known<T>, bool) {
    let once = || {
        let fresh = Fresh { memory, given: RefCell::default() };
        (look(&fresh), fresh)
    };
    let (mut last, mut fresh) = once();
    let mut is_torn = true;
    for _ in 1..LOOKS_MAX {
        let (found, again) = once();
        is_torn = found != last;
        (last, fresh) = (found, again);
        if !is_torn {
            break;
        }
    }
    fresh.keep();
    (last, is_torn)
}

fn listed(vm: &Hotspot, memory: &Fresh) -> Known<Vec<Addr>> {
    let gap = |fault: Fault| fault.gap("ThreadsList");
    let list = Addr(vm.structs.read_static(memory, "ThreadsSMRSupport", "_java_thread_list")?);
    let length = vm.structs.offset("ThreadsList", "_length")?;
    let length = memory.u32(list.plus(length)).map_err(gap)? as usize;
    if length > THREADS_MAX {
        return Err(Gap::new("ThreadsList", Why::OverLimit));
    }
    let table = vm.structs.read_addr(memory, list, "ThreadsList", "_threads")?;
    Ok(memory.words(table, length).map_err(gap)?.into_iter().map(Addr).collect())
}

fn chained(vm: &Hotspot, memory: &Fresh) -> Known<Vec<Addr>> {
    let mut objects = Vec::new();
    let mut object = Addr(vm.structs.read_static(memory, "Threads", "_thread_list")?);
    while !object.is_null() {
        if objects.len() == THREADS_MAX {
            return Err(Gap::new("Threads::_thread_list", Why::OverLimit));
        }
        objects.push(object);
        object = vm.structs.read_addr(memory, object, "JavaThread", "_next")?;
    }
    Ok(objects)
}

/// The memory as it is now, and what it gave.
struct Fresh<'a> {
    memory: &'a dyn Memory,
    given: RefCell<Vec<(Addr, Vec<u8>)>>,
}

impl Fresh<'_> {
    /// What was found rests on what was read: a recording keeps it.
    fn keep(&self) {
        self.given.borrow().iter().for_each(|(at, bytes)| self.memory.used(*at, bytes));
    }
}

impl Memory for Fresh<'_> {
    fn read(&self, at: Addr, into: &mut [u8]) -> Result<(), Fault> {
        self.memory.read_now(at, into)?;
        self.given.borrow_mut().push((at, into.to_vec()));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    /// One word, which is another one at each of the first samples; the store of pages kept what it was before them.
    struct Changing {
        looks: Cell<u64>,
        changes: u64,
        kept: RefCell<Vec<u8>>,
    }

    impl Memory for Changing {
        fn read(&self, _: Addr, into: &mut [u8]) -> Result<(), Fault> {
            into.fill(0xff);
            Ok(())
        }
        fn read_once(&self, _: Addr, into: &mut [u8]) -> Result<(), Fault> {
            let look = self.looks.get() + 1;
            self.looks.set(look);
            into.copy_from_slice(&look.min(self.changes).to_le_bytes()[..into.len()]);
            Ok(())
        }
        fn used(&self, _: Addr, bytes: &[u8]) {
            self.kept.replace(bytes.to_vec());
        }
    }

    fn word(changes: u64) -> (Known<u64>, bool, Vec<u8>) {
        let memory = Changing { looks: Cell::new(0), changes, kept: RefCell::default() };
        let look = |fresh: &Fresh| fresh.u64(Addr(8)).map_err(|fault| fault.gap("a word"));
        let (found, is_torn) = agreed(&memory, look);
        (found, is_torn, memory.kept.into_inner())
    }

    #[test]
    fn what_changes_is_read_until_it_is_the_same_twice() {
        assert_eq!(word(0), (Ok(0), false, 0_u64.to_le_bytes().to_vec()));
        assert_eq!(word(7), (Ok(7), false, 7_u64.to_le_bytes().to_vec()), "and that is recorded");
    }

    #[test]
    fn what_never_rests_is_torn() {
        let last = LOOKS_MAX as u64;
        assert_eq!(word(1000), (Ok(last), true, last.to_le_bytes().to_vec()));
    }
}
