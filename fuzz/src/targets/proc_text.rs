//! The texts of /proc other than maps.

use marusa::os::kpageflags::{Flags, folio_of};
use marusa::os::process::Stat;
use marusa::os::{cgroup, host_folios, maps, smaps, status};
use std::hint::black_box;

pub fn run(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    black_box(status::parse(&text).resident_with_hugetlb_bytes());
    black_box(cgroup::parse(&text).label());
    black_box(Stat::parse(&text));
    let found = smaps::parse(&text);
    for smap in &found {
        black_box((smap.hugetlb_bytes(), smap.present_bytes(), smap.huge_bytes()));
    }
    let counters = host_folios::parse(&text, &text);
    black_box((
        counters.has_no_small_anon_folio(),
        counters.maps_all_huge_whole(),
        counters.has_no_shmem_folio(),
    ));
    // Flags that may contradict each other, of frames at the end of what there can be.
    let mut flags = |frame: u64| {
        let byte = bytes.get(frame.wrapping_add(64) as usize % bytes.len().max(1))?;
        Some(Flags(u64::from(*byte) << 12))
    };
    for frame in (0..64).chain(u64::MAX - 64..=u64::MAX) {
        let folio = folio_of(frame, &mut flags);
        assert!(folio.first <= frame && (folio.order == 0 || frame < folio.end() || folio.end() == u64::MAX));
    }
    let (mappings, _) = maps::parse(bytes);
    black_box(smaps::runs(&found, &mappings));
}
