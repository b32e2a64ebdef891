//! A native library that holds a large part of what is resident: memory that no option of the JVM bounds.

use crate::base::{Bytes, human};
use crate::doctor::{Cost, Evidence, Finding, JvmFacts, Level, Remedy};
use crate::map::{Area, Instance};
use std::collections::BTreeMap;

const WORTH_BYTES: Bytes = 64 << 20;
const WORTH_PERCENT: f64 = 10.0;
const SHOWN: usize = 3;

pub(super) fn find(jvm: &JvmFacts) -> Option<Finding> {
    let all = jvm.area(Area::NativeLibrary).resident_bytes;
    let percent = jvm.percent_of_resident(all);
    if all < WORTH_BYTES || percent < WORTH_PERCENT {
        return None;
    }
    let libraries = by_library(jvm);
    let (name, bytes) = libraries.first()?;
    let mut evidence =
        vec![Evidence::bytes("native libraries, in memory", all, "the account: native_library")];
    evidence.extend(libraries.iter().take(SHOWN).map(|(name, bytes)| {
        Evidence::bytes(
            name.clone(),
            *bytes,
            "what the library's data points to, and malloc's blocks known as its",
        )
    }));
    let title = format!(
        "native libraries hold {}, {percent:.0} % of what is resident; {name} has {}",
        human(all),
        human(*bytes)
    );
    let remedies = [
        Remedy::advice(
            "bound it by the library's own options, or close what the program opened: caches, streams",
        ),
        Remedy::Command(format!("marusa map {} --by library", jvm.pid)),
    ];
    Some(Finding::on_jvm(jvm.pid, Level::Info, title, evidence, remedies).costing(Cost::bytes(all)))
}

/// Memory that a library mapped is the library's; of its blocks of malloc only the kind is known.
fn by_library(jvm: &JvmFacts) -> Vec<(String, Bytes)> {
    let mut sums: BTreeMap<&str, Bytes> = BTreeMap::new();
    for (owner, share) in jvm.map.shares().filter(|(owner, _)| owner.area == Area::NativeLibrary) {
        let name = match &owner.instance {
            Instance::Library(path) => path.rsplit('/').next().unwrap_or(path),
            _ => &owner.part,
        };
        let sum = sums.entry(name).or_default();
        *sum = sum.saturating_add(share.figures.resident);
    }
    let mut sums: Vec<(String, Bytes)> =
        sums.into_iter().map(|(name, bytes)| (name.to_string(), bytes)).collect();
    sums.sort_by(|(a, one), (b, other)| other.cmp(one).then(a.cmp(b)));
    sums
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::facts::made_up::{M, healthy_jvm, set_resident};

    #[test]
    fn the_largest_is_named() {
        assert_eq!(find(&healthy_jvm()), None);
        let mut jvm = healthy_jvm();
        set_resident(&mut jvm, Area::NativeLibrary, 400 * M);
        jvm.map.owners.last_mut().expect("made up").instance =
            Instance::Library("/tmp/librocks.so".to_string());
        let finding = find(&jvm).expect("400 MiB");
        assert!(finding.title.ends_with("librocks.so has 400.0 MiB"), "{}", finding.title);
        assert_eq!(finding.level, Level::Info);
        jvm.account.totals.resident_bytes = 5000 * M;
        assert_eq!(find(&jvm), None, "8 %");
        set_resident(&mut jvm, Area::NativeLibrary, 63 * M);
        jvm.account.totals.resident_bytes = 100 * M;
        assert_eq!(find(&jvm), None);
    }
}
