//! A reading of the pages of some ranges: the frame of each (/proc/PID/pagemap), and the folio of each frame
//! (/proc/kpageflags). Pages whose frames follow each other are kept as one range, so that a heap of large folios is a
//! short list; the ranges are sorted by frame, so that flags are read in long pieces.

use super::kpageflags::FrameFlags;
use super::machine::base_page;
use super::page_kind::{Backing, PageKind, SizeRun};
use super::pagemap_words::{Buffer, WORDS_PER_READ, Word, Words};
use crate::base::{Addr, Bytes, Known, Range};

/// Ranges that lie this many pages apart are read at once: a call costs 1 us, a word of a present page 25 ns.
const RANGE_GAP: u64 = 32;

/// What was seen.
#[derive(Debug, Default)]
pub struct Seen {
    /// Sorted: pages of folios of more than a page.
    pub runs: Vec<SizeRun>,
    pub present_bytes: Bytes,
    /// In runs of 16 and of 64 KiB that lie in memory as they lie in the address space.
    pub in_16k_bytes: Bytes,
    pub in_64k_bytes: Bytes,
    /// Present pages whose frame the kernel hides.
    pub hidden_bytes: Bytes,
    /// One address of a page of shared memory in each range that has some.
    pub shmem: Vec<Addr>,
}

/// Pages in a row whose frames are in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FrameRun {
    at: Addr,
    frame: u64,
    pages: u64,
}

/// The pages of `ranges`, which are sorted and hold pages of one backing, each range within one mapping.
pub fn look(words: &Words, flags: Option<&FrameFlags>, ranges: &[Range], backing: Backing) -> Known<Seen> {
    let mut seen = Seen::default();
    let mut frame_runs = frame_runs(words, ranges, &mut seen)?;
    for frame_run in &frame_runs {
        seen.in_16k_bytes += aligned_bytes(frame_run, 16 << 10);
        seen.in_64k_bytes += aligned_bytes(frame_run, 64 << 10);
    }
    let Some(flags) = flags else { return Ok(seen) };
    frame_runs.sort_unstable_by_key(|frame_run| frame_run.frame);
    let frames: Vec<(u64, u64)> =
        frame_runs.iter().map(|frame_run| (frame_run.frame, frame_run.pages)).collect();
    let mut runs: Vec<SizeRun> = Vec::new();
    let mut shmem: Vec<Addr> = Vec::new();
    flags.each_folio(&frames, &mut |index, frame, count, folio, flags| {
        let Some(frame_run) = frame_runs.get(index) else { return };
        let at = frame_run.at.plus((frame - frame_run.frame) * base_page());
        let is_shmem = flags.is_swap_backed() && !flags.is_anonymous() && backing != Backing::Anonymous;
        if is_shmem && shmem.last().is_none_or(|last| last.down_to(1 << 30) != at.down_to(1 << 30)) {
            shmem.push(at);
        }
        if folio.order > 0 {
            let backing = if is_shmem { Backing::Shmem } else { backing };
            let kind = PageKind::of_folio(backing, folio.bytes());
            runs.push(SizeRun { range: Range::sized(at, count * base_page()), kind, estimated: false });
        }
    });
    runs.sort_unstable_by_key(|run| run.range.start);
    seen.runs = joined(runs);
    seen.shmem = shmem;
    Ok(seen)
}

/// Neighbours of one kind as one run.
pub fn joined(runs: impl IntoIterator<Item = SizeRun>) -> Vec<SizeRun> {
    let mut out: Vec<SizeRun> = Vec::new();
    for run in runs {
        match out.last_mut() {
            Some(last)
                if last.range.end == run.range.start
                    && (last.kind, last.estimated) == (run.kind, run.estimated) =>
            {
                last.range.end = run.range.end;
            }
            _ => out.push(run),
        }
    }
    out
}

/// Bytes of whole blocks of `unit` that begin at a multiple of it in both the address space and memory.
fn aligned_bytes(frame_run: &FrameRun, unit: Bytes) -> Bytes {
    let frame_at = frame_run.frame.wrapping_mul(base_page());
    if (frame_run.at.0 ^ frame_at) & (unit - 1) != 0 {
        return 0;
    }
    let range = Range::sized(frame_run.at, frame_run.pages * base_page());
    Range::new(range.start.up_to(unit), range.end.down_to(unit)).bytes()
}

