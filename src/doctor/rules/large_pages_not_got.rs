//! `-XX:+UseLargePages`, and the pool had too few pages when the JVM started: it says once that it failed, puts the space on
//! 4 KiB pages, and goes on reporting large pages.

use super::hugetlb_node_split;
use crate::doctor::facts::Facts;
use crate::doctor::promise::{self, Kind};
use crate::doctor::types::{Finding, Rule};

pub const RULE: Rule = Rule {
    id: "large-pages-not-got",
    title: "HugeTLB pages were asked for, and the pool was too small",
    find,
};

fn find(facts: &Facts) -> Vec<Finding> {
    promise::find(facts, Kind::Pool, |jvm, broken| {
        // Enough of them, but on the wrong nodes, is reported as such.
        if hugetlb_node_split::of_jvm(facts, jvm).is_some() {
            return None;
        }
        Some(broken.lacking(RULE.id, jvm))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::rules::page_cases::{self, M, only_warning};
    use crate::doctor::types::Level;
    use crate::os::hugetlb::Pool;

    #[test]
    fn a_pool_that_was_too_small_and_one_that_was_not() {
        let mut jvm = page_cases::asks_hugetlb();
        page_cases::pools(&mut jvm)[0] = Pool { page_bytes: 2 * M, pages: 200, free: 80, ..Pool::default() };
        let found = only_warning(jvm, RULE.id);
        assert!(
            found.title.contains("HugeTLB 2M pages") && found.title.contains("too small by"),
            "{found:?}"
        );
        assert!(found.remedies[0].text().contains("marusa pages plan 4711 --mode hugetlb-2m"));
        let mut jvm = page_cases::asks_hugetlb();
        page_cases::give_hugetlb(&mut jvm);
        assert_eq!(find(&page_cases::alone(jvm)), []);
    }

    #[test]
    fn a_table_of_a_few_pages_is_only_worth_knowing() {
        let mut jvm = page_cases::asks_hugetlb();
        page_cases::give_hugetlb(&mut jvm);
        page_cases::take_hugetlb(&mut jvm, page_cases::TABLES);
        let found = find(&page_cases::alone(jvm));
        assert_eq!(found.iter().map(|found| found.level).collect::<Vec<_>>(), [Level::Info], "{found:#?}");
    }
}
