//! Blocks of malloc that nothing leads to that was looked at: no Java object, no library, no thread, no other block. Most likely
//! their addresses were lost without freeing them. Judged where the holders were read.

use crate::base::{Bytes, human};
use crate::doctor::facts::percent;
use crate::doctor::{Cost, Evidence, Finding, JvmFacts, Level, Remedy};
use crate::jvm::{Held, HeldBy};

const INFO_BYTES: Bytes = 64 << 20;
const INFO_PERCENT: f64 = 10.0;
const WARN_BYTES: Bytes = 256 << 20;
const WARN_PERCENT: f64 = 25.0;

pub(super) fn find(jvm: &JvmFacts) -> Option<Finding> {
    let holders = jvm.account.holders.as_ref()?;
    let sum = |rows: &mut dyn Iterator<Item = &Held>| {
        rows.fold((0, 0), |(bytes, blocks): (Bytes, u64), held| {
            (bytes.saturating_add(held.bytes), blocks.saturating_add(held.blocks))
        })
    };
    let (bytes, blocks) = sum(&mut holders.iter().filter(|held| held.how == HeldBy::Unreached));
    let (all, _) = sum(&mut holders.iter());
    let share = percent(bytes, all);
    if bytes < INFO_BYTES || share < INFO_PERCENT {
        return None;
    }
    let is_much = bytes > WARN_BYTES && share > WARN_PERCENT;
    let level = if is_much { Level::Warn } else { Level::Info };
    let title = format!(
        "nothing leads to {} of malloc's memory, {share:.0} % of what is in use: it probably leaked",
        human(bytes)
    );
    let evidence = [
        Evidence::bytes("reached by nothing", bytes, "marusa map PID --by holder"),
        Evidence::count("blocks of it", blocks, "marusa map PID --by holder"),
        Evidence::bytes("all blocks in use", all, "marusa map PID --by holder"),
    ];
    let remedies = [
        Remedy::command("marusa map PID --by holder"),
        Remedy::advice(
            "whether it grows: marusa record PID --holders-every 60s -o FILE, then marusa leak FILE",
        ),
    ];
    Some(Finding::on_jvm(jvm.pid, level, title, evidence, remedies).costing(Cost::bytes(bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::facts::made_up::{M, healthy_jvm, held};

    fn level(unreached: Bytes, others: Bytes) -> Option<Level> {
        let mut jvm = healthy_jvm();
        let other = held("org.rocksdb.LRUCache.nativeHandle_", others, 1, 1);
        let unreached = Held { how: HeldBy::Unreached, ..held("reached by nothing", unreached, 9, 0) };
        jvm.account.holders = Some(vec![other, unreached]);
        find(&jvm).map(|finding| finding.level)
    }

    #[test]
    fn from_64_mib_and_a_tenth_on() {
        assert_eq!(level(64 * M, 64 * M), Some(Level::Info));
        assert_eq!(level(64 * M - 1, 64 * M), None);
        assert_eq!(level(100 * M, 900 * M), Some(Level::Info), "10 %");
        assert_eq!(level(100 * M, 901 * M), None);
    }

    #[test]
    fn a_warning_above_256_mib_and_a_quarter() {
        assert_eq!(level(257 * M, 257 * M), Some(Level::Warn));
        assert_eq!(level(256 * M, 256 * M), Some(Level::Info));
        assert_eq!(level(300 * M, 900 * M), Some(Level::Info), "25 %");
        assert_eq!(level(301 * M, 900 * M), Some(Level::Warn));
    }

    #[test]
    fn without_holders_nothing_is_judged() {
        assert_eq!(find(&healthy_jvm()), None);
    }
}
