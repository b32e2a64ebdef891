//! `/proc/vmstat`: what the kernel's memory management did since the host was started, as counters of the whole host.
//!
//! Names: include/linux/vm_event_item.h; mm/vmstat.c, `vmstat_text`. A kernel that does not have one leaves it out.

use super::host::text;
use super::process::gap;
use crate::base::Known;
use std::collections::BTreeMap;

/// By the kernel's names.
pub fn read() -> Known<BTreeMap<String, u64>> {
    Ok(parse(&text("/proc/vmstat").map_err(|error| gap("/proc/vmstat", &error))?))
}

/// "name number" lines, as memory.stat of a cgroup has them too.
pub(super) fn parse(text: &str) -> BTreeMap<String, u64> {
    let lines = text.lines().filter_map(|line| line.split_once(' '));
    lines.filter_map(|(name, number)| Some((name.to_string(), number.trim().parse().ok()?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers() {
        let counters = parse("compact_stall 17029\nbroken\nx y\nthp_split_page 3\n");
        assert_eq!((counters["compact_stall"], counters.len()), (17029, 2));
        assert!(read().expect("every kernel has it").contains_key("pgfault"));
    }
}
