//! Memory of every kind in a child of this process, which JVMs have seldom: huge folios that are mapped in pieces, folios of
//! which a part is unmapped, shared memory, the zero page; and the splitting of a JVM's huge pages.

use super::host::{Host, THP};
use super::may_run;
use super::walker::{self, Vma, Walker};
use marusa::base::Range;
use marusa::os::folios;
use marusa::os::page_kind::PageKind;
use marusa::os::pagemap;
use marusa::os::process::Process;
use std::collections::BTreeMap;

const MIB: usize = 1 << 20;
const HUGE: usize = 2 * MIB;
const READ_WRITE: i32 = libc::PROT_READ | libc::PROT_WRITE;

/// Splits every other huge page of the process by ageing a small part of it, as reclaim would. `false`: this kernel has no
/// such call for another process.
pub fn split_some(pid: i32, vmas: &[Vma]) -> bool {
    // SAFETY: the call makes a descriptor of ours.
    let pidfd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    if pidfd < 0 {
        return false;
    }
    let mut done = false;
    for vma in vmas.iter().filter(|vma| vma.anonymous_huge_bytes() > 0) {
        let first = vma.start.next_multiple_of(HUGE as u64);
        for at in (first..vma.end.saturating_sub(HUGE as u64)).step_by(2 * HUGE) {
            let vector = libc::iovec { iov_base: at as *mut libc::c_void, iov_len: 4096 };
            // SAFETY: the vector names memory of the other process, whose bytes MADV_COLD keeps.
            let advised = unsafe {
                libc::syscall(
                    libc::SYS_process_madvise,
                    pidfd,
                    &raw const vector,
                    1_usize,
                    libc::MADV_COLD,
                    0,
                )
            };
            done |= advised == 4096;
        }
    }
    // SAFETY: the descriptor is ours.
    unsafe { libc::close(pidfd as i32) };
    done
}

/// New memory between two pages without rights, from a multiple of 2 MiB on.
fn map(bytes: usize, flags: i32) -> *mut u8 {
    // SAFETY: a new mapping touches nothing that exists; the rest is done to what is new.
    unsafe {
        let flags = flags | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        let at = libc::mmap(std::ptr::null_mut(), bytes + 2 * HUGE, libc::PROT_NONE, flags, -1, 0);
        assert_ne!(at, libc::MAP_FAILED);
        let at = (at as usize + 4096).next_multiple_of(HUGE) as *mut u8;
        assert_eq!(libc::mprotect(at.cast(), bytes, READ_WRITE), 0);
        at
    }
}

fn advise(at: *mut u8, bytes: usize, advice: i32) {
    // SAFETY: callers give memory that `map` made.
    unsafe { libc::madvise(at.cast(), bytes, advice) };
}

fn write(at: *mut u8, bytes: usize) {
    for offset in (0..bytes).step_by(4096) {
        // SAFETY: callers give memory that `map` made.
        unsafe { at.add(offset).write_volatile(1) };
    }
}

/// Ranges of 4 MiB, each of another kind; the kernel decides which pages they get.
fn make() -> Vec<Range> {
    let private = || map(2 * HUGE, libc::MAP_PRIVATE);
    let [small, huge, pieces, zero, folios, cut] = std::array::from_fn(|_| private());
    let shared = map(2 * HUGE, libc::MAP_SHARED);
    advise(small, 2 * HUGE, libc::MADV_NOHUGEPAGE);
    write(small, 3 * MIB);
    for at in [huge, pieces, zero] {
        advise(at, 2 * HUGE, libc::MADV_HUGEPAGE);
    }
    write(huge, 2 * HUGE);
    write(pieces, 2 * HUGE);
    // SAFETY: memory that was just made; a page in the middle loses its rights, so the entry of 2 MiB falls apart.
    unsafe {
        libc::mprotect(pieces.add(MIB).cast(), 4096, libc::PROT_READ);
        zero.read_volatile();
    }
    write(zero.wrapping_add(HUGE), HUGE);
    write(shared, MIB);
    for at in [folios, cut] {
        // Half of the 2 MiB block only: the next smaller size that is allowed.
        advise(at, MIB, libc::MADV_HUGEPAGE);
        write(at, MIB);
    }
    for offset in (0..MIB).step_by(64 << 10) {
        advise(cut.wrapping_add(offset + 4096), 3 * 4096, libc::MADV_DONTNEED);
    }
    let whole = |at: *mut u8| Range::of(at as u64, (at as usize + 2 * HUGE) as u64);
    [small, huge, pieces, zero, folios, cut, shared].map(whole).to_vec()
}

