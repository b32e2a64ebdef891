//! The self-test, step by step: which fields are made, and how often each is visited. Rounds go through all fields in turn, so
//! that a machine that gets slower or faster in the meantime hits all alike.

use super::walks::WalkCounters;
use crate::act::calibrate::{CycleClock, Field, JumpField, Layout, Pages};
use crate::base::{Bytes, Gap, Known, Why, rfc3339};
use crate::cmd::Failure;
use crate::measure::Side;
use crate::measure::calibration::{Calibration, Machine, Nodes, SCHEMA, Timing};
use crate::os::terminal::{self, stderr};
use crate::os::{cpu, free_memory, host};
use std::io::Write;
use std::time::{Instant, SystemTime};

const ROUNDS: usize = 7;
const CHAINS: [u32; 2] = [1, 8];
/// Bytes of code; few programs have more.
const CODE_FOOTPRINTS: [Bytes; 2] = [16 << 20, 64 << 20];
/// Divisor of the free memory: the most that is taken for all fields together.
const MEMORY_SHARE: Bytes = 4;

/// Times of the fields at every footprint that there is memory for. What could not be measured is a gap.
pub fn calibrate(footprints: &[Bytes]) -> anyhow::Result<Calibration> {
    let started = Instant::now();
    let before = cpu::ran_and_waited_ns();
    let clock = CycleClock::start();
    let mut gaps = Vec::new();
    let footprints = affordable(footprints, &mut gaps)?;
    let code: Vec<Bytes> =
        CODE_FOOTPRINTS.into_iter().filter(|bytes| footprints.iter().any(|most| bytes <= most)).collect();
    let mut progress = Progress::new(2 + footprints.len() * ROUNDS + code.len());
    let mut timings = data_side(&footprints, &mut progress, &mut gaps);
    for footprint in code {
        match instruction_side(footprint, &mut gaps) {
            Ok(found) => timings.extend(found),
            Err(gap) => note(&mut gaps, gap),
        }
        progress.step();
    }
    progress.clear();
    let cpu = cpu::read();
    Ok(Calibration {
        schema: SCHEMA.to_string(),
        at: rfc3339(SystemTime::now()),
        took_ms: started.elapsed().as_secs_f64() * 1e3,
        machine: Machine {
            model: cpu.title().to_string(),
            cpu: cpu.identity,
            microcode: cpu.microcode,
            kernel: host::kernel_release(),
            is_virtual: cpu.has_hypervisor == Some(true),
        },
        reference_cycles_per_ns: clock.cycles_per_ns().map_err(|gap| gaps.push(gap)).ok(),
        waited_share: before.zip(cpu::ran_and_waited_ns()).and_then(waited_share),
        timings,
        gaps,
    })
}

fn waited_share((before, now): ((u64, u64), (u64, u64))) -> Option<f64> {
    let (ran, waited) = (now.0.checked_sub(before.0)?, now.1.checked_sub(before.1)?);
    let all = ran.checked_add(waited).filter(|all| *all > 0)?;
    Some(waited as f64 / all as f64)
}

/// Without the footprints that would take more than a quarter of the free memory: a field on each page size, and the packed one.
fn affordable(footprints: &[Bytes], gaps: &mut Vec<Gap>) -> anyhow::Result<Vec<Bytes>> {
    let free = free_memory::available_bytes().map_err(|gap| Failure::target(gap.to_string()))?;
    let needed = |footprint: Bytes| footprint.saturating_mul(2).saturating_add(footprint / 64);
    let (kept, left): (Vec<Bytes>, Vec<Bytes>) =
        footprints.iter().partition(|bytes| needed(**bytes) <= free / MEMORY_SHARE);
    for footprint in left {
        gaps.push(Gap::new(format!("cost of a walk at {} MiB", footprint >> 20), Why::OverLimit).hint(
            format!(
                "it takes {} MiB, more than a quarter of the {} MiB that are free",
                needed(footprint) >> 20,
                free >> 20
            ),
        ));
    }
    Ok(kept)
}

/// Fields of the data side that could be made: two page sizes, and the packed one on large pages where there are any.
struct Fields {
    dense: (Field, Pages),
    spread: Vec<(Field, Pages)>,
}

impl Fields {
    fn map(footprint: Bytes, progress: &mut Progress, gaps: &mut Vec<Gap>) -> Known<Fields> {
        let dense = match Field::map(Layout::Dense, footprint, Pages::Huge) {
            Ok(dense) => (dense, Pages::Huge),
            Err(_) => (Field::map(Layout::Dense, footprint, Pages::Small)?, Pages::Small),
        };
        let small = Field::map(Layout::OneToAPage, footprint, Pages::Small)?;
        progress.step();
        let mut spread = vec![(small, Pages::Small)];
        match Field::map(Layout::OneToAPage, footprint, Pages::Huge) {
            Ok(huge) => spread.push((huge, Pages::Huge)),
            Err(gap) => note(gaps, gap),
        }
        progress.step();
        Ok(Fields { dense, spread })
    }

