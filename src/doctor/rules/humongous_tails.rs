//! G1: objects of half a region and more have regions of their own, and what is left behind each in its last region is lost.

use crate::base::{Bytes, counted, human};
use crate::doctor::facts::percent;
use crate::doctor::{Cost, Evidence, Finding, JvmFacts, Level, Remedy};

/// The least loss, in bytes and as part of what the heap has in use.
const INFO_BYTES: Bytes = 64 << 20;
const INFO_PERCENT: f64 = 10.0;
const WARN_BYTES: Bytes = 128 << 20;
const WARN_PERCENT: f64 = 25.0;
/// Regions of more than 32 MiB: JDK-8275056.
const REGION_BYTES_MAX: Bytes = 32 << 20;

pub(super) fn find(jvm: &JvmFacts) -> Option<Finding> {
    let heap = jvm.jvm()?.heap.as_ref().ok()?;
    let (region, humongous, used) = (heap.region_bytes?, heap.humongous?, *heap.used_bytes.as_ref().ok()?);
    let whole = humongous.regions.saturating_mul(region);
    let lost = whole.saturating_sub(humongous.object_bytes);
    let share = percent(lost, used);
    let level = match lost {
        WARN_BYTES.. if share >= WARN_PERCENT => Level::Warn,
        INFO_BYTES.. if share >= INFO_PERCENT => Level::Info,
        _ => return None,
    };
    let mean = humongous.object_bytes / humongous.objects.max(1);
    const OBJECTS: &str = "headers of the objects in the heap";
    let title = format!(
        "{} after {} are lost, {share:.0} % of the heap in use: each fills regions of {} of its own",
        human(lost),
        counted(humongous.objects, "humongous object"),
        human(region)
    );
    let evidence = [
        Evidence::count("humongous objects", humongous.objects, OBJECTS),
        Evidence::bytes("an object, on average", mean, OBJECTS),
        Evidence::bytes("their regions", whole, "G1's region table"),
        Evidence::bytes("heap in use, as G1 counts it", used, "G1's region table"),
    ];
    let remedies = [remedy(mean, region)];
    Some(Finding::on_jvm(jvm.pid, level, title, evidence, remedies).costing(Cost::bytes(lost)))
}

/// An object of less than half a region is not humongous.
fn remedy(mean: Bytes, region: Bytes) -> Remedy {
    let needed = mean.saturating_mul(2).saturating_add(1).checked_next_power_of_two().unwrap_or(Bytes::MAX);
    match needed > region && needed <= REGION_BYTES_MAX {
        true => Remedy::JvmOption(format!("-XX:G1HeapRegionSize={}m", needed >> 20)),
        false => Remedy::advice(
            "smaller arrays, or arrays a little smaller than a whole number of regions (-XX:G1HeapRegionSize)",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::facts::made_up::{M, healthy_jvm, view};
    use crate::jvm::Humongous;

    /// A heap with 600 MiB in use.
    fn with(objects: u64, bytes: Bytes) -> Option<Finding> {
        let mut jvm = healthy_jvm();
        let regions = objects * bytes.div_ceil(M);
        view(&mut jvm).heap.as_mut().expect("made up").humongous =
            Some(Humongous { objects, regions, object_bytes: objects * bytes });
        find(&jvm)
    }

    #[test]
    fn half_of_each_region() {
        let level = |objects| with(objects, M / 2).map(|finding| finding.level);
        assert_eq!(find(&healthy_jvm()), None);
        assert_eq!((level(127), level(128)), (None, Some(Level::Info)));
        assert_eq!((level(299), level(300)), (Some(Level::Info), Some(Level::Warn)));
        assert_eq!(with(300, M / 2).expect("150 MiB").remedies[0].text(), "-XX:G1HeapRegionSize=2m");
        assert_eq!(with(4, 100 * M), None, "whole regions");
    }
}
