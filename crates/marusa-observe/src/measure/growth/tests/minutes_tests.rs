//! Histories of twenty minutes, each judged at every minute from 2 to 20 as a user would who cannot wait: each verdict must be
//! right or "cannot tell yet" each time, and right by the minute that the history states.

use super::*;
use crate::base::Bytes;

const MINUTE: f64 = 60.0;
const END: f64 = 20.0 * MINUTE;

/// When accounts are read.
#[derive(Clone, Copy)]
enum Read {
    Every(f64),
    /// With up to half of that more or less.
    About(f64),
    /// Every 2 s while something moves, else every 45 s, in turns of two minutes.
    Bursts,
    /// Not between these two.
    Away(f64, f64, f64),
    /// Every second, but the figure is as old as up to this.
    Stale(f64),
}

/// The right verdicts on a history.
#[derive(Clone, Copy, Debug)]
enum Right {
    /// It grows without bound from a minute on, and that is known by a minute and stays known.
    Grows { from: u32, known_by: u32 },
    /// The verdict may be that it grows, and never that it levels off.
    MayGrow,
    /// The verdict is never that it grows without bound.
    Bounded,
    /// Nor that, and by this minute it levels off.
    Level { known_by: u32 },
    /// It grows without bound until a minute, and some minutes later the verdict has changed.
    Ends { at: u32, known_by: u32 },
}

struct Prepared {
    name: &'static str,
    read: Read,
    right: Right,
    noise: f64,
    nature: Nature,
    of: fn(f64) -> f64,
}

impl Prepared {
    fn new(name: &'static str, read: Read, right: Right, of: fn(f64) -> f64) -> Prepared {
        let nature = Nature { process_bytes: 500 << 20, ..Nature::default() };
        Prepared { name, read, right, noise: 0.05 * MB, nature, of }
    }
    fn noise(self, noise: f64) -> Prepared {
        Prepared { noise, ..self }
    }
    fn bound(mut self, bytes: Bytes) -> Prepared {
        self.nature.bound_bytes = Some(bytes);
        self
    }
    fn process(mut self, bytes: Bytes) -> Prepared {
        self.nature.process_bytes = bytes;
        self
    }
    fn floors(mut self) -> Prepared {
        self.nature.is_floor = true;
        self
    }

    fn points(&self, seed: u64) -> Vec<Point> {
        let mut noise = Noise::new(seed, 0.3);
        let mut random = fastrand::Rng::with_seed(seed ^ 0x5eed);
        let mut points = Vec::new();
        let mut at = 0.0;
        while at <= END {
            let read_at = match self.read {
                Read::Stale(age) => (at / age).floor() * age,
                _ => at,
            };
            let bytes = (self.of)(read_at) + if read_at == at { self.noise * noise.next() } else { 0.0 };
            points.push(Point { seconds: at, bytes: (bytes.max(0.0) / 4096.0).floor() * 4096.0 });
            at += match self.read {
                Read::Every(every) => every,
                Read::About(every) => every * (0.5 + random.f64()),
                Read::Bursts if at % 240.0 < 120.0 => 2.0,
                Read::Bursts => 45.0,
                Read::Away(every, from, to) if at >= from && at < to => (to - at).max(every),
                Read::Away(every, ..) => every,
                Read::Stale(_) => 1.0,
            };
        }
        points
    }

    /// What is wrong with a verdict at a minute.
    fn wrong(&self, minute: u32, verdict: Verdict) -> Option<&'static str> {
        let says_grows = verdict == Verdict::GrowsWithoutBound;
        let says_level = verdict == Verdict::LevelsOff;
        match self.right {
            Right::Grows { from, .. } if says_grows && minute < from => Some("grows too early"),
            Right::Grows { from, .. } if says_level && minute > from => Some("levels off"),
            Right::Grows { known_by, .. } if !says_grows && minute >= known_by => Some("not known"),
            Right::MayGrow if says_level => Some("levels off"),
            Right::Bounded | Right::Level { .. } if says_grows => Some("grows"),
            Right::Level { known_by } if !says_level && minute >= known_by => Some("not known to level off"),
            Right::Ends { at, .. } if says_level && minute <= at => Some("levels off"),
            Right::Ends { known_by, .. } if says_grows && minute >= known_by => Some("still grows"),
            _ => None,
        }
    }
}

