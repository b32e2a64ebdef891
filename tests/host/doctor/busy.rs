//! What keeps the kernel busy: readers of a disk, of a file without content, in a cgroup that is full; and what they
//! made it do, from its own counters.

use super::group::Group;
use crate::common::skip;
use std::fs::{File, read_dir, read_to_string};

use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// More than any cache holds.
const HOLES_BYTES: u64 = 1 << 40;
const WAIT_MAX: Duration = Duration::from_secs(30);
const CALM_MAX: Duration = Duration::from_secs(180);
/// More than the memory that is left: what is mapped at once is not given back in time.
const PIECE_BYTES: u64 = 64 << 30;
const HASTE: i32 = -15;
const BLOCK: usize = 4096;
const DISK_READERS: u64 = 3;

/// Ended when dropped.
pub struct Readers {
    programs: Vec<Child>,
    threads: Vec<JoinHandle<()>>,
    stop: Arc<AtomicBool>,
    holes: Option<PathBuf>,
}

impl Readers {
    fn new() -> Readers {
        Readers { programs: Vec::new(), threads: Vec::new(), stop: Arc::default(), holes: None }
    }

    /// Readers of a file of holes: its pages are made when they are read, without a disk.
    pub fn of_holes(group: Option<&Group>, count: usize) -> Option<Readers> {
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("holes-{}", std::process::id()));
        let made = File::create(&path).and_then(|file| file.set_len(HOLES_BYTES));
        let mut readers = Readers::new();
        readers.holes = Some(path.clone());
        if let Err(why) = made {
            skip(&format!("no file of holes here: {why}"));
            return None;
        }
        for number in 0..count {
            let enter = group.map_or(String::new(), |group| {
                format!("echo $$ >{}/cgroup.procs; ", group.inner().display())
            });
            let skipped = HOLES_BYTES / (1 << 20) / count as u64 * number as u64;
            let read = format!(
                "{enter}exec nice -n {HASTE} dd if={} of=/dev/null bs=1M skip={skipped}",
                path.display()
            );
            let program = Command::new("sh").args(["-c", &read]).stderr(Stdio::null()).spawn();
            readers.programs.push(program.expect("sh and dd"));
        }
        Some(readers)
    }

    /// Readers of a file of holes as well, by mapping it: such pages must be unmapped before they are reclaimed.
    pub fn of_mapped_holes(count: u64) -> Option<Readers> {
        let mut readers = Readers::of_holes(None, 0)?;
        let file = File::open(readers.holes.as_ref()?).ok()?;
        for number in 0..count {
            let (file, stop) = (file.try_clone().ok()?, readers.stop.clone());
            readers
                .threads
                .push(std::thread::spawn(move || touch(&file, number * HOLES_BYTES / count, &stop)));
        }
        Some(readers)
    }

    /// Readers of a file, past all caches: each read waits for the disk.
    pub fn of_disk(path: &Path) -> Option<Readers> {
        let mut readers = Readers::new();
        for number in 0..DISK_READERS {
            let file = File::options().read(true).custom_flags(libc::O_DIRECT).open(path);
            let (Ok(file), stop) = (file, readers.stop.clone()) else {
                skip("this file system reads through its cache only");
                return None;
            };
            let blocks = file.metadata().ok()?.len() / BLOCK as u64;
            readers.threads.push(std::thread::spawn(move || {
                let mut buffer = vec![0_u8; 2 * BLOCK];
                let aligned = buffer.as_ptr().align_offset(BLOCK);
                let mut block = number * 7919;
                while !stop.load(Ordering::Relaxed) {
                    block = (block + 104_729) % blocks.max(1);
                    let _ = file.read_at(&mut buffer[aligned..aligned + BLOCK], block * BLOCK as u64);
                }
            }));
        }
        Some(readers)
    }
}

/// Each page of the file from `from` on, until it is enough or all was touched.
fn touch(file: &File, from: u64, stop: &AtomicBool) {
    // SAFETY: it has an effect on the priority of this thread only.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, HASTE) };
    for at in (from..HOLES_BYTES).step_by(PIECE_BYTES as usize) {
        // SAFETY: a mapping of its own, read within its length while it is there; the file is as long as that.
        unsafe {
            let (length, kind) = (PIECE_BYTES as usize, libc::MAP_SHARED);
            let piece =
                libc::mmap(std::ptr::null_mut(), length, libc::PROT_READ, kind, file.as_raw_fd(), at as i64);
            if piece == libc::MAP_FAILED {
                return;
            }
            // Page by page: what is read ahead comes in pieces of many pages, for which kcompactd would be woken.
            libc::madvise(piece, length, libc::MADV_RANDOM);
            for page in (0..length).step_by(BLOCK) {
                if !stop.load(Ordering::Relaxed) {
                    std::hint::black_box(piece.cast::<u8>().add(page).read_volatile());
                }
            }
            libc::munmap(piece, length);
        }
        if stop.load(Ordering::Relaxed) {
            return;
        }
    }
}

