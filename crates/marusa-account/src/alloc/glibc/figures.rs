//! What the walk found, summed up: the ranges of each heap by the state of their bytes, and the figures of each arena.

use super::chunk_entries::Entries;
use super::chunk_map::{CHUNK_BYTES_MIN, CODES, Code, Entry, HEADER_BYTES};
use super::region::{Piece, Region};
use crate::alloc::types::{ArenaFigures, BlockCount, ChunkCount, Interval, State};
use crate::base::blocks::LABELS_MAX;
use crate::base::{Addr, Bytes, Range};
use crate::os::machine::base_page;

/// `sizeof (struct malloc_chunk)`, which malloc_trim leaves at the start of a free chunk.
const KEPT_BY_TRIM_BYTES: Bytes = 48;

/// What one region adds to the sums.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    pub intervals: Vec<Interval>,
    pub figures: ArenaFigures,
    /// By label.
    pub in_use: Vec<BlockCount>,
}

/// Free chunks in a row.
#[derive(Default)]
struct FreeRun {
    range: Option<Range>,
    /// The same, of chunks that malloc_trim looks at: those in bins, and in fastbins, which it empties first.
    trimmable: Option<Range>,
}

struct Summing<'a> {
    region: &'a Region,
    is_main: bool,
    sums: Sums,
    /// All chunks by code.
    counts: [ChunkCount; CODES],
    /// Bytes of the current piece by code.
    bytes: [Bytes; CODES],
    piece: usize,
    /// Where it ends.
    piece_end: Addr,
    slack: usize,
    free: FreeRun,
    /// The piece in which the last free run began.
    run_piece: usize,
    /// For a part that begins within a piece: the bytes of that piece, which the part before it adds to its own.
    shared: Option<[Bytes; CODES]>,
    is_past_shared: bool,
}

/// The sums of one region.
pub fn sum(region: &Region) -> Sums {
    let mut summing = Summing::of(region, 0);
    summing.add_all(region.map.entries(), region.map.range().end);
    summing.finish()
}

/// The same by two threads. The second one begins with a block in use, so that no run of free chunks is cut.
pub fn sum_by_two(region: &Region) -> Sums {
    let middle = region.map.range().start.plus(region.map.range().bytes() / 2);
    let is_used = |entry: &Entry| entry.code.label().is_some() && entry.range.start >= middle;
    let cut = region.map.entries_from(middle).find(is_used).map(|entry| entry.range.start);
    let piece = cut.and_then(|cut| region.pieces.iter().position(|piece| piece.range.has(cut)));
    let (Some(cut), Some(piece)) = (cut, piece) else { return sum(region) };
    let mut first = Summing::of(region, 0);
    let second = std::thread::scope(|scope| {
        // On its own stack: two threads that write to one line of the cache wait for each other.
        let other = scope.spawn(|| {
            let mut second = Summing::of(region, piece);
            second.slack = region.slack.partition_point(|slack| slack.piece as usize <= piece);
            second.shared = Some([0; CODES]);
            second.add_all(region.map.entries_from(cut), region.map.range().end);
            second.close_piece();
            second
        });
        first.add_all(region.map.entries(), cut);
        other.join().ok()
    });
    match second.filter(|_| first.piece == piece) {
        Some(second) => first.join(second),
        None => return sum(region),
    }
    first.finish()
}

fn is_trimmed(code: Code) -> bool {
    matches!(code, Code::FAST | Code::UNSORTED | Code::SMALL | Code::LARGE | Code::UNLISTED)
}