fn ramp(at: f64, minutes: f64) -> f64 {
    (at / (minutes * MINUTE)).min(1.0)
}

fn warm(at: f64, minutes: f64) -> f64 {
    1.0 - (-at / (minutes * MINUTE)).exp()
}

fn steps(at: f64, minutes: &[f64]) -> f64 {
    minutes.iter().filter(|minute| at >= **minute * MINUTE).count() as f64
}

fn wave(at: f64, minutes: f64) -> f64 {
    (std::f64::consts::TAU * at / (minutes * MINUTE)).sin()
}

fn leaks() -> Vec<Prepared> {
    let known = |known_by| Right::Grows { from: 0, known_by };
    let sparse = Read::About(16.0);
    vec![
        Prepared::new("class loaders, 1 MiB/s", sparse, known(10), |at| 20.0 * MB + at * MB),
        Prepared::new("class loaders, every minute", Read::Every(60.0), known(14), |at| 20.0 * MB + at * MB),
        Prepared::new("class loaders, about every minute", Read::About(60.0), known(17), |at| {
            20.0 * MB + at * MB
        }),
        Prepared::new("malloc, every second", Read::Every(1.0), known(10), |at| 40.0 * MB + at * 0.2 * MB),
        Prepared::new("malloc, with noise", sparse, known(12), |at| 40.0 * MB + at * 0.2 * MB)
            .noise(2.0 * MB),
        Prepared::new("stairs of 4 MiB", sparse, known(13), |at| 30.0 * MB + 4.0 * MB * (at / 20.0).floor()),
        Prepared::new("threads, 256 KiB each second", sparse, known(10), |at| {
            8.0 * MB + 0.25 * MB * at.floor()
        }),
        Prepared::new("a rate that varies", sparse, known(14), |at| {
            30.0 * MB + 0.5 * MB * (at + 12.0 * wave(at, 3.0))
        }),
        Prepared::new("after a warm-up", sparse, known(15), |at| {
            30.0 * MB + 60.0 * MB * warm(at, 0.7) + 0.5 * MB * at
        }),
        Prepared::new("with a step on top", sparse, known(10), |at| {
            30.0 * MB + 0.5 * MB * at + 64.0 * MB * steps(at, &[12.0])
        }),
        Prepared::new("begins at 6 minutes", sparse, Right::Grows { from: 6, known_by: 18 }, |at| {
            30.0 * MB + 0.5 * MB * (at - 6.0 * MINUTE).max(0.0)
        }),
        Prepared::new("slow, in a small process", sparse, Right::MayGrow, |at| {
            60.0 * MB + at / HOUR * 20.0 * MB
        })
        .process(90 << 20),
        Prepared::new("with trims of malloc", Read::Every(1.0), known(14), |at| {
            40.0 * MB + 0.3 * MB * at + 10.0 * MB * tooth(at, 31.0)
        }),
        Prepared::new("live bytes after whole collections", Read::About(50.0), known(15), |at| {
            40.0 * MB + 0.15 * MB * at
        })
        .floors(),
        Prepared::new("four minutes without accounts", Read::Away(16.0, 240.0, 480.0), known(16), |at| {
            30.0 * MB + 0.4 * MB * at
        }),
        Prepared::new("accounts in bursts", Read::Bursts, known(14), |at| 30.0 * MB + 0.4 * MB * at),
        Prepared::new("accelerates", sparse, Right::MayGrow, |at| {
            30.0 * MB + 0.1 * MB * at + 0.0008 * MB * at * at
        }),
        Prepared::new("slows to 60 % at 11 minutes", sparse, known(10), |at| {
            30.0 * MB + 0.5 * MB * (at.min(660.0) + 0.6 * (at - 660.0).max(0.0))
        }),
        Prepared::new("5 MiB/s of a large process", sparse, known(12), |at| 9000.0 * MB + 5.0 * MB * at)
            .process(12 << 30),
        Prepared::new("stale figures between accounts", Read::Stale(30.0), known(16), |at| {
            30.0 * MB + 0.5 * MB * at
        }),
        Prepared::new("code without end, below its bound", sparse, Right::Bounded, |at| {
            20.0 * MB + 0.1 * MB * at
        })
        .bound(240 << 20),
        Prepared::new("ends at 11 minutes", sparse, Right::Ends { at: 11, known_by: 17 }, |at| {
            30.0 * MB + 0.5 * MB * at.min(660.0)
        }),
    ]
}

