//! The logs of JDK 8 and before: brackets within brackets, `DATE: UPTIME: [GC (cause) [PSYoungGen: ...] 64K->1K(9K), 0.0015
//! secs]` (src/share/vm/gc_implementation/shared/gcTraceTime.cpp, memory/gcHeapSummary and each collector's own prints,
//! 8u452). Collector threads that run next to the program print whole brackets into the middle of others, and lines break
//! within brackets. So this reads brackets, not lines: what stands in a bracket and in none of its inner ones is its own
//! text, and that has the cause, the heap and the time.

use super::stamps::{self, Stamp};
use super::{GcLog, Heap, Kind, Pause, Phase};
use crate::jvm::Gc;

/// Brackets within brackets; collectors have five. Deeper text is not a log.
const DEPTH_MAX: usize = 32;
/// Own text of a bracket that is kept.
const OWN_TEXT_MAX: usize = 4096;

/// A bracket that is open.
struct Open {
    text: String,
    stamp: Stamp,
    /// Stops that were known when it was opened: the ones that come within belong to it.
    pauses: usize,
}

#[derive(Default)]
struct Stack {
    open: Vec<Open>,
    /// Brackets that are deeper than any log has them; what is in them is passed over.
    too_deep: usize,
    /// The line outside of all brackets, for the stamps in front of one.
    outside: String,
}

pub(super) fn parse(text: &str) -> GcLog {
    let mut log = GcLog::default();
    let mut stack = Stack::default();
    for line in text.split_inclusive('\n') {
        if !stack.open.is_empty() && begins_a_stop(line) {
            // Two wrote into one file, or it was cut and written on: what is open will not be closed.
            log.torn += 1;
            stack.open.clear();
            stack.too_deep = 0;
        }
        log.gc = log.gc.or_else(|| by_flags(line));
        stack.outside.clear();
        for letter in line.chars() {
            match letter {
                '[' => stack.push(log.pauses.len()),
                ']' if stack.too_deep > 0 => stack.too_deep -= 1,
                ']' => {
                    if let Some(closed) = stack.open.pop() {
                        let within_young = stack.open.iter().any(|open| open.text.starts_with("GC ("));
                        log.closed(closed, within_young);
                    }
                }
                _ => stack.add(letter),
            }
        }
    }
    log.torn += usize::from(stack.open.iter().any(|open| is_stop(&open.text)));
    log
}

impl Stack {
    fn text(&mut self) -> &mut String {
        self.open.last_mut().map_or(&mut self.outside, |open| &mut open.text)
    }

    fn add(&mut self, letter: char) {
        let is_passed_over = self.too_deep > 0;
        let text = self.text();
        if !is_passed_over && text.len() < OWN_TEXT_MAX {
            text.push(letter);
        }
    }

    fn push(&mut self, pauses: usize) {
        if self.open.len() >= DEPTH_MAX {
            self.too_deep += 1;
            return;
        }
        let text = self.text();
        let (stamp, length) = stamp_at_end(text);
        text.truncate(length);
        self.open.push(Open { text: String::new(), stamp, pauses });
    }
}

/// "..., 2024-05-06T07:08:09.123+0200: 1.234: ": the stamps, and where they begin.
fn stamp_at_end(text: &str) -> (Stamp, usize) {
    let mut stamp = Stamp::default();
    let mut end = text.len();
    for _ in 0..2 {
        let Some(rest) = text[..end].trim_end_matches(' ').strip_suffix(':') else { break };
        let start = rest
            .rfind(|letter: char| letter.is_whitespace() || matches!(letter, ')'))
            .map_or(0, |at| at + rest[at..].chars().next().map_or(1, char::len_utf8));
        let word = &rest[start..];
        match (stamps::decimal(word), stamps::date(word)) {
            (Some(seconds), _) if stamp.uptime.is_none() => stamp.uptime = Some(seconds),
            (_, Some(date)) => stamp.wall = Some(date),
            _ => break,
        }
        end = start;
    }
    (stamp, end)
}

/// Whether a line begins with stamps and a stop. Phases next to the program are not meant: they are printed anywhere.
fn begins_a_stop(line: &str) -> bool {
    let Some((before, after)) = line.split_once('[') else { return false };
    stamp_at_end(before).1 == 0 && is_stop(after)
}

fn is_stop(text: &str) -> bool {
    let starts = ["GC (", "GC pause", "GC remark", "GC cleanup", "Full GC", "GC--", "GC  "];
    // -XX:-PrintGCCause prints no cause.
    starts.iter().any(|start| text.starts_with(start)) || matches!(text.trim_end(), "GC")
}

impl GcLog {
    fn closed(&mut self, bracket: Open, within_young: bool) {
        let text = bracket.text.trim();
        if let Some(rest) = text.strip_prefix("Times:") {
            self.stop_cpu(rest);
        } else if is_stop(&bracket.text) || is_stop(text) {
            self.stopped(text, &bracket);
        } else if let Some((name, seconds)) = phase(text) {
            self.concurrent(name, seconds, bracket.stamp);
        } else if let Some(heap) = g1_heap(text) {
            self.heap_of_last(heap);
        } else {
            self.gc = self.gc.or_else(|| by_generation(text));
            if within_young && (text.starts_with("Tenured: ") || text.starts_with("CMS")) {
                self.full_within(text, bracket.stamp);
            }
        }
    }

    /// Serial and CMS: a young collection that could not promote goes on with a full one, in brackets of the old
    /// generation.
    fn full_within(&mut self, text: &str, stamp: Stamp) {
        let Some((_, seconds)) = seconds_at_end(text) else { return };
        let (start_seconds, name, ms) = (self.at(stamp), "Full GC".to_string(), seconds * 1000.0);
        let full = Pause { start_seconds, kind: Kind::Full, name, ms, is_nested: true, ..Pause::default() };
        self.pauses.push(full);
    }

