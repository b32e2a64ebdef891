//! Two questions that `marusa bench fork` leaves open, asked of memory of our own. `cargo bench --bench fork_cost`.
//!
//! Why a write into each 4 KiB of huge pages faults more than once for each huge page after a fork: the processor has translations
//! of pages ahead, which it fetched before the first fault made the huge page writable, and where the hypervisor maps memory by
//! smaller pages each of them is for 4 KiB only (Intel SDM 3A, "Invalidation of TLBs and Paging-Structure Caches": a fault removes
//! the one of its own address). With a fence around each write the processor fetches none ahead: that switches the cause off.
//!
//! What a GiB on small pages costs a fork, by how much there is, and whether neighbours in memory are neighbours in the machine:
//! the kernel counts each page up in an array that it reads in their order (mm/memory.c, `copy_present_ptes`).

use std::time::Instant;

const BYTES: usize = 256 << 20;
const GIB: usize = 1 << 30;
const HUGE: usize = 2 << 20;
const PAGE: usize = 4096;
const ROUNDS: usize = 5;

fn main() {
    faults_on_huge_pages();
    println!("\nms of a fork for each GiB on small pages, least and median of {ROUNDS}");
    println!("{:<10} {:>18} {:>22}", "memory", "touched in order", "in an order by chance");
    for bytes in [GIB / 4, GIB, 4 * GIB] {
        let [ordered, scattered] = [1, STRIDE].map(|stride| {
            let (least, median) = ms_each_gib(bytes, stride);
            format!("{least:.1}, {median:.1}")
        });
        println!("{:<10} {ordered:>18} {scattered:>22}", format!("{} MiB", bytes >> 20));
    }
}

/// Prime to every number of pages that is a power of 2, and far: of two pages touched after each other none is near.
const STRIDE: usize = 0x9e37_79b1;

/// Memory is touched page by page, `stride` ahead each time.
fn ms_each_gib(bytes: usize, stride: usize) -> (f64, f64) {
    let memory = map(bytes, libc::MADV_NOHUGEPAGE);
    let pages = bytes / PAGE;
    for number in 0..pages {
        // SAFETY: within the mapping, which is writable and only ours.
        unsafe { memory.add(number * stride % pages * PAGE).write_volatile(1) };
    }
    let mut times: Vec<f64> = (0..ROUNDS).map(|_| fork_ms() * GIB as f64 / bytes as f64).collect();
    times.sort_by(f64::total_cmp);
    // SAFETY: mapped above, and not used any more.
    unsafe { libc::munmap(memory.cast(), bytes) };
    (times[0], times[ROUNDS / 2])
}

fn faults_on_huge_pages() {
    let memory = map(BYTES, libc::MADV_HUGEPAGE);
    write_all(memory, || {});
    println!("{} huge pages, a byte into each 4 KiB after a fork, median of {ROUNDS}", BYTES / HUGE);
    println!("{:<36} {:>7} {:>12}", "", "faults", "a huge page");
    for (name, is_fenced) in [("writes ahead of each other", false), ("a fence around each write", true)] {
        let mut faults: Vec<i64> = (0..ROUNDS).map(|_| after_a_fork(memory, is_fenced)).collect();
        faults.sort_unstable();
        let median = faults[ROUNDS / 2];
        println!("{name:<36} {median:>7} {:>12.1}", median as f64 / (BYTES / HUGE) as f64);
    }
}

/// Until the fork has returned here. The child ends at once, and is waited for.
fn fork_ms() -> f64 {
    let started = Instant::now();
    // SAFETY: this process has one thread.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: the child runs nothing of this program any more.
        unsafe { libc::_exit(0) };
    }
    let ms = started.elapsed().as_secs_f64() * 1e3;
    // SAFETY: our own child.
    unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
    ms
}

/// Minor faults of the writes, after a child has come and gone.
fn after_a_fork(memory: *mut u8, is_fenced: bool) -> i64 {
    fork_ms();
    let before = faults();
    match is_fenced {
        true => write_all(memory, fence),
        false => write_all(memory, || {}),
    }
    faults() - before
}

#[inline(always)]
fn write_all(memory: *mut u8, between: impl Fn()) {
    for at in (0..BYTES).step_by(PAGE) {
        between();
        // SAFETY: within the mapping, which is writable and only ours.
        unsafe { memory.add(at).write_volatile(1) };
        between();
    }
}

/// Nothing behind it begins before all before it has ended.
#[inline(always)]
fn fence() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 processor has it.
    unsafe {
        std::arch::x86_64::_mm_lfence()
    };
    #[cfg(target_arch = "aarch64")]
    // SAFETY: barriers.
    unsafe {
        std::arch::asm!("dsb sy", "isb")
    };
}

fn faults() -> i64 {
    // SAFETY: a plain structure, filled by the kernel.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: as above.
    unsafe { libc::getrusage(libc::RUSAGE_SELF, &mut usage) };
    usage.ru_minflt
}

/// New memory with this advice, from an address on at which a huge page can begin.
fn map(bytes: usize, advice: i32) -> *mut u8 {
    let (rights, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: a new mapping, used from its first aligned address on.
    unsafe {
        let at = libc::mmap(std::ptr::null_mut(), bytes + HUGE, rights, kind, -1, 0);
        assert_ne!(at, libc::MAP_FAILED);
        let aligned = (at as usize).next_multiple_of(HUGE) as *mut u8;
        libc::madvise(aligned.cast(), bytes, advice);
        aligned
    }
}