fn others() -> Vec<Prepared> {
    let sparse = Read::About(16.0);
    let (never, level) = (Right::Bounded, |known_by| Right::Level { known_by });
    vec![
        Prepared::new("warm-up of 1 minute", sparse, never, |at| 20.0 * MB + 80.0 * MB * warm(at, 1.0)),
        Prepared::new("warm-up of 4 minutes", sparse, never, |at| 20.0 * MB + 80.0 * MB * warm(at, 4.0)),
        Prepared::new("warm-up of 10 minutes", sparse, never, |at| 20.0 * MB + 200.0 * MB * warm(at, 10.0)),
        Prepared::new("warm-up of 15 minutes", sparse, never, |at| 20.0 * MB + 200.0 * MB * warm(at, 15.0)),
        Prepared::new("warm-up of 4 minutes, every minute", Read::Every(60.0), never, |at| {
            20.0 * MB + 80.0 * MB * warm(at, 4.0)
        }),
        Prepared::new("warm-up of 10 minutes, every minute", Read::About(60.0), never, |at| {
            20.0 * MB + 80.0 * MB * warm(at, 10.0)
        }),
        Prepared::new("cache that grows with the logarithm", sparse, never, |at| {
            20.0 * MB * (1.0 + at / 10.0).ln()
        }),
        Prepared::new("cache that grows with the root", sparse, never, |at| 4.0 * MB * at.sqrt()),
        Prepared::new("metaspace, 3 minutes, then flat", sparse, level(16), |at| {
            10.0 * MB + 60.0 * MB * ramp(at, 3.0)
        })
        .noise(0.0),
        Prepared::new("code cache, 5 minutes, then flat", sparse, level(18), |at| {
            5.0 * MB + 40.0 * MB * ramp(at, 5.0)
        })
        .noise(0.0),
        Prepared::new("pool that fills in 6 minutes", sparse, never, |at| {
            5.0 * MB + 256.0 * MB * ramp(at, 6.0)
        }),
        Prepared::new("pool that fills in 6 minutes, every minute", Read::Every(60.0), never, |at| {
            5.0 * MB + 256.0 * MB * ramp(at, 6.0)
        }),
        Prepared::new("pool that fills in 7 minutes from the third on", Read::Every(5.0), never, |at| {
            5.0 * MB + 256.0 * MB * ramp((at - 180.0).max(0.0), 7.0)
        }),
        Prepared::new("CDS archive, touched at the start", sparse, level(16), |at| {
            4.0 * MB + 4.0 * MB * steps(at, &[0.3, 0.8])
        })
        .noise(0.0),
        Prepared::new("one step", sparse, level(18), |at| 50.0 * MB + 64.0 * MB * steps(at, &[5.0]))
            .noise(0.0),
        Prepared::new("two steps", sparse, never, |at| 50.0 * MB + 32.0 * MB * steps(at, &[4.0, 9.0])),
        Prepared::new("three steps", sparse, never, |at| 50.0 * MB + 32.0 * MB * steps(at, &[3.0, 6.0, 9.0])),
        Prepared::new("three steps, every minute", Read::Every(60.0), never, |at| {
            50.0 * MB + 32.0 * MB * steps(at, &[4.0, 7.0, 13.0])
        }),
        Prepared::new("a saw of 47 s", sparse, never, |at| 100.0 * MB + 60.0 * MB * tooth(at, 47.0)),
        Prepared::new("a saw of 2 minutes", sparse, never, |at| 100.0 * MB + 60.0 * MB * tooth(at, 120.0)),
        Prepared::new("a saw of 5 minutes", sparse, never, |at| 100.0 * MB + 60.0 * MB * tooth(at, 300.0)),
        Prepared::new("a saw of 5 minutes, every minute", Read::Every(60.0), never, |at| {
            100.0 * MB + 60.0 * MB * tooth(at, 300.0)
        }),
        Prepared::new("heap that expands to -Xmx", sparse, never, |at| {
            64.0 * MB + 448.0 * MB * ramp(at, 7.0)
        })
        .bound(512 << 20),
        Prepared::new("heap of fixed size, touched over 25 minutes", sparse, never, |at| {
            50.0 * MB + 974.0 * MB * ramp(at, 25.0)
        })
        .bound(1 << 30),
        Prepared::new("GC tables of 5 MiB in a fixed heap", sparse, never, |at| {
            MB + 4.0 * MB * ramp(at, 25.0)
        }),
        Prepared::new("load of a day", Read::Every(10.0), never, |at| {
            400.0 * MB + 100.0 * MB * wave(at, 1440.0)
        }),
        Prepared::new("load of a day, after its trough", sparse, never, |at| {
            400.0 * MB + 200.0 * MB * wave(at - 3.0 * HOUR, 1440.0)
        }),
        Prepared::new("load that comes and goes in 8 minutes", sparse, never, |at| {
            200.0 * MB + 80.0 * MB * wave(at, 8.0)
        }),
        Prepared::new("load that comes and goes in 14 minutes", sparse, never, |at| {
            200.0 * MB - 80.0 * MB * wave(at + 210.0, 14.0)
        }),
        Prepared::new("noise", sparse, never, |_| 300.0 * MB).noise(3.0 * MB),
        Prepared::new("flat", sparse, level(12), |_| 80.0 * MB).noise(0.0),
        Prepared::new("flat, every minute", Read::Every(60.0), level(14), |_| 80.0 * MB).noise(0.0),
        Prepared::new("falling", sparse, level(14), |at| 400.0 * MB - 0.1 * MB * at).noise(0.0),
        Prepared::new("stale figures of a warm-up", Read::Stale(60.0), never, |at| {
            20.0 * MB + 80.0 * MB * warm(at, 4.0)
        }),
        Prepared::new("warm-up in bursts of accounts", Read::Bursts, never, |at| {
            20.0 * MB + 80.0 * MB * warm(at, 5.0)
        }),
        Prepared::new(
            "warm-up with five minutes without accounts",
            Read::Away(16.0, 200.0, 500.0),
            never,
            |at| 20.0 * MB + 80.0 * MB * warm(at, 4.0),
        ),
    ]
}

/// Each verdict of each history at each minute.
fn wrong(prepared: &[Prepared], seeds: u64) -> Vec<String> {
    let mut wrong = Vec::new();
    for (history, seed) in prepared.iter().flat_map(|history| (0..seeds).map(move |seed| (history, seed))) {
        let points = history.points(seed);
        for minute in 2..=20 {
            let end = points.partition_point(|point| point.seconds <= f64::from(minute) * MINUTE);
            let growth = judge(&points[..end], history.nature);
            if let Some(what) = history.wrong(minute, growth.verdict) {
                let (name, caveat) = (history.name, growth.caveat);
                wrong.push(format!("{name}, seed {seed}, minute {minute}: {what} ({caveat:?})"));
            }
        }
    }
    wrong
}

#[test]
fn leaks_are_known_by_their_minute_and_stay_known() {
    let wrong = wrong(&leaks(), SEEDS.div_ceil(5));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_is_bounded_is_at_no_minute_said_to_grow_without_bound() {
    let wrong = wrong(&others(), SEEDS.div_ceil(5));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
