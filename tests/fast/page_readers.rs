//! The three ways to read the pages of a process must tell the same of the same pages. This process makes regions of every
//! kind and looks at itself; nobody else touches those regions, so the sums must be equal to the byte.

use marusa::base::Range;
use marusa::os::pagemap::{self, Method, PageRun, Pages};
use marusa::os::process::Process;
use marusa::os::{sharing, smaps};
use std::collections::BTreeMap;

const MIB: usize = 1 << 20;

/// Memory mapped for the length of a test.
struct Region {
    at: *mut u8,
    bytes: usize,
}

impl Region {
    fn map(bytes: usize, rights: i32, flags: i32, file: i32) -> Option<Region> {
        // SAFETY: a new mapping at an address that the kernel chooses touches nothing that exists.
        let at = unsafe { libc::mmap(std::ptr::null_mut(), bytes, rights, flags, file, 0) };
        (at != libc::MAP_FAILED).then_some(Region { at: at.cast(), bytes })
    }
    /// Between two pages without rights: mappings with the same rights would be joined, and smaps would give the sums of
    /// both.
    fn private(bytes: usize) -> Region {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        let mut region = Region::map(bytes + 8192, libc::PROT_NONE, flags, -1).expect("mmap");
        // SAFETY: the region is ours; its first and last page stay without rights.
        unsafe {
            libc::mprotect(region.at.add(4096).cast(), bytes, READ_WRITE);
            region.at = region.at.add(4096);
        }
        region.bytes = bytes;
        region
    }
    fn advise(&self, advice: i32) -> bool {
        // SAFETY: the region is ours, and the advices used here keep or zero its bytes.
        unsafe { libc::madvise(self.at.cast(), self.bytes, advice) == 0 }
    }
    fn write(&self, from: usize, bytes: usize) {
        for offset in (from..from + bytes).step_by(4096) {
            // SAFETY: callers stay within the region, which is writable.
            unsafe { self.at.add(offset).write_volatile(1) };
        }
    }
    fn read(&self, from: usize, bytes: usize) {
        for offset in (from..from + bytes).step_by(4096) {
            // SAFETY: callers stay within the region, which is readable.
            unsafe { self.at.add(offset).read_volatile() };
        }
    }
    fn range(&self) -> Range {
        Range::of(self.at as u64, self.at as u64 + self.bytes as u64)
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: the region is ours and nothing points into it any more; the pages without rights around it stay.
        unsafe { libc::munmap(self.at.cast(), self.bytes) };
    }
}

const READ_WRITE: i32 = libc::PROT_READ | libc::PROT_WRITE;

fn myself() -> Process {
    Process::open(std::process::id() as i32).expect("myself")
}

fn pages(method: Method) -> Pages {
    let process = myself();
    let mappings = process.mappings().expect("maps");
    let status = process.status().expect("status");
    pagemap::read(&process, &mappings, &status, Some(method)).expect("pages")
}

/// (present, swapped, present pages of files, present huge) bytes in `range`.
fn sums(runs: &[PageRun], range: Range) -> [u64; 4] {
    let mut sums = [0; 4];
    for run in runs {
        let bytes = run.range.intersect(range).bytes();
        let counts = [
            run.is_present(),
            run.is_swapped(),
            run.is_present() && run.is_file(),
            run.is_present() && run.page_bytes > 4096,
        ];
        for (sum, counts) in sums.iter_mut().zip(counts) {
            *sum += if counts { bytes } else { 0 };
        }
    }
    sums
}

fn assert_alike(name: &str, region: &Region, present: Option<usize>) {
    let all: BTreeMap<&str, [u64; 4]> =
        [("scan", Method::PagemapScan), ("pagemap", Method::Pagemap), ("smaps", Method::Smaps)]
            .map(|(way, method)| (way, sums(&pages(method).runs, region.range())))
            .into();
    let scan = all["scan"];
    assert!(all.values().all(|sums| *sums == scan), "{name}: {all:?}");
    if let Some(present) = present {
        assert_eq!(scan[0], present as u64, "{name}: present");
    }
}

fn scratch_file(bytes: usize) -> std::fs::File {
    use std::io::Write;
    let path = std::env::temp_dir().join(format!("marusa-pages-{}-{bytes}", std::process::id()));
    let mut file = std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(true)
        .open(&path)
        .expect("a scratch file");
    std::fs::remove_file(&path).expect("unlink");
    file.write_all(&vec![7; bytes]).expect("write");
    file
}

#[test]
fn small_private_pages_and_reservations() {
    let reserved = Region::map(
        1 << 44,
        libc::PROT_NONE,
        libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
        -1,
    );
    let written = Region::private(8 * MIB);
    written.advise(libc::MADV_NOHUGEPAGE);
    written.write(MIB, 2 * MIB);
    written.write(5 * MIB, 4096);
    assert_alike("written", &written, Some(2 * MIB + 4096));
    if let Some(reserved) = reserved {
        assert_alike("16 TiB reserved", &reserved, Some(0));
    }
}

/// Every second page: more regions than the kernel's own buffer of 512 and than one of our calls takes.
#[test]
fn thousands_of_single_pages_count_once() {
    let region = Region::private(160 * MIB);
    region.advise(libc::MADV_NOHUGEPAGE);
    for page in (0..20_000).step_by(2) {
        region.write(page * 4096, 1);
    }
    assert_alike("every second page", &region, Some(10_000 * 4096));
    let runs = pages(Method::PagemapScan).runs;
    assert!(runs.windows(2).all(|pair| pair[0].range.end <= pair[1].range.start), "sorted and disjoint");
}

