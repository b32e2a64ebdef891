//! What malloc_trim would give back, arena by arena, what it leaves, what came back in the end, and what would keep the
//! memory from being held. Pure: from snapshots alone.

use crate::alloc::{AllocView, Arena, ArenaFigures, thread_arena};
use crate::base::{Addr, Bytes, Gap, Known, Why};
use crate::os::memory::Memory;
use crate::snapshot::Snapshot;

/// What is free but resident, and what of it malloc_trim would give back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prediction {
    /// "glibc 2.36".
    pub allocator: String,
    pub arenas: Vec<ArenaPrediction>,
    /// Sums over the arenas that were walked.
    pub total: Held,
    /// Arenas that could not be walked: what they would give back is not in the sums.
    pub unread: usize,
    /// What the JVM will hold of the memory to come back while it answers; taken off the sums.
    pub answer_buffer_bytes: Bytes,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArenaPrediction {
    /// 0 is the main arena.
    pub number: usize,
    pub at: Addr,
    pub attached_threads: Option<u64>,
    pub system_bytes: Bytes,
    pub held: Known<Held>,
    /// It has a free chunk of at least this size.
    largest_chunk_bytes_min: Bytes,
}

/// Free memory that an arena holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, schemars::JsonSchema, serde::Serialize)]
pub struct Held {
    pub in_use_bytes: Bytes,
    pub free_bytes: Bytes,
    pub free_resident_bytes: Bytes,
    pub trimmable_bytes: Bytes,
    /// Tops of thread arenas: whole resident pages that malloc_trim leaves.
    pub top_kept_bytes: Bytes,
}

impl Held {
    fn of(arena: &Arena) -> Known<Held> {
        let figures = arena.figures.clone()?;
        let chunks = figures.chunks;
        Ok(Held {
            in_use_bytes: chunks.in_use.bytes,
            free_bytes: chunks.free_bytes().saturating_add(chunks.tcache.bytes),
            free_resident_bytes: figures.free_resident_bytes,
            trimmable_bytes: figures.trimmable_bytes,
            top_kept_bytes: figures.top_kept_bytes,
        })
    }

    fn add(&mut self, other: &Held) {
        for (sum, more) in [
            (&mut self.in_use_bytes, other.in_use_bytes),
            (&mut self.free_bytes, other.free_bytes),
            (&mut self.free_resident_bytes, other.free_resident_bytes),
            (&mut self.trimmable_bytes, other.trimmable_bytes),
            (&mut self.top_kept_bytes, other.top_kept_bytes),
        ] {
            *sum = sum.saturating_add(more);
        }
    }

    /// Free and resident, but on pages that blocks in use share, or in lists that malloc_trim does not look at.
    pub fn scattered_bytes(&self) -> Bytes {
        self.free_resident_bytes.saturating_sub(self.trimmable_bytes).saturating_sub(self.top_kept_bytes)
    }
}

/// What malloc_trim would do to the process of `snapshot`. Fails where its malloc is not glibc's, or no arena was walked.
pub fn predict(snapshot: &Snapshot) -> Known<Prediction> {
    let alloc = snapshot.alloc.as_ref().map_err(Gap::clone)?;
    if !alloc.allocator.starts_with("glibc") {
        return Err(not_glibc(alloc));
    }
    let arenas: Vec<ArenaPrediction> = alloc.arenas.iter().map(ArenaPrediction::of).collect();
    let mut total = Held::default();
    arenas.iter().flat_map(|arena| &arena.held).for_each(|held| total.add(held));
    let unread = arenas.iter().filter(|arena| arena.held.is_err()).count();
    match arenas.first() {
        Some(ArenaPrediction { held: Err(gap), .. }) if unread == arenas.len() => Err(gap.clone()),
        None => Err(Gap::new("arenas of malloc", Why::NotInThisRuntime)
            .hint("this process never used glibc's malloc")),
        _ => {
            let allocator = alloc.allocator.clone();
            Ok(Prediction { allocator, arenas, total, unread, answer_buffer_bytes: 0 })
        }
    }
}

