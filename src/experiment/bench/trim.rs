//! `marusa bench trim`: what it costs to give freed memory back, and what it brings where memory is scarce; and what the paper of
//! 2010 published of its own way, madvise on each block that the JIT compilers free.

use super::account_row::{self, AccountRow};
use super::rounds::ALPHA;
use super::spread::Spread;
use crate::base::{Bytes, Known, or_null};
use crate::experiment::stats::{self, Estimate};
use crate::map::Account;
use schemars::JsonSchema;
use serde::{Serialize, Serializer};
use std::time::Duration;

/// What giving back cost on average.
#[derive(Clone, Copy, Debug, JsonSchema, Serialize)]
pub struct Published {
    pub cost_x86_percent: f64,
    pub cost_power_percent: f64,
}

pub const PUBLISHED: Published = Published { cost_x86_percent: 1.0, cost_power_percent: 1.8 };

/// A way to give memory back, or none.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize)]
pub struct Arm {
    #[serde(rename = "arm")]
    pub name: &'static str,
    pub what: String,
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

/// The name of the arm that the others are held against.
pub const AS_IT_IS: &str = "as it is";

/// What HotSpot takes from malloc for the compilers at a time: 32 KiB less room for malloc's own header (arena.hpp, `Chunk::size`).
/// From this size on every chunk is mapped, and unmapped when it is freed: as close as settings come to the paper's way.
const MAPPED_FROM_BYTES: u64 = 32_000;

/// The arms that this JDK has. `interval`: it knows -XX:TrimNativeHeapInterval.
pub fn arms(interval: bool, every: Duration, can_trim: Result<(), String>) -> (Vec<Arm>, Vec<String>) {
    let arm = |name, what: String| Arm {
        name,
        what,
        options: Vec::new(),
        environment: Vec::new(),
        trimmed_every: None,
    };
    let set = |name: &str, value: u64| vec![(name.to_string(), value.to_string())];
    let seconds = every.as_secs_f64();
    let mut arms = vec![arm(AS_IT_IS, "malloc keeps what is freed".to_string())];
    let mut missing = Vec::new();
    if interval {
        let option = format!("-XX:TrimNativeHeapInterval={}", every.as_millis());
        arms.push(Arm {
            // Not a product option in every release before 23 (JDK-8325496); unlocking does no harm.
            options: vec!["-XX:+UnlockExperimentalVMOptions".to_string(), option],
            ..arm("jdk interval", format!("the JVM trims every {seconds} s"))
        });
    } else {
        missing.push("jdk interval: this JDK has no -XX:TrimNativeHeapInterval".to_string());
    }
    match can_trim {
        Ok(()) => arms.push(Arm {
            trimmed_every: Some(every),
            ..arm("marusa", format!("marusa trim --every {seconds}s next to it"))
        }),
        Err(why) => missing.push(format!("marusa: {why}")),
    }
    arms.push(Arm {
        environment: set("MALLOC_ARENA_MAX", 1),
        ..arm("one arena", "MALLOC_ARENA_MAX=1: all threads share one arena".to_string())
    });
    arms.push(Arm {
        environment: set("MALLOC_TRIM_THRESHOLD_", 128 << 10),
        ..arm(
            "threshold",
            "MALLOC_TRIM_THRESHOLD_=131072: the top of an arena goes back above it".to_string(),
        )
    });
    arms.push(Arm {
        environment: set("MALLOC_MMAP_THRESHOLD_", MAPPED_FROM_BYTES),
        ..arm(
            "unmapped",
            format!("MALLOC_MMAP_THRESHOLD_={MAPPED_FROM_BYTES}: blocks from that on go back when freed"),
        )
    });
    (arms, missing)
}

/// One JVM that compiled a lot.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct Compiled {
    pub work_ms: f64,
    /// User and system, of the JVM.
    pub cpu_ms: Option<f64>,
    /// User and system, of `marusa trim`.
    pub helper_cpu_ms: Option<f64>,
    #[serde(rename = "minor_faults")]
    pub faults: Option<u64>,
    /// Resident, looked at all the time.
    #[serde(rename = "mean_resident_bytes")]
    pub mean_bytes: Option<f64>,
    #[serde(rename = "peak_resident_bytes")]
    pub peak_bytes: Option<Bytes>,
    #[serde(serialize_with = "account_row::serialize")]
    #[schemars(with = "AccountRow")]
    pub end: Account,
}

/// A result of each arm of one round, by the order of the arms; `None`: that one failed.
pub type Round<T> = Vec<Option<T>>;

