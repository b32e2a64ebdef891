//! `-XX:+UseTransparentHugePages`, and the memory is on 4 KiB pages anyway: the host's policy says never, no page was
//! free at the fault, or compaction has not assembled one.

use crate::doctor::facts::Facts;
use crate::doctor::promise::{self, Kind};
use crate::doctor::types::{Finding, Level, Remedy, Rule};

pub const RULE: Rule = Rule {
    id: "thp-not-got",
    title: "transparent huge pages were asked for, and the memory is on small pages",
    find,
};

fn find(facts: &Facts) -> Vec<Finding> {
    promise::find(facts, Kind::Transparent, |jvm, broken| {
        if !broken.is_worth_it() {
            return None;
        }
        let title = format!("{} are not on {}: {}", broken.missing(), broken.asked(), broken.because());
        let mut finding = broken.finding(RULE.id, Level::Warn, jvm, title);
        if broken.causes.iter().any(|cause| cause.code == "not_yet") {
            finding.remedies.insert(0, Remedy::Command(format!("marusa pages collapse {}", jvm.pid)));
        }
        Some(finding)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::rules::page_cases::{self, M, only_warning};

    #[test]
    fn a_policy_that_says_never_and_pages_that_did_not_come() {
        let mut jvm = page_cases::asks_transparent();
        page_cases::thp(&mut jvm).enabled = "never".to_string();
        // As the JVM leaves them.
        page_cases::flag(&mut jvm, "UseLargePages", "false");
        page_cases::flag(&mut jvm, "UseTransparentHugePages", "false");
        let found = only_warning(jvm, RULE.id);
        assert!(found.title.contains("transparent_hugepage/enabled is never"), "{found:?}");
        let mut jvm = page_cases::asks_transparent();
        page_cases::advise(&mut jvm);
        let found = only_warning(jvm, RULE.id);
        assert_eq!(found.remedies[0], Remedy::Command("marusa pages collapse 4711".to_string()));
    }

    #[test]
    fn a_tenth_and_32_mib_are_the_edge() {
        let mut jvm = page_cases::asks_transparent();
        page_cases::advise(&mut jvm);
        page_cases::give_huge(&mut jvm, 900 * M);
        assert_eq!(find(&page_cases::alone(jvm)), []);
        let broken = |whole, missing| {
            let mut jvm = page_cases::asks_transparent();
            page_cases::advise(&mut jvm);
            let broken = promise::broken(&jvm).expect("nothing is large");
            promise::Broken { whole_bytes: whole, missing_bytes: missing, ..broken }.is_worth_it()
        };
        assert!(broken(320 * M, 32 * M) && !broken(320 * M, 32 * M - 1) && !broken(321 * M, 32 * M));
    }
}
