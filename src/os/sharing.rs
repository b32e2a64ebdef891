//! How many page tables map each page, so that shared memory can be divided by those who share it (PSS).
//!
//! smaps_rollup gives the sum only, for 20 ms a gigabyte. Here every page of a file or of shared memory is looked up:
//! bit 56 of its pagemap word says "mapped once", and /proc/kpagecount has the count of the others. Private memory is
//! mapped once unless a process forked and did not exec, or KSM merged pages: a sample of words shows whether it is so,
//! and only then all of them are read. A part of private memory that the sample misses is below a hundredth of it.

use super::aliases;
use super::maps::Mapping;
use super::pagemap::{PageRun, push_run};
use super::pagemap_words::Words;
use super::process::{Process, gap};
use crate::base::limits::{SHARED_PAGES_MAX, SHARING_RUNS_MAX};
use crate::base::{Addr, Bytes, Gap, Known, PAGE, Range, Why};
use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::FileExt;

/// Pages of private memory whose word is looked at first.
const SAMPLES: u64 = 512;
/// Counts of frames that lie this close are read at once.
const FRAME_GAP: u64 = 32;
const FRAMES_PER_READ: u64 = 8192;
const HINT: &str = "how many processes share a page is told to CAP_SYS_ADMIN only: run as root";

/// A page that is not mapped once.
struct Shared {
    run: usize,
    at: Addr,
    frame: u64,
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
    let (shared, hidden) = collect(&words, runs, &mut gaps);
    let counts = match hidden {
        true => Err(Gap::new("/proc/kpagecount", Why::Denied).hint(HINT)),
        false => counts
            .map_err(|error| gap("/proc/kpagecount", &error).hint(HINT))
            .map(|file| count(&file, shared.iter().map(|page| page.frame).collect())),
    };
    let counts = counts.unwrap_or_else(|gap| {
        gaps.push(gap);
        HashMap::new()
    });
    gaps.extend(cut(runs, &shared, &counts));
    gaps
}

