//! A fault: how it is made, and what doctor must say of it. Whatever is made is gone when the test ends, however it ends.

use super::busy;
use super::group::Group;
use super::swap::swap_out;
use crate::common::host::Host;
use crate::common::*;
use serde_json::Value;
use std::any::Any;
use std::collections::BTreeSet;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

/// How often doctor is asked of a fault that comes and goes.
const LOOKS_MAX: usize = 20;
/// 0.1 % of a minute: a tenth of what doctor reports.
const WAITED_MS: f64 = 60.0;

pub struct Fault {
    pub name: &'static str,
    /// Ids, each with its level, or the levels that it may have ("warn or critical", "warn or none") where how bad it is depends
    /// on the machine.
    /// The worst of them is that at which nothing else may be found.
    pub expects: &'static [(&'static str, &'static str)],
    /// `None`: it cannot be made on this machine, and the reason was printed.
    pub make: fn(&mut Host) -> Option<Made>,
}

/// Dropped in this order: the JVM, what else there is to be ended or removed, as it was given; then the host's settings.
pub struct Made {
    pub jvm: Option<Jvm>,
    rest: Vec<Box<dyn Any>>,
    /// How long the counters are watched.
    pub watch: &'static str,
    /// What the kernel counts of a fault that comes and goes, and how much of it in a second is well above what doctor names.
    counted: Option<(Counter, f64)>,
}

/// Since the host was started.
pub type Counter = fn() -> f64;

impl Made {
    pub fn jvm(jvm: Jvm) -> Made {
        Made { jvm: Some(jvm), ..Made::host() }
    }
    /// A fault of the host alone.
    pub fn host() -> Made {
        Made { jvm: None, rest: Vec::new(), watch: "200ms", counted: None }
    }
    pub fn within(self, group: Group) -> Made {
        self.with(group)
    }
    /// It is dropped with the fault.
    pub fn with(mut self, thing: impl Any) -> Made {
        self.rest.push(Box::new(thing));
        self
    }
    /// All is read again and again, and swapped out again and again until the JVM ends.
    pub fn swapped_again(self) -> Made {
        let pid = self.jvm.as_ref().map_or(0, |jvm| jvm.pid);
        std::thread::spawn(move || while swap_out(pid, u64::MAX) {});
        Made { watch: "1500ms", ..self }
    }
    pub fn watched(self, watch: &'static str) -> Made {
        Made { watch, ..self }
    }
    /// It is there while `counter` grows by `per_second`, and only then doctor must find it.
    pub fn while_grows(self, counter: Counter, per_second: f64) -> Made {
        Made { counted: Some((counter, per_second)), ..self }
    }
}

impl Made {
    /// `None`: it was not there while doctor looked, however often.
    fn found(&self) -> Option<BTreeSet<Found>> {
        let pid = self.jvm.as_ref().map_or("--host".to_string(), |jvm| jvm.pid.to_string());
        let look = || Examined::run(&[&pid, "--watch", self.watch]).found();
        let Some((counter, per_second)) = self.counted else { return Some(look()) };
        (0..LOOKS_MAX).find_map(|_| {
            let before = counter();
            std::thread::sleep(Duration::from_millis(500));
            if counter() - before < per_second / 2.0 {
                return None;
            }
            let (before, started) = (counter(), Instant::now());
            let found = look();
            (counter() - before >= per_second * started.elapsed().as_secs_f64()).then_some(found)
        })
    }
}

/// One finding, as short as it goes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Found {
    pub id: String,
    pub level: String,
    /// `None`: of the host.
    pub pid: Option<i32>,
}

/// What doctor found.
pub struct Examined(pub Value);

impl Examined {
    pub fn run(arguments: &[&str]) -> Examined {
        let mut command = Command::new(env!("CARGO_BIN_EXE_marusa"));
        command.args(["doctor", "--json"]).args(arguments);
        let output = command.output().expect("marusa runs");
        assert!(output.status.success(), "{}", text(&output.stderr));
        Examined(serde_json::from_slice(&output.stdout).expect("JSON"))
    }
    pub fn jvm(pid: i32, watch: &str) -> Examined {
        Examined::run(&[&pid.to_string(), "--watch", watch])
    }
    pub fn host(watch: &str) -> Examined {
        Examined::run(&["--host", "--watch", watch])
    }

    pub fn found(&self) -> BTreeSet<Found> {
        let word = |value: &Value| value.as_str().unwrap_or_default().to_string();
        let one = |finding: &Value| Found {
            id: word(&finding["id"]),
            level: word(&finding["level"]),
            pid: finding["subject"]["pid"].as_i64().map(|pid| pid as i32),
        };
        self.0["findings"].as_array().expect("findings").iter().map(one).collect()
    }
    pub fn of_jvm(&self, pid: i32) -> Vec<Found> {
        self.found().into_iter().filter(|found| found.pid == Some(pid)).collect()
    }
}

impl Fault {
    /// `Ok(false)`: not made.
    pub fn check(&self) -> Result<bool, String> {
        // Others that change settings of this host wait.
        let mut host = Host::lock();
        busy::wait_for_calm();
        self.check_on(&mut host)
    }

    /// Settings are as they were before when it returns.
    pub fn check_on(&self, host: &mut Host) -> Result<bool, String> {
        let waited = busy::waited_ms("memory");
        let before: BTreeSet<String> = Examined::host("200ms").found().into_iter().map(|it| it.id).collect();
        let changes = host.changes();
        let made = (self.make)(host);
        let found = made.as_ref().map(Made::found);
        drop(made);
        host.undo_to(changes);
        if busy::waited_ms("memory") > waited + WAITED_MS {
            busy::await_averages();
        }
        match found {
            None => Ok(false),
            Some(None) => {
                skip("it does not stay as it was made");
                Ok(false)
            }
            Some(Some(found)) => self.judge(&found, &before).map(|()| true),
        }
    }

