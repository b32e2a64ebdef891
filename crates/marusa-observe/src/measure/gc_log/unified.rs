//! Unified logging, JDK 9 on (JEP 158, 271). A line is `[decoration]... GC(7) what happened`. A stop and a concurrent phase
//! have one line when they begin, and one with their time in ms when they end, which is the one that counts
//! (src/hotspot/share/gc/shared/gcTraceTime.inline.hpp, JDK 11 to 25: `GCTraceTime`, "%s%s %.3fms" and with the heap
//! "%s%s %zuM->%zuM(%zuM) %.3fms"). ZGC says the heap in a line of the whole cycle instead (zDriver.cpp, `ZDriverGCScope`).

use super::stamps::{self, Stamp};
use super::{GcLog, Heap, Kind, Pause, Phase};
use crate::base::{Gap, Why};
use crate::jvm::Gc;

/// Lines that are looked at to know the format.
const LINES_LOOKED_AT: usize = 10_000;
/// Stops and phases that are under way at once: a few. More is not a log.
const BEGUN_MAX: usize = 64;
/// Decorations that a line may have: there are twelve kinds (logDecorators.hpp).
const DECORATIONS_MAX: usize = 12;

pub(super) fn is_one(text: &str) -> bool {
    text.lines().take(LINES_LOOKED_AT).any(|line| {
        let (_, rest) = undecorated(line);
        numbered(rest).is_some() || collector(rest).is_some()
    })
}

pub(super) fn parse(text: &str) -> GcLog {
    let mut log = GcLog::default();
    let mut begun: Vec<(u64, String)> = Vec::new();
    for line in text.lines() {
        let (stamp, rest) = undecorated(line);
        let Some((collection, what)) = numbered(rest) else {
            log.gc = log.gc.or_else(|| collector(rest));
            continue;
        };
        let at = log.at(stamp);
        log.take(what, collection, at, &mut begun);
    }
    log.torn += begun.len();
    log.gc = log.gc.map(|gc| generational(gc, text)).or_else(|| by_shape(&log, text));
    let is_of_cycles =
        matches!(log.gc, Some(Gc::Z | Gc::ZGenerational | Gc::Shenandoah | Gc::ShenandoahGenerational));
    if log.pauses.is_empty() && !log.heap.is_empty() && is_of_cycles {
        log.gaps.push(Gap::new("stops of the program", Why::NotRecorded).hint(
            "this collector writes its stops with the tag gc,phases: log -Xlog:gc* rather than -Xlog:gc",
        ));
    }
    log
}

impl GcLog {
    fn take(&mut self, what: &str, collection: u64, at: Option<f64>, begun: &mut Vec<(u64, String)>) {
        // Generational ZGC: "y: ", "Y: " the young of a minor and of a major collection, "O: " the old generation.
        let what = ["y: ", "Y: ", "O: "].iter().find_map(|prefix| what.strip_prefix(prefix)).unwrap_or(what);
        if let Some(rest) = what.strip_prefix("User=") {
            self.cpu(rest);
        } else if let Some(heap) = whole_cycle(what) {
            self.heap.push(heap);
        } else if what.starts_with("Pause ") || what.starts_with("Concurrent ") {
            let event = Event::of(what);
            let Some(ms) = event.ms else {
                // The line of its begin, or G1's "Concurrent Mark Abort" and "Concurrent Mark Restart due to overflow".
                let is_begin = !event.name.contains(" Abort") && !event.name.contains(" Restart");
                let begin = (collection, event.name.to_string());
                if is_begin && begun.len() < BEGUN_MAX && !begun.contains(&begin) {
                    begun.push(begin);
                }
                return;
            };
            // What a cycle leaves without an end was given up with it ("Concurrent Mark Abort").
            let is_whole = event.name.ends_with(" Cycle");
            begun.retain(|(number, name)| *number != collection || !(is_whole || name == event.name));
            self.ended(&event, ms, collection, at);
        }
    }