impl Drop for Readers {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for program in &mut self.programs {
            let _ = program.kill();
            let _ = program.wait();
        }
        self.threads.drain(..).for_each(|thread| {
            let _ = thread.join();
        });
        if let Some(path) = &self.holes {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Something that is done again and again, a millisecond apart, until it is dropped.
pub struct Again {
    thread: Option<JoinHandle<()>>,
    stop: Arc<AtomicBool>,
}

impl Again {
    pub fn of(what: impl Fn() + Send + 'static) -> Again {
        let stop: Arc<AtomicBool> = Arc::default();
        let is_over = stop.clone();
        let thread = std::thread::spawn(move || {
            while !is_over.load(Ordering::Relaxed) {
                what();
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        Again { thread: Some(thread), stop }
    }
}

impl Drop for Again {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Threads of the kernel that go before others, so that they get to work on a busy machine too; until it is dropped.
pub struct Hastened(Vec<(i32, i32)>);

impl Hastened {
    pub fn of(name: &str) -> Hastened {
        let entries = read_dir("/proc").into_iter().flatten().flatten();
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
        let is_it =
            |pid: &i32| read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|comm| comm.starts_with(name));
        let mut was = Vec::new();
        for pid in pids.filter(is_it) {
            // SAFETY: both calls have an effect on priorities only.
            unsafe {
                was.push((pid, libc::getpriority(libc::PRIO_PROCESS, pid as u32)));
                libc::setpriority(libc::PRIO_PROCESS, pid as u32, HASTE);
            }
        }
        Hastened(was)
    }
}

impl Drop for Hastened {
    fn drop(&mut self) {
        for (pid, was) in &self.0 {
            // SAFETY: as above.
            unsafe { libc::setpriority(libc::PRIO_PROCESS, *pid as u32, *was) };
        }
    }
}

/// How long some tasks waited so far.
pub fn waited_ms(of: &str) -> f64 {
    let text = read_to_string(format!("/proc/pressure/{of}")).unwrap_or_default();
    let total = text.lines().next().and_then(|line| line.split_once("total=")?.1.trim().parse::<f64>().ok());
    total.unwrap_or(0.0) / 1000.0
}

/// The pressure of the last minute, in percent: `which` is "some" or "full".
pub fn pressure(of: &str, which: &str) -> Option<f64> {
    let text = read_to_string(format!("/proc/pressure/{of}")).ok()?;
    let line = text.lines().find(|line| line.starts_with(which))?;
    line.split(' ').find_map(|word| word.strip_prefix("avg60=")?.parse().ok())
}

/// The kernel brings its averages up to date once in 2 s (kernel/sched/psi.c, `PSI_FREQ`): what was waited for by now is in them
/// when this returns.
pub fn await_averages() {
    std::thread::sleep(Duration::from_millis(2100));
}

/// What tasks waited for before is seen for a minute, and is nothing of a fault that is yet to be made.
pub fn wait_for_calm() {
    let percent = |which| pressure("memory", which).unwrap_or(0.0);
    let started = Instant::now();
    while (percent("some") >= 5.0 || percent("full") >= 0.5) && started.elapsed() < CALM_MAX {
        std::thread::sleep(Duration::from_secs(1));
    }
}

/// Direct compactions so far.
pub fn compactions() -> f64 {
    let text = read_to_string("/proc/vmstat").unwrap_or_default();
    let count = text.lines().find_map(|line| line.strip_prefix("compact_stall ")?.parse().ok());
    count.unwrap_or(0.0)
}

/// CPU time of the kernel's threads whose names begin so, so far.
pub fn cpu_ms(name: &str) -> f64 {
    let stats = read_dir("/proc").into_iter().flatten().flatten();
    let stats = stats.filter_map(|entry| read_to_string(entry.path().join("stat")).ok());
    let ticks = |stat: String| -> Option<f64> {
        let (start, rest) = stat.rsplit_once(") ")?;
        let fields: Vec<&str> = rest.split(' ').collect();
        let used: f64 = fields.get(11)?.parse::<f64>().ok()? + fields.get(12)?.parse::<f64>().ok()?;
        start.split_once('(')?.1.starts_with(name).then_some(used)
    };
    // SAFETY: sysconf reads a number.
    let per_second = unsafe { libc::sysconf(libc::_SC_CLK_TCK) } as f64;
    stats.filter_map(ticks).sum::<f64>() * 1000.0 / per_second
}

/// Whether it came to be so within half a minute.
pub fn until(mut is_so: impl FnMut() -> bool) -> bool {
    let started = Instant::now();
    while !is_so() {
        if started.elapsed() > WAIT_MAX {
            return false;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    true
}
