//! Recordings of twenty minutes for tests: JVMs that leak in one way or in none, as `record --all` sees them.

use super::figures;
use super::history::History;
use super::key::{Key, Measure, Subject};
use super::moment::Moment;
use super::reader;
use super::writer::{Ending, JvmFacts, Scope, Session, Writer};
use crate::jvm::ClassObjects;
use crate::map::{Area, heap};

pub const MB: u64 = 1 << 20;
pub const END: u64 = 20 * 60;
const HISTOGRAM_EVERY: u64 = 60;

pub type Classes = fn(u64) -> Vec<(&'static str, u64, u64, u64)>;

/// A JVM as `record --all` sees it: a cheap sample every second, an account about every 16 seconds that is read seconds after its
/// sample.
pub struct Jvm {
    pub areas: fn(Area, u64) -> u64,
    pub heap_used: fn(u64) -> u64,
    pub young_every: u64,
    pub old_every: u64,
    /// Seconds between accounts, at least and below.
    pub account_every: (u64, u64),
    /// Every third account could not walk malloc.
    pub loses_depth: bool,
    /// Threads, of which all but twelve are of one name.
    pub threads: fn(u64) -> u64,
    /// Each minute, the classes of its heap's objects: all bytes, those of objects older than the last collection, and the bytes of
    /// one.
    pub classes: Option<Classes>,
    /// When it ends, and how.
    pub ends: Option<(u64, Ending)>,
    /// The file is cut here, and its first part is dropped, as of a ring.
    pub cut_at: Option<u64>,
}

impl Jvm {
    pub fn with(areas: fn(Area, u64) -> u64) -> Jvm {
        Jvm {
            areas,
            heap_used: |_| 20 * MB,
            young_every: 7,
            old_every: 10_000,
            account_every: (10, 24),
            loses_depth: false,
            threads: |_| 12,
            classes: None,
            ends: None,
            cut_at: None,
        }
    }

    fn figures(&self, second: u64) -> Vec<(Key, Option<u64>)> {
        let collections = |every: u64| second / every;
        // The VM brings the figure up to date at collections.
        let last = second - second % self.young_every.min(self.old_every);
        vec![
            (
                Key::process(Measure::KernelResident),
                Some(Area::ALL.iter().map(|area| (self.areas)(*area, second)).sum()),
            ),
            (Key::process(Measure::HeapUsed), Some((self.heap_used)(last))),
            (
                Key::process(Measure::Collections),
                Some(collections(self.young_every) + collections(self.old_every)),
            ),
            (Key::process(Measure::OldCollections), Some(collections(self.old_every))),
            (Key::process(Measure::Tasks), Some((self.threads)(second))),
        ]
    }

    fn account(&self, number: u64, read_at: u64) -> Vec<(Key, Option<u64>)> {
        let is_shallow = self.loses_depth && number % 3 == 1;
        let of = |area: Area| match area {
            Area::MallocFreed if is_shallow => None,
            Area::JvmWork if is_shallow => {
                Some((self.areas)(area, read_at) + (self.areas)(Area::MallocFreed, read_at))
            }
            area => Some((self.areas)(area, read_at)),
        };
        let space = |area: Area| if area == Area::Gc { Some(16 * MB) } else { of(area) };
        let of_name = Subject::Threads("session-#".to_string());
        let mut figures = vec![
            (Key::process(Measure::AccountAt), Some(read_at * 1000)),
            (Key::of(&of_name, Measure::Threads), Some((self.threads)(read_at) - 12)),
        ];
        for area in Area::ALL {
            let subject = Subject::Area(*area);
            figures.push((Key::of(&subject, Measure::Resident), of(*area)));
            figures.push((Key::of(&subject, Measure::Reserved), space(*area)));
        }
        figures
    }

    pub fn history(&self) -> History {
        let session = |segment| Session { recording: "one".to_string(), segment, ..Session::default() };
        let mut writer = Writer::new(&session(0));
        let facts = JvmFacts { max_heap_bytes: Some(512 * MB), ..JvmFacts::default() };
        let jvm = writer.jvm(facts);
        let mut random = fastrand::Rng::with_seed(7);
        let (mut due, mut number) = (0, 0);
        let end = self.ends.map_or(END, |(second, _)| second);
        for second in 0..=end {
            let at = Moment { steady_ms: second * 1000, wall_ms: (second * 1000) as i64 };
            let mut figures = self.figures(second);
            let mut scope = Scope::Glance;
            if second >= due {
                figures.extend(self.account(number, second + random.u64(0..6)));
                scope = Scope::Account;
                number += 1;
                due = second + random.u64(self.account_every.0..self.account_every.1);
            }
            writer.sample(jvm, at, scope, &figures);
            if let Some(classes) = self.classes.filter(|_| second % HISTOGRAM_EVERY == 5) {
                let figures = figures::of_classes(heap::rows(&objects(classes(second))), second * 1000);
                writer.sample(jvm, at, Scope::Classes, &figures);
            }
            if self.cut_at == Some(second) {
                writer.take();
                writer.next_segment(&session(1));
            }
        }
        if let Some((second, ending)) = self.ends {
            let steady_ms = second * 1000 + 500;
            writer.ended(jvm, Moment { steady_ms, wall_ms: steady_ms as i64 }, ending);
        }
        reader::read(&[&writer.take()]).expect("a recording").jvms.remove(0)
    }
}

fn objects(classes: Vec<(&str, u64, u64, u64)>) -> Vec<ClassObjects> {
    let of = |(class, bytes, survived, each): (&str, u64, u64, u64)| ClassObjects {
        class: class.to_string(),
        instances: bytes / each,
        bytes,
        survived_instances: Some(survived / each),
        survived_bytes: Some(survived),
        ..ClassObjects::default()
    };
    classes.into_iter().map(of).collect()
}

/// Sessions that are kept, each with an array, next to arrays that die, at once or after they were promoted; and a cache that grows
/// in two steps.
fn sessions(second: u64) -> Vec<(&'static str, u64, u64, u64)> {
    let kept = second * MB / 5;
    let (promoted, new) = (second % 40 * MB / 2, second * 7919 % 60 * MB);
    vec![
        ("[B", 20 * MB + kept + promoted + new, 20 * MB + kept + promoted, 1024),
        ("com.app.Session", 10_000 + kept / 40, kept / 40, 24),
        ("java.util.HashMap$Node", 20 * MB + new / 4, 20 * MB, 32),
        ("com.app.Request", MB + new / 8, second * 31 % 7 * MB / 8, 64),
        ("com.app.Cache", (1 + second / 400) * 30 * MB, (1 + second / 400) * 30 * MB, 64),
    ]
}

/// Nothing of it is kept; what was promoted dies with each collection of the old generation.
fn garbage(second: u64) -> Vec<(&'static str, u64, u64, u64)> {
    let (promoted, new) = (second % 140 * MB / 2, second * 7919 % 200 * MB);
    vec![
        ("[B", 30 * MB + promoted + new, 30 * MB + promoted, 1024),
        ("com.app.Request", MB + promoted / 8 + new / 8, MB + promoted / 8, 64),
        ("com.app.Config", 10 * MB, 10 * MB, 64),
    ]
}

pub fn quiet(area: Area, _: u64) -> u64 {
    match area {
        Area::JavaHeap => 120 * MB,
        Area::MallocFreed => 6 * MB,
        _ => 10 * MB,
    }
}

/// The case of issue 16: 767 MiB in 12 minutes, while the heap expands.
pub fn class_loaders(area: Area, second: u64) -> u64 {
    match area {
        Area::ClassMetadata => 20 * MB + second * MB,
        Area::JavaHeap => 64 * MB + (second / 30 * 5 * MB).min(400 * MB),
        Area::JvmWork => 12 * MB + second * MB / 40,
        area => quiet(area, second),
    }
}

/// A thread each 200 ms. From minute 9 to 11 the program is four times slower.
pub fn session_threads(second: u64) -> u64 {
    let slow = second.clamp(540, 660) - 540;
    12 + (second - slow * 3 / 4) * 5
}

/// Their stacks and blocks, and what is unattributed in turns because threads come while it is read.
fn of_sessions(area: Area, second: u64) -> u64 {
    let threads = session_threads(second);
    match area {
        Area::Stack => threads * 24 * 1024,
        Area::MallocUnknown => threads * 40 * 1024 + second % 50 * MB / 16,
        Area::Unattributed => second / 60 % 3 * threads * 12 * 1024,
        area => quiet(area, second),
    }
}

/// All of them by name.
pub fn jvms() -> Vec<(&'static str, Jvm)> {
    fn malloc(area: Area, second: u64) -> u64 {
        match area {
            Area::MallocUnknown => 20 * MB + second * MB / 2,
            area => quiet(area, second),
        }
    }
    let loaders = || Jvm { heap_used: |second| 20 * MB + second * MB / 10, ..Jvm::with(class_loaders) };
    let full = |ending| Jvm {
        heap_used: |second| (40 * MB + second * MB).min(510 * MB),
        old_every: 20,
        ends: Some((END / 2, ending)),
        ..Jvm::with(quiet)
    };
    vec![
        ("class loaders", loaders()),
        ("class loaders, sparse accounts", Jvm { account_every: (50, 70), ..loaders() }),
        ("class loaders, part of a ring", Jvm { cut_at: Some(400), ..loaders() }),
        ("class loaders, until it exits", Jvm { ends: Some((900, Ending::Ended)), ..loaders() }),
        (
            "class loaders, until it is killed",
            Jvm { ends: Some((700, Ending::KilledForMemory)), ..loaders() },
        ),
        (
            "freed, accounts without depth",
            Jvm {
                loses_depth: true,
                ..Jvm::with(|area, second| match area {
                    Area::MallocFreed => 40 * MB + second * MB / 2,
                    area => quiet(area, second),
                })
            },
        ),
        (
            "still, accounts without depth",
            Jvm {
                loses_depth: true,
                ..Jvm::with(|area, second| match area {
                    Area::MallocFreed => 140 * MB,
                    area => quiet(area, second),
                })
            },
        ),
        (
            "a heap that is touched",
            Jvm::with(|area, second| match area {
                Area::JavaHeap => 60 * MB + second * MB / 4,
                Area::Gc => MB + second * 8 * MB / END,
                area => quiet(area, second),
            }),
        ),
        (
            // Between two whole collections there is a tooth of what young collections let through.
            "live bytes",
            Jvm {
                heap_used: |second| 40 * MB + second * MB / 5 + second % 40 * MB / 2,
                old_every: 40,
                ..Jvm::with(quiet)
            },
        ),
        (
            "sessions, by class",
            Jvm {
                heap_used: |second| 40 * MB + second * MB / 5 + second % 40 * MB / 2,
                old_every: 40,
                classes: Some(sessions),
                ..Jvm::with(quiet)
            },
        ),
        (
            "garbage, by class",
            Jvm {
                heap_used: |second| 40 * MB + second % 140 * MB / 2,
                old_every: 140,
                classes: Some(garbage),
                ..Jvm::with(quiet)
            },
        ),
        (
            "garbage in the old generation",
            Jvm { heap_used: |second| 40 * MB + second % 140 * MB / 2, old_every: 140, ..Jvm::with(quiet) },
        ),
        ("a full heap, ended", full(Ending::Ended)),
        ("a full heap, killed", full(Ending::KilledForMemory)),
        (
            "threads",
            Jvm {
                threads: session_threads,
                heap_used: |second| 20 * MB + second.min(200) * MB / 8,
                ..Jvm::with(of_sessions)
            },
        ),
        (
            "threads, until it is killed",
            Jvm {
                threads: session_threads,
                ends: Some((400, Ending::KilledForMemory)),
                ..Jvm::with(of_sessions)
            },
        ),
        ("malloc", Jvm::with(malloc)),
        ("malloc, sparse accounts", Jvm { account_every: (40, 80), ..Jvm::with(malloc) }),
        ("malloc, until it exits", Jvm { ends: Some((300, Ending::Ended)), ..Jvm::with(malloc) }),
        (
            "malloc, next to a few threads",
            Jvm {
                threads: |second| 12 + second / 30,
                ..Jvm::with(|area, second| match area {
                    Area::Stack => (12 + second / 30) * 8 * 1024,
                    area => malloc(area, second),
                })
            },
        ),
        (
            "class loaders and threads",
            Jvm {
                threads: |second| 12 + second * 4,
                ..Jvm::with(|area, second| match area {
                    Area::ClassMetadata => 20 * MB + second * MB / 2,
                    Area::Stack => (12 + second * 4) * 64 * 1024,
                    area => quiet(area, second),
                })
            },
        ),
        (
            "a pool of threads",
            Jvm {
                threads: |second| 12 + second.min(200),
                ..Jvm::with(|area, second| match area {
                    Area::Stack => (12 + second.min(200)) * 64 * 1024,
                    area => quiet(area, second),
                })
            },
        ),
        ("nothing, sparse accounts", Jvm { account_every: (50, 90), ..Jvm::with(quiet) }),
        ("nothing, until it exits", Jvm { ends: Some((500, Ending::Ended)), ..Jvm::with(quiet) }),
    ]
}
