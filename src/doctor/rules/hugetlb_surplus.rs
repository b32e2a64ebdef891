//! Pages of hugetlb beyond the number that is set aside: taken from free memory as JVMs asked (nr_overcommit_hugepages), or left
//! after the number was made smaller. They go as soon as they are free, and nothing promises them to the next start.

use crate::base::human;
use crate::doctor::{Evidence, Facts, Finding, Level, Remedy};
use crate::map::why::size;
use crate::os::hugetlb::{DIRECTORY, Pool};

pub(super) fn find(facts: &Facts) -> Vec<Finding> {
    facts.host.pages.pools.iter().filter_map(of).collect()
}

fn of(pool: &Pool) -> Option<Finding> {
    if pool.surplus == 0 {
        return None;
    }
    let (page, bytes) = (size(pool.page_bytes), pool.surplus.saturating_mul(pool.page_bytes));
    let directory = format!("{DIRECTORY}/hugepages-{}kB", pool.page_bytes >> 10);
    let how = match pool.overcommit {
        0 => "the pool was made smaller while they were in use",
        _ => "overcommit took them from free memory when they were asked for",
    };
    let title =
        format!("pages of {page} above the number set aside: {} ({}); {how}", pool.surplus, human(bytes));
    let count = |what: &str, pages, file: &str| Evidence::count(what, pages, format!("{directory}/{file}"));
    let evidence = vec![
        Evidence::bytes("surplus", bytes, format!("{directory}/surplus_hugepages")),
        count("pages, surplus included", pool.pages, "nr_hugepages"),
        count("surplus pages allowed", pool.overcommit, "nr_overcommit_hugepages"),
    ];
    let remedies = vec![
        Remedy::advice("nothing, if a start that gets small pages instead is acceptable"),
        Remedy::Setting(format!("echo {} > {directory}/nr_hugepages", pool.pages)),
    ];
    Some(Finding::on_host(Level::Info, title, evidence, remedies))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::facts::made_up::{M, healthy};

    #[test]
    fn by_overcommit_and_by_a_pool_made_smaller() {
        let mut facts = healthy();
        let pool = Pool { page_bytes: 2 * M, pages: 100, surplus: 100, overcommit: 200, ..Pool::default() };
        facts.host.pages.pools = vec![pool.clone()];
        assert!(find(&facts)[0].title.contains("above the number set aside: 100 (200.0 MiB)"));
        facts.host.pages.pools = vec![Pool { overcommit: 0, ..pool.clone() }];
        assert!(find(&facts)[0].title.contains("made smaller"));
        facts.host.pages.pools = vec![Pool { surplus: 0, ..pool }];
        assert_eq!(find(&facts), []);
    }
}
