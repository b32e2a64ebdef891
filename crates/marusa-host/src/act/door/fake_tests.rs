//! A machine of the tests: its files behave as the kernel's do, and it dies after any number of operations.

use super::machine::{Lies, Machine};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::time::Duration;

pub const POOL: &str = "/proc/sys/vm/nr_hugepages";
pub const NODE_POOL: &str = "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages";
pub const OVERCOMMIT: &str = "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_overcommit_hugepages";
pub const SHMEM: &str = "/sys/kernel/mm/transparent_hugepage/shmem_enabled";
pub const SCAN: &str = "/sys/kernel/mm/transparent_hugepage/khugepaged/pages_to_scan";
pub const RESERVE: &str = "/proc/sys/vm/min_free_kbytes";
const SURPLUS: &str = "/sys/kernel/mm/hugepages/hugepages-2048kB/surplus_hugepages";
const COMPACT: &str = "/proc/sys/vm/compact_memory";

/// All that a change can touch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct World {
    pub numbers: BTreeMap<&'static str, u64>,
    pub word: String,
    pub files: BTreeMap<String, String>,
    pub directories: BTreeSet<String>,
    /// By place: source, and whether something was copied there.
    pub mounts: BTreeMap<String, (String, bool)>,
    /// Files that are swapped to.
    pub swaps: BTreeSet<String>,
    pub busy: bool,
    pub boot: String,
    /// What the pool can hold now, and after memory was compacted.
    pub pool_max: u64,
    pub pool_max_compacted: u64,
    /// Whether the switch of huge pages moves the reserve of free memory, as it does where an administrator made it small.
    pub reserve_moves: bool,
    pub read_only: bool,
}

impl Default for World {
    fn default() -> World {
        let directories = ["/etc/sysctl.d", "/etc/systemd/system", "/run", "/sys/fs/cgroup/memory"];
        World {
            numbers: BTreeMap::from([
                (POOL, 2),
                (NODE_POOL, 7),
                (SURPLUS, 3),
                (OVERCOMMIT, 1),
                (SCAN, 4096),
                (RESERVE, 45056),
            ]),
            word: "never".to_string(),
            files: BTreeMap::new(),
            directories: directories.map(String::from).into(),
            mounts: BTreeMap::new(),
            swaps: BTreeSet::new(),
            busy: false,
            boot: "one".to_string(),
            pool_max: 100,
            pool_max_compacted: 100,
            reserve_moves: true,
            read_only: false,
        }
    }
}

type Other = Box<dyn FnMut(&mut World, &str)>;

#[derive(Default)]
pub struct Fake {
    pub world: RefCell<World>,
    /// Operations until it dies.
    pub left: Cell<Option<u64>>,
    pub done: Cell<u64>,
    /// Another process, which acts just before a write.
    pub other: RefCell<Option<Other>>,
}

const WORDS: [&str; 3] = ["always", "advise", "never"];

fn missing<T>() -> io::Result<T> {
    Err(io::Error::from_raw_os_error(libc::ENOENT))
}

impl Fake {
    /// Whether the next operation would be the last.
    fn is_last(&self) -> bool {
        self.left.get() == Some(0)
    }

    fn change(&self, at: &str, change: impl FnOnce(&mut World, bool) -> io::Result<()>) -> io::Result<()> {
        self.moment()?;
        if self.world.borrow().read_only {
            return Err(io::Error::from_raw_os_error(libc::EROFS));
        }
        if let Some(other) = self.other.borrow_mut().as_mut() {
            other(&mut self.world.borrow_mut(), at);
        }
        let done = change(&mut self.world.borrow_mut(), self.is_last());
        self.moment()?;
        done
    }
}

impl World {
    fn set(&mut self, file: &'static str, value: u64, half: bool) {
        let most = match file {
            POOL => self.pool_max,
            _ => u64::MAX,
        };
        let now = self.numbers.get(file).copied().unwrap_or(0);
        // What is lent is counted in the file, but not in what is written into it; a kernel that is killed stops midway.
        let lent = if file == NODE_POOL { self.numbers[SURPLUS] } else { 0 };
        let aim = value.min(most.max(now)) + lent;
        let aim =
            if half && file != SCAN && file != RESERVE { now + aim.saturating_sub(now) / 2 } else { aim };
        self.numbers.insert(file, aim);
    }
}

impl Machine for Fake {
    fn read(&self, file: &str, bytes_max: u64) -> io::Result<Vec<u8>> {
        self.moment()?;
        let world = self.world.borrow();
        let text = if file == SHMEM {
            let marked =
                WORDS.map(|word| if word == world.word { format!("[{word}]") } else { word.to_string() });
            format!("{}\n", marked.join(" "))
        } else if let Some(value) = world.numbers.get(file) {
            format!("{value}\n")
        } else if let Some(text) = world.files.get(file) {
            text.clone()
        } else {
            return missing();
        };
        Ok(text.bytes().take(bytes_max as usize).collect())
    }

    fn may_write(&self, file: &str) -> io::Result<()> {
        match self.world.borrow().read_only {
            true => Err(io::Error::from_raw_os_error(libc::EROFS)),
            false => self.read(file, 1).map(drop),
        }
    }

    fn may_create(&self, path: &str) -> io::Result<()> {
        let directory = path.rsplit_once('/').map_or("", |(directory, _)| directory).to_string();
        if self.world.borrow().directories.contains(&directory) { Ok(()) } else { missing() }
    }

