//! The code cache near its end: HotSpot then collects to throw code away, and in the end compiles nothing more.

use crate::base::{Bytes, human};
use crate::doctor::facts::percent;
use crate::doctor::{Evidence, Finding, JvmFacts, Level, Remedy};
use crate::jvm::CodeHeapView;

/// With less than a tenth free, HotSpot starts collections to unload code, whatever the Java heap (StartAggressiveSweepingAt).
const NEAR_PERCENT: f64 = 90.0;
/// With less than this free, compilers take no task (CodeCacheMinimumFreeSpace: 500 KiB).
const FULL_BYTES: Bytes = 500 << 10;
const STEP_BYTES: Bytes = 16 << 20;
const WALK: &str = "walk of the code heap's blocks";

struct Used<'a> {
    heap: &'a CodeHeapView,
    bytes: Bytes,
}

impl Used<'_> {
    fn percent(&self) -> f64 {
        percent(self.bytes, self.heap.reserved.bytes())
    }
}

pub(super) fn find(jvm: &JvmFacts) -> Option<Finding> {
    let view = jvm.jvm()?;
    let heaps = view.code.as_ref().ok()?.iter();
    let heaps = heaps.map(|heap| Some(Used { heap, bytes: *heap.used_bytes.as_ref().ok()? }));
    let heaps: Vec<Used> = heaps.collect::<Option<_>>()?;
    let used: Bytes = heaps.iter().map(|heap| heap.bytes).fold(0, Bytes::saturating_add);
    let reserved = heaps.iter().map(|heap| heap.heap.reserved.bytes()).fold(0, Bytes::saturating_add);
    let has_methods = heaps
        .iter()
        .any(|one| one.heap.blobs.iter().any(|(kind, count)| kind.ends_with("nmethod") && count.count > 0));
    // -Xint has no compiler either, but also no methods that one compiled.
    let is_off = jvm.flag("UseCompiler") == Some("false") && has_methods;
    let (all, fullest) =
        (percent(used, reserved), heaps.iter().max_by(|a, b| a.percent().total_cmp(&b.percent()))?);
    let is_full = is_off || reserved.saturating_sub(used) < FULL_BYTES && reserved > 0;
    let (level, title) = match () {
        () if is_full => (
            Level::Critical,
            format!(
                "the code cache is full ({} of {}): nothing more is compiled",
                human(used),
                human(reserved)
            ),
        ),
        () if all >= NEAR_PERCENT => (
            Level::Warn,
            format!(
                "{all:.0} % of the code cache of {} is in use: HotSpot collects to throw code away, and soon stops compiling",
                human(reserved)
            ),
        ),
        // What does not fit there goes to the next (codeCache.cpp, `CodeCache::allocate`).
        () if fullest.percent() >= NEAR_PERCENT => (
            Level::Info,
            format!(
                "code heap '{}' is {:.0} % full; code of its kind goes to another one when it is full",
                fullest.heap.name,
                fullest.percent()
            ),
        ),
        () => return None,
    };
    let mut evidence = vec![
        Evidence::bytes("in use, all code heaps", used, WALK),
        Evidence::bytes("reserved", reserved, "-XX:ReservedCodeCacheSize"),
    ];
    evidence.extend(heaps.iter().map(|one| {
        let what = format!("'{}' of {}", one.heap.name, human(one.heap.reserved.bytes()));
        Evidence::percent(what, one.percent(), WALK)
    }));
    if is_off {
        evidence.push(Evidence::state("UseCompiler", "false: compilers are stopped", "flags of the VM"));
    }
    let remedies = [Remedy::JvmOption(format!(
        "-XX:ReservedCodeCacheSize={}m",
        (reserved.max(used).saturating_mul(3) / 2).next_multiple_of(STEP_BYTES) >> 20
    ))];
    Some(Finding::on_jvm(jvm.pid, level, title, evidence, remedies))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::facts::made_up::{M, healthy_jvm, set_flags, view};
    use crate::jvm::BlobCount;

    /// A JVM with `used` bytes in the three code heaps, which have 6, 117 and 117 MiB.
    fn with_used(used: [Bytes; 3]) -> JvmFacts {
        let mut jvm = healthy_jvm();
        for (heap, used) in view(&mut jvm).code.as_mut().expect("made up").iter_mut().zip(used) {
            heap.used_bytes = Ok(used);
            heap.blobs.insert("nmethod".to_string(), BlobCount { count: 1, bytes: 1000 });
        }
        jvm
    }

    fn level(jvm: &JvmFacts) -> Option<Level> {
        find(jvm).map(|finding| finding.level)
    }

    #[test]
    fn the_sum_decides_and_one_full_heap_is_info() {
        assert_eq!(level(&healthy_jvm()), None);
        assert_eq!(level(&with_used([2 * M, 105 * M, 105 * M])), None);
        assert_eq!(level(&with_used([2 * M, 10 * M, 106 * M])), Some(Level::Info));
        let near = with_used([4 * M, 107 * M, 107 * M]);
        let finding = find(&near).expect("218 of 240 MiB");
        assert_eq!(
            (finding.level, finding.remedies[0].text()),
            (Level::Warn, "-XX:ReservedCodeCacheSize=368m")
        );
        assert_eq!(level(&with_used([6 * M, 117 * M, 117 * M])), Some(Level::Critical));
    }

    #[test]
    fn compilers_that_were_stopped_are_distinguished_from_others() {
        let mut stopped = with_used([2 * M, 60 * M, 60 * M]);
        set_flags(&mut stopped, &[("UseCompiler", "false")]);
        assert_eq!(level(&stopped), Some(Level::Critical));
        let mut interpreted = healthy_jvm();
        set_flags(&mut interpreted, &[("UseCompiler", "false")]);
        assert_eq!(level(&interpreted), None);
    }
}