    fn stopped(&mut self, text: &str, bracket: &Open) {
        let Some((rest, seconds)) = seconds_at_end(text) else {
            self.torn += 1;
            return;
        };
        let heap = rest.split_whitespace().rev().find_map(|word| stamps::heap(word.trim_end_matches(',')));
        // A scavenge before CMS's remark, a full collection out of a young one: within this stop.
        self.pauses.iter_mut().skip(bracket.pauses).for_each(|pause| pause.is_nested = true);
        self.heap.extend(heap);
        let start_seconds = self.at(bracket.stamp);
        let (name, kind) = named(rest);
        if name == "GC pause" || name == "GC remark" {
            self.gc = self.gc.or(Some(Gc::G1));
        }
        self.pauses.push(Pause {
            start_seconds,
            kind,
            name: name.to_string(),
            cause: cause(rest),
            ms: seconds * 1000.0,
            heap,
            ..Pause::default()
        });
    }

    /// `stamp` is of the end.
    fn concurrent(&mut self, name: &str, seconds: f64, stamp: Stamp) {
        let start_seconds = self.at(stamp).map(|at| at - seconds);
        let name = name.to_string();
        self.phases.push(Phase { start_seconds, name, ms: seconds * 1000.0, collection: None });
    }

    fn heap_of_last(&mut self, heap: Heap) {
        self.gc = self.gc.or(Some(Gc::G1));
        if let Some(last) = self.pauses.last_mut().filter(|pause| pause.heap.is_none()) {
            last.heap = Some(heap);
            self.heap.push(heap);
        }
    }

    /// " user=0.00 sys=0.00, real=0.00 secs"
    fn stop_cpu(&mut self, text: &str) {
        let of = |name: &str| {
            let word = text.split_once(name)?.1.split_whitespace().next()?;
            stamps::decimal(word.trim_end_matches(','))
        };
        self.add_cpu(of("user="), of("sys="));
    }
}

/// "... , 0.0015140 secs": the text before, and the time.
fn seconds_at_end(text: &str) -> Option<(&str, f64)> {
    let (rest, last) = text.trim_end().strip_suffix("secs")?.trim_end().rsplit_once([' ', '\t', '\n'])?;
    Some((rest.trim_end().trim_end_matches(','), stamps::decimal(last)?))
}

fn named(text: &str) -> (&str, Kind) {
    match text {
        text if text.starts_with("Full GC") => ("Full GC", Kind::Full),
        text if text.starts_with("GC (CMS Initial Mark)") => ("GC (CMS Initial Mark)", Kind::OfCycle),
        text if text.starts_with("GC (CMS Final Remark)") => ("GC (CMS Final Remark)", Kind::OfCycle),
        text if text.starts_with("GC remark") => ("GC remark", Kind::OfCycle),
        text if text.starts_with("GC cleanup") => ("GC cleanup", Kind::OfCycle),
        text if text.starts_with("GC pause") && text.contains("(mixed)") => ("GC pause", Kind::Mixed),
        text if text.starts_with("GC pause") => ("GC pause", Kind::Young),
        _ => ("GC", Kind::Young),
    }
}

/// "GC pause (G1 Evacuation Pause) (young)", "Full GC (System.gc())".
fn cause(text: &str) -> Option<String> {
    let cause = stamps::notes(text).into_iter().next();
    cause.filter(|cause| !matches!(*cause, "young" | "mixed" | "initial-mark")).map(str::to_string)
}

/// "CMS-concurrent-mark: 0.018/0.045 secs" (the second is wall time), "GC concurrent-mark-end, 0.0210 secs".
fn phase(text: &str) -> Option<(&str, f64)> {
    if text.starts_with("CMS-concurrent-") {
        let (name, times) = text.split_once(": ")?;
        let wall = times.strip_suffix(" secs")?.split_once('/')?.1;
        return Some((name, stamps::decimal(wall)?));
    }
    let (name, time) = text.strip_prefix("GC ")?.split_once("-end, ")?;
    let time = name.starts_with("concurrent-").then(|| time.strip_suffix(" secs")).flatten()?;
    Some((name, stamps::decimal(time)?))
}

/// "Eden: 24.0M(24.0M)->0.0B(13.0M) Survivors: 0.0B->3072.0K Heap: 24.0M(256.0M)->4198.7K(256.0M)"
fn g1_heap(text: &str) -> Option<Heap> {
    let heap = text.starts_with("Eden: ").then(|| text.split_once(" Heap: ")).flatten()?.1;
    stamps::heap(heap.trim_end())
}

fn by_generation(text: &str) -> Option<Gc> {
    if text.starts_with("1 CMS-") {
        return Some(Gc::Cms);
    }
    match text.split([':', ' ']).next()? {
        "PSYoungGen" | "ParOldGen" => Some(Gc::Parallel),
        "DefNew" | "Tenured" => Some(Gc::Serial),
        "ParNew" | "CMS" => Some(Gc::Cms),
        _ => None,
    }
}

/// "CommandLine flags: -XX:+PrintGC ... -XX:+UseParallelGC" at the start of a -Xloggc file.
fn by_flags(line: &str) -> Option<Gc> {
    let flags = line.strip_prefix("CommandLine flags: ")?;
    let has = |name: &str| flags.split_whitespace().any(|flag| flag.strip_prefix("-XX:+") == Some(name));
    match () {
        () if has("UseConcMarkSweepGC") => Some(Gc::Cms),
        () if has("UseG1GC") => Some(Gc::G1),
        () if has("UseParallelGC") || has("UseParallelOldGC") => Some(Gc::Parallel),
        () if has("UseSerialGC") => Some(Gc::Serial),
        () => None,
    }
}
