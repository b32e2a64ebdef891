//! The machine whose memory is read: its processor, and the sizes of its pages. x86-64 has one base page, 4 KiB; a kernel for
//! aarch64 is built for 4, 16 or 64 KiB.
//!
//! All that the kernel counts in pages (words of pagemap and of /proc/kpage*, orders of folios, counters of vmstat) is in base
//! pages of this size. `base::PAGE` is something else: the unit in which addresses are compared and memory is kept, which every
//! base page is a multiple of.

use crate::base::{Bytes, PAGE};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// 0: not asked for yet.
static BASE: AtomicU64 = AtomicU64::new(0);
static IS_AARCH64: AtomicBool = AtomicBool::new(cfg!(target_arch = "aarch64"));
/// No processor's base page is larger.
pub const BASE_MAX: Bytes = 1 << 20;

/// Bytes of a base page.
pub fn base_page() -> Bytes {
    match BASE.load(Ordering::Relaxed) {
        0 => {
            let asked = sysconf(libc::_SC_PAGESIZE).filter(|bytes| is_base(*bytes)).unwrap_or(PAGE);
            BASE.store(asked, Ordering::Relaxed);
            asked
        }
        known => known,
    }
}

/// What one entry of the second-lowest page table maps: a table fills a base page and has entries of 8 bytes. 2, 32 or 512 MiB.
pub fn huge_page() -> Bytes {
    let page = base_page();
    page / 8 * page
}

/// The sizes that the kernel can have pools of, smallest first: of entries of each page table, and on aarch64 of as many
/// entries as the processor takes for one (arch/arm64/mm/hugetlbpage.c, `arch_hugetlb_valid_size`; include/asm/pgtable-hwdef.h,
/// `CONT_PTE_SHIFT`).
pub fn hugetlb_sizes() -> &'static [Bytes] {
    match (base_page() >> 10, is_aarch64()) {
        (4, false) => &[2 << 20, 1 << 30],
        (4, true) => &[64 << 10, 2 << 20, 32 << 20, 1 << 30],
        (16, _) => &[2 << 20, 32 << 20, 1 << 30],
        (64, _) => &[2 << 20, 512 << 20, 16 << 30],
        _ => &[],
    }
}

/// Whether its programs are for aarch64; else they are for x86-64.
pub fn is_aarch64() -> bool {
    IS_AARCH64.load(Ordering::Relaxed)
}

/// From here on the memory of this machine is read again.
pub fn of_host() {
    BASE.store(0, Ordering::Relaxed);
    IS_AARCH64.store(cfg!(target_arch = "aarch64"), Ordering::Relaxed);
}

/// From here on the memory of another machine is read, from a file: frozen there, or a core; until a process is opened.
pub fn of_file(page_bytes: Option<Bytes>, is_aarch64: bool) {
    // A file that does not say was written where there is one size only.
    BASE.store(page_bytes.filter(|bytes| is_base(*bytes)).unwrap_or(PAGE), Ordering::Relaxed);
    IS_AARCH64.store(is_aarch64, Ordering::Relaxed);
}

pub fn is_base(bytes: Bytes) -> bool {
    bytes.is_power_of_two() && (PAGE..=BASE_MAX).contains(&bytes)
}

/// A positive figure of sysconf(3).
pub fn sysconf(name: libc::c_int) -> Option<u64> {
    // SAFETY: sysconf takes a number and touches no memory of ours.
    let value = unsafe { libc::sysconf(name) };
    u64::try_from(value).ok().filter(|value| *value > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::os::process::Process;

    #[test]
    fn sizes_of_this_machine_and_of_a_file() {
        assert_eq!(Some(base_page()), sysconf(libc::_SC_PAGESIZE));
        for (base, pmd) in [(4 << 10, 2 << 20), (16 << 10, 32 << 20), (64 << 10, 512 << 20)] {
            of_file(Some(base), true);
            assert_eq!((base_page(), huge_page()), (base, pmd));
            assert!(hugetlb_sizes().contains(&pmd));
        }
        for nonsense in [Some(12 << 10), Some(0), None] {
            of_file(nonsense, false);
            assert_eq!((base_page(), is_aarch64()), (PAGE, false));
        }
        of_file(Some(16 << 10), true);
        Process::open(std::process::id() as i32).expect("this process");
        assert_eq!(Some(base_page()), sysconf(libc::_SC_PAGESIZE), "a live process is of this machine");
        assert_eq!(is_aarch64(), cfg!(target_arch = "aarch64"));
    }
}
