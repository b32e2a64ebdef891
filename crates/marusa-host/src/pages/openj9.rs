//! What OpenJ9 needs, by its documentation: the object heap and the JIT code cache. It lays both into shared memory of System V
//! (eclipse-omr/omr, port/linux/omrvmem.c, `shmget(SHM_HUGETLB)`) of the default huge page size. Not held against a running OpenJ9.

use super::types::{Mode, Need, Subject};
use crate::base::{Bytes, Gap, Why};
use crate::map::Area;
use crate::os::machine::base_page;

/// -Xcodecachetotal of a 64-bit VM: docs/xcodecachetotal.md.
const CODE_CACHE_BYTES: Bytes = 256 << 20;

pub fn needs(subject: &Subject, mode: Mode) -> Vec<Need> {
    let page = mode.page_bytes();
    let given = subject.flags.get("ReservedCodeCacheSize").and_then(|text| text.parse().ok());
    let code = given.unwrap_or(CODE_CACHE_BYTES);
    // "If the configured large page size is greater than the size of the total JIT code cache", a smaller one is taken, and
    // shmget gives the default size only.
    let code_page = if code < page { base_page() } else { page };
    vec![
        Need::new(
            Area::JavaHeap,
            "object heap",
            subject.heap_max_bytes,
            page,
            "-Xmx (docs/xlpobjectheap.md)",
        ),
        Need::new(
            Area::JitCode,
            "JIT code cache",
            code,
            code_page,
            "-Xcodecachetotal, 256 MiB (docs/xlpcodecache.md)",
        ),
    ]
}

pub fn gap() -> Gap {
    Gap::new("reservations of OpenJ9", Why::NotMeasured)
        .hint("computed from its documentation; -verbose:gc says pageSize and requestedPageSize")
}
