//! The options by which a JVM of each release takes large pages, and the settings of the host that transparent ones need.
//!
//! HotSpot: src/hotspot/os/linux/os_linux.cpp (`large_page_init`) and hugepages.cpp by release. UseHugeTLBFS and UseSHM are
//! obsolete in 22 and gone in 23 (JDK-8310841); LargePageSizeInBytes has no effect on Linux before 17 (JDK-8256155). Of
//! transparent huge pages it reads only the top file, `enabled` (`THPSupport::scan_os`); ZGC's heap is shared memory, for which
//! the kernel has `shmem_enabled`. OpenJ9: docs/xlp.md and docs/xxtransparenthugepage.md of eclipse-openj9/openj9-docs.

use super::collectors;
use super::feasible::size_name;
use super::types::{Change, Mode, Step, Subject, Vm};
use crate::base::{Bytes, Refused, refuse};
use crate::os::thp::{DIRECTORY, Thp};

/// The options of the pages alone. `default_huge` is the size that a program gets that names none.
pub fn of_pages(
    subject: &Subject,
    mode: Mode,
    default_huge: Option<Bytes>,
    shm: bool,
) -> Result<Vec<String>, Refused> {
    match subject.vm {
        Vm::HotSpot => hotspot(subject, mode, default_huge, shm),
        Vm::OpenJ9 => Ok(openj9(mode)),
    }
}

fn hotspot(
    subject: &Subject,
    mode: Mode,
    default_huge: Option<Bytes>,
    shm: bool,
) -> Result<Vec<String>, Refused> {
    let feature = subject.feature;
    let mut options = vec![match mode {
        Mode::Thp => "-XX:+UseTransparentHugePages".to_string(),
        _ => "-XX:+UseLargePages".to_string(),
    }];
    let page_bytes = mode.page_bytes();
    let flag = |name: &str| subject.flags.get(name).map(String::as_str);
    // What the JVM has been started with must not stand against it: the last of an option counts, and transparent pages win.
    if mode != Mode::Thp && flag("UseTransparentHugePages") == Some("true") {
        options.push("-XX:-UseTransparentHugePages".to_string());
    }
    let other_size = flag("LargePageSizeInBytes")
        .is_some_and(|text| text.parse::<Bytes>().is_ok_and(|size| size != 0 && size != page_bytes));
    if matches!(mode, Mode::HugeTlb1G | Mode::HugeTlb) && collectors::is_z(subject.gc) {
        refuse!(
            "ZGC takes 2M pages only: the VM ends with LargePageSizeInBytes={}; use hugetlb-2m",
            size_name(page_bytes).to_lowercase()
        );
    }
    if mode != Mode::Thp && feature >= 17 && (default_huge != Some(page_bytes) || other_size) {
        options.push(format!("-XX:LargePageSizeInBytes={}", size_name(page_bytes).to_lowercase()));
    }
    if shm {
        match (mode, feature) {
            (Mode::Thp, _) => {
                refuse!("shared memory of System V has no transparent huge pages: leave --shm out");
            }
            (_, ..=21) => options.push("-XX:+UseSHM".to_string()),
            _ => {
                refuse!("JDK {feature} has no UseSHM: it was obsolete in 22 and is gone since 23");
            }
        }
    }
    Ok(options)
}

fn openj9(mode: Mode) -> Vec<String> {
    let size = size_name(mode.page_bytes());
    match mode {
        Mode::Thp => vec!["-XX:+TransparentHugePage".to_string()],
        Mode::HugeTlb | Mode::HugeTlb2M | Mode::HugeTlb1G => {
            vec![format!("-Xlp:objectheap:pagesize={size}"), format!("-Xlp:codecache:pagesize={size}")]
        }
    }
}

/// Whether pages come from shared memory of System V, for which group and limits must allow it.
pub fn uses_shm(subject: &Subject, mode: Mode, shm: bool) -> bool {
    mode != Mode::Thp && (shm || subject.vm == Vm::OpenJ9)
}

