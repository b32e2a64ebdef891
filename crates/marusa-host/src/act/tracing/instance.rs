//! An instance of tracefs: buffers, a clock, filters and events of our own, next to those of all other users of the host, which
//! stay as they are. It is a directory, and goes with it.

use super::guardian::Guardian;
use crate::base::{Gap, Known, Why};
use crate::os::host;
use crate::os::process::{Process, Stat};
use crate::os::trace::tracefs::{self, FIRST_PID_NAMESPACE, WHAT};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// How long we try to remove what is still in use, before the guardian does.
const REMOVAL: Duration = Duration::from_secs(1);

/// The instances that this process made so far: each has a name of its own.
static MADE: AtomicU32 = AtomicU32::new(0);

#[derive(Debug)]
pub struct Instance {
    pub directory: PathBuf,
    guardian: Option<Guardian>,
}

/// Whose an instance is, by its name: "marusa-PID-STARTTICKS-NAMESPACE.NUMBER".
///
/// tracefs is one for all containers of a host, and pids are not: so the pid namespace is part of the name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Owner {
    pid: i32,
    start_ticks: u64,
    pid_namespace: u64,
}

impl Owner {
    fn own() -> Option<Owner> {
        let process = Process::open(std::process::id() as i32).ok()?;
        let pid_namespace = tracefs::pid_namespace("self")?;
        Some(Owner { pid: process.pid, start_ticks: process.start_ticks, pid_namespace })
    }

    fn name(self, number: u32) -> String {
        format!("marusa-{}-{}-{}.{number}", self.pid, self.start_ticks, self.pid_namespace)
    }

    fn parse(name: &str) -> Option<Owner> {
        let (name, number) = name.strip_prefix("marusa-")?.split_once('.')?;
        number.parse::<u32>().ok()?;
        let mut parts = name.split('-');
        let owner = Owner {
            pid: parts.next()?.parse().ok()?,
            start_ticks: parts.next()?.parse().ok()?,
            pid_namespace: parts.next()?.parse().ok()?,
        };
        parts.next().is_none().then_some(owner)
    }

    /// Whether its process is known to be gone. Of another namespace only the first can know, where every process is seen.
    fn is_gone(self, own: Owner) -> bool {
        if self.pid_namespace == own.pid_namespace {
            let stat =
                host::text(format!("/proc/{}/stat", self.pid)).ok().and_then(|text| Stat::parse(&text));
            return stat
                .is_none_or(|stat| stat.start_ticks != self.start_ticks || matches!(stat.state, 'Z' | 'X'));
        }
        own.pid_namespace == FIRST_PID_NAMESPACE
            && host::pids().is_ok_and(|pids| {
                !pids.iter().any(|pid| tracefs::pid_namespace(&pid.to_string()) == Some(self.pid_namespace))
            })
    }
}

/// Removes the instances of processes that are gone, as a kill of a whole cgroup leaves them.
pub fn sweep(tracefs: &Path) {
    let Some(own) = Owner::own() else { return };
    for name in tracefs::instances(tracefs) {
        if Owner::parse(&name).is_some_and(|owner| owner.is_gone(own)) {
            let _ = std::fs::remove_dir(tracefs.join("instances").join(name));
        }
    }
}

impl Instance {
    /// Makes one, off, which its guardian removes if we cannot.
    pub fn make(tracefs: &Path) -> Known<Instance> {
        let own =
            Owner::own().ok_or_else(|| Gap::new(WHAT, Why::Denied).hint("/proc/self cannot be read"))?;
        let name = own.name(MADE.fetch_add(1, Ordering::Relaxed));
        let directory = tracefs.join("instances").join(name);
        let guardian = Guardian::start(&directory).map_err(|error| {
            let hint =
                format!("no process can be made that would remove the instance after kill -9: {error}");
            Gap::new(WHAT, Why::Denied).hint(hint)
        })?;
        match std::fs::create_dir(&directory) {
            Ok(()) => {
                let instance = Instance { directory, guardian: Some(guardian) };
                instance
                    .write("tracing_on", "0")
                    .map_err(|error| tracefs::refused(&instance.directory, &error))?;
                Ok(instance)
            }
            Err(error) => {
                guardian.release();
                Err(tracefs::refused(&directory, &error))
            }
        }
    }

    /// Writes to one of its files.
    pub fn write(&self, file: &str, text: &str) -> io::Result<()> {
        // In one call: tracefs takes each write for a whole command.
        std::fs::File::options().write(true).open(self.directory.join(file))?.write_all(text.as_bytes())
    }

    pub fn text(&self, file: &str) -> io::Result<String> {
        tracefs::text(&self.directory.join(file))
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        let end = Instant::now() + REMOVAL;
        loop {
            match std::fs::remove_dir(&self.directory) {
                Ok(()) => break,
                Err(error) if error.kind() == io::ErrorKind::NotFound => break,
                Err(_) if Instant::now() < end => std::thread::sleep(Duration::from_millis(2)),
                // A process holds one of its files: the guardian goes on.
                Err(_) => return,
            }
        }
        if let Some(guardian) = self.guardian.take() {
            guardian.release();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instance_is_known_by_its_name() {
        let owner = Owner { pid: 12, start_ticks: 345, pid_namespace: FIRST_PID_NAMESPACE };
        assert_eq!(owner.name(3), "marusa-12-345-4026531836.3");
        assert_eq!(Owner::parse(&owner.name(3)), Some(owner));
        for other in
            ["marusa-12-345-4026531836", "marusa-12-345.1", "marusa-1-2-3-4.1", "trace-cmd", "marusa-x-1-1.0"]
        {
            assert_eq!(Owner::parse(other), None, "{other}");
        }
    }

    #[test]
    fn only_what_is_known_to_be_gone_is_gone() {
        let own = Owner::own().expect("/proc");
        assert!(!own.is_gone(own));
        assert!(Owner { start_ticks: own.start_ticks + 1, ..own }.is_gone(own));
        assert!(Owner { pid: i32::MAX, ..own }.is_gone(own));
        let elsewhere = Owner { pid_namespace: 1, ..own };
        let nested = Owner { pid_namespace: 2, ..own };
        assert!(!elsewhere.is_gone(nested), "a container does not see what others run");
        assert!(elsewhere.is_gone(Owner { pid_namespace: FIRST_PID_NAMESPACE, ..own }));
    }
}
