//! How the JVM starts processes, where its options ask for a way that costs much or is dangerous.

use crate::base::Bytes;
use crate::doctor::{Evidence, Facts, Finding, JvmFacts, Level, Remedy};
use crate::jvm::command_line::{self, CommandLine};
use crate::os::elf_imports::Import;

/// Private memory on small pages: 15 to 40 ms for each fork on the machines that were measured.
const WARN_BYTES: Bytes = 512 << 20;

/// Whether some JVM starts processes so: only then what a fork costs here is worth measuring.
pub fn is_forking(facts: &Facts) -> bool {
    let by_option = |jvm: &JvmFacts| mechanism(jvm).is_some_and(|(name, _)| name == "FORK");
    let by_library = |jvm: &JvmFacts| jvm.forkers.iter().any(|forker| forker.import != Import::Uncalled);
    facts.jvms.iter().any(|jvm| by_option(jvm) || by_library(jvm))
}

/// The last value: JAVA_TOOL_OPTIONS come before the options of the command.
fn mechanism(jvm: &JvmFacts) -> Option<(String, &'static str)> {
    let parse = |text: &str| -> CommandLine {
        command_line::parse(&text.split_ascii_whitespace().map(str::to_string).collect::<Vec<_>>())
    };
    let said = command_line::parse(&jvm.snapshot.os.process.arguments).launch_mechanism;
    if let Some(name) = said {
        return Some((name, "/proc/PID/cmdline"));
    }
    let options = jvm.environment.as_ref().ok()?.get("JAVA_TOOL_OPTIONS")?;
    Some((parse(&format!("java {options}")).launch_mechanism?, "environment: JAVA_TOOL_OPTIONS"))
}

/// Private pages that have an entry of 4 KiB each in the page tables: fork copies those entries one by one. Shared memory (the
/// heap of ZGC) is not copied, a huge page is one entry (mm/memory.c, `copy_page_range`).
fn copied_bytes(jvm: &JvmFacts) -> Bytes {
    let of = |figures: &crate::map::Figures| {
        let small: Bytes =
            figures.by_page_size.range(..crate::os::machine::huge_page()).map(|(_, bytes)| *bytes).sum();
        small.min(figures.anonymous)
    };
    jvm.map.shares().map(|(_, share)| of(&share.figures)).sum()
}

/// What one fork of a JVM costs.
pub(super) struct Price {
    pub copied: Bytes,
    /// `None`: not measured.
    pub ms: Option<f64>,
    pub evidence: Vec<Evidence>,
}

impl Price {
    pub fn of(facts: &Facts, jvm: &JvmFacts) -> Price {
        let copied = copied_bytes(jvm);
        let entries = "private memory on 4 KiB pages, whose entries a fork copies";
        let mut evidence = vec![
            Evidence::bytes(entries, copied, "account: page sizes"),
            Evidence::bytes(
                "page-table entries that a fork copies",
                copied / 512,
                "8 bytes for each page of 4 KiB",
            ),
        ];
        let tables = jvm.snapshot.os.status.page_table_bytes;
        evidence
            .extend(tables.map(|bytes| Evidence::bytes("page tables now", bytes, "/proc/PID/status: VmPTE")));
        let ms = facts.host.fork_ms_per_gib.map(|price| price * copied as f64 / (1_u64 << 30) as f64);
        let source = "a fork of our own, timed on this host";
        evidence.extend(ms.map(|ms| Evidence::ms("one process, at least", ms, source)));
        Price { copied, ms, evidence }
    }

    pub fn is_high(&self) -> bool {
        self.copied >= WARN_BYTES
    }

    /// What a finding's title ends with.
    pub fn words(&self) -> String {
        match self.ms {
            Some(ms) => format!(": at least {ms:.0} ms each for the page tables of this JVM"),
            None => ", which copies the page tables of this JVM".to_string(),
        }
    }
}

/// `jdk.lang.Process.launchMechanism=FORK`: each process that the JVM starts begins with a copy of the page tables of its private
/// memory, while which the thread that starts it waits; and afterwards each first write to a page is a fault.
pub(super) fn fork(facts: &Facts, jvm: &JvmFacts) -> Option<Finding> {
    let (name, source) = mechanism(jvm).filter(|(name, _)| name == "FORK")?;
    let price = Price::of(facts, jvm);
    let title = format!("processes are started by fork{}", price.words());
    let level = if price.is_high() { Level::Warn } else { Level::Info };
    let mut evidence = vec![Evidence::state("jdk.lang.Process.launchMechanism", name, source)];
    evidence.extend(price.evidence);
    let remedies = [
        Remedy::jvm_option("-Djdk.lang.Process.launchMechanism=POSIX_SPAWN"),
        Remedy::Command(format!("marusa pages plan {}", jvm.pid)),
    ];
    Some(Finding::on_jvm(jvm.pid, level, title, evidence, remedies))
}

