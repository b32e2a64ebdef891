//! Faults of HotSpot that cost memory or time, and the releases that have them: data for `jdk-known-fix`.
//!
//! The releases are those of the bug's own record and of the lists of fixes that each update was published with; a line is only
//! here as far as it is known to have the fault. A fault is named only where it can be seen to hold on this JVM now.

use super::known_conditions as holds;
use crate::base::Bytes;
use crate::doctor::{Evidence, Facts, JvmFacts, Level};
use std::ops::RangeInclusive;

/// That the fault shows on this JVM, and what it costs.
pub struct Held {
    pub evidence: Vec<Evidence>,
    pub bytes: Option<Bytes>,
}

pub struct Fix {
    /// "JDK-8312182", or "JEP 346" for what is not a fault but was better since.
    pub bug: &'static str,
    pub what: &'static str,
    /// Feature releases, and the first update of them that has the fix; `ALL`: none is known to have it.
    pub affected: &'static [(RangeInclusive<u32>, u32)],
    pub fixed: &'static str,
    pub level: Level,
    pub holds: fn(&Facts, &JvmFacts) -> Option<Held>,
    /// What helps without another release, if anything does.
    pub workaround: &'static str,
}

pub const ALL: u32 = u32::MAX;

pub const FIXES: &[Fix] = &[
    Fix {
        bug: "JDK-8312182",
        what: "with transparent huge pages 'always', stacks of new threads become resident as a whole",
        affected: &[(8..=8, ALL), (11..=11, ALL), (17..=17, 10), (18..=20, ALL), (21..=21, 1)],
        fixed: "17.0.10, 21.0.1, 22",
        level: Level::Warn,
        holds: holds::stacks_resident,
        workaround: "-Xss with a size that is not a multiple of 2 MiB, or transparent huge pages on request only (madvise)",
    },
    Fix {
        bug: "JDK-8146115",
        what: "the JVM does not know cgroups, and takes the host's memory and CPUs for its own",
        affected: &[(8..=8, 191)],
        fixed: "8u191 (Oracle), 8u202 (OpenJDK), 10",
        level: Level::Warn,
        holds: holds::limits_unseen,
        workaround: "-Xmx, -XX:ParallelGCThreads and -XX:CICompilerCount by hand",
    },
    Fix {
        bug: "JDK-8230305",
        what: "the JVM does not see the limits of cgroups of version 2",
        affected: &[(8..=8, 372), (11..=11, 16), (12..=14, ALL)],
        fixed: "8u372, 11.0.16, 15",
        level: Level::Warn,
        holds: holds::unified_limits_unseen,
        workaround: "-Xmx and -XX:ActiveProcessorCount by hand",
    },
    Fix {
        bug: "JDK-8349988",
        what: "the JVM does not see the limits of its cgroup where the kernel leaves controllers out of /proc/cgroups",
        // In one commit with JDK-8347811. The backports to 17, 11 and 8 came after 17.0.19, 11.0.31 and 8u492.
        affected: &[(8..=8, 493), (11..=11, 32), (17..=17, 20), (21..=21, 10), (22..=24, ALL)],
        fixed: "21.0.10, 25",
        level: Level::Warn,
        holds: holds::controllers_unlisted,
        workaround: "-Xmx and -XX:ActiveProcessorCount by hand, or a kernel with CONFIG_MEMCG_V1 and CONFIG_CPUSETS_V1",
    },
    Fix {
        bug: "JDK-8337994",
        what: "Flight Recorder keeps data of each thread that starts while no event is recorded",
        // A backport to 21 was taken out again (JDK-8346108).
        affected: &[(21..=21, 6), (22..=22, ALL)],
        fixed: "24",
        level: Level::Warn,
        holds: holds::recorder_leaks,
        workaround: "stop the recording (jcmd PID JFR.stop), or record some event that happens often",
    },
    Fix {
        bug: "JDK-8281181",
        what: "the JVM takes the weight of its cgroup (cpu.shares) for a number of CPUs",
        affected: &[(8..=8, 433), (11..=11, 17), (12..=16, ALL), (17..=17, 5)],
        fixed: "11.0.17, 17.0.5, 19",
        level: Level::Warn,
        holds: holds::shares_taken_for_cpus,
        workaround: "-XX:ActiveProcessorCount with the number of CPUs that the JVM may use",
    },
    Fix {
        bug: "JDK-8322420",
        what: "the JVM sees the limits of its own cgroup only, not those of the groups above it",
        affected: &[(11..=11, 29), (17..=17, 17), (21..=21, 9), (22..=23, ALL)],
        fixed: "21.0.9, 24",
        level: Level::Warn,
        holds: holds::outer_quota_unseen,
        workaround: "-XX:ActiveProcessorCount and -Xmx by hand, or the limit on the innermost group",
    },
    Fix {
        bug: "JDK-8293114",
        what: "the JVM cannot give freed memory of malloc back by itself (-XX:TrimNativeHeapInterval)",
        affected: &[(8..=8, ALL), (11..=16, ALL), (17..=17, 9), (18..=20, ALL), (21..=21, 1)],
        fixed: "17.0.9, 21.0.1, 22 (a product flag since 17.0.12, 21.0.3)",
        level: Level::Info,
        holds: holds::freed_memory_kept,
        workaround: "marusa trim PID, or MALLOC_ARENA_MAX in its environment",
    },
    Fix {
        bug: "JEP 346",
        what: "G1 gives heap that it does not use back in full collections only",
        affected: &[(8..=11, ALL)],
        fixed: "12 (with -XX:G1PeriodicGCInterval also when idle)",
        level: Level::Info,
        holds: holds::heap_not_returned,
        workaround: "a smaller -Xmx, or jcmd PID GC.run at a quiet time",
    },
    Fix {
        bug: "JEP 387",
        what: "metaspace that unloaded classes leave is given back only where a whole node of it is free",
        affected: &[(8..=15, ALL)],
        fixed: "16",
        level: Level::Info,
        holds: holds::metaspace_not_returned,
        workaround: "fewer small class loaders",
    },
    Fix {
        bug: "JDK-8210708",
        what: "G1 keeps two mark bitmaps where one is enough: 1.5 % of the heap",
        affected: &[(8..=19, ALL)],
        fixed: "20",
        level: Level::Info,
        holds: holds::two_bitmaps,
        workaround: "nothing",
    },
    Fix {
        bug: "JEP 439",
        what: "ZGC maps its heap three times, and RSS counts each page as often as it is mapped",
        affected: &[(11..=23, ALL)],
        fixed: "21 with -XX:+ZGenerational, 23 by default",
        level: Level::Info,
        holds: holds::heap_counted_thrice,
        workaround: "judge the JVM by `marusa map PID` or by its cgroup, not by RSS",
    },
    Fix {
        bug: "JDK-8313678",
        what: "the symbol table leaks symbols of classes that were unloaded",
        affected: &[(17..=17, 9), (18..=20, ALL), (21..=21, 1)],
        fixed: "17.0.9, 21.0.1, 22",
        level: Level::Warn,
        holds: holds::many_symbols,
        workaround: "a restart now and then",
    },
    Fix {
        bug: "JDK-8318016",
        what: "one compilation may take any amount of memory: nothing limits the compilers' arenas",
        affected: &[(8..=8, ALL), (11..=11, ALL), (17..=21, ALL)],
        fixed: "22 (-XX:CompileCommand=MemLimit,*.*,512m)",
        level: Level::Warn,
        holds: holds::large_compilation,
        workaround: "-XX:CompileCommand=exclude for the method that is being compiled",
    },
    Fix {
        bug: "JDK-8315923",
        what: "touching the heap at the start breaks it into small pages though huge ones are asked for",
        affected: &[(21..=21, 5)],
        fixed: "21.0.5 and later feature releases",
        level: Level::Info,
        holds: holds::pretouched_small,
        workaround: "marusa pages collapse PID",
    },
];

