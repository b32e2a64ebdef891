//! A library or an agent starts processes by `fork` itself: the price is that of `fork-large-heap`, and no option of the JVM
//! changes it.

use super::launch_mechanism::Price;
use crate::doctor::{Evidence, Facts, Finding, JvmFacts, Level, Remedy};
use crate::os::elf_imports::Import;
use crate::snapshot::forks::Forker;

/// Libraries that are named.
const SHOWN: usize = 5;

pub(super) fn of(facts: &Facts, jvm: &JvmFacts) -> Option<Finding> {
    let price = Price::of(facts, jvm);
    let (called, possible): (Vec<&Forker>, Vec<&Forker>) = jvm
        .forkers
        .iter()
        .filter(|forker| forker.import != Import::Uncalled)
        .partition(|forker| forker.import == Import::Called);
    // What a library might do is worth a line only where it would be dear.
    let (who, title, level) = match (&called[..], &possible[..]) {
        ([first, ..], _) if price.is_high() => (&called, started(first, &price), Level::Warn),
        ([first, ..], _) => (&called, started(first, &price), Level::Info),
        ([], [first, ..]) if price.is_high() => {
            (&possible, format!("{} may start processes by fork{}", name(first), price.words()), Level::Info)
        }
        _ => return None,
    };
    let evidence = who.iter().take(SHOWN).map(|forker| {
        let state = match forker.import {
            Import::Called => "called",
            Import::Uncalled | Import::Unknown => "may have been called: bound when it was loaded",
        };
        Evidence::state(format!("fork by {}", forker.path), state, "the library's table of calls (DT_JMPREL)")
    });
    let remedies = [
        Remedy::advice("have the library use posix_spawn, or start processes by ProcessBuilder"),
        Remedy::Command(format!("marusa pages plan {}", jvm.pid)),
    ];
    let evidence: Vec<Evidence> = evidence.chain(price.evidence).collect();
    Some(Finding::on_jvm(jvm.pid, level, title, evidence, remedies))
}

fn started(forker: &Forker, price: &Price) -> String {
    format!("{} starts processes by fork{}", name(forker), price.words())
}

fn name(forker: &Forker) -> &str {
    forker.path.rsplit('/').next().unwrap_or(&forker.path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::facts::made_up::{self, rule_finds};
    use crate::map::Area;

    fn found(imports: &[Import], heap_mib: u64) -> Option<(Level, String)> {
        let mut facts = made_up::healthy();
        let forker = |import: &Import| Forker { path: format!("/srv/lib{import:?}.so"), import: *import };
        facts.jvms[0].forkers = imports.iter().map(forker).collect();
        made_up::set_resident(&mut facts.jvms[0], Area::JavaHeap, heap_mib << 20);
        rule_finds("fork-by-library", &facts).pop().map(|finding| (finding.level, finding.title))
    }

    #[test]
    fn a_call_is_named_and_what_might_call_only_where_it_is_dear() {
        let (level, title) = found(&[Import::Unknown, Import::Called], 4096).expect("a call");
        assert!(
            level == Level::Warn && title.starts_with("libCalled.so starts processes by fork,"),
            "{title}"
        );
        assert_eq!(found(&[Import::Called], 16).map(|(level, _)| level), Some(Level::Info));
        let (level, title) = found(&[Import::Unknown], 4096).expect("dear");
        assert!(level == Level::Info && title.starts_with("libUnknown.so may start"), "{title}");
        assert_eq!(found(&[Import::Unknown], 16), None);
        assert_eq!(found(&[Import::Uncalled], 4096), None);
    }
}
