//! Asks a JDK that is installed here for its flags: `java OPTIONS -XX:+PrintFlagsFinal -version`. A JVM of our own, which ends by
//! itself; the target is not touched.
//!
//! Options of the environment are left out: they are our shell's, not those of the service that the plan is for.

use super::{launched, signals};
use crate::base::limits::{FLAGS_TEXT_BYTES_MAX, FLAGS_TEXT_SECONDS_MAX, RELEASE_BYTES_MAX};
use crate::os::foreign;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

#[derive(Debug, thiserror::Error)]
pub enum AskError {
    #[error("{0} is not a JDK: it has no bin/java")]
    NoJdk(PathBuf),
    #[error("{java} does not run: {error}")]
    NotRun { java: PathBuf, error: io::Error },
    #[error("{java} did not answer within {FLAGS_TEXT_SECONDS_MAX} seconds")]
    TooSlow { java: PathBuf },
    #[error("{java} was ended before it answered: a signal to end arrived")]
    Interrupted { java: PathBuf },
    /// In the JVM's own words.
    #[error("{java} refuses these options: {said}")]
    Refused { java: PathBuf, said: String },
}

/// A JDK's answer.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The flags, as printed.
    pub flags: String,
    /// What `-version` prints.
    pub version: String,
}

/// The home of a JDK, by its own path or by that of its `java`.
pub fn home(path: &Path) -> Result<PathBuf, AskError> {
    let of_java = path.file_name().is_some_and(|name| name == "java");
    let home = if of_java { path.ancestors().nth(2).unwrap_or(path) } else { path };
    match home.join("bin/java").is_file() {
        true => Ok(std::fs::canonicalize(home).unwrap_or_else(|_| home.to_path_buf())),
        false => Err(AskError::NoJdk(path.to_path_buf())),
    }
}

/// The file `release` of a JDK; `None`: it has none.
pub fn release(home: &Path) -> Option<String> {
    let file = foreign::open(&home.join("release")).ok()?;
    Some(String::from_utf8_lossy(&foreign::start(file, RELEASE_BYTES_MAX).ok()?).into_owned())
}

/// Runs it. A JVM that hangs is ended with all that it started, and so is one that runs when a signal tells us to end.
pub fn flags(home: &Path, options: &[String]) -> Result<Answer, AskError> {
    let java = home.join("bin/java");
    let mut command = launched::java(&java);
    // A heap that does not fit can end it with a report, which would lie in our user's directory. His own option comes later and
    // wins.
    command.arg("-XX:ErrorFile=/dev/null").args(options).args(["-XX:+PrintFlagsFinal", "-version"]);
    let limit = Duration::from_secs(FLAGS_TEXT_SECONDS_MAX);
    match launched::answer(command.stderr(Stdio::piped()), limit, FLAGS_TEXT_BYTES_MAX as u64) {
        Ok(Some((status, flags, said))) if status.success() && !flags.is_empty() => {
            Ok(Answer { flags, version: said })
        }
        Ok(Some((_, flags, said))) => Err(AskError::Refused { java, said: first_words(&said, &flags) }),
        Ok(None) if signals::pending() => Err(AskError::Interrupted { java }),
        Ok(None) => Err(AskError::TooSlow { java }),
        Err(error) => Err(AskError::NotRun { java, error }),
    }
}

/// The lines in which a JVM says why, without what it always says after them.
fn first_words(said: &str, flags: &str) -> String {
    const ALWAYS: [&str; 3] =
        ["Error: Could not create", "Error: A fatal exception", "Error occurred during initialization of VM"];
    let lines = said.lines().chain(flags.lines()).map(str::trim);
    let lines = lines.filter(|line| !line.is_empty() && !ALWAYS.iter().any(|start| line.starts_with(start)));
    let first: Vec<&str> = lines.take(3).collect();
    if first.is_empty() { "it says nothing".to_string() } else { first.join("; ") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn fake(name: &str, script: &str) -> PathBuf {
        let home = std::env::temp_dir().join(format!("marusa-ask-{name}-{}", std::process::id()));
        std::fs::create_dir_all(home.join("bin")).expect("a directory");
        std::fs::write(home.join("bin/java"), format!("#!/bin/sh\n{script}\n")).expect("a script");
        std::fs::set_permissions(home.join("bin/java"), PermissionsExt::from_mode(0o755)).expect("rights");
        home
    }

    #[test]
    fn what_a_jdk_says_and_what_it_refuses() {
        let good = fake("good", "echo \"$@\"; echo 'openjdk version' >&2");
        let answer = flags(&good, &["-Xmx1g".to_string()]).expect("an answer");
        assert_eq!(answer.flags, "-XX:ErrorFile=/dev/null -Xmx1g -XX:+PrintFlagsFinal -version\n");
        assert_eq!(answer.version, "openjdk version\n");
        let bad = fake(
            "bad",
            "echo 'Error occurred during initialization of VM\nOption not supported' >&2; exit 1",
        );
        let error = flags(&bad, &[]).expect_err("refused").to_string();
        assert!(error.ends_with("refuses these options: Option not supported"), "{error}");
        for home in [good, bad] {
            std::fs::remove_dir_all(home).expect("removed");
        }
    }

    #[test]
    fn the_home_of_a_jdk_and_of_none() {
        let home_of = fake("home", "");
        let found = home(&home_of.join("bin/java")).expect("by its java");
        assert_eq!(found, std::fs::canonicalize(&home_of).expect("there"));
        assert!(matches!(home(Path::new("/etc")), Err(AskError::NoJdk(_))));
        std::fs::remove_dir_all(home_of).expect("removed");
    }

    #[test]
    fn a_signal_to_end_ends_a_jvm_that_is_asked() {
        let home_of = fake("signal", "exec sleep 600");
        let asked = crate::act::signals::with_one_pending(|| flags(&home_of, &[]));
        assert!(matches!(asked, Err(AskError::Interrupted { .. })), "{asked:?}");
        std::fs::remove_dir_all(home_of).expect("removed");
    }
}
