//! Who a process is: its command, user, container, start. All of it may be read of any process, save the executable.

use super::process::{Process, gap};
use super::rights::{self, Capability};
use super::status::Status;
use super::target::ProcessFacts;
use super::{cgroup, hierarchy, host, users};
use crate::base::{Gap, Why, rfc3339};

/// The facts, and what could not be read of them.
pub fn process_facts(process: &Process, status: &Status) -> (ProcessFacts, Vec<Gap>) {
    let mut gaps = Vec::new();
    let arguments = process.arguments().unwrap_or_else(|error| {
        gaps.push(gap("/proc/PID/cmdline", &error));
        Vec::new()
    });
    let executable = process.link("exe").map(|path| path.to_string_lossy().into_owned());
    let executable = executable.unwrap_or_else(|error| {
        gaps.push(
            gap("/proc/PID/exe", &error)
                .hint(rights::hint(&[Capability::SYS_PTRACE], "run as root or as the JVM's user")),
        );
        String::new()
    });
    let container = process.text("cgroup").map(|text| cgroup::parse(&hierarchy::absolute(&text)).label());
    let container = container.unwrap_or_else(|error| {
        gaps.push(gap("/proc/PID/cgroup", &error));
        None
    });
    let started = host::started(process.start_ticks).map(rfc3339);
    if started.is_none() {
        gaps.push(Gap::new("start time", Why::NotInThisKernel).hint("/proc/stat has no boot time"));
    }
    if status.uid.is_none() {
        gaps.push(Gap::new("user", Why::NotInThisKernel));
    }
    let mut facts = ProcessFacts {
        pid: process.pid,
        namespace_pid: status.namespace_pids.last().copied().unwrap_or(process.pid),
        user: status.uid.map(users::name).unwrap_or_default(),
        uid: status.uid.unwrap_or_default(),
        container,
        started,
        start_ticks: process.start_ticks,
        executable,
        ..ProcessFacts::default()
    };
    facts.set_arguments(arguments);
    (facts, gaps)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_very_process() {
        let process = Process::open(std::process::id() as i32).expect("myself");
        let (facts, gaps) = process_facts(&process, &process.status().expect("status"));
        assert_eq!(gaps, []);
        assert!(facts.namespace_pid > 0 && !facts.user.is_empty());
        assert!(facts.executable.contains("marusa") && facts.command.contains("marusa"));
        assert!(facts.started.is_some_and(|started| started.ends_with('Z')));
    }
}
