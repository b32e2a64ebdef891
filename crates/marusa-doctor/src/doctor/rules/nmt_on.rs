//! Native Memory Tracking left on, and what it takes: a header and a footer for each block, and its own tables.

use crate::base::{Bytes, human};
use crate::doctor::{Cost, Evidence, Finding, JvmFacts, Level, Remedy};

const WARN_BYTES: Bytes = 32 << 20;
const WARN_PERCENT: f64 = 2.0;
/// 16 bytes before a block; from 17 on also a mark of 2 behind it (nmt/mallocHeader.hpp; services/mallocTracker.hpp before 21).
const HEADER_BYTES: u64 = 16;
const FOOTER_BYTES: u64 = 2;
const FOOTER_SINCE: u32 = 17;
const ITSELF: &str = "Native Memory Tracking";

pub(super) fn find(jvm: &JvmFacts) -> Option<Finding> {
    let view = jvm.jvm()?;
    let level = view.nmt.as_deref().ok().filter(|level| matches!(*level, "summary" | "detail"))?;
    let mut evidence = vec![Evidence::state("NativeMemoryTracking", level, "flags of the VM")];
    let mut price = None;
    if let Ok(counts) = &view.nmt_counts {
        let blocks = counts.iter().fold(0, |sum: u64, count| sum.saturating_add(count.blocks));
        let footer = if jvm.major() < Some(FOOTER_SINCE) { 0 } else { FOOTER_BYTES };
        let headers = blocks.saturating_mul(HEADER_BYTES + footer);
        let tables = counts.iter().find(|count| count.tag == ITSELF).map_or(0, |count| count.bytes);
        let source = "NMT's own counters in the VM's memory";
        evidence.push(Evidence::count("blocks that it tracks", blocks, source));
        evidence.push(Evidence::bytes("headers and footers of these", headers, source));
        evidence.push(Evidence::bytes("its own tables", tables, source));
        price = Some(headers.saturating_add(tables));
    }
    let percent = price.map_or(0.0, |bytes| jvm.percent_of_resident(bytes));
    let is_dear = price.is_some_and(|bytes| bytes >= WARN_BYTES) && percent >= WARN_PERCENT;
    let takes = match price {
        Some(bytes) => format!("it takes {}, {percent:.1} % of what is resident", human(bytes)),
        None => "what it takes could not be read".to_string(),
    };
    let walks = if level == "detail" { ", and each allocation walks the stack" } else { "" };
    let title = format!("Native Memory Tracking ({level}) is on: {takes}{walks}");
    let level = if is_dear { Level::Warn } else { Level::Info };
    let remedies = [
        Remedy::jvm_option("-XX:NativeMemoryTracking=off"),
        Remedy::Command(format!("marusa map {}", jvm.pid)),
    ];
    Some(
        Finding::on_jvm(jvm.pid, level, title, evidence, remedies)
            .costing(Cost { bytes: price, ..Cost::default() }),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::facts::made_up::{M, healthy_jvm, view};
    use crate::jvm::NmtCount;

    fn with(level: &str, blocks: u64, tables: Bytes) -> JvmFacts {
        let mut jvm = healthy_jvm();
        let count =
            |tag: &str, blocks, bytes| NmtCount { tag: tag.to_string(), blocks, bytes, arena_bytes: 0 };
        view(&mut jvm).nmt = Ok(level.to_string());
        view(&mut jvm).nmt_counts = Ok(vec![count("Symbol", blocks, 1), count(ITSELF, 0, tables)]);
        jvm
    }

    #[test]
    fn its_price_decides() {
        assert_eq!(find(&healthy_jvm()), None);
        let small = find(&with("summary", 100_000, M)).expect("on");
        assert_eq!((small.level, small.cost.bytes), (Level::Info, Some(1_800_000 + M)));
        let large = find(&with("detail", 2_000_000, M)).expect("on");
        assert_eq!(large.level, Level::Warn);
        assert!(large.title.ends_with("each allocation walks the stack"), "{}", large.title);
        let mut old = with("summary", 100_000, 0);
        view(&mut old).major = Ok(11);
        assert_eq!(find(&old).and_then(|finding| finding.cost.bytes), Some(1_600_000));
    }

    #[test]
    fn what_could_not_be_read_is_not_nothing() {
        let mut jvm = with("summary", 1, 1);
        view(&mut jvm).nmt_counts = Err(crate::base::Gap::new("counters", crate::base::Why::Torn));
        assert_eq!(find(&jvm).map(|finding| finding.cost.bytes), Some(None));
    }
}
