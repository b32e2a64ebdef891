//! `marusa tlb`: the counting against `perf stat`, threads that come and go, and what is reported where nothing can be counted.

mod command;
mod counting;
mod perf;

use marusa::os::perf::{Counter, Encoding, Mode, SOFTWARE};

/// Whether the kernel lets us count at all: sandboxes may forbid the call. `false` says why.
fn may_count() -> bool {
    let clock = Encoding { kind: SOFTWARE, config: 1 };
    let error = Counter::open(clock, Mode::All, 0, None).err();
    if let Some(error) = &error {
        println!("skipped: perf_event_open: {error}");
    }
    error.is_none()
}
