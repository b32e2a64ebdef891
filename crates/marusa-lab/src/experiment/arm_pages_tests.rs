//! The pages of an arm: what options ask for, and what a host must give.

use super::*;

fn mode(text: &str) -> PageMode {
    PageMode::of_options(&text.split_whitespace().map(String::from).collect::<Vec<_>>())
}

#[test]
fn what_options_ask_for() {
    assert_eq!(mode("-Xmx1g"), PageMode::AsIs);
    assert_eq!(mode("-XX:+UseLargePages"), PageMode::HugeTlb2M);
    assert_eq!(mode("-XX:+UseLargePages -XX:LargePageSizeInBytes=1g"), PageMode::HugeTlb1G);
    assert_eq!(mode("-XX:+UseLargePages -XX:+UseTransparentHugePages"), PageMode::Thp);
    assert_eq!(mode("-XX:+UseLargePages -XX:-UseLargePages"), PageMode::AsIs);
    assert_eq!(mode("-XX:+UseTransparentHugePages -XX:-UseTransparentHugePages"), PageMode::AsIs);
    assert_eq!("thp".parse(), Ok(PageMode::Thp));
    assert!("2m".parse::<PageMode>().expect_err("none").0.contains("hugetlb-2m"));
}

#[test]
fn a_jvm_that_is_only_asked_gets_no_options_of_pages() {
    for option in ["-XX:+UseLargePages", "-XX:LargePageSizeInBytes=1g", "-XX:-UseTransparentHugePages"] {
        assert!(chooses_pages(option), "{option}");
    }
    assert!(!chooses_pages("-Xmx1g") && !chooses_pages("-XX:+UseG1GC"));
}

#[test]
fn where_everybody_gets_huge_pages_an_arm_on_small_ones_needs_that_changed() {
    let host = thp::tests::host("always", "never", "inherit", "never");
    let steps = small_steps(&host);
    assert_eq!(steps.len(), 1, "{steps:?}");
    assert!(small_steps(&thp::tests::host("madvise", "never", "inherit", "never")).is_empty());
    assert_eq!(small_steps(&thp::tests::host("madvise", "never", "always", "never")).len(), 1);
}
