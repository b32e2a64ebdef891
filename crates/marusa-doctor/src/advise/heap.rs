//! -Xmx from the live set and from what collections cost. The model is of first order: the number of collections, and so their
//! time, goes with 1 / (heap - live set). It holds for collectors that stop the program; where it was not seen what it needs,
//! there is no advice.

use super::{MIB, STEP, Wanted, stepped};
use crate::base::{Bytes, Refused, refuse};
use crate::measure::growth::Point;
use crate::record::History;
use crate::record::key::Measure;
use crate::record::leak_series::heap_after_collections;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A heap needs half as much again as what lives in it.
const LIVE_FACTOR: f64 = 1.5;
/// The room next to the live set shrinks at most to this part: the model is not asked for more than four times the collections
/// seen.
const ROOM_PART: u64 = 4;
/// A change that is smaller is not worth a restart.
const WORTH_PART: u64 = 10;
const HEAP_BYTES_MIN: Bytes = 16 * MIB;
const COLLECTIONS_MIN: usize = 4;
const SAMPLES_PER_RANGE: f64 = 10.0;
const HOUR_MS: u64 = 3_600_000;
/// An hour counts as seen when this much of it was; a shorter recording counts as a whole.
const HOUR_MIN_MS: u64 = 600_000;

#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Heap {
    pub now_bytes: Bytes,
    pub xmx_bytes: Bytes,
    /// The most that collections of the whole heap left; where too few were seen, the most that any left, which is no less.
    pub live_bytes: Bytes,
    /// Such collections.
    pub live_seen: usize,
    pub is_whole_heap_seen: bool,
    /// The mean size of the heap while it was recorded.
    pub capacity_bytes: Bytes,
    /// The share of time in collections in the busiest hour, 0 to 1; and its forecast.
    pub gc_ratio: f64,
    pub gc_forecast_ratio: f64,
    pub decided_by: Decided,
}

/// What the heap's size follows from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decided {
    /// Collections reach the share of time that is allowed.
    GcTime,
    /// Half as much again as the live set.
    LiveSet,
    /// A quarter of the room that was seen: a smaller heap is for a second step.
    RoomSeen,
    /// It is as it should be, within a tenth.
    AsItIs,
}

/// What one replica was seen to have.
struct Seen {
    live_bytes: Bytes,
    live_seen: usize,
    is_whole_heap_seen: bool,
    capacity_bytes: Bytes,
    gc_ratio: f64,
}

/// Of all replicas the largest live set and the most time in collections. `Err`: why there is no advice, and what would allow it.
pub fn advice(jvms: &[&History], now_bytes: Bytes, wanted: Wanted) -> Result<Heap, Refused> {
    let gc = jvms.iter().find_map(|history| history.facts.gc.as_deref()).unwrap_or("");
    if ["ZGC", "Shenandoah"].iter().any(|concurrent| gc.contains(concurrent)) {
        refuse!("{gc} collects while the program runs: its time does not say what a smaller heap costs");
    }
    let seen: Vec<Seen> = jvms.iter().filter_map(|history| seen(history)).collect();
    let most = seen.iter().max_by_key(|one| one.live_bytes).ok_or_else(|| {
        "too few collections were seen (four are needed): record longer, or under more load".to_string()
    })?;
    let live_bytes = most.live_bytes;
    let capacity_bytes = seen.iter().map(|one| one.capacity_bytes).max().unwrap_or(now_bytes).min(now_bytes);
    let room = capacity_bytes.checked_sub(live_bytes).filter(|room| *room > 0);
    let room = room.ok_or("the live set fills the heap: it may need more than was seen")?;
    let gc_ratio = seen.iter().map(|one| one.gc_ratio).fold(0.0, f64::max);
    let (xmx_bytes, decided_by) = size(live_bytes, room, gc_ratio, now_bytes, wanted.gc_ratio);
    let gc_forecast_ratio = forecast(live_bytes, room, gc_ratio, xmx_bytes);
    Ok(Heap {
        now_bytes,
        xmx_bytes,
        live_bytes,
        live_seen: most.live_seen,
        is_whole_heap_seen: most.is_whole_heap_seen,
        capacity_bytes,
        gc_ratio,
        gc_forecast_ratio,
        decided_by,
    })
}