impl Fix {
    pub fn url(&self) -> String {
        match self.bug.strip_prefix("JEP ") {
            Some(number) => format!("https://openjdk.org/jeps/{number}"),
            None => format!("https://bugs.openjdk.org/browse/{}", self.bug),
        }
    }
    pub fn affects(&self, major: u32, update: u32) -> bool {
        self.affected.iter().any(|(lines, first_fixed)| lines.contains(&major) && update < *first_fixed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_update_below_the_first_fixed_one_is_affected() {
        let fix = |bug: &str| FIXES.iter().find(|fix| fix.bug == bug).expect("listed");
        let stacks = fix("JDK-8312182");
        assert!(
            stacks.affects(17, 9)
                && !stacks.affects(17, 10)
                && stacks.affects(11, 99)
                && !stacks.affects(22, 0)
        );
        assert!(fix("JDK-8230305").affects(8, 362) && !fix("JDK-8230305").affects(8, 372));
        assert!(fix("JDK-8322420").affects(21, 8) && !fix("JDK-8322420").affects(21, 9));
    }

    #[test]
    fn each_bug_is_named_once_in_the_form_of_the_bug_system() {
        for fix in FIXES {
            let digits = fix.bug.strip_prefix("JDK-").map(|number| (number, 7));
            let digits = digits.or_else(|| Some((fix.bug.strip_prefix("JEP ")?, 3)));
            assert!(
                digits
                    .is_some_and(|(number, length)| number.len() == length && number.parse::<u32>().is_ok())
            );
            assert!(fix.url().starts_with("https://") && !fix.url().contains(' '));
            assert_eq!(FIXES.iter().filter(|other| other.bug == fix.bug).count(), 1, "{}", fix.bug);
            assert!(
                fix.affected.windows(2).all(|pair| pair[0].0.end() < pair[1].0.start())
                    && !fix.workaround.is_empty()
            );
        }
    }
}
