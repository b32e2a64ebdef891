//! Everything that can be known, and refused, before the first run: whether the program is there, whether its JVM takes
//! the options of each arm, which pages each arm asks for, and whether the host can give them.

use crate::act::ask_jdk::{self, AskError};
use crate::act::door::{self, Linux};
use crate::cmd::Failure;
use crate::cmd::pages::door::failure;
use crate::experiment::arm_pages::{self, ArmError, PageMode, Pool};
use crate::experiment::arms::{self, Arm, Placed, TOOL_OPTIONS};
use crate::pages::Subject;
use crate::pages::types::Step;
use std::path::{Path, PathBuf};

/// An arm that may run.
pub struct Ready {
    pub arm: Arm,
    /// As it would run without options of ours.
    pub command: Vec<String>,
    pub placed: Placed,
    /// The JVM that it starts; `None`: the command is not `java`.
    pub subject: Option<Subject>,
    pub mode: PageMode,
    /// What changes on the host for each of its runs, as of now.
    pub steps: Vec<Step>,
    /// The user lets this JVM write a log of its collections where JDK 8 has room for one only.
    pub has_own_gc_log: bool,
}

impl Ready {
    /// "17.0.15+6 of /usr/lib/jvm/...", for people and for what must not change.
    pub fn jvm(&self) -> String {
        let Some(subject) = &self.subject else { return String::new() };
        let version = subject.version.clone().unwrap_or_else(|| subject.feature.to_string());
        format!("{version} of {}", subject.java_home.as_deref().unwrap_or("?"))
    }

    /// As the host is now: a pool may have got smaller since.
    pub fn steps_now(&self, pool: Pool) -> Result<Vec<Step>, ArmError> {
        arm_pages::steps(self.subject.as_ref(), self.mode, pool)
    }
}

/// What the user has in the environment for every JVM.
pub fn tool_options() -> String {
    std::env::var(TOOL_OPTIONS).unwrap_or_default()
}

/// `size`: the size of pages that `--pages` names, for an arm that asks for large pages without saying which.
pub fn all(
    arms: &[Arm],
    command: &[String],
    size: Option<PageMode>,
    pool: Pool,
    state: &Path,
) -> anyhow::Result<Vec<Ready>> {
    arms::check(arms)?;
    arms.iter().map(|arm| one(arm, command, size, pool, state)).collect()
}

fn one(
    arm: &Arm,
    command: &[String],
    size: Option<PageMode>,
    pool: Pool,
    state: &Path,
) -> anyhow::Result<Ready> {
    let launch = arm.launch(command, &tool_options(), &[]);
    let name = &arm.name;
    let program = launch.command.first().cloned().unwrap_or_default();
    let found = program_at(&program).ok_or_else(|| missing(name, &program))?;
    let (subject, options) = match &launch.jvm_options {
        Some(options) => (Some(asked(name, &found, options)?), options.clone()),
        None => (None, arm.options.clone()),
    };
    // What is in the environment comes first, so it counts least.
    let mut all = arms::words(&tool_options()).unwrap_or_default();
    all.extend(options);
    let mode = match (PageMode::of_options(&all), size) {
        (PageMode::HugeTlb2M, Some(PageMode::HugeTlb1G)) => PageMode::HugeTlb1G,
        (mode, _) => mode,
    };
    let has_own_gc_log = all.iter().any(|option| option.starts_with("-Xloggc:"));
    let mut ready = Ready {
        arm: arm.clone(),
        command: launch.command,
        placed: launch.placed,
        subject,
        mode,
        steps: Vec::new(),
        has_own_gc_log,
    };
    ready.steps = ready.steps_now(pool).map_err(|error| not_had(name, error))?;
    let previews = door::preview(&Linux::default(), &ready.steps, &state.display().to_string());
    match previews.into_iter().find_map(|preview| preview.hindrance) {
        Some(why) => Err(failure(why).context(format!("arm '{name}'"))),
        None => Ok(ready),
    }
}

/// A name without a slash is looked for where a shell would look.
fn program_at(program: &str) -> Option<PathBuf> {
    let is_there = |path: &Path| path.is_file();
    if program.contains('/') {
        return Some(PathBuf::from(program)).filter(|path| is_there(path));
    }
    let directories = std::env::var_os("PATH")?;
    std::env::split_paths(&directories).map(|directory| directory.join(program)).find(|path| is_there(path))
}

fn missing(arm: &str, program: &str) -> anyhow::Error {
    let is_java = program.rsplit('/').next() == Some("java");
    let hint =
        if is_java { "; install a JDK (Debian: openjdk-21-jdk-headless; or adoptium.net)" } else { "" };
    let place = if program.contains('/') { "" } else { " in any directory of PATH" };
    Failure::usage(format!("arm '{arm}': there is no {program}{place}; name it with its path{hint}"))
}

/// Options that only decide what a JVM is like. Others would make it write files, open ports or load agents.
fn decides(option: &str) -> bool {
    const LEFT_OUT: [&str; 11] = [
        "-Xlog",
        "-Xrun",
        "-Xdebug",
        "-Xshare:dump",
        "-Xnoagent",
        "-XX:StartFlightRecording",
        "-XX:FlightRecorder",
        "-XX:On",
        "-XX:ArchiveClassesAtExit",
        "-XX:AOT",
        "-XX:+PrintFlags",
    ];
    option.starts_with("-X") && !LEFT_OUT.iter().any(|start| option.starts_with(start))
}

fn asked(arm: &str, java: &Path, options: &[String]) -> anyhow::Result<Subject> {
    let java = std::fs::canonicalize(java).unwrap_or_else(|_| java.to_path_buf());
    let options: Vec<String> = options.iter().filter(|option| decides(option)).cloned().collect();
    let home = ask_jdk::home(&java).map_err(|error| Failure::usage(format!("arm '{arm}': {error}")))?;
    arm_pages::subject(&home, &options).map_err(|error| not_had(arm, error))
}

fn not_had(arm: &str, error: ArmError) -> anyhow::Error {
    let message = format!("arm '{arm}': {error}");
    match error {
        ArmError::Door(error) => failure(error).context(format!("arm '{arm}'")),
        ArmError::Jdk(AskError::TooSlow { .. } | AskError::Interrupted { .. }) => Failure::target(message),
        ArmError::Jdk(_) => Failure::usage(message),
        ArmError::NoPlan(_) => Failure { status: 1, message }.into(),
        ArmError::Read(_) => Failure::target(message),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_that_do_something_are_not_tried() {
        for option in ["-Xmx1g", "-XX:+UseG1GC", "-Xss1m", "-Xint"] {
            assert!(decides(option), "{option}");
        }
        for option in
            ["-Xlog:gc:file=x", "-Xloggc:x", "-javaagent:x", "-Dx=y", "-cp", "-XX:OnOutOfMemoryError=x"]
        {
            assert!(!decides(option), "{option}");
        }
    }

    #[test]
    fn a_program_is_looked_for_as_a_shell_does() {
        assert!(program_at("sh").is_some() && program_at("/bin/sh").is_some());
        assert_eq!((program_at("no-such-program"), program_at("/no/such/java")), (None, None));
        assert!(missing("a", "java").to_string().contains("install a JDK"));
    }
}
