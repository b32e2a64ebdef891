//! How many page tables map each page, so that shared memory can be divided by those who share it (PSS).
//!
//! smaps_rollup gives the sum only, for 20 ms a gigabyte. Here every page of a file or of shared memory is looked up:
//! bit 56 of its pagemap word says "mapped once", and /proc/kpagecount has the count of the others. Private memory is
//! mapped once unless a process forked and did not exec, or KSM merged pages: a sample of words shows whether it is so,
//! and only then all of them are read. The sample looks at 512 pages, evenly apart: it misses no range longer than a
//! 512th of private memory, and of shared pages strewn over it 1 % in one of 170 cases.

use super::machine::base_page;
use super::maps::Mapping;
use super::page_run::{PageRun, push_run};
use super::pagemap_words::{Buffer, WORDS_PER_READ, Word, Words};
use super::process::{Process, gap};
use super::rights::{self, Capability};
use super::{aliases, budget};
use crate::base::limits::{SHARED_PAGES_MAX, SHARING_RUNS_MAX};
use crate::base::{Addr, Bytes, Gap, Known, Range, Why};
use std::fs::File;
use std::os::unix::fs::FileExt;

/// Pages of private memory whose word is looked at first.
const SAMPLES: u64 = 512;
/// Runs that lie this many pages apart are read at once: a call costs 1 us, a word of a present page 25 ns.
const RUN_GAP: u64 = 32;
/// Counts of frames that lie this close are read at once: a call costs 0.4 us, the count of a frame 0.1 us.
const FRAME_GAP: u64 = 4;
const FRAMES_PER_READ: u64 = 8192;
/// What would help where that is not known.
fn hint() -> String {
    let help = rights::hint(&[Capability::SYS_ADMIN], "run as root");
    format!("how many processes share a page is visible only with CAP_SYS_ADMIN: {help}")
}

/// A page that is not mapped once.
struct Shared {
    run: usize,
    at: Addr,
    frame: u64,
    /// 0 where it is not known.
    times: u32,
}

/// Fills `mapped_times` of the runs of present pages, cutting those apart whose pages differ; 0 stays where it is not
/// known. Returns what is missing.
pub fn fill(process: &Process, mappings: &[Mapping], runs: &mut Vec<PageRun>) -> Vec<Gap> {
    let words = match Words::open(process) {
        Ok(words) => words,
        Err(gap) => return vec![gap],
    };
    let counts = File::open("/proc/kpagecount");
    aliases::fill(&words, mappings, runs, &|frame| {
        let mut bytes = [0; 8];
        counts.as_ref().ok()?.read_exact_at(&mut bytes, frame.checked_mul(8)?).ok()?;
        u32::try_from(u64::from_le_bytes(bytes)).ok()
    });
    if !has_shared_private(&words, runs) {
        for run in runs.iter_mut().filter(|run| run.is_present() && run.is_placed() && !run.is_file()) {
            run.mapped_times = 1;
        }
    }
    let mut gaps = Vec::new();
    let (mut shared, hidden) = collect(&words, runs, &mut gaps);
    if hidden {
        gaps.push(Gap::new("/proc/kpagecount", Why::Denied).hint(hint()));
    } else {
        match counts {
            Ok(file) => count(&file, &mut shared),
            Err(error) => gaps.push(gap("/proc/kpagecount", &error).hint(hint())),
        }
    }
    gaps.extend(cut(runs, &shared));
    gaps
}

/// The pages that are not mapped once, of the runs whose count is not known yet; their other pages are. The second value
/// says that the kernel hides the frames.
fn collect(words: &Words, runs: &mut [PageRun], gaps: &mut Vec<Gap>) -> (Vec<Shared>, bool) {
    let (mut shared, mut hidden) = (Vec::new(), false);
    let mut over_limit = false;
    let mut window = Window { words, start: Addr(0), buffer: Buffer::default() };
    for index in 0..runs.len() {
        if budget::check().is_err() {
            break;
        }
        if !is_wanted(&runs[index]) {
            continue;
        }
        let before = shared.len();
        match collect_run(&mut window, &runs[index..], index, &mut shared, &mut hidden) {
            Ok(()) if shared.len() <= SHARED_PAGES_MAX => runs[index].mapped_times = 1,
            Ok(()) => {
                shared.truncate(before);
                over_limit = true;
            }
            Err(gap) => {
                shared.truncate(before);
                gaps.push(gap);
            }
        }
    }
    if over_limit {
        gaps.push(Gap::new("how often pages are mapped", Why::OverLimit));
    }
    (shared, hidden)
}