    /// What the host is found to have before the fault is made is not the fault's.
    fn judge(&self, found: &BTreeSet<Found>, before: &BTreeSet<String>) -> Result<(), String> {
        let rank = |level: &str| ["info", "warn", "critical"].iter().position(|it| *it == level);
        let mut worst = None;
        for (id, levels) in self.expects {
            let is_it = |it: &&Found| it.id == *id && levels.split(" or ").any(|level| it.level == level);
            let Some(it) = found.iter().find(is_it) else {
                if levels.ends_with(" or none") && found.iter().all(|it| it.id != *id) {
                    continue;
                }
                return Err(format!("{id} {levels} is not found, but {found:?}"));
            };
            worst = worst.max(rank(&it.level));
        }
        let is_expected = |it: &Found| self.expects.iter().any(|(id, _)| it.id == *id);
        let is_new = |it: &Found| it.pid.is_some() || !before.contains(&it.id);
        let others: Vec<&Found> =
            found.iter().filter(|it| rank(&it.level) == worst && !is_expected(it) && is_new(it)).collect();
        match others.as_slice() {
            [] => Ok(()),
            others => Err(format!("found besides: {others:?}")),
        }
    }
}

/// A JVM to be started.
pub struct Program {
    jdk: &'static str,
    options: Vec<&'static str>,
    program: Vec<String>,
    variables: Vec<(&'static str, String)>,
    thp_disabled: bool,
    merged: bool,
    files: Option<u64>,
    group: Option<PathBuf>,
    java: Option<PathBuf>,
}

impl Program {
    pub fn new(jdk: &'static str, options: &[&'static str], program: &[&str]) -> Program {
        let program = program.iter().map(|word| word.to_string()).collect();
        // How busy the disk is under /tmp is not part of a fault.
        let options = [&["-XX:+PerfDisableSharedMem"], options].concat();
        let (variables, thp_disabled, merged) = (Vec::new(), false, false);
        let (files, group, java) = (None, None, None);
        Program { jdk, options, program, variables, thp_disabled, merged, files, group, java }
    }
    pub fn variable(mut self, name: &'static str, value: &str) -> Program {
        self.variables.push((name, value.to_string()));
        self
    }
    /// prctl(PR_SET_THP_DISABLE) before it starts, as some shells of containers do.
    pub fn without_thp(self) -> Program {
        Program { thp_disabled: true, ..self }
    }
    /// prctl(PR_SET_MEMORY_MERGE), as MemoryKSM= of a service does.
    pub fn merged(self) -> Program {
        Program { merged: true, ..self }
    }
    /// How many files it may have open.
    pub fn files(self, most: u64) -> Program {
        Program { files: Some(most), ..self }
    }
    pub fn within(self, group: &Group) -> Program {
        Program { group: Some(group.inner().join("cgroup.procs")), ..self }
    }
    /// Another launcher than that of the JDK.
    pub fn from(self, java: PathBuf) -> Program {
        Program { java: Some(java), ..self }
    }

    pub fn start(self) -> Option<Jvm> {
        let java = self.java.map_or_else(|| java(self.jdk), Some)?;
        let mut command = Command::new(java);
        command.args(&self.options).arg("-cp").arg(root().join("java/build-out")).args(&self.program);
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        let (thp_disabled, merged, files) = (self.thp_disabled, self.merged, self.files);
        let group =
            self.group.map(|path| std::ffi::CString::new(path.to_string_lossy().as_bytes()).expect("no NUL"));
        let before = move || {
            if thp_disabled {
                // SAFETY: prctl with these arguments only sets a flag of the new process.
                unsafe { libc::prctl(libc::PR_SET_THP_DISABLE, 1, 0, 0, 0) };
            }
            if merged {
                // SAFETY: as above. The number is PR_SET_MEMORY_MERGE.
                unsafe { libc::prctl(67, 1, 0, 0, 0) };
            }
            if let Some(most) = files {
                let limit = libc::rlimit { rlim_cur: most, rlim_max: most };
                // SAFETY: the limit is read only.
                unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &limit) };
            }
            if let Some(path) = &group {
                // SAFETY: the path is a NUL-terminated string; "0" is whoever writes it.
                unsafe {
                    let file = libc::open(path.as_ptr(), libc::O_WRONLY);
                    libc::write(file, c"0".as_ptr().cast(), 1);
                    libc::close(file);
                }
            }
            Ok(())
        };
        // SAFETY: the closure allocates nothing and makes system calls only.
        unsafe { command.pre_exec(before) };
        Some(Jvm::of(command))
    }
}

/// Settings of the host, or why not.
pub fn set(host: &mut Host, settings: &[(&str, &str)]) -> Option<()> {
    if !is_root() {
        skip("only root may change the host's settings");
        return None;
    }
    for (path, value) in settings {
        if let Err(why) = host.set(path.to_string(), value) {
            skip(&why);
            return None;
        }
    }
    Some(())
}

/// A library of ours that a JVM loads before it starts; `None`: no compiler.
pub fn library(source: &str) -> Option<String> {
    let object =
        native::compiled(source, &format!("{source}.so"), &["-shared", "-fPIC", "-Wl,-z,lazy"], &[])?;
    Some(object.to_string_lossy().into_owned())
}
