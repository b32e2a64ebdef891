//! A count of our own that shares nothing with the product's: every aligned 2 MiB of every mapping whose 512 frames lie in a
//! row and begin a huge folio (/proc/PID/pagemap, /proc/kpageflags), read whole, page by page compared with zeros.

use std::fs::{File, read_to_string};
use std::os::unix::fs::FileExt;

const PAGE: u64 = 4096;
const HUGE: u64 = 2 << 20;
/// include/uapi/linux/kernel-page-flags.h
const KPF_COMPOUND_HEAD: u64 = 1 << 15;
const KPF_THP: u64 = 1 << 22;

/// A huge page, and how many of its pages are zeros.
pub struct HugePage {
    pub zero_pages: u64,
}

pub struct Counter {
    pid: i32,
    memory: File,
    pagemap: File,
    flags: File,
}

impl Counter {
    pub fn new(pid: i32) -> Counter {
        let open = |path: String| File::open(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
        Counter {
            pid,
            memory: open(format!("/proc/{pid}/mem")),
            pagemap: open(format!("/proc/{pid}/pagemap")),
            flags: open("/proc/kpageflags".to_string()),
        }
    }

    /// The huge pages of private memory.
    pub fn huge_pages(&self) -> Vec<HugePage> {
        let maps = read_to_string(format!("/proc/{}/maps", self.pid)).expect("maps");
        let mut found = Vec::new();
        for line in maps.lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            let (start, end) = words[0].split_once('-').expect("a range");
            let hex = |text: &str| u64::from_str_radix(text, 16).expect("hexadecimal");
            let is_private_memory = words[1].ends_with('p') && words[4] == "0";
            let mut at = hex(start).next_multiple_of(HUGE);
            while is_private_memory && at + HUGE <= hex(end) {
                if self.is_huge(at) {
                    found.push(HugePage { zero_pages: self.zero_pages(at) });
                }
                at += HUGE;
            }
        }
        found
    }

    fn is_huge(&self, at: u64) -> bool {
        let mut words = vec![0; (HUGE / PAGE * 8) as usize];
        if self.pagemap.read_exact_at(&mut words, at / PAGE * 8).is_err() {
            return false;
        }
        let words: Vec<u64> =
            words.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().expect("8"))).collect();
        let frame = |word: u64| (word >> 63 & 1 == 1).then_some(word & ((1 << 55) - 1));
        let Some(first) = frame(words[0]) else { return false };
        let in_a_row = words.iter().zip(first..).all(|(word, expected)| frame(*word) == Some(expected));
        let mut flags = [0; 8];
        self.flags.read_exact_at(&mut flags, first * 8).expect("kpageflags");
        let flags = u64::from_le_bytes(flags);
        in_a_row && first % 512 == 0 && flags & KPF_THP != 0 && flags & KPF_COMPOUND_HEAD != 0
    }

    fn zero_pages(&self, at: u64) -> u64 {
        let mut bytes = vec![0; HUGE as usize];
        self.memory.read_exact_at(&mut bytes, at).expect("memory");
        let zeros = vec![0; PAGE as usize];
        bytes.chunks_exact(PAGE as usize).filter(|page| *page == zeros).count() as u64
    }
}
