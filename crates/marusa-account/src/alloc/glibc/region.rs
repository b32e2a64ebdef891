//! One heap of an arena: what is to be walked, and what the walk found in it.

use super::chunk_map::{ChunkMap, Code, HEADER_BYTES};
use super::known_links::KnownLinks;
use super::links::Linking;
use crate::alloc::types::ArenaHeap;
use crate::base::blocks::{Label, Move};
use crate::base::{Addr, Bytes, Range};
use crate::os::memory::Fault;

/// How far apart the places are to which a broken walk goes back.
const CHECKPOINT_BYTES: u64 = 64 << 10;

/// What is walked.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Index into the arenas of the view, and into their heaps.
    pub arena: usize,
    pub heap: usize,
    pub ranges: ArenaHeap,
    pub first_chunk: Addr,
    pub kept: KeptLinks,
}

/// Which links of free chunks are worth keeping: those of lists that have chunks.
#[derive(Clone, Copy, Debug, Default)]
pub struct KeptLinks {
    pub unsorted: bool,
    pub fast: Option<Linking>,
}

/// Memory in a row whose pages are alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    pub range: Range,
    pub is_resident: bool,
}

/// What blocks of one label were rounded up by, within one piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slack {
    pub piece: u32,
    pub label: Label,
    pub bytes: Bytes,
}

/// A heap that was walked.
pub struct Region {
    pub plan: Plan,
    pub map: ChunkMap,
    pub pieces: Vec<Piece>,
    pub slack: Vec<Slack>,
    /// Chunks that have the size of a thread cache's own structure.
    pub caches: Vec<Addr>,
    pub links: KnownLinks,
    /// What was resident when it was walked.
    pub resident: Vec<Range>,
    /// Where the walk broke first, and why, if it did.
    pub broken: Option<Fault>,
    pub retries: u64,
    checkpoints: Vec<Checkpoint>,
}

/// What a region had when its walk came by here.
#[derive(Clone, Debug)]
struct Checkpoint {
    at: Addr,
    slack: usize,
    /// The slack of the piece that was not done yet.
    last_slack: Vec<Slack>,
    caches: usize,
    links: usize,
}

impl Region {
    pub fn new(plan: Plan, pieces: Vec<Piece>) -> Region {
        let map = ChunkMap::of(plan.ranges.in_arena);
        let (slack, caches, resident) = (Vec::new(), Vec::new(), Vec::new());
        let links = KnownLinks::of(map.range().start);
        let checkpoints = Vec::new();
        Region { plan, map, pieces, slack, caches, links, resident, broken: None, retries: 0, checkpoints }
    }

    /// The part from `middle` on, in which `join` is taken for the first chunk, for another thread.
    pub fn second_part(&self, middle: Addr, join: Addr) -> Region {
        let mut part = Region::new(Plan { first_chunk: join, ..self.plan.clone() }, self.pieces.clone());
        part.map = ChunkMap::of(Range::new(middle, self.map.range().end));
        part.resident = self.resident.clone();
        part
    }

    /// Takes over what another thread found in `part` from `join` on, up to which this one was walked.
    pub fn append(&mut self, part: Region, join: Addr) {
        self.map.take_over(&part.map, join);
        self.slack.extend(part.slack);
        self.caches.extend(part.caches);
        self.links.append(part.links);
    }

    pub fn set_checkpoint(&mut self, at: Addr) {
        if self.checkpoints.last().is_some_and(|last| at.0 - last.at.0 < CHECKPOINT_BYTES) {
            return;
        }
        let piece = self.slack.last().map(|slack| slack.piece);
        let done = self.slack.iter().rposition(|slack| Some(slack.piece) != piece).map_or(0, |last| last + 1);
        self.checkpoints.push(Checkpoint {
            at,
            slack: done,
            last_slack: self.slack[done..].to_vec(),
            caches: self.caches.len(),
            links: self.links.count(),
        });
    }

    /// Goes back by a number of checkpoints, or to the first chunk; returns where that is.
    pub fn rewind(&mut self, checkpoints: usize) -> Addr {
        let left = self.checkpoints.len().saturating_sub(checkpoints);
        let to = self.checkpoints.get(left).cloned();
        self.checkpoints.truncate(left);
        let at = to.as_ref().map_or(self.plan.first_chunk, |checkpoint| checkpoint.at);
        self.map.clear_from(at);
        let (slack, caches, links) = to.as_ref().map_or((0, 0, 0), |to| (to.slack, to.caches, to.links));
        self.slack.truncate(slack);
        self.slack.extend(to.map(|to| to.last_slack).unwrap_or_default());
        self.caches.truncate(caches);
        self.links.truncate(links);
        at
    }

    /// Notes that `range` is what a block of `label` was rounded up by. Called in rising order.
    pub fn round_up(&mut self, range: Range, label: Label) {
        let mut index = match self.slack.last() {
            Some(last) if self.pieces[last.piece as usize].range.end > range.start => last.piece as usize,
            _ => self.pieces.partition_point(|piece| piece.range.end <= range.start),
        };
        while let Some(piece) = self.pieces.get(index).filter(|piece| piece.range.start < range.end) {
            let bytes = piece.range.intersect(range).bytes();
            let here = self.slack.iter_mut().rev().take_while(|slack| slack.piece as usize == index);
            match here.into_iter().find(|slack| slack.label == label) {
                Some(slack) => slack.bytes += bytes,
                None => self.slack.push(Slack { piece: index as u32, label, bytes }),
            }
            index += 1;
        }
    }

    /// Gives blocks of `from` to other owners, with what each was rounded up by. `moves` are in rising order.
    pub fn hand_over(&mut self, from: Label, moves: &[Move]) {
        let mut moved: Vec<Slack> = Vec::new();
        for one in moves {
            let chunk = one.payload.minus(2 * HEADER_BYTES);
            if self.map.get(chunk).and_then(Code::label) != Some(from) {
                continue;
            }
            let end = self.map.end_of(chunk);
            self.map.relabel(chunk, Code::in_use(one.to));
            let start = Addr(end.0.saturating_sub(one.slack)).max(chunk);
            self.move_slack(Range::new(start, end), from, one.to, &mut moved);
        }
        self.slack.extend(moved);
        self.slack.retain(|slack| slack.bytes > 0);
        self.slack.sort_by_key(|slack| slack.piece);
    }

    /// Takes the slack in `range` from one owner and adds it to `moved` for another.
    fn move_slack(&mut self, range: Range, from: Label, to: Label, moved: &mut Vec<Slack>) {
        let first = self.pieces.partition_point(|piece| piece.range.end <= range.start);
        let pieces = self.pieces[first..].iter().take_while(|piece| piece.range.start < range.end);
        for (index, piece) in (first..).zip(pieces) {
            let start = self.slack.partition_point(|slack| (slack.piece as usize) < index);
            let mut here = self.slack[start..].iter_mut().take_while(|slack| slack.piece as usize == index);
            let Some(slack) = here.find(|slack| slack.label == from) else { continue };
            let bytes = piece.range.intersect(range).bytes().min(slack.bytes);
            slack.bytes -= bytes;
            let mut last = moved.iter_mut().rev().take_while(|slack| slack.piece as usize == index);
            match last.find(|slack| slack.label == to) {
                Some(slack) => slack.bytes += bytes,
                None => moved.push(Slack { piece: index as u32, label: to, bytes }),
            }
        }
    }
}
