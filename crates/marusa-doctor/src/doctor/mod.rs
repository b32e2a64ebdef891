//! What is wrong with the memory of a JVM, or of its host: each finding with its evidence, its cost, and a remedy.
//!
//! A rule is data and a pure function over `Facts`: what was read of the host and of the JVMs, once, before any rule runs. So a
//! rule is tested on facts that are made up, and never reads, waits or guesses. A fact that could not be read is a gap, and a
//! rule that needs it finds nothing: that is reported with the findings (`JvmFacts::gaps`), since no finding is not the same as
//! healthy.

mod arenas;
pub mod budget;
mod compaction;
pub mod facts;
mod filled;
pub mod if_xmx;
mod promise;
pub mod recorded;
mod recorded_pools;
pub mod rules;
mod thp_remedies;
pub mod types;

pub use facts::{Facts, HostFacts, JvmFacts};
pub use rules::CATALOG;
pub use types::{Cost, Entry, Evidence, Find, Finding, Level, Remedy, Rule, Subject};

/// What all rules but the ignored ones say of these facts. The worst first; among equals the host, then by pid, then by id.
pub fn examine(facts: &Facts, ignored: &[String]) -> Vec<Finding> {
    let rules = CATALOG.iter().map(|entry| entry.rule);
    let wanted = rules.filter(|rule| !ignored.iter().any(|id| id == rule.id));
    let mut findings: Vec<Finding> = wanted.flat_map(|rule| rule.find(facts)).collect();
    findings.iter_mut().for_each(Finding::name_its_process);
    findings.sort_by_key(|finding| (std::cmp::Reverse(finding.level), finding.subject, finding.id));
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_has_an_id_of_its_own_and_a_page_that_explains_it() {
        let mut ids: Vec<&str> = CATALOG.iter().map(|entry| entry.rule.id).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), CATALOG.len());
        for Entry { rule, levels, page } in CATALOG {
            let is_kebab = rule
                .id
                .chars()
                .all(|letter| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-');
            assert!(is_kebab, "{}", rule.id);
            // The list names the page by an id of its own.
            let path = format!("{}/../../{}", env!("CARGO_MANIFEST_DIR"), rule.page());
            let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
            assert_eq!(text, *page, "{path} is the page of {}", rule.id);
            assert!(text.starts_with("# ") && text.contains(rule.id), "{path} explains {}", rule.id);
            assert!(levels.is_sorted() && !levels.is_empty(), "{}", rule.id);
        }
    }

    #[test]
    fn nothing_is_found_where_nothing_is_known() {
        assert_eq!(examine(&Facts::default(), &[]), []);
    }
}