    fn write(&self, file: &str, text: &str) -> io::Result<()> {
        self.change(file, |world, half| {
            if file == SHMEM {
                world.word = text.to_string();
                if world.reserve_moves {
                    world.numbers.insert(RESERVE, 67584);
                }
                return Ok(());
            }
            if file == COMPACT {
                world.pool_max = world.pool_max_compacted;
                return Ok(());
            }
            let Some(name) = world.numbers.keys().find(|name| **name == file).copied() else {
                return missing();
            };
            world.set(name, text.parse().expect("a number"), half);
            Ok(())
        })
    }

    fn lies(&self, path: &str) -> io::Result<Lies> {
        self.moment()?;
        let world = self.world.borrow();
        let below = format!("{path}/");
        let inside = |one: &String| one.starts_with(&below);
        Ok(match () {
            () if world.files.contains_key(path) => Lies::File,
            () if world.mounts.get(path).is_some_and(|(_, full)| *full) => Lies::Directory { empty: false },
            () if world.directories.contains(path) => {
                Lies::Directory { empty: !world.files.keys().chain(&world.directories).any(inside) }
            }
            () => Lies::Nothing,
        })
    }

    fn create(&self, file: &str, text: &str, _: u32) -> io::Result<()> {
        self.change(file, |world, half| {
            let text = if half { &text[..text.len() / 2] } else { text };
            assert!(world.files.insert(file.to_string(), text.to_string()).is_none(), "{file} was there");
            Ok(())
        })
    }

    fn remove(&self, file: &str) -> io::Result<()> {
        self.change(file, |world, _| {
            assert!(!world.swaps.contains(file), "{file} is swapped to");
            world.files.remove(file).map_or_else(missing, |_| Ok(()))
        })
    }

    fn make_directory(&self, path: &str) -> io::Result<()> {
        self.change(path, |world, _| {
            let parent = path.rsplit_once('/').map_or("", |(parent, _)| parent);
            assert!(world.directories.contains(parent), "no {parent}");
            assert!(world.directories.insert(path.to_string()), "{path} was there");
            Ok(())
        })
    }

    fn remove_directory(&self, path: &str) -> io::Result<()> {
        self.change(path, |world, _| {
            let below = format!("{path}/");
            if world.directories.iter().chain(world.files.keys()).any(|one| one.starts_with(&below)) {
                return Err(io::Error::from_raw_os_error(libc::ENOTEMPTY));
            }
            if world.directories.remove(path) { Ok(()) } else { missing() }
        })
    }

    fn mount_tmpfs(&self, at: &str, source: &str, _: &str) -> io::Result<()> {
        self.change(at, |world, _| {
            assert!(world.directories.contains(at) && !world.mounts.contains_key(at));
            world.mounts.insert(at.to_string(), (source.to_string(), false));
            Ok(())
        })
    }

    fn mounted(&self, at: &str) -> io::Result<Option<String>> {
        self.moment()?;
        Ok(self.world.borrow().mounts.get(at).map(|(source, _)| source.clone()))
    }

    fn unmount(&self, at: &str) -> io::Result<()> {
        self.change(at, |world, _| {
            if world.busy {
                return Err(io::Error::from_raw_os_error(libc::EBUSY));
            }
            world.mounts.remove(at).map_or_else(missing, |_| Ok(()))
        })
    }

    fn users(&self, _: &str) -> Vec<i32> {
        vec![4711]
    }

    fn copy_tree(&self, _: &str, to: &str, _: &[String]) -> io::Result<u64> {
        self.change(to, |world, _| {
            world.mounts.get_mut(to).expect("a tmpfs").1 = true;
            Ok(())
        })
        .map(|()| 12)
    }

    fn swap_on(&self, file: &str, _: u64) -> io::Result<()> {
        self.change(file, |world, half| {
            assert!(world.files.insert(file.to_string(), String::new()).is_none(), "{file} was there");
            if !half {
                world.swaps.insert(file.to_string());
            }
            Ok(())
        })
    }

    fn is_swap(&self, file: &str) -> io::Result<bool> {
        self.moment()?;
        Ok(self.world.borrow().swaps.contains(file))
    }

    fn swap_off(&self, file: &str) -> io::Result<()> {
        self.change(file, |world, _| if world.swaps.remove(file) { Ok(()) } else { missing() })
    }

    fn make_group(&self, path: &str, _: u64) -> io::Result<()> {
        self.make_directory(path)
    }

    fn remove_group(&self, path: &str) -> io::Result<()> {
        if self.world.borrow().busy {
            return Err(io::Error::from_raw_os_error(libc::EBUSY));
        }
        self.remove_directory(path)
    }

    fn members(&self, _: &str) -> Vec<i32> {
        vec![4711]
    }

    fn boot_id(&self) -> String {
        self.world.borrow().boot.clone()
    }

    fn pause(&self, _: Duration) {}

    fn stopped(&self) -> bool {
        false
    }

    fn moment(&self) -> io::Result<()> {
        match self.left.get() {
            // Dead: nothing works any more.
            Some(0) => Err(io::Error::other("the machine died")),
            Some(left) => {
                self.left.set(Some(left - 1));
                Ok(())
            }
            None => {
                self.done.set(self.done.get() + 1);
                Ok(())
            }
        }
    }
}