/// Other allocators give memory back by themselves, each by its own option.
fn not_glibc(alloc: &AllocView) -> Gap {
    let name = &alloc.allocator;
    let hint = match name.split(' ').next().unwrap_or_default() {
        "jemalloc" => "jemalloc gives back by itself: MALLOC_CONF=background_thread:true,dirty_decay_ms:1000",
        "tcmalloc" => "tcmalloc gives back by itself: TCMALLOC_RELEASE_RATE=10",
        "mimalloc" => "mimalloc gives back by itself: MIMALLOC_PURGE_DELAY=0",
        _ => "malloc_trim is glibc's alone",
    };
    Gap::new(format!("malloc of this process is {name}, which has no malloc_trim"), Why::NotInThisRuntime)
        .hint(hint)
}

impl ArenaPrediction {
    fn of(arena: &Arena) -> ArenaPrediction {
        ArenaPrediction {
            number: arena.number,
            at: arena.at,
            attached_threads: arena.attached_threads,
            system_bytes: arena.system_bytes,
            held: Held::of(arena),
            largest_chunk_bytes_min: arena.figures.as_ref().map_or(0, largest_chunk_bytes_min),
        }
    }
}

/// The largest of some chunks is at least as large as their mean.
fn largest_chunk_bytes_min(figures: &ArenaFigures) -> Bytes {
    let mean = |count: crate::alloc::ChunkCount| count.bytes.checked_div(count.chunks).unwrap_or(0);
    mean(figures.chunks.unsorted).max(mean(figures.chunks.large))
}

/// What a JVM allocates for its answer before it runs a command: `initial_size` in attachListener.cpp, `thread_entry`. In 21.0.8
/// and 25; up to 17 it is 256 bytes.
const ANSWER_BUFFER_BYTES: Bytes = 1 << 20;
const ANSWER_BUFFER_SINCE: u32 = 21;

/// Takes off what the JVM will hold while it answers, if its Attach Listener will take that from memory that would come
/// back: from a chunk in a bin of its arena. The memory is free again afterwards, and resident.
pub fn without_answer_buffer(
    mut prediction: Prediction,
    snapshot: &Snapshot,
    memory: &dyn Memory,
) -> Prediction {
    let number = listener_arena(snapshot, memory);
    let arena = prediction.arenas.iter_mut().find(|arena| Some(arena.number) == number);
    let Some(ArenaPrediction { held: Ok(held), largest_chunk_bytes_min, .. }) = arena else {
        return prediction;
    };
    if *largest_chunk_bytes_min <= ANSWER_BUFFER_BYTES {
        return prediction;
    }
    let taken = held.trimmable_bytes.min(ANSWER_BUFFER_BYTES);
    held.trimmable_bytes -= taken;
    prediction.total.trimmable_bytes = prediction.total.trimmable_bytes.saturating_sub(taken);
    prediction.answer_buffer_bytes = taken;
    prediction
}

/// The arena of the thread that executes the commands, where it runs already and has such a buffer.
fn listener_arena(snapshot: &Snapshot, memory: &dyn Memory) -> Option<usize> {
    let jvm = snapshot.jvm.as_ref().ok()?;
    if jvm.major.as_ref().is_ok_and(|major| *major < ANSWER_BUFFER_SINCE) {
        return None;
    }
    let listener = jvm.threads.iter().find(|thread| thread.name == "Attach Listener")?;
    let stack = *listener.stack.as_ref().ok()?;
    thread_arena::of(memory, stack, &snapshot.alloc.as_ref().ok()?.arenas)
}

/// What came back, against what was predicted.
#[derive(Clone, Debug, PartialEq, Eq, schemars::JsonSchema, serde::Serialize)]
pub struct Outcome {
    #[serde(serialize_with = "crate::base::or_null")]
    #[schemars(with = "Option<Bytes>")]
    pub predicted_bytes: Known<Bytes>,
    /// The kernel's sums for the process right before and right after the call.
    pub resident_before_bytes: Bytes,
    pub resident_after_bytes: Bytes,
    /// Arenas that were walked before and after.
    #[serde(skip)]
    pub arenas: Vec<ArenaOutcome>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, schemars::JsonSchema, serde::Serialize)]
pub struct ArenaOutcome {
    pub number: usize,
    pub predicted_bytes: Bytes,
    pub free_resident_before_bytes: Bytes,
    pub free_resident_after_bytes: Bytes,
    /// Negative: more of it is free.
    pub returned_bytes: i64,
}

impl Outcome {
    pub fn new(before: &Known<Prediction>, after: Option<&Prediction>, resident: (Bytes, Bytes)) -> Outcome {
        let arenas_of = |(before, after): (&Prediction, _)| -> Vec<ArenaOutcome> {
            before.arenas.iter().filter_map(|arena| ArenaOutcome::of(arena, after)).collect()
        };
        let arenas = before.iter().zip(after).flat_map(arenas_of).collect();
        Outcome {
            predicted_bytes: before.as_ref().map(|one| one.total.trimmable_bytes).map_err(Gap::clone),
            resident_before_bytes: resident.0,
            resident_after_bytes: resident.1,
            arenas,
        }
    }

