//! `GC.heap_info`: what the collector says of its heap, and, up to JDK 24, of metaspace. Every collector prints its own
//! form, and the forms moved (JDK 25 dropped metaspace and renamed generations), so a line is known by its contents.
//!
//! Sources: print_on of g1CollectedHeap, genCollectedHeap/serialHeap, psYoungGen, psOldGen, zHeap, shenandoahHeap,
//! epsilonHeap; MetaspaceUtils::print_on. Captured from JDK 8, 11, 17, 21 and 25.

use super::{Amount, ReportError, address, amount};
use crate::base::{Addr, Bytes, Range};

/// The heap as the collector sums it up. `None`: this JDK or collector does not print it.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct HeapInfo {
    pub used_bytes: Option<Bytes>,
    pub committed_bytes: Option<Bytes>,
    /// The most that the heap may grow to.
    pub max_bytes: Option<Bytes>,
    /// The coarsest unit that the heap's figures were printed in.
    pub unit_bytes: Bytes,
    pub metaspace: Option<SpaceUse>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct SpaceUse {
    pub used_bytes: Bytes,
    pub committed_bytes: Bytes,
    pub reserved_bytes: Bytes,
}

pub fn parse(text: &str) -> Result<HeapInfo, ReportError> {
    let mut info = HeapInfo::default();
    let mut epsilon = false;
    for line in text.lines().map(str::trim) {
        if let Some(rest) = line.strip_prefix("Metaspace ") {
            info.metaspace = space(rest);
        } else if line.starts_with("Epsilon Heap") {
            epsilon = true;
        } else if line.starts_with("garbage-first heap") {
            g1(line, &mut info);
        } else if line.starts_with("ZHeap ") {
            z(line, &mut info);
        } else if line.ends_with(" used") && line.contains(" committed") {
            shenandoah(line, &mut info);
        } else if epsilon && line.starts_with("space ") {
            only_space(line, &mut info);
        } else if line.contains(" total ") && line.contains('[') {
            generation(line, &mut info);
        }
    }
    if info.used_bytes.is_none() { Err(ReportError::UnknownForm) } else { Ok(info) }
}

impl HeapInfo {
    fn keep(&mut self, amount: Amount) -> Bytes {
        self.unit_bytes = self.unit_bytes.max(amount.unit_bytes);
        amount.bytes
    }
}

/// "used 4026K, capacity 4671K, committed 4864K, reserved 1056768K"; JDK 17 and on print no capacity.
fn space(rest: &str) -> Option<SpaceUse> {
    Some(SpaceUse {
        used_bytes: named(rest, "used")?.bytes,
        committed_bytes: named(rest, "committed")?.bytes,
        reserved_bytes: named(rest, "reserved")?.bytes,
    })
}

/// The amount in the comma-separated part of `line` that reads "NAME AMOUNT", wherever else NAME occurs.
fn named(line: &str, name: &str) -> Option<Amount> {
    let line = line.split('[').next().unwrap_or(line);
    line.split(',').find_map(|part| {
        let mut words = part.split_ascii_whitespace().rev();
        let value = amount(words.next()?)?;
        (words.next()? == name).then_some(value)
    })
}

/// JDK 8 to 24 "total 71680K, used 20353K [from, to)" (8: three addresses, the second of which is not a bound of anything);
/// 25 "total reserved 131072K, committed 71680K, used 22535K [from, to)".
fn g1(line: &str, info: &mut HeapInfo) {
    info.used_bytes = named(line, "used").map(|used| info.keep(used));
    info.committed_bytes = named(line, "committed").or(named(line, "total")).map(|total| info.keep(total));
    let bounds = addresses(line);
    info.max_bytes = bounds.first().zip(bounds.last()).map(|(from, to)| Range::new(*from, *to).bytes());
}

/// "used 36M, capacity 128M, max capacity 128M".
fn z(line: &str, info: &mut HeapInfo) {
    info.used_bytes = named(line, "used").map(|used| info.keep(used));
    info.committed_bytes = named(line, "capacity").map(|capacity| info.keep(capacity));
    let max = line.rsplit_once("max capacity ").and_then(|(_, max)| amount(max.trim()));
    info.max_bytes = max.map(|max| info.keep(max));
}

/// "128M max, 128M soft max, 128M committed, 27904K used".
fn shenandoah(line: &str, info: &mut HeapInfo) {
    for part in line.split(", ") {
        let Some((value, name)) = part.trim().split_once(' ') else { continue };
        let Some(value) = amount(value) else { continue };
        let bytes = info.keep(value);
        match name {
            "max" => info.max_bytes = Some(bytes),
            "committed" => info.committed_bytes = Some(bytes),
            "used" => info.used_bytes = Some(bytes),
            _ => {}
        }
    }
}

/// Epsilon's "space 131072K,  21% used [start, top, end)".
fn only_space(line: &str, info: &mut HeapInfo) {
    let &[start, top, _] = addresses(line).as_slice() else { return };
    info.used_bytes = Some(Range::new(start, top).bytes());
    let size = line.strip_prefix("space ").and_then(|rest| amount(rest.split(',').next()?));
    info.committed_bytes = size.map(|size| info.keep(size));
}

/// A generation of Serial, Parallel or CMS: "total 39296K, used 2752K [start, end of committed, end of reserved)". Its
/// total leaves one survivor space out, so committed is taken from the addresses.
fn generation(line: &str, info: &mut HeapInfo) {
    let (Some(used), &[start, committed, reserved]) = (named(line, "used"), addresses(line).as_slice())
    else {
        return;
    };
    let add = |sum: &mut Option<Bytes>, bytes| *sum = Some(sum.unwrap_or(0).saturating_add(bytes));
    let used = info.keep(used);
    add(&mut info.used_bytes, used);
    add(&mut info.committed_bytes, Range::new(start, committed).bytes());
    add(&mut info.max_bytes, Range::new(start, reserved).bytes());
}

fn addresses(line: &str) -> Vec<Addr> {
    let inside = line.split_once('[').map_or("", |(_, rest)| rest.split(')').next().unwrap_or(""));
    inside.split(',').filter_map(|word| address(word.trim())).take(4).collect()
}

#[cfg(test)]
#[path = "heap_info_tests.rs"]
mod tests;
