//! A log of collections, of either form, cut and mixed as it may be.

use crate::bound;
use marusa::measure::gc_log;

const FACTOR: u64 = 128;
const BYTES_FREE: u64 = 1 << 20;

pub fn run(bytes: &[u8]) {
    bound::within(BYTES_FREE + FACTOR * bytes.len() as u64, || {
        let Ok(log) = gc_log::parse(bytes) else { return };
        let lines = bytes.iter().filter(|byte| **byte == b'\n').count() + 1;
        // JDK 8 writes several stops into one line, each with "secs]".
        let most = lines + bytes.len() / 4;
        assert!(log.pauses.len() + log.phases.len() + log.heap.len() + log.torn <= 3 * most);
        for pause in &log.pauses {
            assert!(pause.ms.is_finite() && pause.ms >= 0.0, "{pause:?}");
        }
        std::hint::black_box(log.summary());
        let _ = std::hint::black_box(log.within(0.0, 60.0));
    });
}