/// How many times as long, or as much, as the first arm: by pairs of the same round.
#[derive(Clone, Copy, Debug, PartialEq, JsonSchema, Serialize)]
pub struct Ratio {
    pub ratio: f64,
    pub low: f64,
    pub high: f64,
    pub pairs: usize,
}

impl Ratio {
    fn of(estimate: Estimate) -> Ratio {
        let ratio = |percent: f64| 1.0 + percent / 100.0;
        Ratio {
            ratio: ratio(estimate.gain_percent),
            low: ratio(estimate.low_percent),
            high: ratio(estimate.high_percent),
            pairs: estimate.blocks,
        }
    }
}

/// The ratio of an arm to the first one. `None`: fewer than two rounds have both figures.
pub fn ratio<T>(rounds: &[Round<T>], arm: usize, figure: impl Fn(&T) -> Option<f64>) -> Option<Ratio> {
    let of = |round: &Round<T>, arm: usize| {
        figure(round.get(arm)?.as_ref()?).filter(|figure| figure.is_finite() && *figure > 0.0)
    };
    let logs: Vec<f64> =
        rounds.iter().filter_map(|round| Some((of(round, arm)? / of(round, 0)?).ln())).collect();
    stats::estimate(&logs, ALPHA).map(Ratio::of)
}

/// What one arm has of a figure over all rounds in which it ran.
pub fn spread<T>(rounds: &[Round<T>], arm: usize, figure: impl Fn(&T) -> Option<f64>) -> Option<Spread> {
    Spread::of(rounds.iter().filter_map(|round| round.get(arm)?.as_ref()).map(figure))
}

/// Two JVMs that shared too little memory.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct Pressed {
    pub work_ms: f64,
    /// Objects visited between the bursts, by both.
    #[serde(rename = "objects_visited")]
    pub visits: u64,
    #[serde(rename = "bursts_ms")]
    pub burst_ms: f64,
    /// Swapping of the whole host; nothing else is to swap in the meantime.
    #[serde(serialize_with = "or_null")]
    #[schemars(with = "Option<Bytes>")]
    pub swapped_out_bytes: Known<Bytes>,
    #[serde(serialize_with = "or_null")]
    #[schemars(with = "Option<Bytes>")]
    pub swapped_in_bytes: Known<Bytes>,
    /// Faults of both that had to wait for a disk.
    pub major_faults: Option<u64>,
    pub peak_swap_bytes: Option<Bytes>,
}

impl Pressed {
    /// Bytes a second, in and out.
    pub fn io_rate(&self) -> Option<f64> {
        let bytes = *self.swapped_out_bytes.as_ref().ok()? + *self.swapped_in_bytes.as_ref().ok()?;
        (self.work_ms > 0.0).then(|| bytes as f64 / (self.work_ms / 1e3))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Ratio {
        /// Whether the interval leaves "no difference" out.
        pub fn is_shown(&self) -> bool {
            self.low > 1.0 || self.high < 1.0
        }
    }

    #[test]
    fn only_rounds_with_both_arms_count() {
        let rounds: Vec<Round<f64>> = vec![
            vec![Some(100.0), Some(110.0)],
            vec![Some(200.0), Some(220.0)],
            vec![None, Some(500.0)],
            vec![Some(10.0), Some(11.0)],
        ];
        let found = ratio(&rounds, 1, |figure| Some(*figure)).expect("three rounds");
        assert_eq!(found.pairs, 3);
        assert!((found.ratio - 1.1).abs() < 1e-9 && found.is_shown(), "{found:?}");
        assert!(ratio(&rounds, 0, |figure| Some(*figure)).is_some_and(|same| !same.is_shown()));
        assert_eq!(ratio(&rounds[..1], 1, |figure| Some(*figure)), None);
        assert_eq!(ratio(&rounds, 1, |_| None), None);
        assert_eq!(spread(&rounds, 1, |figure| Some(*figure)).map(|one| one.max), Some(500.0));
    }

    #[test]
    fn a_jdk_without_the_interval_has_an_arm_less_and_says_so() {
        let every = Duration::from_secs(1);
        let (all, missing) = arms(true, every, Ok(()));
        assert!(all[0].name == AS_IT_IS && all.len() == 6 && missing.is_empty());
        assert!(all[1].options[1].ends_with("=1000"));
        let (fewer, missing) = arms(false, every, Err("no right".to_string()));
        assert_eq!((fewer.len(), missing.len()), (4, 2));
        assert!(missing[1].contains("no right"));
    }
}