fn frame_runs(words: &Words, ranges: &[Range], seen: &mut Seen) -> Known<Vec<FrameRun>> {
    let mut frame_runs: Vec<FrameRun> = Vec::new();
    let mut buffer = Buffer::default();
    let mut rest = ranges;
    // Where the next word to be looked at lies, when a read ended within a range.
    let mut from = Addr::NULL;
    while let Some(first) = rest.first() {
        let start = first.start.max(from);
        let most = start.plus(WORDS_PER_READ as u64 * base_page());
        let mut end = first.end.min(most);
        for pair in rest.windows(2) {
            if end >= most
                || pair[1].start > pair[0].end.plus(RANGE_GAP * base_page())
                || pair[1].start >= most
            {
                break;
            }
            end = pair[1].end.min(most);
        }
        let count = (end.0 - start.0).div_ceil(base_page()) as usize;
        let words = words.read(start, count, &mut buffer)?;
        while let Some(range) = rest.first().filter(|range| range.start < end) {
            let here = Range::new(range.start.max(start), range.end.min(end));
            let skipped = ((here.start.0 - start.0) / base_page()) as usize;
            let pages = (here.bytes() / base_page()) as usize;
            let of_range = words.get(skipped..skipped + pages).unwrap_or_default();
            add(&mut frame_runs, seen, here.start, of_range, range.start);
            if range.end > end {
                break;
            }
            rest = &rest[1..];
        }
        from = end;
    }
    Ok(frame_runs)
}

/// Adds the words of the pages from `at`; a range does not begin before `range_start`.
fn add(frame_runs: &mut Vec<FrameRun>, seen: &mut Seen, at: Addr, words: &[Word], range_start: Addr) {
    for (index, word) in words.iter().enumerate().filter(|(_, word)| word.is_present()) {
        seen.present_bytes += base_page();
        let Some(frame) = word.frame() else {
            seen.hidden_bytes += base_page();
            continue;
        };
        let at = at.plus(index as u64 * base_page());
        match frame_runs.last_mut() {
            Some(last)
                if last.frame + last.pages == frame
                    && last.at.plus(last.pages * base_page()) == at
                    && last.at >= range_start =>
            {
                last.pages += 1;
            }
            _ => frame_runs.push(FrameRun { at, frame, pages: 1 }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::PAGE;

    fn word(frame: u64) -> Word {
        Word(1 << 63 | frame)
    }

    #[test]
    fn frames_in_a_row_are_one_run_within_one_range() {
        let (mut frame_runs, mut seen) = (Vec::new(), Seen::default());
        let words = [word(8), word(9), Word(0), word(10), word(12), Word(1 << 63)];
        add(&mut frame_runs, &mut seen, Addr(0x10000), &words, Addr(0x10000));
        add(&mut frame_runs, &mut seen, Addr(0x16000), &[word(1), word(2)], Addr(0x16000));
        add(&mut frame_runs, &mut seen, Addr(0x18000), &[word(3)], Addr(0x18000));
        let frame_run = |at, frame, pages| FrameRun { at: Addr(at), frame, pages };
        let expected = [
            frame_run(0x10000, 8, 2),
            frame_run(0x13000, 10, 1),
            frame_run(0x14000, 12, 1),
            frame_run(0x16000, 1, 2),
            frame_run(0x18000, 3, 1),
        ];
        assert_eq!(frame_runs, expected);
        assert_eq!((seen.present_bytes, seen.hidden_bytes), (8 * PAGE, PAGE));
    }

    #[test]
    fn only_blocks_that_are_aligned_in_both_count_as_contiguous() {
        let bytes = |at, frame, pages, unit| aligned_bytes(&FrameRun { at: Addr(at), frame, pages }, unit);
        assert_eq!(bytes(0x10000, 0x100, 20, 16 << 10), 20 * PAGE);
        assert_eq!(bytes(0x10000, 0x100, 20, 64 << 10), 16 * PAGE);
        assert_eq!(bytes(0x11000, 0x101, 8, 16 << 10), 4 * PAGE);
        assert_eq!(bytes(0x11000, 0x102, 8, 16 << 10), 0, "shifted against each other");
    }
}