impl<'a> Summing<'a> {
    /// From piece `piece` on.
    fn of(region: &'a Region, piece: usize) -> Summing<'a> {
        Summing {
            region,
            is_main: region.plan.arena == 0,
            sums: Sums { in_use: vec![BlockCount::default(); LABELS_MAX], ..Sums::default() },
            counts: [ChunkCount::default(); CODES],
            bytes: [0; CODES],
            piece,
            piece_end: region.pieces.get(piece).map_or(Addr::NULL, |piece| piece.range.end),
            slack: 0,
            free: FreeRun::default(),
            run_piece: 0,
            shared: None,
            is_past_shared: false,
        }
    }

    /// The entries that begin before `end`.
    fn add_all(&mut self, entries: Entries, end: Addr) {
        for entry in entries {
            if entry.range.start >= end {
                break;
            }
            self.add(entry);
        }
        self.close_free_run();
    }

    /// Adds what follows this part.
    fn join(&mut self, next: Summing) {
        for (bytes, more) in self.bytes.iter_mut().zip(next.shared.unwrap_or([0; CODES])) {
            *bytes += more;
        }
        for (count, more) in self.counts.iter_mut().zip(next.counts) {
            *count = ChunkCount { chunks: count.chunks + more.chunks, bytes: count.bytes + more.bytes };
        }
        self.close_piece();
        self.sums.intervals.extend(next.sums.intervals);
        self.sums.figures.add(&next.sums.figures);
        (self.piece, self.piece_end) = (next.piece, next.piece_end);
    }

    fn finish(mut self) -> Sums {
        self.close_piece();
        Code::all().for_each(|code| self.count(code));
        for slack in &self.region.slack {
            let count = &mut self.sums.in_use[slack.label as usize % LABELS_MAX];
            let bytes = slack.bytes.min(count.bytes);
            count.bytes -= bytes;
            self.sums.figures.overhead_bytes += bytes;
        }
        let used = self.sums.in_use.iter().rposition(|count| count.blocks > 0);
        self.sums.in_use.truncate(used.map_or(0, |last| last + 1));
        self.sums.figures.retries = self.region.retries;
        self.beyond();
        self.sums
    }

    #[inline(always)]
    fn add(&mut self, entry: Entry) {
        let Entry { range, code } = entry;
        let bytes = range.bytes();
        let count = &mut self.counts[code.index() % CODES];
        *count = ChunkCount { chunks: count.chunks + 1, bytes: count.bytes + bytes };
        match code.label() {
            // All in this piece, as most are.
            Some(_) if bytes >= HEADER_BYTES && range.end < self.piece_end => {
                self.bytes[Code::OVERHEAD.index()] += HEADER_BYTES;
                self.bytes[code.index() % CODES] += bytes - HEADER_BYTES;
            }
            Some(_) => {
                self.lay(Range::new(range.start, range.start.plus(HEADER_BYTES)), Code::OVERHEAD);
                self.lay(Range::new(range.start.plus(HEADER_BYTES), range.end), code);
            }
            None => self.lay(range, code),
        }
        if code.label().is_none() && code.state().is_free() {
            self.extend_free_run(range, code);
        } else if self.free.range.is_some() {
            self.close_free_run();
        }
    }

    /// Adds all chunks of this code to the figures.
    fn count(&mut self, code: Code) {
        let ChunkCount { chunks, bytes } = self.counts[code.index() % CODES];
        let figures = &mut self.sums.figures;
        let of = &mut figures.chunks;
        let count = match code.state() {
            State::InUse(label) => {
                let count = &mut self.sums.in_use[label as usize];
                let headers = (chunks * HEADER_BYTES).min(bytes);
                count.blocks += chunks;
                count.bytes += bytes - headers;
                figures.overhead_bytes += headers;
                &mut of.in_use
            }
            State::Tcache => &mut of.tcache,
            State::Fast => &mut of.fast,
            State::Unsorted => &mut of.unsorted,
            State::Small => &mut of.small,
            State::Large => &mut of.large,
            State::Unlisted => &mut of.unlisted,
            State::Top => &mut of.top,
            State::Unresolved => {
                figures.unresolved_bytes += bytes;
                return;
            }
            State::Overhead | State::Beyond | State::NotWalked => {
                figures.overhead_bytes += bytes;
                return;
            }
        };
        *count = ChunkCount { chunks: count.chunks + chunks, bytes: count.bytes + bytes };
    }

    /// Gives `range`, which begins where the last one ended, to `code`.
    #[inline]
    fn lay(&mut self, range: Range, code: Code) {
        let mut from = range.start;
        while let Some(piece) = self.region.pieces.get(self.piece) {
            if range.end < piece.range.end {
                self.bytes[code.index()] += range.end.0 - from.0;
                return;
            }
            self.bytes[code.index()] += piece.range.end.0.saturating_sub(from.0);
            from = piece.range.end.max(from);
            self.close_piece();
        }
    }

    fn close_piece(&mut self) {
        let Some(piece) = self.region.pieces.get(self.piece) else { return };
        if self.shared.is_some() && !self.is_past_shared {
            self.is_past_shared = true;
            self.shared = Some(self.bytes);
            self.next_piece();
            return;
        }
        while let Some(slack) =
            self.region.slack.get(self.slack).filter(|slack| slack.piece as usize <= self.piece)
        {
            // A block that was given to another owner since keeps what is its own.
            let bytes = &mut self.bytes[Code::in_use(slack.label).index()];
            let moved = slack.bytes.min(*bytes);
            *bytes -= moved;
            self.bytes[Code::OVERHEAD.index()] += moved;
            self.slack += 1;
        }
        let share = |code: Code| (code.state(), self.bytes[code.index()]);
        let mut shares: Vec<(State, Bytes)> =
            Code::all().map(share).filter(|(_, bytes)| *bytes > 0).collect();
        shares.sort_by_key(|(state, _)| *state);
        if !shares.is_empty() {
            self.sums.intervals.push(Interval {
                range: piece.range,
                arena: Some(self.region.plan.arena),
                shares,
            });
        }
        self.next_piece();
    }

    fn next_piece(&mut self) {
        self.bytes = [0; CODES];
        self.piece += 1;
        self.piece_end = self.region.pieces.get(self.piece).map_or(Addr::NULL, |piece| piece.range.end);
    }

    fn extend_free_run(&mut self, range: Range, code: Code) {
        match &mut self.free.range {
            Some(run) => run.end = range.end,
            None => {
                self.free.range = Some(range);
                self.run_piece = self.piece_of(range.start);
            }
        }
        match &mut self.free.trimmable {
            Some(run) if is_trimmed(code) => run.end = range.end,
            None if is_trimmed(code) => self.free.trimmable = Some(range),
            _ if code == Code::TOP => self.close_top(range),
            _ => self.close_trimmable(),
        }
    }

    fn piece_of(&self, at: Addr) -> usize {
        let pieces = &self.region.pieces;
        match pieces.get(self.run_piece).filter(|piece| piece.range.has(at)) {
            Some(_) => self.run_piece,
            None => pieces.partition_point(|piece| piece.range.end <= at),
        }
    }

    /// Resident bytes of `range`, which lies in the current free run.
    fn resident(&self, range: Range) -> Bytes {
        let first = self.run_piece.min(self.region.pieces.len());
        let within = self.region.pieces[first..].iter();
        if range.is_empty() {
            return 0;
        }
        let here = within.take_while(|piece| piece.range.start < range.end).filter(|piece| piece.is_resident);
        here.map(|piece: &Piece| piece.range.intersect(range).bytes()).sum()
    }

    fn close_free_run(&mut self) {
        self.close_trimmable();
        let Some(run) = self.free.range.take() else { return };
        self.sums.figures.free_resident_bytes += self.resident(run);
        self.sums.figures.free_whole_page_bytes += self.resident(inner(run));
    }

    fn close_trimmable(&mut self) {
        if let Some(run) = self.free.trimmable.take() {
            let pages = inner(Range::new(run.start.plus(KEPT_BY_TRIM_BYTES), run.end));
            self.sums.figures.trimmable_bytes += self.resident(pages);
        }
    }

    /// malloc_trim merges chunks of fastbins with top and gives back the main arena's top, by whole pages from its end,
    /// less MINSIZE and one byte (malloc/malloc.c, `systrim`).
    fn close_top(&mut self, top: Range) {
        let joined = Range::new(self.free.trimmable.take().map_or(top.start, |run| run.start), top.end);
        let pages = Range::new(joined.start.plus(CHUNK_BYTES_MIN + 1).up_to(base_page()), joined.end);
        let bytes = self.resident(pages);
        match self.is_main {
            true => self.sums.figures.trimmable_bytes += bytes,
            false => self.sums.figures.top_kept_bytes += bytes,
        }
    }

    /// What lies behind the heap in its reservation.
    fn beyond(&mut self) {
        let ranges = &self.region.plan.ranges;
        let arena = Some(self.region.plan.arena);
        for piece in self.region.pieces.iter().filter(|piece| piece.range.start >= ranges.in_arena.end) {
            let shares = vec![(State::Beyond, piece.range.bytes())];
            self.sums.intervals.push(Interval { range: piece.range, arena, shares });
        }
    }
}

/// The whole pages within `range`.
fn inner(range: Range) -> Range {
    Range::new(range.start.up_to(base_page()), range.end.down_to(base_page()))
}

impl ArenaFigures {
    /// Adds what another heap of the same arena has.
    pub fn add(&mut self, other: &ArenaFigures) {
        let (sums, more) = (&mut self.chunks, other.chunks);
        let pairs = [
            (&mut sums.in_use, more.in_use),
            (&mut sums.tcache, more.tcache),
            (&mut sums.fast, more.fast),
            (&mut sums.unsorted, more.unsorted),
            (&mut sums.small, more.small),
            (&mut sums.large, more.large),
            (&mut sums.unlisted, more.unlisted),
            (&mut sums.top, more.top),
        ];
        for (sum, more) in pairs {
            *sum = ChunkCount { chunks: sum.chunks + more.chunks, bytes: sum.bytes + more.bytes };
        }
        self.overhead_bytes += other.overhead_bytes;
        self.unresolved_bytes += other.unresolved_bytes;
        self.free_resident_bytes += other.free_resident_bytes;
        self.free_whole_page_bytes += other.free_whole_page_bytes;
        self.trimmable_bytes += other.trimmable_bytes;
        self.top_kept_bytes += other.top_kept_bytes;
        self.retries += other.retries;
    }
}
