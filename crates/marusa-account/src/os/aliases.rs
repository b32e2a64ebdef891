//! Large files that a process maps shared, perhaps several times: the heap of ZGC (one memfd, before JDK 21's generational
//! ZGC at three addresses). No other process maps such a file as a rule, so the count of each page is how often the process
//! itself has it in its page tables, which the runs tell. A sample of pages is looked up to see whether that is true;
//! reading the word of every page of a large heap would take longer than all the rest.

use super::machine::base_page;
use super::maps::{Mapping, find_mapping};
use super::page_run::{PageRun, push_run};
use super::pagemap_words::Words;
use crate::base::{Addr, Range};
use std::collections::HashMap;

/// Smaller files are looked up page by page.
const LARGE_FILE_BYTES: u64 = 32 << 20;
/// Pages of one file that are looked up.
const SAMPLES: u64 = 256;

/// The present pages of one file: which run, and the run's place in the file.
#[derive(Default)]
struct Mapped {
    runs: Vec<(usize, Range)>,
}

/// A piece of a run, and how often the process maps its pages.
type Piece = (Range, u32);

/// Sets `mapped_times` of the runs of large shared files that no other process maps, cut where it changes. `count` gives the
/// count of one frame.
pub fn fill(
    words: &Words,
    mappings: &[Mapping],
    runs: &mut Vec<PageRun>,
    count: &dyn Fn(u64) -> Option<u32>,
) {
    let mut counted: HashMap<usize, Vec<Piece>> = HashMap::new();
    for file in files(mappings, runs).into_values() {
        let bytes: u64 = file.runs.iter().map(|(_, place)| place.bytes()).sum();
        if bytes < LARGE_FILE_BYTES {
            continue;
        }
        let pieces = file.pieces(runs);
        if is_true(words, pieces.iter().flat_map(|(_, pieces)| pieces), bytes, count) {
            counted.extend(pieces);
        }
    }
    if counted.is_empty() {
        return;
    }
    let mut cut = Vec::with_capacity(runs.len());
    for (index, run) in runs.iter().enumerate() {
        match counted.get(&index) {
            Some(pieces) => pieces.iter().for_each(|(range, mapped_times)| {
                push_run(&mut cut, PageRun { range: *range, mapped_times: *mapped_times, ..*run }, run.range);
            }),
            None => cut.push(*run),
        }
    }
    *runs = cut;
}

fn files<'a>(mappings: &'a [Mapping], runs: &[PageRun]) -> HashMap<(&'a str, u64), Mapped> {
    let mut files: HashMap<_, Mapped> = HashMap::new();
    let is_counted = |run: &PageRun| run.is_present() && run.is_placed() && run.is_file();
    for (index, run) in runs.iter().enumerate().filter(|(_, run)| is_counted(run)) {
        let Some(mapping) = find_mapping(mappings, run.range.start) else { continue };
        if mapping.rights.shared && mapping.is_file() {
            let start = mapping.offset.saturating_add(run.range.start.0 - mapping.range.start.0);
            let place = Range::sized(Addr(start), run.range.bytes());
            files.entry((mapping.device.as_str(), mapping.inode)).or_default().runs.push((index, place));
        }
    }
    files
}

impl Mapped {
    /// Every run cut where the number of runs at the same place of the file changes.
    fn pieces(&self, runs: &[PageRun]) -> Vec<(usize, Vec<Piece>)> {
        let mut changes: Vec<(u64, i64)> =
            self.runs.iter().flat_map(|(_, place)| [(place.start.0, 1), (place.end.0, -1)]).collect();
        changes.sort_unstable();
        // From this place of the file on, this many.
        let mut steps: Vec<(u64, u32)> = Vec::new();
        let mut now = 0_i64;
        for (at, change) in changes {
            now += change;
            match steps.last_mut() {
                Some(step) if step.0 == at => step.1 = now.max(0) as u32,
                _ => steps.push((at, now.max(0) as u32)),
            }
        }
        self.runs
            .iter()
            .filter_map(|(index, place)| {
                let base = runs.get(*index)?.range.start;
                let first = steps.partition_point(|(at, _)| *at < place.start.0);
                let within = steps[first..].iter().take_while(|(at, _)| *at < place.end.0);
                let starts: Vec<(u64, u32)> = within.copied().collect();
                let ends = starts.iter().skip(1).map(|(at, _)| *at).chain([place.end.0]);
                let pieces = starts.iter().zip(ends).map(|((start, times), end)| {
                    (Range::sized(base.plus(start - place.start.0), end - start), *times)
                });
                Some((*index, pieces.collect()))
            })
            .collect()
    }
}

/// Whether every page of a sample is mapped as often as its piece says.
fn is_true<'a>(
    words: &Words,
    pieces: impl Iterator<Item = &'a Piece>,
    bytes: u64,
    count: &dyn Fn(u64) -> Option<u32>,
) -> bool {
    let stride = (bytes / SAMPLES).max(base_page());
    let (mut passed, mut next) = (0, stride / 2);
    for (range, times) in pieces {
        while next < passed + range.bytes() {
            let at = range.start.plus(next - passed).down_to(base_page());
            next += stride;
            let Ok(word) = words.word(at) else { return false };
            let is_as_said = match times {
                _ if !word.is_present() => true,
                1 => word.is_exclusive(),
                times => word.frame().and_then(count) == Some(*times),
            };
            if !is_as_said {
                return false;
            }
        }
        passed += range.bytes();
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_views_of_a_heap_that_overlap_in_part() {
        let run = |start: u64, end: u64| PageRun {
            range: Range::of(start, end),
            bits: PageRun::PRESENT | PageRun::FILE,
            page_bytes: 4096,
            mapped_times: 0,
        };
        let runs = [run(0x10000, 0x14000), run(0x20000, 0x22000), run(0x31000, 0x32000)];
        let place = |start, end| Range::of(start, end);
        let file =
            Mapped { runs: vec![(0, place(0, 0x4000)), (1, place(0, 0x2000)), (2, place(0x1000, 0x2000))] };
        let pieces: HashMap<usize, Vec<Piece>> = file.pieces(&runs).into_iter().collect();
        let of = |start: u64, end: u64| Range::of(start, end);
        assert_eq!(
            pieces[&0],
            [(of(0x10000, 0x11000), 2), (of(0x11000, 0x12000), 3), (of(0x12000, 0x14000), 1)]
        );
        assert_eq!(pieces[&1], [(of(0x20000, 0x21000), 2), (of(0x21000, 0x22000), 3)]);
        assert_eq!(pieces[&2], [(of(0x31000, 0x32000), 3)]);
    }
}