const DEPRECATED_SINCE: u32 = 25;

/// `jdk.lang.Process.launchMechanism=VFORK`: deprecated in JDK 25 as dangerous (JDK-8357179), to be removed after it
/// (JDK-8357089).
pub(super) fn vfork(jvm: &JvmFacts) -> Option<Finding> {
    let (name, source) = mechanism(jvm).filter(|(name, _)| name == "VFORK")?;
    let major = jvm.major().filter(|major| *major >= DEPRECATED_SINCE)?;
    let title = format!(
        "processes are started by vfork, which JDK {major} has deprecated: until exec the child writes in the JVM's memory"
    );
    let evidence = [
        Evidence::state("jdk.lang.Process.launchMechanism", name, source),
        Evidence::count("release of the JDK", major.into(), "Abstract_VM_Version::_s_vm_release"),
    ];
    let remedies = [Remedy::jvm_option("-Djdk.lang.Process.launchMechanism=POSIX_SPAWN")];
    Some(Finding::on_jvm(jvm.pid, Level::Info, title, evidence, remedies))
}

#[cfg(test)]
mod tests {
    mod fork {
        use super::super::*;
        use crate::doctor::facts::made_up;
        use crate::doctor::facts::made_up::rule_finds;
        use crate::map::Area;

        fn forking(option: &str) -> Facts {
            let mut facts = made_up::healthy();
            facts.jvms[0].snapshot.os.process.set_arguments(crate::base::redact::words_of(&format!(
                "java -Xmx2g {option} -jar /srv/app.jar"
            )));
            facts
        }

        #[test]
        fn it_is_a_warning_from_half_a_gibibyte_of_small_pages_on() {
            let mut facts = forking("-Djdk.lang.Process.launchMechanism=fork");
            made_up::set_resident(&mut facts.jvms[0], Area::JavaHeap, 300 << 20);
            assert_eq!(
                rule_finds("fork-large-heap", &facts).pop().map(|finding| finding.level),
                Some(Level::Info),
                "300 MiB of heap"
            );
            assert!(is_forking(&facts) && !is_forking(&made_up::healthy()));
            made_up::set_resident(&mut facts.jvms[0], Area::JavaHeap, 4 << 30);
            facts.host.fork_ms_per_gib = Some(60.0);
            let finding = rule_finds("fork-large-heap", &facts).pop().expect("4 GiB of heap");
            assert_eq!(finding.level, Level::Warn);
            let ms = finding
                .evidence
                .iter()
                .find(|evidence| evidence.unit == "ms")
                .and_then(|evidence| evidence.number);
            assert!(ms.is_some_and(|ms| (240.0..260.0).contains(&ms)), "{ms:?}");
            assert!(
                !finding
                    .evidence
                    .iter()
                    .any(|evidence| evidence.number.is_none() && !evidence.unit.is_empty())
            );
        }

        #[test]
        fn where_it_was_said() {
            assert_eq!(rule_finds("fork-large-heap", &forking("")), []);
            assert_eq!(
                rule_finds("fork-large-heap", &forking("-Djdk.lang.Process.launchMechanism=POSIX_SPAWN")),
                []
            );
            let mut facts = forking("");
            let options = "-Dx=y -Djdk.lang.Process.launchMechanism=FORK".to_string();
            facts.jvms[0].environment = Ok([("JAVA_TOOL_OPTIONS".to_string(), options)].into());
            assert_eq!(rule_finds("fork-large-heap", &facts).len(), 1);
            let command = "java -Djdk.lang.Process.launchMechanism=VFORK -jar /srv/app.jar";
            facts.jvms[0].snapshot.os.process.set_arguments(crate::base::redact::words_of(command));
            assert_eq!(rule_finds("fork-large-heap", &facts), [], "the command's own option counts");
        }
    }

    mod vfork {
        use super::super::*;
        use crate::doctor::facts::made_up;
        use crate::doctor::facts::made_up::rule_finds;

        #[test]
        fn from_jdk_25_on() {
            let mut facts = made_up::healthy();
            let command = "java -Djdk.lang.Process.launchMechanism=VFORK Main";
            facts.jvms[0].snapshot.os.process.set_arguments(crate::base::redact::words_of(command));
            assert_eq!(rule_finds("vfork-deprecated", &facts), [], "21 takes it as it is");
            made_up::view(&mut facts.jvms[0]).major = Ok(25);
            assert_eq!(
                rule_finds("vfork-deprecated", &facts).pop().map(|finding| finding.level),
                Some(Level::Info)
            );
            facts.jvms[0].snapshot.os.process.set_arguments(crate::base::redact::words_of("java Main"));
            assert_eq!(rule_finds("vfork-deprecated", &facts), []);
        }
    }
}