    /// Negative: the process grew in the meantime.
    pub fn returned_bytes(&self) -> i64 {
        signed(self.resident_before_bytes).saturating_sub(signed(self.resident_after_bytes))
    }

    /// How far off the prediction was, as a share of it; `None` without one, or where it was nothing.
    pub fn error_share(&self) -> Option<f64> {
        let predicted = *self.predicted_bytes.as_ref().ok().filter(|bytes| **bytes > 0)?;
        Some((self.returned_bytes() as f64 - predicted as f64) / predicted as f64)
    }
}

impl ArenaOutcome {
    fn of(before: &ArenaPrediction, after: &Prediction) -> Option<ArenaOutcome> {
        let after = after.arenas.iter().find(|arena| arena.at == before.at)?;
        let (was, is) = (before.held.as_ref().ok()?, after.held.as_ref().ok()?);
        Some(ArenaOutcome {
            number: before.number,
            predicted_bytes: was.trimmable_bytes,
            free_resident_before_bytes: was.free_resident_bytes,
            free_resident_after_bytes: is.free_resident_bytes,
            returned_bytes: signed(was.free_resident_bytes).saturating_sub(signed(is.free_resident_bytes)),
        })
    }
}

fn signed(bytes: Bytes) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

/// What would keep the memory from being held after the next start of the JVM, with the figures that speak for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advice {
    /// The JVM can trim by itself; `experimental`: its flag must be unlocked.
    TrimInterval { trimmable_bytes: Bytes, experimental: bool },
    /// It does; the bytes were freed since it last did.
    TrimIntervalIsSet { trimmable_bytes: Bytes, milliseconds: u64 },
    /// Only a newer one can.
    NewerJvm { trimmable_bytes: Bytes },
    /// Arenas of threads hold the most; how many threads use them, of how many.
    FewerArenas {
        arenas: usize,
        free_resident_bytes: Bytes,
        largest_bytes: Bytes,
        attached_threads: u64,
        threads: usize,
    },
    /// Tops of threads' arenas stay.
    TrimThreshold { top_kept_bytes: Bytes },
}

/// Less than this is not worth an option.
const WORTH_BYTES: Bytes = 1 << 20;
const FEW_ARENAS: usize = 2;

pub fn advice(snapshot: &Snapshot, prediction: &Prediction) -> Vec<Advice> {
    let all = [
        interval(snapshot, &prediction.total),
        fewer_arenas(prediction, snapshot.os.tasks.len()),
        threshold(&prediction.total),
    ];
    all.into_iter().flatten().collect()
}

/// The JVM trims by itself: JDK-8293114, in 22 and in updates of 17 (17.0.9, as an experimental flag) and of 21.
fn interval(snapshot: &Snapshot, total: &Held) -> Option<Advice> {
    let jvm = snapshot.jvm.as_ref().ok()?;
    let trimmable_bytes = total.trimmable_bytes;
    let set = jvm.flags.get("TrimNativeHeapInterval").map(|value| value.parse().unwrap_or(0));
    match set {
        Some(milliseconds) if milliseconds > 0 => {
            Some(Advice::TrimIntervalIsSet { trimmable_bytes, milliseconds })
        }
        _ if trimmable_bytes < WORTH_BYTES => None,
        Some(_) => Some(Advice::TrimInterval { trimmable_bytes, experimental: jvm.major == Ok(17) }),
        // Where no flag could be read, there is no note on this one.
        None => (!jvm.flags.is_empty()).then_some(Advice::NewerJvm { trimmable_bytes }),
    }
}

/// Blocks that one thread frees are of use only to the threads of the same arena.
fn fewer_arenas(prediction: &Prediction, threads: usize) -> Option<Advice> {
    let of_threads: Vec<&ArenaPrediction> =
        prediction.arenas.iter().filter(|arena| arena.number > 0).collect();
    let held = || {
        of_threads.iter().filter_map(|arena| arena.held.as_ref().ok()).map(|held| held.free_resident_bytes)
    };
    let free_resident_bytes = held().fold(0, Bytes::saturating_add);
    let is_worth = free_resident_bytes >= 4 * WORTH_BYTES
        && free_resident_bytes >= prediction.total.free_resident_bytes / 4
        && of_threads.len() > FEW_ARENAS;
    is_worth.then(|| Advice::FewerArenas {
        arenas: of_threads.len(),
        free_resident_bytes,
        largest_bytes: held().max().unwrap_or(0),
        attached_threads: of_threads
            .iter()
            .filter_map(|arena| arena.attached_threads)
            .fold(0, u64::saturating_add),
        threads,
    })
}