    fn link(&mut self, footprint: Bytes) {
        self.dense.0.link(footprint);
        self.spread.iter_mut().for_each(|(field, _)| field.link(footprint));
    }

    fn each(&self) -> impl Iterator<Item = (&Field, Nodes, Pages)> {
        let spread = self.spread.iter().map(|(field, pages)| (field, Nodes::Spread, *pages));
        std::iter::once((&self.dense.0, Nodes::Dense, self.dense.1)).chain(spread)
    }
}

fn data_side(footprints: &[Bytes], progress: &mut Progress, gaps: &mut Vec<Gap>) -> Vec<Timing> {
    let counters = WalkCounters::open();
    let mut timings: Vec<Timing> = Vec::new();
    // The largest that is available holds the smaller ones, too.
    let mut largest = footprints.iter().enumerate().rev();
    let (mut fields, most) = loop {
        let Some((index, footprint)) = largest.next() else { return timings };
        match Fields::map(*footprint, progress, gaps) {
            Ok(fields) => break (fields, index),
            Err(gap) => note(gaps, gap),
        }
    };
    for footprint in &footprints[..=most] {
        fields.link(*footprint);
        for _ in 0..ROUNDS {
            for (field, nodes, pages) in fields.each() {
                for chains in CHAINS {
                    let (step_ns, walks) =
                        counters.during(Side::Data, field.steps(), || field.ns_per_step(chains));
                    let of = Timing::of(Side::Data, nodes, pages.bytes(), *footprint, chains);
                    add(&mut timings, of, step_ns, walks);
                }
            }
            progress.step();
        }
    }
    timings
}

fn instruction_side(footprint: Bytes, gaps: &mut Vec<Gap>) -> Known<Vec<Timing>> {
    let dense = match JumpField::map(Layout::Dense, footprint, Pages::Huge) {
        Ok(dense) => (dense, Nodes::Dense, Pages::Huge),
        Err(_) => (JumpField::map(Layout::Dense, footprint, Pages::Small)?, Nodes::Dense, Pages::Small),
    };
    let small = JumpField::map(Layout::OneToAPage, footprint, Pages::Small)?;
    let mut fields = vec![dense, (small, Nodes::Spread, Pages::Small)];
    match JumpField::map(Layout::OneToAPage, footprint, Pages::Huge) {
        Ok(huge) => fields.push((huge, Nodes::Spread, Pages::Huge)),
        Err(gap) => note(gaps, gap),
    }
    let counters = WalkCounters::open();
    let mut timings = Vec::new();
    for _ in 0..ROUNDS {
        for (field, nodes, pages) in &fields {
            let (step_ns, walks) = counters.during(Side::Instruction, field.steps(), || field.ns_per_step());
            let of = Timing::of(Side::Instruction, *nodes, pages.bytes(), footprint, 1);
            add(&mut timings, of, Some(step_ns), walks);
        }
    }
    Ok(timings)
}

/// Adds a round to the timing of the same field.
fn add(timings: &mut Vec<Timing>, of: Timing, step_ns: Option<f64>, walks: Option<f64>) {
    let index = timings.iter().position(|one| one.is_of_same(&of)).unwrap_or_else(|| {
        timings.push(of);
        timings.len() - 1
    });
    timings[index].step_ns.extend(step_ns);
    timings[index].walks_per_step.extend(walks);
}

/// One gap for one cause, however many fields have it.
fn note(gaps: &mut Vec<Gap>, gap: Gap) {
    if !gaps.contains(&gap) {
        gaps.push(gap);
    }
}

/// A bar on a terminal, nothing elsewhere.
struct Progress {
    steps: usize,
    done: usize,
    is_shown: bool,
}

impl Progress {
    const WIDTH: usize = 40;

    fn new(steps: usize) -> Progress {
        Progress { steps, done: 0, is_shown: stderr().is_terminal() }
    }

    fn step(&mut self) {
        self.done += 1;
        let filled = (self.done * Self::WIDTH / self.steps.max(1)).min(Self::WIDTH);
        self.draw(&format!("\rcalibrating [{:<width$}]", "#".repeat(filled), width = Self::WIDTH));
    }

    fn clear(&self) {
        self.draw(&format!("\r{:width$}\r", "", width = Self::WIDTH + 14));
    }

    fn draw(&self, text: &str) {
        if self.is_shown {
            // A bar that cannot be drawn is not a reason to end.
            let _ = terminal::raw_stderr().write_all(text.as_bytes());
        }
    }
}
