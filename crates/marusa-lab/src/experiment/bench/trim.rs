//! `marusa bench trim`: what it costs to give freed memory back, and what it brings where memory is scarce; and what the paper of
//! 2010 published of its own way, madvise on each block that the JIT compilers free.

use super::Machine;
use super::account_row::AccountRow;
use super::rounds::{Mean, Ratio};
use super::spread::Spread;
use super::trials::{self, OfArm, ratio};
use crate::base::Bytes;
use crate::map::Area;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};
use std::time::Duration;

/// What giving back cost on average.
#[derive(Clone, Copy, Debug, JsonSchema, Serialize)]
pub struct Published {
    pub cost_x86_percent: f64,
    pub cost_power_percent: f64,
}

pub const PUBLISHED: Published = Published { cost_x86_percent: 1.0, cost_power_percent: 1.8 };

/// What was asked for, and where.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Settings {
    pub machine: Machine,
    pub jdk: String,
    pub every_seconds: f64,
    pub jit_options: String,
    pub swap_options: String,
    /// Classes that a JVM of the first part compiles.
    pub classes: u32,
    /// Live heap of each server.
    pub live_bytes: Bytes,
    pub burst_bytes: Bytes,
    pub bursts: u32,
    pub rounds: usize,
    pub swap_rounds: usize,
    pub seed: u64,
}

/// What runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// A program that compiles all the time.
    Jit,
    /// Two servers that share too little memory.
    Swap,
}

/// A way to give memory back, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Way {
    /// The others are held against it.
    AsItIs,
    JdkInterval,
    Marusa,
    OneArena,
    Threshold,
    Unmapped,
}

/// What HotSpot takes from malloc for the compilers at a time: 32 KiB less room for malloc's own header (arena.hpp, `Chunk::size`).
/// From this size on every chunk is mapped, and unmapped when it is freed: as close as settings come to the paper's way.
const MAPPED_FROM_BYTES: u64 = 32_000;

/// What a JVM is started with to give memory back.
#[derive(Clone, Debug, Default, PartialEq, Eq, JsonSchema, Serialize)]
pub struct Means {
    pub what: String,
    #[serde(rename = "way_options")]
    pub options: Vec<String>,
    #[serde(serialize_with = "as_text")]
    #[schemars(with = "Vec<String>")]
    pub environment: Vec<(String, String)>,
    /// `marusa trim --every` at the same time.
    #[serde(rename = "trimmed_every_seconds", serialize_with = "as_seconds")]
    #[schemars(with = "Option<f64>")]
    pub trimmed_every: Option<Duration>,
}

/// "NAME=value".
fn as_text<S: Serializer>(all: &[(String, String)], into: S) -> Result<S::Ok, S::Error> {
    into.collect_seq(all.iter().map(|(name, value)| format!("{name}={value}")))
}

fn as_seconds<S: Serializer>(every: &Option<Duration>, into: S) -> Result<S::Ok, S::Error> {
    every.map(|every| every.as_secs_f64()).serialize(into)
}

impl Way {
    pub const ALL: [Way; 6] =
        [Way::AsItIs, Way::JdkInterval, Way::Marusa, Way::OneArena, Way::Threshold, Way::Unmapped];