    fn ended(&mut self, event: &Event, ms: f64, collection: u64, at: Option<f64>) {
        self.heap.extend(event.heap);
        let start_seconds = at.map(|at| at - ms / 1000.0);
        let (name, collection) = (event.name.to_string(), Some(collection));
        if event.name.starts_with("Concurrent ") {
            self.phases.push(Phase { start_seconds, name, ms, collection });
            return;
        }
        let pause = Pause {
            start_seconds,
            kind: event.kind(),
            name,
            cause: event.cause().map(str::to_string),
            ms,
            heap: event.heap,
            collection,
            ..Pause::default()
        };
        // Serial and CMS up to JDK 20: the full collection that a young one leads to is begun and ended within it
        // (genCollectedHeap.cpp, `do_collection`).
        if let Some(last) = self.pauses.last_mut()
            && last.collection > pause.collection
            && pause.kind == Kind::Young
            && last.ms <= pause.ms
        {
            last.is_nested = true;
            // Both say the heap before and after the whole of it.
            if last.heap.is_some() && pause.heap.is_some() {
                self.heap.pop();
            }
        }
        self.pauses.push(pause);
    }

    /// "User=0.01s Sys=0.00s Real=0.00s" without its first word.
    fn cpu(&mut self, text: &str) {
        let mut words = text.split_whitespace();
        let seconds = |word: Option<&str>| stamps::decimal(word?.strip_suffix('s')?);
        let user = seconds(words.next());
        let system = seconds(words.next().and_then(|word| word.strip_prefix("Sys=")));
        self.add_cpu(user, system);
    }
}

/// "Pause Young (Normal) (G1 Evacuation Pause) 24M->4M(256M) 3.123ms" in its parts.
struct Event<'a> {
    name: &'a str,
    /// What stands in parentheses, of the outermost ones.
    notes: Vec<&'a str>,
    heap: Option<Heap>,
    ms: Option<f64>,
}

impl Event<'_> {
    fn of(what: &str) -> Event<'_> {
        let mut rest = what.trim_end();
        let mut ms = None;
        let mut heap = None;
        if let Some((before, last)) = rest.rsplit_once(' ')
            && let Some(found) = last.strip_suffix("ms").and_then(stamps::decimal)
        {
            (rest, ms) = (before.trim_end(), Some(found));
        }
        if let Some((before, last)) = rest.rsplit_once(' ')
            && let Some(found) = stamps::heap(last)
        {
            (rest, heap) = (before.trim_end(), Some(found));
        }
        let name = rest.split(" (").next().unwrap_or(rest).trim_end();
        Event { name, notes: stamps::notes(&rest[name.len()..]), heap, ms }
    }

    fn kind(&self) -> Kind {
        match self.name {
            "Pause Full" => Kind::Full,
            "Pause Degenerated GC" => Kind::Degenerated,
            "Pause Young" if self.notes.contains(&"Mixed") => Kind::Mixed,
            // G1 of JDK 9 and 10.
            "Pause Mixed" => Kind::Mixed,
            "Pause Young" => Kind::Young,
            // There too: the young collection that begins a cycle. CMS gives no cause.
            "Pause Initial Mark" if !self.notes.is_empty() => Kind::Young,
            _ => Kind::OfCycle,
        }
    }

    fn cause(&self) -> Option<&str> {
        const NO_CAUSES: [&str; 11] = [
            "Normal",
            "Concurrent Start",
            "Prepare Mixed",
            "Mixed",
            "unload classes",
            "process weakrefs",
            "update refs",
            "Young",
            "Old",
            "Global",
            "Mixed Evacuation",
        ];
        self.notes.last().copied().filter(|note| !NO_CAUSES.contains(note))
    }
}

/// ZGC: "Garbage Collection (Warmup) 52M(20%)->10M(4%)", from JDK 21 on with the time in seconds behind.
fn whole_cycle(what: &str) -> Option<Heap> {
    let is_cycle = ["Garbage Collection (", "Minor Collection (", "Major Collection ("];
    if !is_cycle.iter().any(|start| what.starts_with(start)) {
        return None;
    }
    what.split_whitespace().rev().take(2).find_map(stamps::heap)
}

