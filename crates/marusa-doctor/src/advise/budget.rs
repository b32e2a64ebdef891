//! A fleet's heap memory, split so that all collections together take the least time: what is left of it next to the live sets
//! goes with the square root of what each heap's collections cost (Kirisame, Shenoy, Panchekha: "Optimal heap limits for reducing
//! browser memory use", OOPSLA 2022). A first step to be proved on a few replicas, not a truth.

use super::heap::forecast;
use super::workload::Workload;
use crate::base::{Bytes, Refused, refuse};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// No heap is smaller than this many times its live set.
const LIVE_FACTOR: f64 = 1.5;

#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Budget {
    pub budget_bytes: Bytes,
    /// All -Xmx together, now.
    pub now_bytes: Bytes,
    /// Time in collections of all replicas, in seconds a second.
    pub gc_now: f64,
    pub gc_then: f64,
    /// The heap memory that would do for the same time in collections as now.
    pub same_gc_bytes: Bytes,
    pub heaps: Vec<HeapShare>,
    /// Workloads without a known live set: they keep their heaps, which are not in the budget.
    pub left_out: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct HeapShare {
    pub name: String,
    pub replicas: usize,
    pub live_bytes: Bytes,
    pub now_bytes: Bytes,
    /// Of each replica.
    pub xmx_bytes: Bytes,
    pub gc_ratio: f64,
    pub gc_forecast_ratio: f64,
}

/// One kind of heap: `cost` is time in collections times the room, G (X - L).
struct One {
    replicas: f64,
    live: f64,
    room: f64,
    cost: f64,
}

/// `Err`: it is less than the heaps need at least, or no heap can be judged.
pub fn split(workloads: &[Workload], budget_bytes: Bytes) -> Result<Budget, Refused> {
    let known: Vec<(&Workload, One)> =
        workloads.iter().filter_map(|workload| Some((workload, one(workload)?))).collect();
    if known.is_empty() {
        refuse!("cannot split a heap budget: no workload has a known live set and time in collections");
    }
    let ones: Vec<&One> = known.iter().map(|(_, one)| one).collect();
    let rooms = rooms(&ones, budget_bytes as f64)?;
    let heaps: Vec<HeapShare> =
        known.iter().zip(&rooms).map(|((workload, one), room)| share(workload, one, *room)).collect();
    let gc =
        |of: fn(&HeapShare) -> f64| heaps.iter().map(|heap| heap.replicas as f64 * of(heap)).sum::<f64>();
    let gc_now = gc(|heap| heap.gc_ratio);
    let roots: f64 = ones.iter().map(|one| one.replicas * one.cost.sqrt()).sum();
    let live: f64 = ones.iter().map(|one| one.replicas * one.live).sum();
    let same = if gc_now > 0.0 { live + roots * roots / gc_now } else { live * LIVE_FACTOR };
    Ok(Budget {
        budget_bytes,
        now_bytes: heaps.iter().map(|heap| heap.now_bytes * heap.replicas as u64).sum(),
        gc_now,
        gc_then: gc(|heap| heap.gc_forecast_ratio),
        same_gc_bytes: same as Bytes,
        left_out: workloads
            .iter()
            .filter(|workload| one(workload).is_none())
            .map(|one| one.name.clone())
            .collect(),
        heaps,
    })
}

fn one(workload: &Workload) -> Option<One> {
    let heap = workload.heap.as_ref()?;
    let room = heap.capacity_bytes.saturating_sub(heap.live_bytes) as f64;
    // A heap that was never seen to collect still gets a share: that of a ten-thousandth of the time.
    let cost = heap.gc_ratio.max(1e-4) * room;
    let replicas = workload.observed.replicas.max(1) as f64;
    Some(One { replicas, live: heap.live_bytes as f64, room, cost })
}

/// The room of each next to its live set. Who would get less than half its live set gets that, and the others share the rest.
fn rooms(ones: &[&One], budget: f64) -> Result<Vec<f64>, Refused> {
    let least = |one: &One| one.live * (LIVE_FACTOR - 1.0);
    let live: f64 = ones.iter().map(|one| one.replicas * one.live).sum();
    let needed: f64 = ones.iter().map(|one| one.replicas * least(one)).sum::<f64>() + live;
    if needed > budget {
        let needed = crate::base::human(needed as Bytes);
        refuse!("cannot split this heap budget: one and a half times the live sets are {needed} already");
    }
    let mut is_fixed = vec![false; ones.len()];
    loop {
        let both = || ones.iter().zip(&is_fixed);
        let fixed: f64 = both().filter(|(_, is)| **is).map(|(one, _)| one.replicas * least(one)).sum();
        let roots: f64 = both().filter(|(_, is)| !**is).map(|(one, _)| one.replicas * one.cost.sqrt()).sum();
        let unit = (budget - live - fixed).max(0.0) / roots.max(f64::MIN_POSITIVE);
        let room = |(one, is): (&&One, &bool)| if *is { least(one) } else { unit * one.cost.sqrt() };
        let rooms: Vec<f64> = both().map(room).collect();
        let short: Vec<usize> =
            (0..ones.len()).filter(|at| !is_fixed[*at] && rooms[*at] < least(ones[*at])).collect();
        if short.is_empty() {
            return Ok(rooms);
        }
        short.into_iter().for_each(|at| is_fixed[at] = true);
    }
}

fn share(workload: &Workload, one: &One, room: f64) -> HeapShare {
    let heap = workload.heap.as_ref();
    let (now_bytes, gc_ratio) = heap.map_or((0, 0.0), |heap| (heap.now_bytes, heap.gc_ratio));
    let (live_bytes, xmx_bytes) = (one.live as Bytes, (one.live + room) as Bytes);
    HeapShare {
        name: workload.name.clone(),
        replicas: workload.observed.replicas,
        live_bytes,
        now_bytes,
        xmx_bytes,
        gc_ratio,
        gc_forecast_ratio: forecast(live_bytes, one.room as Bytes, gc_ratio, xmx_bytes),
    }
}