fn size(live: Bytes, room: Bytes, gc_ratio: f64, now: Bytes, wanted: f64) -> (Bytes, Decided) {
    let by_time = live.saturating_add((gc_ratio * room as f64 / wanted) as Bytes);
    let by_live = (live as f64 * LIVE_FACTOR) as Bytes;
    let by_room = live.saturating_add(room / ROOM_PART);
    let all = [(by_time, Decided::GcTime), (by_live, Decided::LiveSet), (by_room, Decided::RoomSeen)];
    let (bytes, decided) = all.into_iter().max_by_key(|(bytes, _)| *bytes).unwrap_or((now, Decided::AsItIs));
    let bytes = stepped(bytes.max(HEAP_BYTES_MIN));
    if bytes.abs_diff(now) <= (now / WORTH_PART).max(STEP) {
        (now, Decided::AsItIs)
    } else {
        (bytes, decided)
    }
}

/// G(X) = G0 (X0 - L) / (X - L).
pub fn forecast(live: Bytes, room: Bytes, gc_ratio: f64, xmx: Bytes) -> f64 {
    match xmx.saturating_sub(live) {
        0 => 1.0,
        then => (gc_ratio * room as f64 / then as f64).min(1.0),
    }
}

/// `None`: its live set was not seen.
fn seen(history: &History) -> Option<Seen> {
    let (live, is_whole_heap_seen) = heap_after_collections(history, |_| true);
    let most = || live.iter().map(|point| point.bytes).reduce(f64::max).map(|bytes| bytes as Bytes);
    let live_bytes = if is_whole_heap_seen { most_alive(history, &live) } else { most() };
    let capacity: Vec<Bytes> =
        (0..history.len()).filter_map(|at| history.process(Measure::HeapCapacity, at)).collect();
    let mean =
        capacity.iter().map(|bytes| u128::from(*bytes)).sum::<u128>() / (capacity.len().max(1) as u128);
    Some(Seen {
        live_bytes: live_bytes.filter(|_| live.len() >= COLLECTIONS_MIN)?,
        live_seen: live.len(),
        is_whole_heap_seen,
        capacity_bytes: Bytes::try_from(mean).ok().filter(|mean| *mean > 0)?,
        gc_ratio: busiest_hour(history)?,
    })
}

/// The highest of what single collections left. Where they follow each other faster than samples, few samples come right after one:
/// then the lowest of as many as came with ten samples counts.
fn most_alive(history: &History, live: &[Point]) -> Option<Bytes> {
    let seconds = history.seconds(history.len().checked_sub(1)?);
    let range = SAMPLES_PER_RANGE * seconds / history.len() as f64;
    let together = (range * live.len() as f64 / seconds.max(f64::MIN_POSITIVE)) as usize;
    let lowest = |some: &[Point]| some.iter().map(|point| point.bytes).reduce(f64::min);
    // A rest of fewer says nothing.
    let highest = live.chunks_exact(together.max(1)).filter_map(lowest).reduce(f64::max);
    highest.or_else(|| lowest(live)).map(|bytes| bytes as Bytes)
}

/// The highest share of time in collections, by hours since the first sample.
pub fn busiest_hour(history: &History) -> Option<f64> {
    let mut hours: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
    let first = history.moments.first()?.steady_ms;
    for at in 1..history.len() {
        let (from, to) = (history.moments[at - 1].steady_ms, history.moments[at].steady_ms);
        let spent = |at| history.process(Measure::CollectionTime, at);
        let (Some(before), Some(after)) = (spent(at - 1), spent(at)) else { continue };
        let hour = hours.entry(to.saturating_sub(first) / HOUR_MS).or_default();
        hour.0 += to.saturating_sub(from);
        hour.1 += after.saturating_sub(before);
    }
    let share = |(ms, us): &(u64, u64)| *us as f64 / 1e3 / *ms as f64;
    let seen = hours.values().filter(|(ms, _)| *ms >= HOUR_MIN_MS).map(share).reduce(f64::max);
    let all = hours.values().fold((0, 0), |sum, hour| (sum.0 + hour.0, sum.1 + hour.1));
    seen.or_else(|| (all.0 > 0).then(|| share(&all)))
}