fn is_wanted(run: &PageRun) -> bool {
    run.is_present() && run.is_placed() && run.mapped_times == 0
}

/// The words that were read last: of a run and of the ones that follow it closely.
struct Window<'a> {
    words: &'a Words,
    start: Addr,
    buffer: Buffer,
}

impl Window<'_> {
    /// The words of the pages from `at`, an address in the first of `runs`, as far as they are at hand. Where none is, as
    /// many as fit are read.
    fn from(&mut self, at: Addr, runs: &[PageRun]) -> Known<&[Word]> {
        let known = Range::sized(self.start, self.buffer.words().len() as u64 * base_page());
        if !known.has(at) {
            let count = (reach(at, runs).0 - at.0) / base_page();
            self.words.read(at, count as usize, &mut self.buffer)?;
            self.start = at;
        }
        let passed = (at.0 - self.start.0) / base_page();
        Ok(self.buffer.words().get(passed as usize..).unwrap_or_default())
    }
}

/// How far one read goes that starts in the first of `runs`.
fn reach(at: Addr, runs: &[PageRun]) -> Addr {
    let most = at.plus(WORDS_PER_READ as u64 * base_page());
    let mut end = at;
    for run in runs.iter().filter(|run| is_wanted(run)) {
        if end >= most || (end > at && run.range.start > end.plus(RUN_GAP * base_page())) {
            break;
        }
        end = run.range.end;
    }
    end.min(most)
}

/// Whether a sample of private pages holds one that is not exclusive.
fn has_shared_private(words: &Words, runs: &[PageRun]) -> bool {
    let is_private = |run: &&PageRun| run.is_present() && run.is_placed() && !run.is_file();
    let total: Bytes = runs.iter().filter(is_private).map(|run| run.range.bytes()).sum();
    let stride = (total / SAMPLES).max(base_page());
    let (mut passed, mut next) = (0, stride / 2);
    let mut buffer = Buffer::default();
    for run in runs.iter().filter(is_private) {
        while next < passed + run.range.bytes() {
            let at = run.range.start.plus(next - passed).down_to(base_page());
            next += stride;
            let found = words.read(at, 1, &mut buffer).unwrap_or_default();
            if found.iter().any(|word| word.is_present() && !word.is_exclusive()) {
                return true;
            }
        }
        passed += run.range.bytes();
    }
    false
}

/// Adds the pages of the first of `rest`, the runs from `run` on.
fn collect_run(
    window: &mut Window,
    rest: &[PageRun],
    run: usize,
    shared: &mut Vec<Shared>,
    hidden: &mut bool,
) -> Known<()> {
    let range = rest.first().map(|run| run.range).unwrap_or_default();
    let mut at = range.start;
    while at < range.end && shared.len() <= SHARED_PAGES_MAX {
        let words = window.from(at, rest)?;
        let words = &words[..words.len().min(((range.end.0 - at.0) / base_page()) as usize)];
        if words.is_empty() {
            break;
        }
        // A page that left memory since the scan counts as mapped once, as it was.
        let others = words.iter().enumerate().filter(|(_, word)| word.is_present() && !word.is_exclusive());
        for (index, word) in others {
            *hidden |= word.frame().is_none();
            // Frame 0 is the firmware's: no process maps it.
            let frame = word.frame().unwrap_or(0);
            shared.push(Shared { run, at: at.plus(index as u64 * base_page()), frame, times: 0 });
        }
        at = at.plus(words.len() as u64 * base_page());
    }
    Ok(())
}

