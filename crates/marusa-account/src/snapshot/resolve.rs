//! Which process the user means: a pid, or a part of the main class, of the jar's path or of the container's name, as
//! `jcmd` takes it. Two matches are an error that lists them; guessing would account for the wrong JVM.

use super::discover::{self, Jvm};
use crate::base::printable::escaped;
use crate::base::{Gap, Why};
use crate::os::cgroup;
use crate::os::process::{OpenError, Process};
use std::fmt;

/// Why a text names no JVM.
#[derive(Debug, thiserror::Error)]
pub enum ResolveError {
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error("pid {0} is not a JVM: it maps neither libjvm.so nor libj9vm")]
    NoJvm(i32),
    #[error("no JVM is named by \"{}\"{}", escaped(text), Listing("; these run:", running))]
    None { text: String, running: Vec<Choice> },
    #[error(
        "\"{}\" names {} JVMs; give a pid or a longer part:{}",
        escaped(text),
        matches.len(),
        Listing("", matches)
    )]
    Several { text: String, matches: Vec<Choice> },
    #[error("the JVMs of this host cannot be listed: {0}")]
    Unlisted(Gap),
}

/// One line of an error: a JVM that could have been meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    pub pid: i32,
    pub main: String,
    /// "Kafka", where the main class is that of a known server.
    pub server: Option<String>,
    pub container: Option<String>,
}

struct Listing<'a>(&'static str, &'a [Choice]);

impl fmt::Display for Listing<'_> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        if self.1.is_empty() {
            return f.write_str(if self.0.is_empty() { "" } else { "; none runs that may be seen" });
        }
        f.write_str(self.0)?;
        for choice in self.1 {
            // A name of several lines would forge JVMs in this list.
            write!(f, "\n  {:>7}  {}", choice.pid, escaped(&choice.main))?;
            let others = [choice.server.as_deref(), choice.container.as_deref().map(cgroup::short)];
            let others: Vec<&str> = others.into_iter().flatten().collect();
            if !others.is_empty() {
                write!(f, "  ({})", escaped(&others.join(", ")))?;
            }
        }
        Ok(())
    }
}

/// The pid of the JVM that `text` names. A JVM whose maps may not be read passes: reading it says which right is missing.
pub fn resolve(text: &str) -> Result<i32, ResolveError> {
    if let Ok(pid) = text.parse::<i32>() {
        let process = Process::open(pid)?;
        return match discover::vm_of(&process) {
            Ok(None) => Err(ResolveError::NoJvm(pid)),
            Err(gap) if gap.why == Why::Gone => Err(OpenError::None(pid).into()),
            _ => Ok(pid),
        };
    }
    let running: Vec<Choice> =
        discover::list_names().map_err(ResolveError::Unlisted)?.jvms.iter().map(Choice::of).collect();
    choose(text, running)
}

fn choose(text: &str, running: Vec<Choice>) -> Result<i32, ResolveError> {
    let matches: Vec<Choice> = running.iter().filter(|choice| choice.is_named(text)).cloned().collect();
    match &matches[..] {
        [one] => Ok(one.pid),
        [] => Err(ResolveError::None { text: text.to_string(), running }),
        _ => Err(ResolveError::Several { text: text.to_string(), matches }),
    }
}

/// Whether a text is a part of the main class or the container, or, in any letter case, of the server's name.
pub fn is_named(text: &str, [main, server, container]: [Option<&str>; 3]) -> bool {
    let is_server = server.is_some_and(|server| server.to_lowercase().contains(&text.to_lowercase()));
    let is_part = [main, container].into_iter().flatten().any(|name| name.contains(text));
    !text.is_empty() && (is_part || is_server)
}

impl Choice {
    fn of(jvm: &Jvm) -> Choice {
        Choice {
            pid: jvm.process.pid,
            main: jvm.main.clone().unwrap_or_else(|_| "(main class unknown)".to_string()),
            server: jvm.server.clone(),
            container: jvm.container_name.clone().or_else(|| jvm.process.container.clone()),
        }
    }

    fn is_named(&self, text: &str) -> bool {
        let names = [Some(self.main.as_str()), self.server.as_deref(), self.container.as_deref()];
        is_named(text, names)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn running() -> Vec<Choice> {
        let choice = |pid, main: &str, container: Option<&str>| Choice {
            pid,
            main: main.to_string(),
            server: crate::jvm::server::name(main, &[]),
            container: container.map(str::to_string),
        };
        vec![
            choice(7, "com.example.Orders", Some("shop/orders")),
            choice(8, "/opt/app/orders.jar", None),
            choice(9, "org.apache.catalina.startup.Bootstrap", Some("shop/web")),
        ]
    }

    #[test]
    fn a_part_that_names_one() {
        assert_eq!(choose("catalina", running()).ok(), Some(9));
        assert_eq!((choose("tomcat", running()).ok(), choose("Tomcat", running()).ok()), (Some(9), Some(9)));
        assert_eq!(choose("shop/orders", running()).ok(), Some(7));
    }

    #[test]
    fn two_matches_and_none_are_errors_that_list() {
        let several = choose("orders", running()).expect_err("two").to_string();
        assert!(
            several.contains("names 2 JVMs") && several.contains("      8  /opt/app/orders.jar"),
            "{several}"
        );
        let none = choose("payments", running()).expect_err("none").to_string();
        assert!(none.contains("these run:") && none.contains("Bootstrap  (Tomcat, shop/web)"), "{none}");
        let empty = choose("", Vec::new()).expect_err("none").to_string();
        assert!(empty.ends_with("none runs that may be seen"), "{empty}");
    }

    #[test]
    fn a_name_of_several_lines_forges_no_choice() {
        let mut running = running();
        running[0].main = "Orders\n        1  safe\u{1b}[2J".to_string();
        let several = choose("rders", running).expect_err("two").to_string();
        assert_eq!(several.lines().count(), 3, "{several}");
        assert!(several.contains("Orders\\u000a        1  safe\\u001b[2J"), "{several}");
    }

    #[test]
    fn a_process_that_is_no_jvm() {
        let me = std::process::id() as i32;
        assert!(matches!(resolve(&me.to_string()), Err(ResolveError::NoJvm(pid)) if pid == me));
        assert!(matches!(resolve("0"), Err(ResolveError::Open(OpenError::None(0)))));
    }
}
