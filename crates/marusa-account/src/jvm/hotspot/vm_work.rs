//! What the VM maps for its own work: perf memory, polling pages, and other mappings that a static of libjvm points to.

use super::{Found, Hotspot};
use crate::base::{Addr, Range};
use crate::jvm::types::{How, Kind};
use crate::os::machine::base_page;
use crate::os::maps::Mapping;
use std::collections::BTreeSet;

/// The part's name. Its texts do not go into a frozen file.
pub const PERF_MEMORY: &str = "perf memory";

/// A larger mapping is more likely malloc's or several that the kernel joined.
const POINTED_BYTES_MAX: u64 = 64 << 10;

pub fn read(vm: &Hotspot, found: &mut Found) {
    perf_memory(vm, found);
    let statics = pointers(vm);
    let mappings = &vm.target.view.mappings;
    for (index, mapping) in mappings.iter().enumerate() {
        let is_small = mapping.range.bytes() <= POINTED_BYTES_MAX;
        if !is_small || !is_private(mapping) || !statics.contains(&mapping.range.start) {
            continue;
        }
        if found.claims(mapping.range.start) {
            continue;
        }
        let neighbour = mappings.get(index + 1).filter(|next| next.range.start == mapping.range.end);
        let before = index.checked_sub(1).and_then(|index| mappings.get(index));
        let before = before.filter(|before| before.range.end == mapping.range.start);
        let part = if is_polling(mapping, before, neighbour) {
            "safepoint polling page"
        } else {
            "VM data (pointed to from libjvm)"
        };
        let how = How::PointedFrom("a static of libjvm".to_string());
        found.claim(mapping.range, Kind::VmWork, part, mapping.range.bytes(), how);
    }
}

fn perf_memory(vm: &Hotspot, found: &mut Found) {
    let (Ok(start), Ok(end)) = (vm.static_addr("PerfMemory", "_start"), vm.static_addr("PerfMemory", "_end"))
    else {
        return;
    };
    let range = Range::new(start, end);
    let top = vm.structs.read_static(vm.memory(), "PerfMemory", "_top").unwrap_or(0);
    let used = Addr(top).offset_from(start).filter(|used| *used <= range.bytes());
    if vm.target.mapping(start).is_some_and(|mapping| mapping.range.covers(range)) {
        found.claim(range, Kind::VmWork, PERF_MEMORY, used, How::VmStructs);
    }
}

/// One page that may be read, alone (JDK 8) or next to one that may not (JDK 10 and later,
/// src/hotspot/share/runtime/safepointMechanism.cpp, `default_initialize`).
fn is_polling(mapping: &Mapping, before: Option<&Mapping>, after: Option<&Mapping>) -> bool {
    let is_page = |mapping: &Mapping| mapping.range.bytes() == base_page() && is_private(mapping);
    let is_readable = |mapping: &Mapping| mapping.rights.read && !mapping.rights.write;
    let is_closed = |mapping: &Mapping| !mapping.rights.any();
    is_page(mapping)
        && (is_readable(mapping)
            || is_closed(mapping)
                && [before, after].into_iter().flatten().any(|next| is_page(next) && is_readable(next)))
}

fn is_private(mapping: &Mapping) -> bool {
    mapping.is_anonymous() && !mapping.rights.shared && mapping.path.is_empty()
}

/// Every page address in libjvm's writable data, and in the anonymous tail of it (.bss).
fn pointers(vm: &Hotspot) -> BTreeSet<Addr> {
    let mut found = BTreeSet::new();
    for (_, words) in vm.image.data().flat_map(|range| vm.target.data(range)) {
        found.extend(
            words.iter().map(|word| Addr(*word)).filter(|at| !at.is_null() && at.is_aligned(base_page())),
        );
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::os::maps::parse_line;

    #[test]
    fn a_polling_page_is_a_readable_page_or_the_closed_one_next_to_it() {
        let at = |line| parse_line(line);
        let (Some(closed), Some(open), Some(data)) = (
            at("7f042877a000-7f042877b000 ---p 00000000 00:00 0"),
            at("7f042877b000-7f042877c000 r--p 00000000 00:00 0"),
            at("7f0428774000-7f0428775000 rw-p 00000000 00:00 0"),
        ) else {
            panic!("lines of maps");
        };
        assert!(is_polling(&closed, None, Some(&open)));
        assert!(is_polling(&open, Some(&closed), None));
        assert!(!is_polling(&closed, None, Some(&data)));
        assert!(!is_polling(&data, None, Some(&open)));
    }
}
