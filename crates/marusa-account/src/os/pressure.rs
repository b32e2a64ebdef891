//! Pressure stall information of memory: how long tasks waited for it, of the whole host (`/proc/pressure/memory`) or of one
//! cgroup (`memory.pressure`, version 2 only). What counts as waiting is the kernel's choice: reclaim, compaction, and
//! pages that come back from disk soon after they were taken.
//!
//! Documentation/accounting/psi.rst. A kernel that is built with it may have it off (`psi=1` at boot switches it on).

use super::host::text;
use super::process::{Process, gap};
use crate::base::{Gap, Known, Why};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::str::FromStr;

const HOST: &str = "/proc/pressure/memory";

/// Microseconds so far in which at least one task waited, and in which all that could have worked did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pressure {
    pub some_us: u64,
    pub full_us: u64,
}

impl Pressure {
    pub fn since(&self, first: &Pressure) -> Pressure {
        Pressure {
            some_us: self.some_us.saturating_sub(first.some_us),
            full_us: self.full_us.saturating_sub(first.full_us),
        }
    }
}

pub fn host() -> Known<Pressure> {
    read(HOST, "pressure of memory", parse)
}

/// What a file of the host says; `what` names it where PSI is off.
pub(super) fn read<T>(path: &str, what: &str, parse: impl FnOnce(&str) -> Option<T>) -> Known<T> {
    let off = || {
        Gap::new(what, Why::NotInThisKernel)
            .hint("PSI is off or not built in; psi=1 on the kernel's command line")
    };
    let text = text(path).map_err(|error| match error.raw_os_error() {
        Some(libc::ENOENT | libc::EOPNOTSUPP) => off(),
        _ => gap(path, &error),
    })?;
    parse(&text).ok_or_else(off)
}

/// "some avg10=0.00 avg60=0.12 avg300=0.30 total=42900555": the number behind `name` in the line of `word`.
pub(super) fn field<T: FromStr>(text: &str, word: &str, name: &str) -> Option<T> {
    let line = text.lines().find(|line| line.split(' ').next() == Some(word))?;
    line.split(' ').find_map(|field| field.strip_prefix(name))?.parse().ok()
}

/// The pressure of the cgroup that the process is in.
pub fn of_group(process: &Process) -> Known<Pressure> {
    const WHAT: &str = "pressure of memory in the target's cgroup";
    let groups = process.text("cgroup").map_err(|error| gap("/proc/PID/cgroup", &error))?;
    let path = group(&groups).ok_or_else(|| {
        Gap::new(WHAT, Why::NotInThisKernel).hint("the process is in no group of cgroup version 2")
    })?;
    let files = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"].map(|root| PathBuf::from(root).join(path));
    let texts = files.iter().filter_map(|directory| text(directory.join("memory.pressure")).ok());
    texts.filter_map(|text| parse(&text)).next().ok_or_else(|| {
        let hint =
            "only groups of cgroup version 2 below the root have memory.pressure, and only where PSI is on";
        Gap::new(WHAT, Why::NotInThisKernel).hint(hint)
    })
}

/// The path of the unified hierarchy, without its first slash. The root has no file of its own: its figures are the host's.
fn group(text: &str) -> Option<&str> {
    let path = text.lines().find_map(|line| line.strip_prefix("0::/"))?;
    // A group outside our own cgroup namespace begins with "..": it has no path for us.
    (!path.is_empty() && !path.split('/').any(|part| part == "..")).then_some(path)
}

fn parse(text: &str) -> Option<Pressure> {
    let total = |word| field(text, word, "total=");
    Some(Pressure { some_us: total("some")?, full_us: total("full").unwrap_or(0) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_totals_of_both_lines() {
        let text = "some avg10=0.00 avg60=0.12 avg300=0.30 total=42900555\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=16973179\n";
        let now = parse(text).expect("both");
        assert_eq!(now, Pressure { some_us: 42_900_555, full_us: 16_973_179 });
        let first = Pressure { some_us: 42_900_000, full_us: 20_000_000 };
        assert_eq!(now.since(&first), Pressure { some_us: 555, full_us: 0 });
        assert_eq!(parse("some avg10=0.00\n"), None);
        assert_eq!(parse("something total=1\n"), None);
    }

    #[test]
    fn the_group_of_the_unified_hierarchy_below_its_root() {
        assert_eq!(group("4:memory:/x\n0::/system.slice/a.service\n"), Some("system.slice/a.service"));
        assert_eq!((group("0::/\n"), group("0::/../other\n"), group("4:memory:/x\n")), (None, None, None));
    }
}
