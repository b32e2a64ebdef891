//! Which JVM of a recording is meant: the one that the user names, or the one that the other side of a comparison is of. A pid is
//! another one after each start, so the same JVM of yesterday is found by its main class or jar, and its container.

use crate::base::printable::escaped;
use crate::cmd::Failure;
use crate::jvm::command_line;
use crate::record::{History, Recording};
use crate::show::units::counted;
use crate::snapshot::resolve;

const LISTED_MAX: usize = 30;

/// What a JVM is after a restart, too.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Who {
    pub main: Option<String>,
    pub container: Option<String>,
}

impl Who {
    pub fn of(history: &History) -> Who {
        Who { main: history.facts.main.clone(), container: history.facts.container.clone() }
    }

    /// By a command as it was shown.
    pub fn of_command(command: &str, container: Option<String>) -> Who {
        let words: Vec<String> = command.split(' ').map(str::to_string).collect();
        let main = command_line::is_launcher(&words).then(|| command_line::parse(&words).main).flatten();
        Who { main, container }
    }

    /// Candidates for the same JVM: of the same main class or jar, and of these the ones in the same container if there are any.
    fn alike<'a>(&self, histories: &[&'a History]) -> Vec<&'a History> {
        let is_same = |one: &Option<String>, other: &Option<String>| one.is_some() && one == other;
        let in_container = |history: &&&History| is_same(&self.container, &history.facts.container);
        let alike: Vec<&History> = match self.main {
            Some(_) => histories.iter().filter(|it| is_same(&self.main, &it.facts.main)).copied().collect(),
            None => histories.iter().filter(in_container).copied().collect(),
        };
        let near: Vec<&History> = alike.iter().filter(in_container).copied().collect();
        if near.is_empty() { alike } else { near }
    }
}

/// All JVMs of a recording, or the ones that match a pid or a part of a name.
pub fn named<'a>(recording: &'a Recording, jvm: Option<&str>) -> Vec<&'a History> {
    let is_named = |history: &&History| match jvm.map(|jvm| (jvm, jvm.parse::<i32>())) {
        None => true,
        Some((_, Ok(pid))) => history.facts.pid == pid,
        Some((name, Err(_))) => {
            let facts = &history.facts;
            resolve::is_named(name, [&facts.main, &facts.server, &facts.container].map(Option::as_deref))
        }
    };
    recording.jvms.iter().filter(is_named).collect()
}

/// The JVM that the user names, or the only one.
pub fn choose<'a>(recording: &'a Recording, jvm: Option<&str>, path: &str) -> anyhow::Result<&'a History> {
    let named = named(recording, jvm);
    match named[..] {
        [one] => Ok(one),
        [] if jvm.is_none() => Err(Failure::target(format!("{path}: the recording has no JVM"))),
        [] => Err(Failure::target(format!(
            "{path}: no JVM in the recording matches:{}",
            listed(&recording.jvms.iter().collect::<Vec<_>>())
        ))),
        _ => {
            let which = if jvm.is_some() { "a longer part" } else { "--jvm PID" };
            Err(Failure::usage(format!(
                "{path} has {}; give {which}:{}",
                counted(named.len(), "JVM"),
                listed(&named)
            )))
        }
    }
}

/// The one that the user names, or else the one that the other side is of.
pub fn like<'a>(
    recording: &'a Recording,
    jvm: Option<&str>,
    other: Option<&Who>,
    path: &str,
) -> anyhow::Result<&'a History> {
    let named = named(recording, jvm);
    if let [one] = named[..] {
        return Ok(one);
    }
    // A pid that is not there is that of the other side.
    let is_pid = jvm.is_some_and(|jvm| jvm.parse::<i32>().is_ok());
    let among = if named.is_empty() && is_pid { recording.jvms.iter().collect() } else { named };
    let alike = other.map(|other| other.alike(&among)).unwrap_or_default();
    match alike[..] {
        [one] => Ok(one),
        [] => choose(recording, jvm, path),
        _ => Err(Failure::usage(format!(
            "{path} has {} that may be the other side; give --jvm PID:{}",
            counted(alike.len(), "JVM"),
            listed(&alike)
        ))),
    }
}