/// What must change on the host for transparent huge pages; nothing that need not.
pub fn thp_steps(subject: &Subject, thp: &Thp) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut choose = |file: &str, word: &str, what: &str, why: &str, risk: &str| {
        steps.push(Step {
            what: what.to_string(),
            why: why.to_string(),
            risk: Some(risk.to_string()),
            change: Change::Choose { file: format!("{DIRECTORY}/{file}"), word: word.to_string() },
        });
    };
    let others = "other programs that ask for huge pages (madvise) get them too";
    if thp.enabled == "never" {
        choose(
            "enabled",
            "madvise",
            "huge pages on request (madvise)",
            "the JVM looks at this file only and turns its huge pages off where it says never",
            others,
        );
    }
    let size = format!("hugepages-{}kB", thp.pmd_bytes >> 10);
    let of_size = thp.sizes.iter().find(|one| one.bytes == thp.pmd_bytes);
    if of_size.is_some_and(|one| one.enabled.as_deref() == Some("never")) {
        choose(
            &format!("{size}/enabled"),
            "inherit",
            "pages of this size follow the setting above",
            "this size is off, whatever the setting above says; the JVM does not see that",
            others,
        );
    }
    if collectors::is_z(subject.gc) && subject.vm == Vm::HotSpot {
        if matches!(thp.shmem_enabled.as_deref(), Some("never" | "deny")) {
            choose(
                "shmem_enabled",
                "advise",
                "huge pages for shared memory that asks for them",
                "the heap of ZGC is shared memory",
                "other shared memory that asks for them gets them too",
            );
        }
        if of_size.is_some_and(|one| one.shmem_enabled.as_deref() == Some("never")) {
            choose(
                &format!("{size}/shmem_enabled"),
                "inherit",
                "shared memory of this size follows the setting above",
                "this size is off for shared memory",
                others,
            );
        }
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jvm::Gc;
    use crate::os::thp::tests::host;
    use crate::pages::subject::Wanted;

    fn subject(vm: Vm, feature: u32, gc: Gc) -> Subject {
        let wanted = Wanted { heap_bytes: 1 << 30, cpus: 2, ..Wanted::default() };
        Subject { gc, ..wanted.by_name(vm, feature, 8 << 30).expect("a subject") }
    }
    fn options(feature: u32, gc: Gc, mode: Mode, default: Bytes) -> String {
        let subject = subject(Vm::HotSpot, feature, gc);
        of_pages(&subject, mode, Some(default), false).expect("options").join(" ")
    }

    #[test]
    fn hotspot_by_release() {
        assert_eq!(options(8, Gc::G1, Mode::HugeTlb2M, 2 << 20), "-XX:+UseLargePages");
        assert_eq!(options(11, Gc::G1, Mode::HugeTlb2M, 1 << 30), "-XX:+UseLargePages", "no effect there");
        assert_eq!(
            options(25, Gc::G1, Mode::HugeTlb2M, 1 << 30),
            "-XX:+UseLargePages -XX:LargePageSizeInBytes=2m"
        );
        assert_eq!(
            options(17, Gc::G1, Mode::HugeTlb1G, 2 << 20),
            "-XX:+UseLargePages -XX:LargePageSizeInBytes=1g"
        );
        assert_eq!(options(21, Gc::Z, Mode::Thp, 2 << 20), "-XX:+UseTransparentHugePages");
        let z = subject(Vm::HotSpot, 21, Gc::Z);
        assert!(of_pages(&z, Mode::HugeTlb1G, None, false).expect_err("refused").0.contains("2M pages only"));
    }

    #[test]
    fn what_the_jvm_has_now_does_not_stand_against_it() {
        let mut now = subject(Vm::HotSpot, 21, Gc::G1);
        now.flags.insert("UseTransparentHugePages".into(), "true".into());
        now.flags.insert("LargePageSizeInBytes".into(), "1073741824".into());
        let options = of_pages(&now, Mode::HugeTlb2M, Some(2 << 20), false).expect("options").join(" ");
        assert_eq!(options, "-XX:+UseLargePages -XX:-UseTransparentHugePages -XX:LargePageSizeInBytes=2m");
        assert_eq!(
            of_pages(&now, Mode::Thp, Some(2 << 20), false).expect("options"),
            ["-XX:+UseTransparentHugePages"]
        );
    }

    #[test]
    fn shared_memory_up_to_21() {
        let of =
            |feature| of_pages(&subject(Vm::HotSpot, feature, Gc::G1), Mode::HugeTlb2M, Some(2 << 20), true);
        assert_eq!(of(17).expect("options").join(" "), "-XX:+UseLargePages -XX:+UseSHM");
        assert!(of(25).expect_err("gone").0.contains("UseSHM"));
    }

    #[test]
    fn openj9_names_both_areas() {
        let j9 = subject(Vm::OpenJ9, 21, Gc::Parallel);
        let options = of_pages(&j9, Mode::HugeTlb2M, Some(2 << 20), false).expect("options");
        assert_eq!(options, ["-Xlp:objectheap:pagesize=2M", "-Xlp:codecache:pagesize=2M"]);
        assert!(uses_shm(&j9, Mode::HugeTlb2M, false) && !uses_shm(&j9, Mode::Thp, false));
    }

    #[test]
    fn only_what_must_change_does() {
        let files = |gc: Gc, thp: &Thp| -> Vec<String> {
            let steps = thp_steps(&subject(Vm::HotSpot, 21, gc), thp);
            let file = |step: &Step| match &step.change {
                Change::Choose { file, .. } => file.trim_start_matches(DIRECTORY).to_string(),
                other => panic!("{other:?}"),
            };
            steps.iter().map(file).collect()
        };
        assert!(files(Gc::G1, &host("madvise", "never", "inherit", "never")).is_empty());
        assert!(files(Gc::G1, &host("always", "deny", "always", "never")).is_empty());
        assert_eq!(files(Gc::Z, &host("madvise", "never", "inherit", "never")), ["/shmem_enabled"]);
        assert_eq!(
            files(Gc::G1, &host("never", "never", "never", "never")),
            ["/enabled", "/hugepages-2048kB/enabled"]
        );
    }
}
