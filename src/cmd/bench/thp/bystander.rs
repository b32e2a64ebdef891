//! A thread that has nothing to do with the builds: it wakes every 10 ms and reads a file of /proc. How late it is at worst tells
//! whether the whole machine stood still.

use crate::os::host;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const EVERY: Duration = Duration::from_millis(10);

pub struct Bystander {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Duration>,
}

impl Bystander {
    pub fn start() -> io::Result<Bystander> {
        let stop = Arc::new(AtomicBool::new(false));
        let seen = stop.clone();
        let watch = move || {
            let mut worst = Duration::ZERO;
            while !seen.load(Ordering::Relaxed) {
                let begun = Instant::now();
                std::thread::sleep(EVERY);
                let _ = host::text("/proc/self/stat");
                worst = worst.max(begun.elapsed().saturating_sub(EVERY));
            }
            worst
        };
        let thread = std::thread::Builder::new().name("bystander".to_string()).spawn(watch)?;
        Ok(Bystander { stop, thread })
    }

    /// How late it was at worst, in milliseconds. `None`: the thread failed.
    pub fn end(self) -> Option<f64> {
        self.stop.store(true, Ordering::Relaxed);
        Some(self.thread.join().ok()?.as_secs_f64() * 1e3)
    }
}
