//! Each known fault where it holds, and where it just does not.

use super::*;
use crate::doctor::facts::GroupMemory;
use crate::doctor::facts::made_up::{self, G, M};
use crate::jvm::Gc;
use crate::map::Area;
use crate::os::cpus::Cpus;

/// The healthy JVM, of another release.
fn of_release(major: u32, version: &str) -> Facts {
    let mut facts = made_up::healthy();
    let view = made_up::view(&mut facts.jvms[0]);
    view.major = Ok(major);
    view.version = Ok(version.to_string());
    facts
}

fn bugs(facts: &Facts) -> Vec<String> {
    let bug = |finding: &Finding| finding.title.split(':').next().unwrap_or("").to_string();
    crate::doctor::facts::made_up::rule_finds("jdk-known-fix", facts).iter().map(bug).collect()
}

fn without(facts: &mut Facts, flag: &str) {
    made_up::view(&mut facts.jvms[0]).flags.remove(flag);
}

#[test]
fn a_release_alone_is_no_finding() {
    for (major, version) in
        [(8, "25.181-b13"), (11, "11.0.13+8"), (17, "17.0.1+12"), (21, "21+35"), (25, "25+36")]
    {
        assert_eq!(bugs(&of_release(major, version)), [] as [&str; 0], "{version}");
    }
    assert_eq!(bugs(&of_release(17, "internal")), [] as [&str; 0]);
}

#[test]
fn stacks_that_are_resident_as_a_whole() {
    let stacks = |version: &str, mode: &str, bytes| {
        let mut facts = of_release(17, version);
        without(&mut facts, "THPStackMitigation");
        made_up::set_resident(&mut facts.jvms[0], Area::Stack, bytes);
        if let Some(thp) = &mut facts.host.pages.thp {
            thp.enabled = mode.to_string();
        }
        bugs(&facts)
    };
    assert_eq!(stacks("17.0.9+9", "always", 64 * M), ["JDK-8312182"]);
    assert_eq!(stacks("17.0.10+7", "always", 64 * M), [] as [&str; 0]);
    assert_eq!(stacks("17.0.9+9", "madvise", 64 * M), [] as [&str; 0]);
    assert_eq!(stacks("17.0.9+9", "always", 63 * M), [] as [&str; 0]);
}

#[test]
fn limits_that_the_jvm_does_not_see_by_proc_cgroups() {
    let bugs_of = |major, version: &str, listed: &[&str], limit| {
        let mut facts = of_release(major, version);
        facts.jvms[0].group = Ok(limit);
        facts.jvms[0].bounds.is_unified = true;
        facts.host.v1_controllers = Some(listed.iter().map(|name| name.to_string()).collect());
        bugs(&facts)
    };
    let (all, most) = (["cpuset", "cpu", "cpuacct", "memory"], ["cpuset", "cpu", "cpuacct"]);
    let limit = || Some(group(2 * G));
    assert_eq!(bugs_of(21, "21.0.9+10", &most, limit()), ["JDK-8349988"]);
    assert_eq!(bugs_of(21, "21.0.10+7", &most, limit()), [] as [&str; 0]);
    assert_eq!(bugs_of(21, "21.0.9+10", &all, limit()), [] as [&str; 0]);
    assert_eq!(bugs_of(21, "21.0.9+10", &most, None), [] as [&str; 0], "nothing limits it");
    assert_eq!(bugs_of(17, "17.0.19+9", &most, limit()), ["JDK-8349988"]);
    assert_eq!(
        bugs_of(11, "11.0.13+8", &most, limit()),
        ["JDK-8230305"],
        "it does not know version 2 at all"
    );
    assert_eq!(bugs_of(25, "25+36", &most, limit()), [] as [&str; 0]);
}

#[test]
fn flight_recorder_that_keeps_data_of_threads() {
    let bugs_of = |version: &str, bytes, thread: &str| {
        let mut facts = of_release(21, version);
        let jvm = &mut facts.jvms[0];
        made_up::set_resident(jvm, Area::JvmWork, bytes);
        let work = jvm.account.areas.iter_mut().find(|area| area.area == Area::JvmWork).expect("set");
        work.parts.iter_mut().max_by_key(|part| part.amounts.resident_bytes).expect("a part").part =
            "tracing".to_string();
        jvm.account.threads[0].name = thread.to_string();
        bugs(&facts)
    };
    assert_eq!(bugs_of("21.0.5+11", 128 * M, "JFR Recorder Thread"), ["JDK-8337994"]);
    assert_eq!(bugs_of("21.0.5+11", 127 * M, "JFR Recorder Thread"), [] as [&str; 0]);
    assert_eq!(bugs_of("21.0.5+11", 128 * M, "main"), [] as [&str; 0], "nothing is recorded");
    assert_eq!(bugs_of("21.0.6+7", 128 * M, "JFR Recorder Thread"), [] as [&str; 0]);
}

fn group(limit_bytes: u64) -> GroupMemory {
    GroupMemory {
        path: "/sys/fs/cgroup/app".to_string(),
        limit_bytes,
        current_bytes: G,
        ..GroupMemory::default()
    }
}

