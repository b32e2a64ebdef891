//! How fast pages of zeros are found, in memory of our own on huge pages: all zeros, all data, half of each.
//! `cargo bench --bench zeros`; real-time priority (`chrt -f 10`) makes it steady on a machine with other work.

use marusa::os::process::Process;
use marusa::os::zeros::{self, Effort};
use marusa::snapshot::{self, Want};
use std::time::Instant;

const BYTES: usize = 512 << 20;
const HUGE: usize = 2 << 20;
const PAGE: usize = 4096;
const ROUNDS: usize = 5;

fn main() {
    let me = Process::open(std::process::id() as i32).expect("myself");
    let memory = map();
    println!("{} MiB on huge pages, median of {ROUNDS}", BYTES >> 20);
    for (name, of_two) in [("all zeros", 0), ("half data, page by page", 1), ("all data", 2)] {
        for at in (0..BYTES).step_by(PAGE) {
            let data = u64::from((at / PAGE) % 2 < of_two);
            // SAFETY: within the mapping, which is writable and only ours.
            unsafe { memory.add(at).cast::<u64>().write(data * 0x0101_0101) };
        }
        let snapshot = snapshot::take(&me, Want { page_sizes: true, ..Want::default() }).expect("a snapshot");
        let effort = Effort { all_bytes: u64::MAX, sample_bytes: u64::MAX };
        let mut seconds = Vec::new();
        let (mut read, mut zero) = (0, 0);
        for _ in 0..ROUNDS {
            let started = Instant::now();
            let found = zeros::read(&me, &snapshot.os, &[], effort).expect("my own memory");
            seconds.push(started.elapsed().as_secs_f64());
            read = found.read_bytes;
            zero = found.seen.iter().map(|seen| zeros::bytes(&seen.zeros)).sum();
        }
        seconds.sort_by(f64::total_cmp);
        let median = seconds[ROUNDS / 2];
        println!(
            "{name:<26} {:>6} MiB read, {:>6} MiB zeros {:>8.1} ms {:>6.2} GB/s",
            read >> 20,
            zero >> 20,
            median * 1e3,
            read as f64 / median / 1e9
        );
    }
    println!("testing alone, in cache    {:>6.2} GB/s", test_alone());
}

fn map() -> *mut u8 {
    let (rights, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: a new mapping, used from its first aligned address on.
    unsafe {
        let at = libc::mmap(std::ptr::null_mut(), BYTES + HUGE, rights, kind, -1, 0);
        assert_ne!(at, libc::MAP_FAILED);
        let aligned = (at as usize).next_multiple_of(HUGE) as *mut u8;
        libc::madvise(aligned.cast(), BYTES, libc::MADV_HUGEPAGE);
        aligned
    }
}

fn test_alone() -> f64 {
    let page = std::hint::black_box([0_u64; PAGE / 8]);
    let count = 1_000_000;
    let started = Instant::now();
    let zeros = (0..count).filter(|_| zeros::is_zero(std::hint::black_box(&page))).count();
    assert_eq!(zeros, count);
    (count * PAGE) as f64 / started.elapsed().as_secs_f64() / 1e9
}