/// Fills in how often each frame is mapped: /proc/kpagecount, one word a frame.
fn count(file: &File, shared: &mut [Shared]) {
    let mut frames: Vec<(u64, u32)> =
        (0..).zip(shared.iter()).map(|(index, page)| (page.frame, index)).collect();
    // Pages of a file often lie in frames that follow each other: the stable sort uses that.
    frames.sort_by_key(|(frame, _)| *frame);
    let mut bytes = Vec::new();
    let mut rest = &frames[..];
    while let Some(&(first, _)) = rest.first() {
        let near = rest
            .windows(2)
            .take_while(|pair| pair[1].0 - pair[0].0 <= FRAME_GAP && pair[1].0 - first < FRAMES_PER_READ)
            .count();
        let (group, after) = rest.split_at(near + 1);
        rest = after;
        bytes.resize((group[near].0 - first + 1) as usize * 8, 0);
        // Frames of a device have no entry: a short read leaves them out.
        if budget::check_now().is_err() {
            return;
        }
        if file.read_exact_at(&mut bytes, first.saturating_mul(8)).is_err() {
            continue;
        }
        let words = bytes.as_chunks::<8>().0;
        for (frame, index) in group {
            let times = u64::from_le_bytes(words[(frame - first) as usize]);
            shared[*index as usize].times = times.clamp(1, u32::MAX as u64) as u32;
        }
    }
}

/// Cuts the runs where the count changes. `shared` is sorted by run and address.
fn cut(runs: &mut Vec<PageRun>, shared: &[Shared]) -> Option<Gap> {
    let most = runs.len() + SHARING_RUNS_MAX;
    let mut cut = Vec::with_capacity(runs.len());
    let mut rest = shared;
    let mut over_limit = false;
    for (index, run) in runs.iter().enumerate() {
        let here = rest.iter().take_while(|page| page.run == index).count();
        let (pages, after) = rest.split_at(here);
        rest = after;
        if cut.len() > most && !pages.is_empty() {
            over_limit = true;
            cut.push(PageRun { mapped_times: 0, ..*run });
            continue;
        }
        let mut at = run.range.start;
        let mut add = |range: Range, mapped_times| {
            if !range.is_empty() {
                push_run(&mut cut, PageRun { range, mapped_times, ..*run }, run.range);
            }
        };
        for page in pages {
            add(Range::new(at, page.at), run.mapped_times);
            let single = Range::sized(page.at, base_page()).intersect(run.range);
            add(single, page.times);
            at = single.end;
        }
        add(Range::new(at, run.range.end), run.mapped_times);
    }
    *runs = cut;
    over_limit.then(|| Gap::new("how often pages are mapped", Why::OverLimit))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(start: u64, end: u64, mapped_times: u32) -> PageRun {
        let bits = PageRun::PRESENT | PageRun::FILE;
        PageRun { range: Range::of(start, end), bits, page_bytes: 4096, mapped_times }
    }

    #[test]
    fn a_run_is_cut_where_the_count_changes_and_alike_neighbours_stay_joined() {
        let mut runs = vec![run(0x1000, 0x6000, 1), run(0x6000, 0x8000, 1)];
        let page = |run, at, times| Shared { run, at: Addr(at), frame: 7, times };
        let shared = [page(0, 0x2000, 4), page(0, 0x3000, 4), page(0, 0x5000, 2), page(1, 0x6000, 2)];
        assert_eq!(cut(&mut runs, &shared), None);
        let expected = [
            run(0x1000, 0x2000, 1),
            run(0x2000, 0x4000, 4),
            run(0x4000, 0x5000, 1),
            run(0x5000, 0x6000, 2),
            run(0x6000, 0x7000, 2),
            run(0x7000, 0x8000, 1),
        ];
        assert_eq!(runs, expected);
    }

    #[test]
    fn an_unknown_count_stays_unknown() {
        let mut runs = vec![run(0x1000, 0x2000, 1)];
        cut(&mut runs, &[Shared { run: 0, at: Addr(0x1000), frame: 0, times: 0 }]);
        assert_eq!(runs, [run(0x1000, 0x2000, 0)]);
    }
}