    pub fn name(self) -> &'static str {
        match self {
            Way::AsItIs => "as it is",
            Way::JdkInterval => "jdk interval",
            Way::Marusa => "marusa",
            Way::OneArena => "one arena",
            Way::Threshold => "threshold",
            Way::Unmapped => "unmapped",
        }
    }

    pub fn means(self, every: Duration) -> Means {
        let seconds = every.as_secs_f64();
        let none = |what: String| Means { what, ..Means::default() };
        let set = |name: &str, value: u64, what: &str| {
            let environment = vec![(name.to_string(), value.to_string())];
            Means { environment, ..none(format!("{name}={value}: {what}")) }
        };
        match self {
            Way::AsItIs => none("malloc keeps what is freed".to_string()),
            Way::JdkInterval => Means {
                // Not a product option in every release before 23 (JDK-8325496); unlocking does no harm.
                options: vec![
                    "-XX:+UnlockExperimentalVMOptions".to_string(),
                    format!("-XX:TrimNativeHeapInterval={}", every.as_millis()),
                ],
                ..none(format!("the JVM trims every {seconds} s"))
            },
            Way::Marusa => Means {
                trimmed_every: Some(every),
                ..none(format!("marusa trim --every {seconds}s next to it"))
            },
            Way::OneArena => set("MALLOC_ARENA_MAX", 1, "all threads share one arena"),
            Way::Threshold => {
                set("MALLOC_TRIM_THRESHOLD_", 128 << 10, "the top of an arena goes back above it")
            }
            Way::Unmapped => {
                set("MALLOC_MMAP_THRESHOLD_", MAPPED_FROM_BYTES, "blocks from that on go back when freed")
            }
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct Arm {
    pub part: Part,
    pub way: Way,
}

impl trials::Arm for Arm {
    fn name(&self) -> String {
        match self.part {
            Part::Jit => format!("jit, {}", self.way.name()),
            Part::Swap => format!("swap, {}", self.way.name()),
        }
    }
}

pub type Trial = trials::Trial<Arm, Figures>;

/// What one run gave, by its part.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Figures {
    pub jit: Option<Compiled>,
    pub swap: Option<Pressed>,
}

/// One JVM that compiled a lot.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Compiled {
    pub work_ms: Option<u64>,
    /// User and system, of the JVM.
    pub cpu_ms: Option<f64>,
    /// Of it system.
    #[serde(default)]
    pub system_ms: Option<f64>,
    /// User and system, of `marusa trim`.
    pub helper_cpu_ms: Option<f64>,
    pub minor_faults: Option<u64>,
    /// Resident, looked at all the time.
    pub mean_resident_bytes: Option<f64>,
    pub peak_resident_bytes: Option<Bytes>,
    pub end: AccountRow,
}

impl Compiled {
    /// CPU time of the JVM and of its helper.
    fn all_cpu_ms(&self) -> Option<f64> {
        Some(self.cpu_ms? + self.helper_cpu_ms.unwrap_or(0.0))
    }
}

/// Two JVMs that shared too little memory.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Pressed {
    /// Shared by both.
    pub memory_bytes: Bytes,
    pub work_ms: f64,
    /// Between the bursts, by both.
    pub objects_visited: u64,
    pub bursts_ms: Option<u64>,
    /// Swapping of the whole host; nothing else is to swap in the meantime.
    pub swapped_out_bytes: Option<Bytes>,
    pub swapped_in_bytes: Option<Bytes>,
    /// Faults of both that had to wait for a disk.
    pub major_faults: Option<u64>,
    pub peak_swap_bytes: Option<Bytes>,
}

impl Pressed {
    /// Bytes a second, in and out.
    fn io_rate(&self) -> Option<f64> {
        let bytes = self.swapped_out_bytes? + self.swapped_in_bytes?;
        (self.work_ms > 0.0).then(|| bytes as f64 / (self.work_ms / 1e3))
    }
}

#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct ArmFigures {
    #[serde(flatten)]
    pub means: Means,
    /// `None`: the arm is of the other part.
    pub jit: Option<JitFigures>,
    pub swap: Option<SwapFigures>,
}

/// Ratios are to the same part as it is, which has none.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct JitFigures {
    pub time_ratio: Option<Ratio>,
    pub cpu_ratio: Option<Ratio>,
    /// What the kernel did more for the JVM, and what `marusa trim` took, in percent of the CPU time as it is: less noisy than the
    /// ratio, and without what the JVM itself did more.
    pub kernel_cost_percent: Option<Mean>,
    pub work_ms: Option<Spread>,
    pub mean_resident_bytes: Option<Spread>,
    pub peak_resident_bytes: Option<Spread>,
    pub malloc_freed_bytes: Option<Spread>,
}