/// What its decorations say of the time, and what follows them.
fn undecorated(line: &str) -> (Stamp, &str) {
    let mut stamp = Stamp::default();
    let mut rest = line;
    for _ in 0..DECORATIONS_MAX {
        let Some((decoration, after)) = rest.strip_prefix('[').and_then(|rest| rest.split_once(']')) else {
            break;
        };
        read_stamp(decoration.trim(), &mut stamp);
        rest = after;
    }
    (stamp, rest.trim_start())
}

/// "0.123s" (uptime), "123ms" (uptimemillis, or timemillis since 1970), "123456ns", a date. Seconds are taken before
/// milliseconds, for uptimenanos and timenanos look alike and only one of them is since the start.
fn read_stamp(decoration: &str, stamp: &mut Stamp) {
    const YEAR_2001_IN_MS: f64 = 1e12;
    if let Some(nanos) = decoration.strip_suffix("ns").and_then(stamps::decimal) {
        stamp.uptime = stamp.uptime.or(Some(nanos / 1e9));
    } else if let Some(ms) = decoration.strip_suffix("ms").and_then(stamps::decimal) {
        match ms >= YEAR_2001_IN_MS {
            true => stamp.wall = stamp.wall.or(Some(ms / 1e3)),
            false => stamp.uptime = stamp.uptime.or(Some(ms / 1e3)),
        }
    } else if let Some(seconds) = decoration.strip_suffix('s').and_then(stamps::decimal) {
        stamp.uptime = Some(seconds);
    } else if let Some(date) = stamps::date(decoration) {
        stamp.wall = Some(date);
    }
}

/// "GC(7) what" gives the number and the rest.
fn numbered(text: &str) -> Option<(u64, &str)> {
    let (number, what) = text.strip_prefix("GC(")?.split_once(") ")?;
    let number = number.parse().ok().filter(|_| number.bytes().all(|byte| byte.is_ascii_digit()))?;
    Some((number, what.trim_start()))
}

/// "Using G1" at the start.
fn collector(text: &str) -> Option<Gc> {
    match text.trim_end() {
        "Using Serial" => Some(Gc::Serial),
        "Using Parallel" => Some(Gc::Parallel),
        "Using Concurrent Mark Sweep" => Some(Gc::Cms),
        "Using G1" => Some(Gc::G1),
        "Using The Z Garbage Collector" | "Initializing The Z Garbage Collector" => Some(Gc::Z),
        "Using Shenandoah" => Some(Gc::Shenandoah),
        "Using Epsilon" => Some(Gc::Epsilon),
        _ => None,
    }
}

/// The two collectors that have one name for two ways of working.
fn generational(gc: Gc, text: &str) -> Gc {
    match gc {
        Gc::Z if text.contains(" Minor Collection (") || text.contains("GC Workers for Young Generation") => {
            Gc::ZGenerational
        }
        Gc::Shenandoah if text.contains("Mode: Generational") || text.contains("Pause Init Mark (Young)") => {
            Gc::ShenandoahGenerational
        }
        _ => gc,
    }
}

/// Without a line that names it: by what only one collector writes.
fn by_shape(log: &GcLog, text: &str) -> Option<Gc> {
    let has_phase = |name: &str| log.phases.iter().any(|phase| phase.name == name);
    if text.contains(" Minor Collection (") || text.contains(" Garbage Collection (") {
        return Some(generational(Gc::Z, text));
    }
    if has_phase("Concurrent marking") || has_phase("Concurrent reset") {
        return Some(generational(Gc::Shenandoah, text));
    }
    if has_phase("Concurrent Sweep") {
        return Some(Gc::Cms);
    }
    let is_g1 = |pause: &Pause| pause.cause.as_deref().is_some_and(|cause| cause.starts_with("G1 "));
    log.pauses.iter().any(is_g1).then_some(Gc::G1)
}
