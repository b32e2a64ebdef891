//! All regions, by two threads. A large region is cut at places that need not begin an object: such a part is walked from the
//! first object that seems to begin in it, and counts only if the walk of the part before arrives exactly there; else it is
//! walked again from where that one arrived.

use super::classes::ClassTable;
use super::duplicates::Texts;
use super::on_pages::OnSize;
use super::region::{Lie, Region};
use super::source::Source;
use super::walk::{Count, Walked, Walker};
use crate::base::{Addr, Gap, Known, Range, Why};
use crate::jvm::HeapBytes;
use crate::os::budget;
use std::collections::HashMap;

const PART_BYTES: u64 = 16 << 20;
/// Numbers of parts are 4 bytes; a heap of 16 TiB has a million.
const PARTS_MAX: usize = 4 << 20;

/// What was found in one region.
#[derive(Clone, Debug, Default)]
pub struct Contents {
    pub bytes: HeapBytes,
    pub instances: u64,
    pub counts: Vec<(u32, Count)>,
    pub on_pages: Vec<OnSize>,
    /// The marks of some part could not be read.
    pub is_unmarked: bool,
    pub texts: Texts,
}

impl Contents {
    fn add(&mut self, bytes: &HeapBytes, walked: Option<Walked>) {
        self.bytes.add(bytes);
        if let Some(walked) = walked {
            self.instances += walked.counts.iter().map(|(_, count)| count.instances).sum::<u64>();
            self.counts.extend_from_slice(&walked.counts);
            self.on_pages.extend_from_slice(&walked.on_pages);
            self.is_unmarked |= walked.is_unmarked;
            self.texts.add(walked.texts);
        }
    }

    /// One count for each class.
    fn settled(mut self, range: Range) -> Contents {
        let mut sums: HashMap<u32, Count> = HashMap::with_capacity(self.counts.len());
        self.counts.drain(..).for_each(|(number, count)| sums.entry(number).or_default().add(&count));
        self.counts = sums.into_iter().collect();
        let mut sums: HashMap<(u32, u8), u64> = HashMap::new();
        self.on_pages
            .drain(..)
            .for_each(|(number, size, bytes)| *sums.entry((number, size)).or_default() += bytes);
        self.on_pages = sums.into_iter().map(|((number, size), bytes)| (number, size, bytes)).collect();
        self.bytes.used_bytes = range.bytes();
        self
    }
}

/// A region's number, and the part of it.
type Task = (usize, Range);

/// What is in the regions, one after the other. `source`: for each thread.
pub fn contents<'a>(
    table: &ClassTable,
    regions: &[Region],
    threads: usize,
    source: &(dyn Fn() -> Box<dyn Source + 'a> + Sync),
) -> Known<Vec<Contents>> {
    let tasks: Vec<Task> = regions.iter().enumerate().flat_map(parts).take(PARTS_MAX).collect();
    let walked = walked(table, regions, &tasks, threads, source)?;
    let mut walker = Walker::new(table, source());
    let mut found = vec![Contents::default(); regions.len()];
    let mut parts = tasks.iter().zip(walked).peekable();
    for (number, region) in regions.iter().enumerate() {
        let mut arrived = Some(region.range.start.0);
        while let Some(((_, part), walked)) = parts.next_if(|((of, _), _)| *of == number) {
            arrived = add(&mut found[number], &mut walker, region, *part, arrived, walked);
        }
        found[number] = std::mem::take(&mut found[number]).settled(region.range);
    }
    Ok(found)
}

fn parts((number, region): (usize, &Region)) -> Vec<Task> {
    let range = region.range;
    if region.lie == Lie::Single {
        return vec![(number, range)];
    }
    let starts = (range.start.0..range.end.0).step_by(PART_BYTES as usize);
    let part = |start: u64| Range::new(Addr(start), Addr((start + PART_BYTES).min(range.end.0)));
    starts.map(|start| (number, part(start))).collect()
}

/// Adds a part of the region to what is known of it; `arrived`: where the walk of what is before ended. Gives where this one does.
fn add(
    into: &mut Contents,
    walker: &mut Walker,
    region: &Region,
    part: Range,
    arrived: Option<u64>,
    walked: Walked,
) -> Option<u64> {
    let walked = match arrived {
        Some(at) if at >= part.end.0 => return arrived,
        Some(at) if walked.first == Some(at) => walked,
        Some(at) => walker.walk(region, part, Some(at)),
        None => {
            into.add(&walked.lead, None);
            walked
        }
    };
    let (bytes, next) = (walked.bytes, walked.next);
    into.add(&bytes, Some(walked));
    next
}

fn walked<'a>(
    table: &ClassTable,
    regions: &[Region],
    tasks: &[Task],
    threads: usize,
    source: &(dyn Fn() -> Box<dyn Source + 'a> + Sync),
) -> Known<Vec<Walked>> {
    let worker = || {
        let mut walker = Walker::new(table, source());
        move |index: usize| {
            let (number, part) = tasks[index];
            let region = &regions[number];
            // A region begins with an object.
            let from = (part.start == region.range.start).then_some(part.start.0);
            Ok(walker.walk(region, part, from))
        }
    };
    budget::divided(tasks.len(), threads > 1, Gap::new("objects of the heap", Why::Torn), worker)
}
