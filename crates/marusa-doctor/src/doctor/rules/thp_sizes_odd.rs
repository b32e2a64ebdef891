//! Since Linux 6.8 each size of folios has a switch of its own. A JVM reads only the top one (os_linux.cpp, `THPSupport::scan_os`),
//! and believes in 2 MiB whatever the others say.

use crate::base::size;
use crate::doctor::{Evidence, Facts, Finding, Level, Remedy};

const DIRECTORY: &str = "/sys/kernel/mm/transparent_hugepage";

pub(super) fn find(facts: &Facts) -> Option<Finding> {
    let thp = facts.host.pages.thp.as_ref()?;
    let is_on = |bytes| matches!(thp.private(bytes).mode.as_str(), "always" | "madvise");
    let smaller: Vec<u64> = thp
        .sizes
        .iter()
        .map(|size| size.bytes)
        .filter(|bytes| *bytes < thp.pmd_bytes && is_on(*bytes))
        .collect();
    let list = smaller.iter().map(|bytes| size(*bytes)).collect::<Vec<String>>().join(", ");
    let (pmd, is_top_on) = (size(thp.pmd_bytes), thp.enabled != "never");
    let title = match (is_top_on, is_on(thp.pmd_bytes), smaller.is_empty()) {
        (true, false, true) => {
            format!(
                "the top switch of THP says {}, that of {pmd} never: a JVM asks, believes and gets nothing",
                thp.enabled
            )
        }
        (true, false, false) => {
            format!("THP gives pages of {list} and none of {pmd}: a JVM that asks reports {pmd}")
        }
        (false, true, _) => {
            format!("THP of {pmd} is on by its own switch, the top one says never: a JVM does not ask")
        }
        (false, false, false) => {
            format!("THP of {list} is on by its own switch, the top one says never: a JVM does not ask")
        }
        _ => return None,
    };
    let mut evidence = vec![Evidence::state(
        "the top switch, which a JVM reads",
        &thp.enabled,
        format!("{DIRECTORY}/enabled"),
    )];
    let sizes = thp.sizes.iter().filter_map(|one| Some((one, one.enabled.as_ref()?)));
    evidence.extend(sizes.filter(|(one, _)| one.bytes == thp.pmd_bytes || smaller.contains(&one.bytes)).map(
        |(one, word)| {
            let file = format!("{DIRECTORY}/hugepages-{}kB/enabled", one.bytes >> 10);
            Evidence::state(format!("{} pages", size(one.bytes)), word, file)
        },
    ));
    let remedies = vec![match is_top_on {
        true => {
            Remedy::Setting(format!("echo inherit > {DIRECTORY}/hugepages-{}kB/enabled", thp.pmd_bytes >> 10))
        }
        false => Remedy::Setting(format!("echo madvise > {DIRECTORY}/enabled")),
    }];
    Some(Finding::on_host(Level::Info, title, evidence, remedies))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::os::thp::tests::host;

    fn title(enabled: &str, two_megabytes: &str, sixty_four: &str) -> Option<String> {
        let mut facts = Facts::default();
        facts.host.pages.thp = Some(host(enabled, "never", two_megabytes, sixty_four));
        find(&facts).map(|found| found.title)
    }

    #[test]
    fn each_way_in_which_the_switches_contradict() {
        let is = |title: Option<String>, words: &str| title.is_some_and(|title| title.contains(words));
        assert!(is(title("madvise", "never", "always"), "gives pages of 64K and none of 2M"));
        assert!(is(title("always", "never", "never"), "gets nothing"));
        assert!(is(title("never", "madvise", "never"), "THP of 2M is on by its own switch"));
        assert!(is(title("never", "inherit", "always"), "THP of 64K is on by its own switch"));
    }

    #[test]
    fn what_the_kernel_comes_with_and_what_is_off_altogether() {
        assert_eq!(title("madvise", "inherit", "never"), None);
        assert_eq!(title("madvise", "inherit", "madvise"), None, "both sizes");
        assert_eq!(title("never", "inherit", "never"), None);
    }
}