#[test]
fn the_zero_page_is_absent() {
    let region = Region::private(4 * MIB);
    region.advise(libc::MADV_NOHUGEPAGE);
    region.read(0, 2 * MIB);
    region.write(3 * MIB, MIB);
    assert_alike("zero pages", &region, Some(MIB));
}

#[test]
fn the_huge_zero_page_is_absent() {
    let region = Region::private(32 * MIB);
    if region.advise(libc::MADV_HUGEPAGE) {
        region.read(0, 16 * MIB);
        region.write(24 * MIB, MIB);
        assert_alike("huge zero pages", &region, None);
    }
}

#[test]
fn huge_pages_are_distinguished_from_small_ones() {
    let region = Region::private(16 * MIB);
    if region.advise(libc::MADV_HUGEPAGE) {
        region.write(0, 9 * MIB);
        assert_alike("huge", &region, None);
    }
}

#[test]
fn files_private_copies_and_shared_memory() {
    use std::os::fd::AsRawFd;
    let file = scratch_file(2 * MIB);
    let shared = Region::map(2 * MIB, READ_WRITE, libc::MAP_SHARED, file.as_raw_fd()).expect("mmap");
    shared.read(0, MIB);
    let private = Region::map(2 * MIB, READ_WRITE, libc::MAP_PRIVATE, file.as_raw_fd()).expect("mmap");
    private.read(0, MIB);
    private.write(MIB, MIB / 2);
    let shmem = Region::map(4 * MIB, READ_WRITE, libc::MAP_SHARED | libc::MAP_ANONYMOUS, -1).expect("mmap");
    shmem.write(MIB, MIB);
    assert_alike("shared file", &shared, None);
    assert_alike("private file", &private, None);
    assert_alike("shared memory", &shmem, Some(MIB));
}

#[test]
fn guard_regions_are_neither_present_nor_swapped() {
    const MADV_GUARD_INSTALL: i32 = 102;
    let region = Region::private(MIB);
    region.write(0, MIB / 2);
    if region.advise(MADV_GUARD_INSTALL) {
        assert_alike("guard", &region, Some(0));
        assert_eq!(sums(&pages(Method::PagemapScan).runs, region.range())[1], 0);
    }
}

#[test]
fn hugetlb_pages_where_the_host_gives_some() {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_HUGETLB;
    if let Some(region) = Region::map(4 * MIB, READ_WRITE, flags, -1) {
        region.write(0, 2 * MIB);
        assert_alike("hugetlb", &region, Some(2 * MIB));
    }
}

#[test]
fn the_whole_process_is_the_kernels_sum() {
    let process = myself();
    let runs = pages(Method::PagemapScan).runs;
    let ours: u64 = runs.iter().filter(|run| run.is_present()).map(|run| run.range.bytes()).sum();
    let kernels = smaps::rollup(&process).expect("smaps_rollup").present_bytes();
    assert!(
        ours.abs_diff(kernels) <= 40 * MIB as u64,
        "{ours} against {kernels}: other tests map memory at the same time"
    );
}

/// The process's share of its resident pages; `None`: it is not known how often a page is mapped. As in the kernel (`PSS_SHIFT`), a
/// share is kept in 4096ths of a byte until the end.
fn share_of(runs: &[PageRun]) -> Option<u64> {
    let mut sum = 0_u128;
    for run in runs.iter().filter(|run| run.is_present()) {
        sum += (u128::from(run.range.bytes()) << 12).checked_div(u128::from(run.mapped_times))?;
    }
    u64::try_from(sum >> 12).ok()
}

/// Runs with counts, and the sum that the kernel has for the same process.
fn proportional(process: &Process) -> (Vec<PageRun>, u64, u64) {
    let mappings = process.mappings().expect("maps");
    let mut runs = pagemap::scan(process, &mappings).expect("scan");
    let gaps = sharing::fill(process, &mappings, &mut runs);
    let ours = share_of(&runs);
    let kernels = smaps::rollup(process).expect("smaps_rollup").proportional_bytes;
    (runs, ours.unwrap_or_else(|| panic!("{gaps:?}")), kernels)
}

fn may_read_frames() -> bool {
    std::fs::File::open("/proc/kpagecount").is_ok()
}

/// A child that sleeps; ended when dropped.
struct Child(i32);

impl Drop for Child {
    fn drop(&mut self) {
        // SAFETY: the child is ours and was not waited for yet.
        unsafe {
            libc::kill(self.0, libc::SIGKILL);
            libc::waitpid(self.0, std::ptr::null_mut(), 0);
        }
    }
}

#[test]
fn shares_are_the_kernels_with_shared_files_and_a_forked_child() {
    if !may_read_frames() {
        return;
    }
    let region = Region::private(64 * MIB);
    region.write(0, 64 * MIB);
    // SAFETY: the child only sleeps until it is killed.
    let child = match unsafe { libc::fork() } {
        0 => loop {
            // SAFETY: no memory is involved.
            unsafe { libc::pause() };
        },
        pid => Child(pid),
    };
    let process = Process::open(child.0).expect("the child");
    let (runs, ours, kernels) = proportional(&process);
    assert!(ours.abs_diff(kernels) * 100 <= kernels, "{ours} against {kernels}");
    let halved: u64 = runs
        .iter()
        .filter(|run| run.mapped_times == 2)
        .map(|run| run.range.intersect(region.range()).bytes())
        .sum();
    assert_eq!(halved, 64 * MIB as u64);
}