/// A stopped child.
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

/// The regions are made in the child, which stops then; they lie where a map of the parent at the same place would, so
/// the child writes where they are into shared memory.
fn child() -> (Child, Vec<Range>) {
    let shared = map(HUGE, libc::MAP_SHARED).cast::<u64>();
    // SAFETY: the child makes memory, tells where it is and stops; the parent waits for that.
    unsafe {
        let pid = libc::fork();
        if pid == 0 {
            for (index, range) in make().iter().enumerate() {
                shared.add(index * 2).write_volatile(range.start.0);
                shared.add(index * 2 + 1).write_volatile(range.end.0);
            }
            loop {
                libc::raise(libc::SIGSTOP);
            }
        }
        let mut status = 0;
        assert_eq!(libc::waitpid(pid, &raw mut status, libc::WUNTRACED), pid);
        assert!(libc::WIFSTOPPED(status), "{status:x}");
        let at = |index: usize| shared.add(index).read_volatile();
        let ranges = (0..).map(|index| Range::of(at(index * 2), at(index * 2 + 1)));
        (Child(pid), ranges.take_while(|range| !range.is_empty()).collect())
    }
}

fn assert_alike(name: &str) -> BTreeMap<String, u64> {
    let (child, ranges) = child();
    assert_eq!(ranges.len(), 7);
    let process = Process::open(child.0).expect("the child");
    let mappings = process.mappings().expect("maps");
    let status = process.status().expect("status");
    let runs = pagemap::read(&process, &mappings, &status, None).expect("pages").runs;
    let sizes = folios::read(&process, &mappings, &runs, &status).expect("sizes");
    let (mut ours, mut kinds) = (BTreeMap::<u64, u64>::new(), BTreeMap::<String, u64>::new());
    let mut count = |kind: PageKind, bytes: u64| {
        if bytes > 0 {
            *ours.entry(kind.page_bytes()).or_default() += bytes;
            *kinds.entry(kind.name()).or_default() += bytes;
        }
    };
    for run in runs.iter().filter(|run| run.is_present()) {
        let mapping = mappings.iter().find(|mapping| mapping.range.has(run.range.start)).expect("a mapping");
        for range in &ranges {
            let here = run.range.intersect(*range);
            let mut plain = here.bytes();
            for size in &sizes.runs {
                let bytes = size.range.intersect(here).bytes();
                plain -= bytes;
                count(size.kind, bytes);
            }
            count(sizes.kind_of_run(run, mapping), plain);
        }
    }
    let mut vmas = walker::vmas(child.0);
    vmas.retain(|vma| ranges.iter().any(|range| range.start.0 <= vma.start && vma.end <= range.end.0));
    assert_eq!(ours, Walker::new(child.0).by_page_size(&vmas), "{name}: {kinds:?}");
    println!("{name}: {kinds:?}");
    kinds
}

#[test]
fn huge_folios_in_pieces_and_folios_of_every_size() {
    if !may_run() {
        return;
    }
    let mut host = Host::lock();
    host.set(format!("{THP}/enabled"), "madvise").expect("THP");
    let kinds = assert_alike("2 MiB only");
    assert!(kinds["thp_2m_pte"] >= HUGE as u64 && kinds["thp_2m_pmd"] >= 2 * HUGE as u64, "{kinds:?}");
    for size in ["16", "32", "64", "128", "256", "512", "1024"] {
        let path = format!("{THP}/hugepages-{size}kB/enabled");
        if host.set(path.clone(), "madvise").is_err() {
            println!("{path} is not available");
            continue;
        }
        let kinds = assert_alike(&format!("{size} KiB"));
        let name = if size == "1024" { "mthp_1m".to_string() } else { format!("mthp_{size}k") };
        assert!(kinds.contains_key(&name), "{name} in {kinds:?}");
    }
}
