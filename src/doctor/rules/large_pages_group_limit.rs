//! The pool has pages, and the cgroup of the JVM may not have them (hugetlb.2MB.max, or limit_in_bytes of version 1).

use crate::doctor::facts::Facts;
use crate::doctor::promise::{self, Kind};
use crate::doctor::types::{Finding, Rule};

pub const RULE: Rule = Rule {
    id: "large-pages-group-limit",
    title: "HugeTLB pages were asked for, and a cgroup allows too few",
    find,
};

fn find(facts: &Facts) -> Vec<Finding> {
    promise::find(facts, Kind::GroupLimit, |jvm, broken| Some(broken.lacking(RULE.id, jvm)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::rules::page_cases::{self, M};
    use crate::doctor::types::Level;
    use crate::os::hugetlb::{Limit, Pool};

    #[test]
    fn a_limit_below_what_is_missing_and_one_above() {
        let mut jvm = page_cases::asks_hugetlb();
        page_cases::pools(&mut jvm)[0] =
            Pool { page_bytes: 2 * M, pages: 4000, free: 4000, ..Pool::default() };
        let file = "/sys/fs/cgroup/app/hugetlb.2MB.max".to_string();
        let limit = Limit { page_bytes: 2 * M, limit_bytes: 64 * M, used_bytes: Some(0), file: file.clone() };
        page_cases::settings(&mut jvm).limits = vec![limit];
        let found = find(&page_cases::alone(jvm.clone()));
        assert_eq!((found.len(), found[0].level), (1, Level::Warn));
        assert!(found[0].remedies.iter().any(|remedy| remedy.text().contains(&file)), "{found:?}");
        page_cases::settings(&mut jvm).limits[0].limit_bytes = 8192 * M;
        assert_eq!(find(&page_cases::alone(jvm)), [], "then it is no matter of the group");
    }
}