#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct SwapFigures {
    pub swapped_out_bytes: Option<Spread>,
    pub swapped_in_bytes: Option<Spread>,
    pub io_bytes_per_second: Option<Spread>,
    pub major_faults: Option<Spread>,
    pub peak_swap_bytes: Option<Spread>,
    pub bursts_ms: Option<Spread>,
    pub visits_ratio: Option<Ratio>,
}

pub fn figures(settings: &Settings, of_arm: &OfArm<Arm, Figures>) -> ArmFigures {
    let Arm { part, way } = of_arm.arm;
    ArmFigures {
        means: way.means(Duration::from_secs_f64(settings.every_seconds)),
        jit: (*part == Part::Jit).then(|| jit(of_arm)),
        swap: (*part == Part::Swap).then(|| swap(of_arm)),
    }
}

fn to_as_it_is(of_arm: &OfArm<Arm, Figures>, of: &dyn Fn(&Figures) -> Option<f64>) -> Option<Ratio> {
    ratio(of_arm.trials, &as_it_is(of_arm)?, of_arm.arm, of)
}

/// What an arm is held against; `None`: it is that.
fn as_it_is(of_arm: &OfArm<Arm, Figures>) -> Option<Arm> {
    (of_arm.arm.way != Way::AsItIs).then_some(Arm { way: Way::AsItIs, ..*of_arm.arm })
}

fn jit(of_arm: &OfArm<Arm, Figures>) -> JitFigures {
    let work_ms = |figures: &Figures| Some(figures.jit.as_ref()?.work_ms? as f64);
    JitFigures {
        time_ratio: to_as_it_is(of_arm, &work_ms),
        cpu_ratio: to_as_it_is(of_arm, &|figures| figures.jit.as_ref()?.all_cpu_ms()),
        kernel_cost_percent: kernel_cost(of_arm),
        work_ms: of_arm.spread(&work_ms),
        mean_resident_bytes: of_arm.spread(&|figures| figures.jit.as_ref()?.mean_resident_bytes),
        peak_resident_bytes: of_arm
            .spread(&|figures| Some(figures.jit.as_ref()?.peak_resident_bytes? as f64)),
        malloc_freed_bytes: of_arm
            .spread(&|figures| Some(figures.jit.as_ref()?.end.resident_bytes_of(Area::MallocFreed)? as f64)),
    }
}

fn kernel_cost(of_arm: &OfArm<Arm, Figures>) -> Option<Mean> {
    let of = |figures: &Figures| {
        let jit = figures.jit.as_ref()?;
        Some((jit.cpu_ms?, jit.system_ms? + jit.helper_cpu_ms.unwrap_or(0.0)))
    };
    let pairs = trials::pairs(of_arm.trials, &as_it_is(of_arm)?, of_arm.arm, &of);
    Mean::of(pairs.into_iter().map(|((cpu, was), (_, is))| (is - was) * 100.0 / cpu))
}

fn swap(of_arm: &OfArm<Arm, Figures>) -> SwapFigures {
    let count =
        |of: fn(&Pressed) -> Option<u64>| of_arm.spread(&|figures| Some(of(figures.swap.as_ref()?)? as f64));
    let visits = |figures: &Figures| Some(figures.swap.as_ref()?.objects_visited as f64);
    SwapFigures {
        swapped_out_bytes: count(|one| one.swapped_out_bytes),
        swapped_in_bytes: count(|one| one.swapped_in_bytes),
        io_bytes_per_second: of_arm.spread(&|figures| figures.swap.as_ref()?.io_rate()),
        major_faults: count(|one| one.major_faults),
        peak_swap_bytes: count(|one| one.peak_swap_bytes),
        bursts_ms: count(|one| one.bursts_ms),
        visits_ratio: to_as_it_is(of_arm, &visits),
    }
}

#[cfg(test)]
#[path = "trim_tests.rs"]
mod tests;
