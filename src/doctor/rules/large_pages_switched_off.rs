//! `-XX:+UseLargePages` on the command line, and the JVM found not one large page when it started: it switched its flag off,
//! with a warning in a log that is long gone.

use super::hugetlb_node_split;
use crate::doctor::facts::Facts;
use crate::doctor::promise::{self, Kind};
use crate::doctor::types::{Finding, Level, Rule};

pub const RULE: Rule = Rule {
    id: "large-pages-switched-off",
    title: "HugeTLB pages were asked for, and the JVM switched its flag off at start",
    find,
};

fn find(facts: &Facts) -> Vec<Finding> {
    promise::find(facts, Kind::SwitchedOff, |jvm, broken| {
        // Enough of them, but on the wrong nodes, is reported as such.
        if hugetlb_node_split::of_jvm(facts, jvm).is_some() {
            return None;
        }
        let level = if broken.is_worth_it() { Level::Warn } else { Level::Info };
        let title = format!(
            "the JVM found no HugeTLB pages at start and switched -XX:+UseLargePages off: the heap is on {}; {}",
            broken.heap.text(),
            broken.because()
        );
        Some(broken.finding(RULE.id, level, jvm, title))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::rules::page_cases::{self, only_warning};

    #[test]
    fn a_flag_that_is_off_though_the_command_line_says_on() {
        let mut jvm = page_cases::asks_hugetlb();
        page_cases::flag(&mut jvm, "UseLargePages", "false");
        let found = only_warning(jvm, RULE.id);
        assert!(found.title.contains("the heap is on 4K 100 %") && found.title.contains("pool"), "{found:?}");
        assert_eq!(find(&page_cases::alone(page_cases::asks_hugetlb())), [], "the flag is still on");
    }
}
