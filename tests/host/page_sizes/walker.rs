//! A slow reading of the same that shares nothing with ours: /proc/PID/pagemap and /proc/kpageflags, one word at a time, for
//! every page of every mapping that smaps says holds something. How much is mapped 2 MiB at a time is smaps' own figure.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::{File, read_to_string};
use std::os::unix::fs::FileExt;

const PAGE: u64 = 4096;
const HUGE: u64 = 2 << 20;

/// One mapping of smaps: what is in its first line, and the figures that are used, in bytes.
#[derive(Default)]
pub struct Vma {
    pub start: u64,
    pub end: u64,
    offset: u64,
    device: String,
    inode: u64,
    shared: bool,
    path: String,
    figures: HashMap<String, u64>,
}

impl Vma {
    fn figure(&self, key: &str) -> u64 {
        self.figures.get(key).copied().unwrap_or(0)
    }
    fn hugetlb(&self) -> u64 {
        self.figure("Private_Hugetlb") + self.figure("Shared_Hugetlb")
    }
    pub fn anonymous_huge_bytes(&self) -> u64 {
        self.figure("AnonHugePages")
    }
    fn is_counted(&self) -> bool {
        self.figure("Rss") + self.hugetlb() > 0
            && !self.path.starts_with("[vvar")
            && self.path != "[vsyscall]"
    }
    /// Where the page lies in a file that is mapped shared.
    fn place(&self, at: u64) -> Option<(String, u64, u64)> {
        let is_file = self.shared && self.inode != 0;
        is_file.then(|| (self.device.clone(), self.inode, self.offset + at - self.start))
    }
}

pub fn vmas(pid: i32) -> Vec<Vma> {
    let text = read_to_string(format!("/proc/{pid}/smaps")).expect("smaps");
    let hex = |text: &str| u64::from_str_radix(text, 16).expect("hexadecimal");
    let mut vmas: Vec<Vma> = Vec::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        if !words[0].ends_with(':') {
            let (start, end) = words[0].split_once('-').expect("a range");
            vmas.push(Vma {
                start: hex(start),
                end: hex(end),
                offset: hex(words[2]),
                device: words[3].to_string(),
                inode: words[4].parse().expect("a number"),
                shared: words[1].ends_with('s'),
                path: words[5..].join(" "),
                figures: HashMap::new(),
            });
        } else if let (Some(vma), Some("kB")) = (vmas.last_mut(), words.get(2).copied()) {
            let bytes = words[1].parse::<u64>().expect("a number") * 1024;
            vma.figures.insert(words[0].trim_end_matches(':').to_string(), bytes);
        }
    }
    vmas
}

pub struct Walker {
    pagemap: File,
    flags: File,
    /// By head.
    folios: HashMap<u64, u64>,
}

fn word(file: &File, index: u64) -> u64 {
    let mut bytes = [0; 8];
    match file.read_exact_at(&mut bytes, index * 8) {
        Ok(()) => u64::from_le_bytes(bytes),
        Err(_) => 0,
    }
}

fn bit(word: u64, bit: u32) -> bool {
    word >> bit & 1 == 1
}

impl Walker {
    pub fn new(pid: i32) -> Walker {
        let open = |path: String| File::open(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
        Walker {
            pagemap: open(format!("/proc/{pid}/pagemap")),
            flags: open("/proc/kpageflags".to_string()),
            folios: HashMap::new(),
        }
    }

    /// Resident bytes by page size, a page of a shared file at its first address only.
    pub fn by_page_size(&mut self, vmas: &[Vma]) -> BTreeMap<u64, u64> {
        let mut sizes: BTreeMap<u64, u64> = BTreeMap::new();
        let mut places: HashSet<(String, u64, u64)> = HashSet::new();
        for vma in vmas.iter().filter(|vma| vma.is_counted()) {
            let mut on_huge = 0;
            let mut all_on_huge = 0;
            for at in (vma.start..vma.end).step_by(PAGE as usize) {
                let Some(size) = self.size(at, vma) else { continue };
                let is_new = vma.place(at).is_none_or(|place| places.insert(place));
                let is_huge = size == HUGE && vma.hugetlb() == 0;
                all_on_huge += if is_huge { PAGE } else { 0 };
                match (is_new, is_huge) {
                    (false, _) => {}
                    (true, true) => on_huge += PAGE,
                    (true, false) => *sizes.entry(size).or_default() += PAGE,
                }
            }
            let mapped_whole =
                vma.figure("AnonHugePages") + vma.figure("ShmemPmdMapped") + vma.figure("FilePmdMapped");
            assert!(mapped_whole <= all_on_huge, "{:x}: smaps has more huge pages", vma.start);
            // Of a file that is mapped at several addresses either all is mapped whole or none.
            let whole = if mapped_whole == all_on_huge { on_huge } else { mapped_whole.min(on_huge) };
            *sizes.entry(HUGE).or_default() += whole;
            *sizes.entry(PAGE).or_default() += on_huge - whole;
        }
        sizes.retain(|_, bytes| *bytes > 0);
        sizes
    }

    /// The size that the page counts under; huge folios whole, whoever maps them in pieces.
    fn size(&mut self, at: u64, vma: &Vma) -> Option<u64> {
        let entry = word(&self.pagemap, at / PAGE);
        if !bit(entry, 63) {
            return None;
        }
        let frame = entry & ((1 << 55) - 1);
        assert!(frame != 0, "the test needs CAP_SYS_ADMIN");
        let flags = word(&self.flags, frame);
        // The zero page, small and huge, and what is not memory.
        if bit(flags, 24) || bit(flags, 20) {
            return None;
        }
        if bit(flags, 17) {
            return Some(vma.figure("KernelPageSize"));
        }
        if !bit(flags, 15) && !bit(flags, 16) {
            return Some(PAGE);
        }
        let mut head = frame;
        while bit(word(&self.flags, head), 16) {
            head -= 1;
        }
        if let Some(size) = self.folios.get(&head) {
            return Some(*size);
        }
        let mut end = head + 1;
        while bit(word(&self.flags, end), 16) {
            end += 1;
        }
        self.folios.insert(head, (end - head) * PAGE);
        Some((end - head) * PAGE)
    }
}