/// The pages that are not mapped once, of the runs whose count is not known yet; their other pages are. The second value
/// says that the kernel hides the frames.
fn collect(words: &Words, runs: &mut [PageRun], gaps: &mut Vec<Gap>) -> (Vec<Shared>, bool) {
    let (mut shared, mut hidden) = (Vec::new(), false);
    let mut over_limit = false;
    let is_wanted = |run: &PageRun| run.is_present() && run.is_placed() && run.mapped_times == 0;
    for (index, run) in runs.iter_mut().enumerate().filter(|(_, run)| is_wanted(run)) {
        let before = shared.len();
        match collect_run(words, index, run.range, &mut shared, &mut hidden) {
            Ok(()) if shared.len() <= SHARED_PAGES_MAX => run.mapped_times = 1,
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

/// Whether a sample of private pages holds one that is not exclusive.
fn has_shared_private(words: &Words, runs: &[PageRun]) -> bool {
    let is_private = |run: &&PageRun| run.is_present() && run.is_placed() && !run.is_file();
    let total: Bytes = runs.iter().filter(is_private).map(|run| run.range.bytes()).sum();
    let stride = (total / SAMPLES).max(PAGE);
    let (mut passed, mut next) = (0, stride / 2);
    for run in runs.iter().filter(is_private) {
        while next < passed + run.range.bytes() {
            let at = run.range.start.plus(next - passed).down_to(PAGE);
            next += stride;
            if words.word(at).is_ok_and(|word| word.is_present() && !word.is_exclusive()) {
                return true;
            }
        }
        passed += run.range.bytes();
    }
    false
}

fn collect_run(
    words: &Words,
    run: usize,
    range: Range,
    shared: &mut Vec<Shared>,
    hidden: &mut bool,
) -> Known<()> {
    words.each_piece(range, |start, words| {
        for (index, word) in words.iter().enumerate() {
            // A page that left memory since the scan counts as mapped once, as it was.
            if word.is_present() && !word.is_exclusive() {
                *hidden |= word.frame().is_none();
                let at = start.plus(index as u64 * PAGE);
                // Frame 0 is the firmware's: no process maps it.
                shared.push(Shared { run, at, frame: word.frame().unwrap_or(0) });
            }
        }
        shared.len() <= SHARED_PAGES_MAX
    })
}

/// How often each frame is mapped: /proc/kpagecount, one word a frame.
fn count(file: &File, mut frames: Vec<u64>) -> HashMap<u64, u32> {
    frames.sort_unstable();
    frames.dedup();
    let mut counts = HashMap::with_capacity(frames.len());
    let mut bytes = Vec::new();
    let mut rest = &frames[..];
    while let Some(&first) = rest.first() {
        let near = rest
            .windows(2)
            .take_while(|pair| pair[1] - pair[0] <= FRAME_GAP && pair[1] - first < FRAMES_PER_READ)
            .count();
        let (group, after) = rest.split_at(near + 1);
        rest = after;
        bytes.resize((group[near] - first + 1) as usize * 8, 0);
        // Frames of a device have no entry: a short read leaves them out.
        if file.read_exact_at(&mut bytes, first.saturating_mul(8)).is_err() {
            continue;
        }
        let words = bytes.as_chunks::<8>().0;
        counts.extend(group.iter().map(|frame| {
            let count = u64::from_le_bytes(words[(frame - first) as usize]);
            (*frame, count.clamp(1, u32::MAX as u64) as u32)
        }));
    }
    counts
}

/// Cuts the runs where the count changes. `shared` is sorted by run and address.
fn cut(runs: &mut Vec<PageRun>, shared: &[Shared], counts: &HashMap<u64, u32>) -> Option<Gap> {
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
            let single = Range::sized(page.at, PAGE).intersect(run.range);
            add(single, counts.get(&page.frame).copied().unwrap_or(0));
            at = single.end;
        }
        add(Range::new(at, run.range.end), run.mapped_times);
    }
    *runs = cut;
    over_limit.then(|| Gap::new("how often pages are mapped", Why::OverLimit))
}

/// The process's share of its resident pages; hugetlb pages count as the others do, which the kernel's Pss leaves out.
pub fn proportional_bytes(runs: &[PageRun]) -> Known<Bytes> {
    // As the kernel does (`PSS_SHIFT`), a share is kept in 4096ths of a byte until the end.
    let mut sum = 0_u128;
    for run in runs.iter().filter(|run| run.is_present()) {
        if run.mapped_times == 0 {
            return Err(Gap::new("proportional bytes", Why::Denied).hint(HINT));
        }
        sum += ((run.range.bytes() as u128) << 12) / run.mapped_times as u128;
    }
    Ok((sum >> 12) as Bytes)
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
        let page = |run, at, frame| Shared { run, at: Addr(at), frame };
        let shared = [page(0, 0x2000, 7), page(0, 0x3000, 9), page(0, 0x5000, 8), page(1, 0x6000, 8)];
        let counts = HashMap::from([(7, 4), (9, 4), (8, 2)]);
        assert_eq!(cut(&mut runs, &shared, &counts), None);
        let expected = [
            run(0x1000, 0x2000, 1),
            run(0x2000, 0x4000, 4),
            run(0x4000, 0x5000, 1),
            run(0x5000, 0x6000, 2),
            run(0x6000, 0x7000, 2),
            run(0x7000, 0x8000, 1),
        ];
        assert_eq!(runs, expected);
        assert_eq!(proportional_bytes(&runs).ok(), Some(4096 + 2048 + 4096 + 2048 + 2048 + 4096));
    }

    #[test]
    fn an_unknown_count_makes_the_sum_unknown() {
        let mut runs = vec![run(0x1000, 0x2000, 1)];
        cut(&mut runs, &[Shared { run: 0, at: Addr(0x1000), frame: 0 }], &HashMap::new());
        assert_eq!(proportional_bytes(&runs).map_err(|gap| gap.why), Err(Why::Denied));
    }
}
