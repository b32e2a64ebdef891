//! The process that holds memory so that what is free lies in small pieces. First it takes what is too much as whole blocks, which
//! is fast and stays as it is; then all the rest page by page, of which it gives pages back by chance. Blocks that come free later
//! (a JVM ended) are broken up, and as many pages as that took are given back elsewhere.

use super::slots::Slots;
use super::{FreeMemory, HELD_BYTES_MIN, LEFT_BYTES_MIN, Made, available_bytes, meminfo};
use crate::base::{Bytes, Gap, Known, Why};
use crate::os::process::gap;
use crate::os::terminal::stdout;
use rustix::fs::{Mode, OFlags};
use std::io::Write;
use std::time::Duration;

/// Slots that are taken between two looks at what is left: 32 MiB.
const BETWEEN_LOOKS: usize = 16;
const PAUSE: Duration = Duration::from_millis(5);
/// Rounds until blocks that the kernel refused are asked for again: some lie where memory that can be moved may not go.
const REFUSED_FOR: u64 = 20;
/// Before it is said to be made: the kernel frees pages of files for a while after memory was short, in whole blocks too.
const ROUNDS_MAX: usize = 1000;
/// Below it the kernel takes pages of files away.
const NOTHING_FREE_BYTES: Bytes = 512 << 20;
/// Less available than this ends it.
const SHORT_BYTES: Bytes = 512 << 20;

/// Makes it, prints what was made, and holds it until memory becomes short. `pinned`: of each block, a page that cannot be moved.
pub fn hold(leave: Bytes, pinned: bool) -> Known<()> {
    be_harmless()?;
    let free_before = FreeMemory::now();
    drop_caches()?;
    let total = meminfo().ok_or_else(short)?.total_bytes;
    let mut ballast = Slots::reserve(total)?;
    let most_held = leave.max(HELD_BYTES_MIN);
    while available_bytes().ok_or_else(short)? > leave + most_held + LEFT_BYTES_MIN
        && (0..BETWEEN_LOOKS).all(|_| ballast.take_whole())
    {}
    let mut slots = Slots::reserve(total)?;
    while is_left(&slots, most_held)? && (0..BETWEEN_LOOKS).all(|_| slots.fill()) {}
    let free = meminfo().ok_or_else(short)?.free_bytes;
    let held = slots.held_bytes().saturating_sub(leave.saturating_sub(free));
    if pinned {
        slots.pin()?;
    }
    slots.give_back(held);
    for _ in 0..ROUNDS_MAX {
        if break_up(&mut slots, whole_blocks(), held, pinned)? == 0 {
            break;
        }
        std::thread::sleep(PAUSE);
    }
    let held_bytes = slots.held_bytes() + ballast.held_bytes();
    let made = Made { held_bytes, free: FreeMemory::now(), free_before };
    let line = serde_json::to_string(&made).map_err(|error| failed(&error.into()))?;
    let mut out = stdout().lock();
    writeln!(out, "{line}").and_then(|()| out.flush()).map_err(|error| failed(&error))?;
    let mut refused = 0;
    for round in 0_u64.. {
        let whole = whole_blocks();
        if whole > refused || round % REFUSED_FOR == 0 {
            refused = whole - break_up(&mut slots, whole, held, pinned)?;
        }
        std::thread::sleep(PAUSE);
        if available_bytes().ok_or_else(short)? < SHORT_BYTES {
            break;
        }
    }
    Err(short())
}

/// What the kernel keeps of files goes first: it would free whole blocks of it for a long time.
fn drop_caches() -> Known<()> {
    let file = rustix::fs::open("/proc/sys/vm/drop_caches", OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty());
    let written = file.and_then(|file| rustix::io::write(&file, b"1"));
    written.map(|_| ()).map_err(|error| failed(&error.into()))
}

/// The first that the kernel kills for memory, and gone with its parent.
fn be_harmless() -> Known<()> {
    let harmless = || {
        let score =
            rustix::fs::open("/proc/self/oom_score_adj", OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
        rustix::io::write(&score, b"1000")?;
        rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))
    };
    harmless().map_err(|error: rustix::io::Errno| failed(&error.into()))
}

fn is_left(slots: &Slots, most_held: Bytes) -> Known<bool> {
    let memory = meminfo().ok_or_else(short)?;
    let available = memory.available_bytes.ok_or_else(short)?;
    Ok(available > LEFT_BYTES_MIN
        && (memory.free_bytes > NOTHING_FREE_BYTES || slots.held_bytes() < most_held))
}

fn whole_blocks() -> u64 {
    FreeMemory::now().map_or(0, |free| free.huge_blocks)
}

/// How many blocks that was, of the `whole` ones.
fn break_up(slots: &mut Slots, whole: u64, held: Bytes, pinned: bool) -> Known<u64> {
    let taken = slots.take_blocks(whole);
    if pinned {
        slots.pin()?;
    }
    slots.give_back(held);
    Ok(taken)
}

fn failed(error: &std::io::Error) -> Gap {
    gap("memory to hold", error)
}

fn short() -> Gap {
    Gap::new("memory to hold", Why::Failed).hint("memory became short")
}
