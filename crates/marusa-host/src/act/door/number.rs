//! Numbers of /proc/sys and /sys: how a pool is counted, and how much of a sum is undone when others changed it too.

use super::history::Round;
use super::journal::{How, Seen};
use super::machine::{Machine, kernel_text};
use super::{DoorError, denied};
use crate::base::Bytes;
use crate::os::hugetlb::directory_bytes;
use std::io;

/// What the kernel's counters of pages hold without turning negative in a signed word.
pub const VALUE_MAX: u64 = i64::MAX as u64;

/// How often a pool is read until two readings agree.
const READINGS_MAX: usize = 8;

/// The text of the file, and its number. The nr_hugepages of /sys counts pages that are only lent (surplus) too, but a
/// number that is written there is that of pages that stay (mm/hugetlb.c, `nr_hugepages_show_common` and
/// `set_max_huge_pages`); that of /proc/sys leaves them out.
pub fn read(machine: &dyn Machine, file: &str) -> io::Result<(String, u64)> {
    let mut last = kernel_text(machine, file)?;
    for _ in 0..READINGS_MAX {
        let lent = surplus_file(file).map_or(Ok(0), |file| parsed(&kernel_text(machine, &file)?))?;
        let text = kernel_text(machine, file)?;
        if text == last {
            return Ok((text.clone(), parsed(&text)?.saturating_sub(lent)));
        }
        last = text;
    }
    Err(io::Error::other("it does not hold still"))
}

fn parsed(text: &str) -> io::Result<u64> {
    text.trim().parse().map_err(|_| io::ErrorKind::InvalidData.into())
}

fn surplus_file(file: &str) -> Option<String> {
    let directory = file.strip_suffix("/nr_hugepages").filter(|directory| directory.starts_with("/sys/"))?;
    Some(format!("{directory}/surplus_hugepages"))
}

/// Whether the file is the size of a pool whose pages the kernel has to find.
pub fn is_pool(file: &str) -> bool {
    file.ends_with("/nr_hugepages")
}

/// Pages that programs hold beyond the pool: what became of pages that were in use when it shrank.
pub fn lent(machine: &dyn Machine, file: &str) -> Option<u64> {
    match surplus_file(file) {
        Some(file) => parsed(&kernel_text(machine, &file).ok()?).ok(),
        None => meminfo(machine, "HugePages_Surp"),
    }
}

/// In KiB, except for counts of pages.
pub fn meminfo(machine: &dyn Machine, name: &str) -> Option<u64> {
    let text = String::from_utf8(machine.read("/proc/meminfo", 64 << 10).ok()?).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    line.split_whitespace().next()?.parse().ok()
}

/// The size of a page of this pool.
pub fn page_bytes(machine: &dyn Machine, file: &str) -> Option<Bytes> {
    match file.split('/').find_map(directory_bytes) {
        Some(bytes) => Some(bytes),
        None => meminfo(machine, "Hugepagesize")?.checked_mul(1024),
    }
}

/// The parameters by which the kernel takes the pages when it starts, before memory is in pieces.
pub fn boot_parameter(machine: &dyn Machine, file: &str, pages: u64) -> Option<String> {
    let size = match page_bytes(machine, file)? {
        bytes if bytes >= 1 << 30 => format!("{}G", bytes >> 30),
        bytes => format!("{}M", bytes >> 20),
    };
    Some(format!("hugepagesz={size} hugepages={pages}"))
}

pub fn see_again(machine: &dyn Machine, file: &str) -> Result<Seen, DoorError> {
    let (text, value) = read(machine, file).map_err(|error| denied(file, &error))?;
    Ok(Seen::Number { text, value })
}

/// What is to be done about a sum.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Write this; a note where others changed the number too.
    Write(u64, Option<String>),
    Nothing(How, Option<String>),
}

/// What taking our part out of a sum leaves. `drift`: what other runs of ours have changed since.
pub fn without_ours(rounds: &[Round], now: u64, drift: i128) -> Decision {
    let (Some(first), Some(last)) = (rounds.first(), rounds.last()) else {
        return Decision::Nothing(How::NotMade, None);
    };
    let shifted = |value: u64| u64::try_from((i128::from(value) + drift).max(0)).unwrap_or(u64::MAX);
    let start = shifted(first.value_before());
    let ours: u64 = rounds.iter().map(Round::gained).fold(0, u64::saturating_add);
    let others = || Some(format!("others changed it too (it is {now}); only our {ours} are undone"));
    // Never less than what was there before us, unless others took it away.
    let floor = now.saturating_sub(ours).max(start.min(now));
    if let Some(after) = last.value_after() {
        return match (shifted(after), ours) {
            (_, 0) => Decision::Nothing(How::NotMade, None),
            (after, _) if after == now => Decision::Write(now.saturating_sub(ours), None),
            (after, _) if now > after => Decision::Write(now.saturating_sub(ours), others()),
            _ if floor == now => Decision::Nothing(How::Gone, Some(format!("others have made it {now}"))),
            _ => Decision::Write(floor, others()),
        };
    }
    // The crash was while the kernel got pages, or just before or after: all that came since is ours.
    let (from, to) = (shifted(last.value_before()), shifted(last.value_aimed()));
    match () {
        () if (from..=to).contains(&now) => match ours.saturating_add(now - from) {
            0 => Decision::Nothing(How::NotMade, None),
            ours => Decision::Write(now.saturating_sub(ours), None),
        },
        () if now > to => Decision::Nothing(
            How::Left,
            Some(format!(
                "it is {now}: others changed it too, and of our {} how many came is not known; lower it by hand",
                to - from
            )),
        ),
        () if ours == 0 || floor == now => {
            Decision::Nothing(How::Gone, Some(format!("others have made it {now}")))
        }
        () => Decision::Write(floor, others()),
    }
}

/// The same after an undo that was cut short while it went from one number to another.
pub fn go_on(from: u64, to: u64, now: u64) -> Decision {
    match () {
        () if now == to => Decision::Nothing(How::Restored, None),
        () if (to.min(from)..=to.max(from)).contains(&now) => Decision::Write(to, None),
        () => Decision::Nothing(
            How::Left,
            Some(format!("it is {now}: others changed it while it was restored from {from} to {to}")),
        ),
    }
}
