//! The texts of /proc other than maps.
#![no_main]

use libfuzzer_sys::fuzz_target;
use marusa::os::process::Stat;
use marusa::os::{cgroup, maps, smaps, status};
use std::hint::black_box;

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    black_box(status::parse(&text).resident_with_hugetlb_bytes());
    black_box(cgroup::parse(&text).label());
    black_box(Stat::parse(&text));
    let found = smaps::parse(&text);
    for smap in &found {
        black_box((smap.hugetlb_bytes(), smap.present_bytes(), smap.huge_bytes()));
    }
    let (mappings, _) = maps::parse(bytes);
    black_box(smaps::runs(&found, &mappings));
});