fn listed(histories: &[&History]) -> String {
    let line = |history: &&History| {
        let container = history.facts.container.as_deref().map(crate::os::cgroup::short);
        let container = container.map_or(String::new(), |container| format!("  ({container})"));
        let first = history.moments.first().map_or(String::new(), |first| format!("  from {}", first.wall()));
        format!("\n  {}{}{first}", escaped(&history.title()), escaped(&container))
    };
    let more = histories.len().saturating_sub(LISTED_MAX);
    let more = if more > 0 { format!("\n  and {more} more") } else { String::new() };
    histories.iter().take(LISTED_MAX).map(line).chain([more]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::reader;
    use crate::record::writer::{JvmFacts, Session, Writer};

    fn recording(jvms: &[(i32, &str, Option<&str>)]) -> Recording {
        let mut writer = Writer::new(&Session::default());
        for (pid, main, container) in jvms {
            let (main, container) = (Some(main.to_string()), container.map(str::to_string));
            writer.jvm(JvmFacts { pid: *pid, main, container, ..JvmFacts::default() });
        }
        reader::read(&[&writer.take()]).expect("a recording")
    }

    fn pid(recording: &Recording, jvm: Option<&str>, other: Option<&Who>) -> Result<i32, String> {
        like(recording, jvm, other, "y.marusa").map(|it| it.facts.pid).map_err(|error| error.to_string())
    }

    fn who(main: &str, container: Option<&str>) -> Who {
        Who { main: Some(main.to_string()), container: container.map(str::to_string) }
    }

    #[test]
    fn the_same_jvm_is_found_though_its_pid_is_another() {
        let yesterday = recording(&[(1, "shop.Orders", None), (2, "shop.Web", None)]);
        assert_eq!(pid(&yesterday, None, Some(&who("shop.Web", None))), Ok(2));
        assert_eq!(pid(&yesterday, Some("4711"), Some(&who("shop.Orders", None))), Ok(1));
        assert_eq!(pid(&yesterday, Some("1"), Some(&who("shop.Web", None))), Ok(1), "the user's word counts");
        let none = pid(&yesterday, None, Some(&who("shop.Other", None))).expect_err("none is alike");
        assert!(none.contains("2 JVMs") && none.contains("pid 2  shop.Web"), "{none}");
        // A recording of one JVM can also be compared with another program.
        assert_eq!(pid(&recording(&[(1, "a.B", None)]), None, Some(&who("c.D", None))), Ok(1));
    }

    #[test]
    fn of_several_with_one_class_the_container_decides_and_else_they_are_listed() {
        let yesterday =
            recording(&[(1, "a.B", Some("shop/x")), (2, "a.B", Some("shop/y")), (3, "c.D", None)]);
        assert_eq!(pid(&yesterday, None, Some(&who("a.B", Some("shop/y")))), Ok(2));
        let several = pid(&yesterday, None, Some(&who("a.B", None))).expect_err("two");
        assert!(
            several.contains("2 JVMs that may be") && several.contains("pid 1  a.B  (shop/x)"),
            "{several}"
        );
        assert!(!several.contains("c.D"), "{several}");
        let by_container = Who { main: None, container: Some("shop/x".to_string()) };
        assert_eq!(pid(&yesterday, None, Some(&by_container)), Ok(1));
        assert!(pid(&yesterday, Some("shop/"), None).is_err_and(|error| error.contains("a longer part")));
        assert!(
            pid(&yesterday, Some("nothing"), Some(&who("a.B", None))).is_err_and(|it| it.contains("no JVM"))
        );
    }

    #[test]
    fn who_a_command_is_of() {
        assert_eq!(
            Who::of_command("/jdk/bin/java -Xmx1g com.example.Main …", None).main.as_deref(),
            Some("com.example.Main")
        );
        assert_eq!(Who::of_command("", None), Who::default());
    }
}