/// free() gives a top back when it grows past the trim threshold, which glibc raises to twice the largest block that it
/// unmapped, up to 64 MiB (malloc.c, `free`; arena.c, `heap_trim`), unless the user sets it.
fn threshold(total: &Held) -> Option<Advice> {
    let top_kept_bytes = total.top_kept_bytes;
    (top_kept_bytes >= WORTH_BYTES).then_some(Advice::TrimThreshold { top_kept_bytes })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alloc::{ArenaFigures, ChunkCount, Chunks};

    fn arena(number: usize, trimmable: u64, top_kept: u64) -> Arena {
        let figures = ArenaFigures {
            chunks: Chunks { large: ChunkCount { chunks: 1, bytes: trimmable + 100 }, ..Chunks::default() },
            free_resident_bytes: trimmable + top_kept + 10,
            trimmable_bytes: trimmable,
            top_kept_bytes: top_kept,
            ..ArenaFigures::default()
        };
        Arena {
            at: Addr(0x1000 * (number as u64 + 1)),
            number,
            heaps: Vec::new(),
            system_bytes: 64 << 20,
            attached_threads: Some(2),
            threads: Vec::new(),
            figures: Ok(figures),
        }
    }

    fn prediction(arenas: &[Arena]) -> Prediction {
        let arenas: Vec<ArenaPrediction> = arenas.iter().map(ArenaPrediction::of).collect();
        let mut total = Held::default();
        arenas.iter().flat_map(|arena| &arena.held).for_each(|held| total.add(held));
        Prediction { allocator: "glibc 2.36".to_string(), arenas, total, unread: 0, answer_buffer_bytes: 0 }
    }

    #[test]
    fn what_malloc_trim_leaves_is_distinguished() {
        let sum = prediction(&[arena(0, 4096, 0), arena(1, 8192, 12288)]).total;
        assert_eq!((sum.trimmable_bytes, sum.top_kept_bytes), (12288, 12288));
        assert_eq!(sum.scattered_bytes(), 20);
    }

    #[test]
    fn the_outcome_is_measured_by_the_kernels_sums_and_by_arena() {
        let before = Ok(prediction(&[arena(0, 100 << 20, 0), arena(1, 8192, 0)]));
        let after = prediction(&[arena(0, 0, 0)]);
        let outcome = Outcome::new(&before, Some(&after), (300 << 20, 201 << 20));
        assert_eq!(outcome.returned_bytes(), 99 << 20);
        let share = outcome.error_share().expect("predicted");
        assert!((share + 0.01).abs() < 0.001, "{share}");
        assert_eq!(outcome.arenas.len(), 1, "the other arena is no longer there");
        assert_eq!(outcome.arenas[0].returned_bytes, 100 << 20);
        let grown = Outcome::new(&before, Some(&after), (1 << 20, 2 << 20));
        assert_eq!(grown.returned_bytes(), -(1 << 20));
    }

    #[test]
    fn advice_carries_its_figures() {
        assert_eq!(threshold(&prediction(&[arena(1, 0, 4096)]).total), None);
        let kept = threshold(&prediction(&[arena(1, 0, 5 << 20)]).total);
        assert_eq!(kept, Some(Advice::TrimThreshold { top_kept_bytes: 5 << 20 }));
        let few = prediction(&[arena(0, 0, 0), arena(1, 9 << 20, 0), arena(2, 9 << 20, 0)]);
        assert_eq!(fewer_arenas(&few, 20), None);
        let many = prediction(&[arena(0, 0, 0), arena(1, 9 << 20, 0), arena(2, 0, 0), arena(3, 1 << 20, 0)]);
        let Some(Advice::FewerArenas { arenas: 3, largest_bytes, attached_threads: 6, threads: 20, .. }) =
            fewer_arenas(&many, 20)
        else {
            panic!("three arenas hold 10 MiB");
        };
        assert_eq!(largest_bytes, (9 << 20) + 10);
    }
}
