use super::*;

/// As Linux 6.18 prints them.
pub fn host(enabled: &str, shmem: &str, two_megabytes: &str, sixty_four: &str) -> Thp {
    let read = |file: &str| {
        let text = match file {
            "enabled" => format!("always madvise never [{enabled}]\n"),
            "shmem_enabled" => format!("always within_size [{shmem}] never deny force\n"),
            "defrag" => "always defer defer+madvise [madvise] never\n".to_string(),
            "hpage_pmd_size" => "2097152\n".to_string(),
            "use_zero_page" => "1\n".to_string(),
            "khugepaged/max_ptes_none" => "511\n".to_string(),
            "hugepages-2048kB/enabled" => format!("[{two_megabytes}] never\n"),
            "hugepages-2048kB/shmem_enabled" => "always [inherit] never\n".to_string(),
            "hugepages-64kB/enabled" => format!("always inherit [{sixty_four}]\n"),
            _ => return None,
        };
        Some(text)
    };
    Thp::parse(&read, &[2 << 20, 64 << 10]).expect("the files of a kernel with huge pages")
}

#[test]
fn inherit_is_followed_to_the_top_file() {
    let thp = host("madvise", "never", "inherit", "always");
    assert_eq!(thp.private(2 << 20), Policy::of("enabled", "madvise"));
    assert_eq!(thp.private(64 << 10), Policy::of("hugepages-64kB/enabled", "always"));
    assert_eq!(thp.shared(2 << 20).text(), "transparent_hugepage/shmem_enabled is never");
    assert_eq!((thp.use_zero_page, thp.khugepaged["max_ptes_none"]), (Some(true), 511));
}

#[test]
fn a_size_that_is_off_is_off_whatever_the_top_file_says() {
    let thp = host("always", "never", "never", "always");
    assert_eq!(thp.private(2 << 20), Policy::of("hugepages-2048kB/enabled", "never"));
    assert_eq!(host("always", "force", "never", "never").shared(2 << 20).mode, "force");
}

#[test]
fn an_old_kernel_has_the_top_file_only() {
    let read = |file: &str| (file == "enabled").then(|| "[always] madvise never".to_string());
    let thp = Thp::parse(&read, &[]).expect("huge pages");
    assert_eq!(thp.private(2 << 20), Policy::of("enabled", "always"));
    assert_eq!(thp.private(64 << 10).mode, "never", "no such size before 6.8");
    assert_eq!(thp.pmd_bytes, 2 << 20);
    assert_eq!(Thp::parse(&|_| None, &[]), None);
}