#[test]
fn limits_that_the_jvm_does_not_see() {
    let mut facts = of_release(11, "11.0.13+8");
    facts.jvms[0].group = Ok(Some(group(2 * G)));
    assert_eq!(bugs(&facts), [] as [&str; 0], "version 1 it sees");
    facts.jvms[0].bounds.is_unified = true;
    assert_eq!(bugs(&facts), ["JDK-8230305"]);
    made_up::view(&mut facts.jvms[0]).version = Ok("11.0.16+8".to_string());
    assert_eq!(bugs(&facts), [] as [&str; 0]);
    let mut facts = of_release(8, "25.181-b13");
    facts.jvms[0].cpus = Ok(Cpus { allowed: 4, quota: Some(1.0) });
    without(&mut facts, "UseContainerSupport");
    assert_eq!(bugs(&facts), ["JDK-8146115"]);
    facts.jvms[0].cpus = Ok(Cpus { allowed: 4, quota: Some(4.0) });
    assert_eq!(bugs(&facts), [] as [&str; 0], "nothing is taken from it");
}

#[test]
fn cpus_that_the_jvm_counts_wrong() {
    let mut facts = of_release(17, "17.0.4+8");
    facts.jvms[0].bounds.cpu_shares = Some(512);
    assert_eq!(bugs(&facts), ["JDK-8281181"]);
    facts.jvms[0].bounds.cpu_shares = Some(1024);
    assert_eq!(bugs(&facts), [] as [&str; 0], "as at birth");
    facts.jvms[0].bounds.cpu_shares = Some(3073);
    assert_eq!(bugs(&facts), [] as [&str; 0], "4 CPUs of 4");
    facts.jvms[0].bounds.inner_cpus = Some(Cpus { allowed: 4, quota: None });
    facts.jvms[0].bounds.outer_cpus = Some(Cpus { allowed: 4, quota: Some(1.5) });
    assert_eq!(bugs(&facts), ["JDK-8322420"]);
    made_up::set_flags(&mut facts.jvms[0], &[("ActiveProcessorCount", "2")]);
    assert_eq!(bugs(&facts), [] as [&str; 0], "the flag was set");
}

#[test]
fn memory_that_is_not_given_back() {
    let mut facts = of_release(11, "11.0.13+8");
    without(&mut facts, "TrimNativeHeapInterval");
    made_up::set_resident(&mut facts.jvms[0], Area::MallocFreed, 256 * M);
    assert_eq!(bugs(&facts), ["JDK-8293114"]);
    made_up::set_resident(&mut facts.jvms[0], Area::MallocFreed, 255 * M);
    assert_eq!(bugs(&facts), [] as [&str; 0]);
    made_up::set_resident(&mut facts.jvms[0], Area::JavaHeap, 1200 * M);
    assert_eq!(bugs(&facts), ["JEP 346"], "600 MiB of 1200 are used");
    made_up::set_resident(&mut facts.jvms[0], Area::JavaHeap, 1100 * M);
    made_up::set_resident(&mut facts.jvms[0], Area::ClassMetadata, (46 + 64) * M);
    assert_eq!(bugs(&facts), ["JEP 387"]);
    made_up::set_resident(&mut facts.jvms[0], Area::ClassMetadata, (46 + 63) * M);
    assert_eq!(bugs(&facts), [] as [&str; 0]);
}

#[test]
fn tables_symbols_and_compilers() {
    let mut facts = of_release(17, "17.0.8+7");
    made_up::set_resident(&mut facts.jvms[0], Area::JitWork, 512 * M);
    assert_eq!(bugs(&facts), ["JDK-8318016"]);
    made_up::set_resident(&mut facts.jvms[0], Area::JitWork, 511 * M);
    let named = |facts: &mut Facts, area, bytes, part: &str| {
        made_up::set_resident(&mut facts.jvms[0], area, bytes);
        if let Some(owner) = facts.jvms[0].map.owners.last_mut() {
            owner.part = part.to_string();
        }
        made_up::recount(&mut facts.jvms[0]);
        bugs(facts)
    };
    assert_eq!(named(&mut facts, Area::Gc, 128 * M, "mark bitmap"), ["JDK-8210708"]);
    assert_eq!(named(&mut facts, Area::Gc, 127 * M, "mark bitmap"), [] as [&str; 0]);
    assert_eq!(named(&mut facts, Area::JvmWork, 256 * M, "symbols"), ["JDK-8313678"]);
    assert_eq!(named(&mut facts, Area::JvmWork, 255 * M, "symbols"), [] as [&str; 0]);
}

#[test]
fn zgc_and_pretouching() {
    let mut facts = of_release(17, "17.0.15+6");
    made_up::view(&mut facts.jvms[0]).gc = Ok(Gc::Z);
    facts.jvms[0].account.totals.aliased_bytes = 2 * G;
    assert_eq!(bugs(&facts), ["JEP 439"]);
    facts.jvms[0].account.totals.aliased_bytes = 0;
    assert_eq!(bugs(&facts), [] as [&str; 0]);
    let mut facts = of_release(21, "21.0.4+7");
    made_up::set_flags(&mut facts.jvms[0], &[("AlwaysPreTouch", "true")]);
    assert_eq!(bugs(&facts), [] as [&str; 0], "no huge pages were asked for");
    made_up::set_flags(&mut facts.jvms[0], &[("UseTransparentHugePages", "true")]);
    assert_eq!(bugs(&facts), ["JDK-8315923"]);
    made_up::view(&mut facts.jvms[0]).version = Ok("21.0.5+11".to_string());
    assert_eq!(bugs(&facts), [] as [&str; 0]);
}
