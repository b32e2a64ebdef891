//! The arms of a comparison: what the user wrote after `--arm`, and the command that each arm runs.
//!
//! An arm is NAME=WORDS, in the words of a shell: leading words of the form VARIABLE=value, in capital letters, are set in the
//! environment, all others are options. They go
//!
//! 1. where `{}` stands in the command, if it stands there;
//! 2. else, where the command is `java`, right before the program (`-jar`, `-m`, the main class): the last of a JVM's options
//!    counts, so an arm's options win over the ones that all arms share. Before an `@file`, which may name the program;
//! 3. else into JAVA_TOOL_OPTIONS, behind what the user has there: every JVM from 8 on reads it, whatever starts it (a script,
//!    a build tool); JDK_JAVA_OPTIONS is read by `java` of 9 and later only. Options that the script itself gives come after it and
//!    win (src/hotspot/share/runtime/arguments.cpp, `Arguments::parse`: JAVA_TOOL_OPTIONS, command line, _JAVA_OPTIONS).

use crate::base::{Refused, redact, refuse};
use crate::jvm::command_line;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The variable that every JVM reads.
pub const TOOL_OPTIONS: &str = "JAVA_TOOL_OPTIONS";
const PLACE: &str = "{}";
/// More arms than that no correction survives.
pub const ARMS_MAX: usize = 16;

/// One arm, as the user wrote it.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct Arm {
    pub name: String,
    /// VARIABLE and value.
    pub environment: Vec<(String, String)>,
    pub options: Vec<String>,
}

/// Where an arm's options went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Placed {
    Nowhere,
    InPlace,
    BeforeProgram,
    ToolOptions,
}

/// What an arm runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    pub command: Vec<String>,
    pub environment: Vec<(String, String)>,
    pub placed: Placed,
    /// All options that the JVM gets as far as they are known, in the order in which they count; `None`: it is not `java`
    /// that is started.
    pub jvm_options: Option<Vec<String>>,
}

impl Arm {
    /// "thp=-XX:+UseTransparentHugePages -Xmx2g", "base=".
    pub fn parse(text: &str) -> Result<Arm, Refused> {
        let (name, rest) = text.split_once('=').ok_or_else(|| {
            format!("'{text}' is not an arm: NAME='OPTIONS', and NAME='' for one without options of its own")
        })?;
        let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_.+".contains(letter);
        if name.is_empty() || name.len() > 24 || !name.chars().all(is_plain) {
            refuse!("'{name}' is not a name of an arm: up to 24 of letters, digits, - _ . +");
        }
        let words = words(rest)?;
        let variable = |word: &String| {
            let (name, value) = word.split_once('=')?;
            is_variable(name).then(|| (name.to_string(), value.to_string()))
        };
        let environment: Vec<(String, String)> = words.iter().map_while(variable).collect();
        let options = words[environment.len()..].to_vec();
        Ok(Arm { name: name.to_string(), environment, options })
    }

    /// What this arm runs. `tool_options`: what the user has in JAVA_TOOL_OPTIONS; `more`: options of ours for the JVM of every
    /// arm, which have no place where the arm's own go: those may be the program's.
    pub fn launch(&self, command: &[String], tool_options: &str, more: &[String]) -> Launch {
        let has_place = command.iter().any(|word| word.contains(PLACE));
        let mut options = more.to_vec();
        let mut whole = command.to_vec();
        match has_place {
            true => whole = in_place(command, &self.options),
            false => options.extend(self.options.iter().cloned()),
        }
        let placed = |otherwise: Placed| match (has_place, options.is_empty()) {
            (true, _) => Placed::InPlace,
            (false, true) => Placed::Nowhere,
            (false, false) => otherwise,
        };
        let mut environment = self.environment.clone();
        if command_line::is_launcher(&whole) {
            let at = command_line::program_at(&whole).unwrap_or(1).min(whole.len());
            whole.splice(at..at, options.iter().cloned());
            let (placed, jvm_options) = (placed(Placed::BeforeProgram), own_options(&whole));
            return Launch { command: whole, environment, placed, jvm_options };
        }
        if !options.is_empty() {
            into_tool_options(&mut environment, tool_options, &options);
        }
        Launch { command: whole, environment, placed: placed(Placed::ToolOptions), jvm_options: None }
    }

    /// As it may be shown.
    pub fn shown(&self) -> Arm {
        let value = |(name, value): &(String, String)| (name.clone(), redact::variable(name, value));
        Arm {
            name: self.name.clone(),
            environment: self.environment.iter().map(value).collect(),
            options: redact::options(&self.options),
        }
    }

    /// As a person reads it.
    pub fn text(&self) -> String {
        let set = self.environment.iter().map(|(name, value)| format!("{name}={value}"));
        let all: Vec<String> = set.chain(self.options.iter().cloned()).map(|word| quoted(&word)).collect();
        if all.is_empty() { "(no options of its own)".to_string() } else { all.join(" ") }
    }
}

/// Names that are two of the same, too few, too many: what can be checked before anything runs.
pub fn check(arms: &[Arm]) -> Result<(), Refused> {
    if arms.len() < 2 {
        refuse!("a comparison needs two arms or more: --arm base='' --arm other='OPTIONS'");
    }
    if arms.len() > ARMS_MAX {
        refuse!("{} arms are more than {ARMS_MAX}", arms.len());
    }
    let twice = arms.iter().enumerate().find(|(at, arm)| arms[..*at].iter().any(|one| one.name == arm.name));
    match twice {
        Some((_, arm)) => refuse!("two arms are called '{}'", arm.name),
        None => Ok(()),
    }
}

fn is_variable(name: &str) -> bool {
    let mut letters = name.chars();
    letters.next().is_some_and(|letter| letter.is_ascii_uppercase() || letter == '_')
        && letters.all(|letter| letter.is_ascii_uppercase() || letter.is_ascii_digit() || letter == '_')
}

/// Behind the ones that the arm sets there, or the user.
fn into_tool_options(environment: &mut Vec<(String, String)>, given: &str, options: &[String]) {
    let before = match environment.iter().position(|(name, _)| name == TOOL_OPTIONS) {
        Some(index) => environment.remove(index).1,
        None => given.to_string(),
    };
    let ours: Vec<String> = options.iter().map(|option| quoted(option)).collect();
    let all = format!("{before} {}", ours.join(" "));
    environment.push((TOOL_OPTIONS.to_string(), all.trim().to_string()));
}

/// A word that is the place becomes all options; within a word it becomes their text.
fn in_place(command: &[String], options: &[String]) -> Vec<String> {
    let text = options.join(" ");
    let put = |word: &String| match word.as_str() {
        PLACE => options.to_vec(),
        _ => vec![word.replace(PLACE, &text)],
    };
    command.iter().flat_map(put).collect()
}

/// Between `java` and its program.
fn own_options(command: &[String]) -> Option<Vec<String>> {
    if !command_line::is_launcher(command) {
        return None;
    }
    let end = command_line::program_at(command).unwrap_or(command.len());
    Some(command.get(1..end).unwrap_or_default().to_vec())
}

/// Words as a shell parts them; nothing is expanded.
pub fn words(text: &str) -> Result<Vec<String>, Refused> {
    shlex::split(text)
        .ok_or_else(|| Refused(format!("a quotation mark is not closed, or a backslash is last, in: {text}")))
}

/// With marks where it has spaces. A JVM takes marks in JAVA_TOOL_OPTIONS, and no backslashes.
pub fn quoted(word: &str) -> String {
    match word {
        word if !word.is_empty()
            && !word.contains(|letter: char| letter.is_whitespace() || "'\"".contains(letter)) =>
        {
            word.to_string()
        }
        word if word.contains('\'') => format!("\"{word}\""),
        word => format!("'{word}'"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arm(text: &str) -> Arm {
        Arm::parse(text).expect("an arm")
    }
    fn command(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_string).collect()
    }

    #[test]
    fn arms_as_people_write_them() {
        assert_eq!(arm("base="), Arm { name: "base".into(), environment: vec![], options: vec![] });
        let tuned = arm("tuned=MALLOC_ARENA_MAX=2 X=a=b '-Dname=a b' -Xmx1g");
        assert_eq!(
            tuned.environment,
            [("MALLOC_ARENA_MAX".to_string(), "2".to_string()), ("X".into(), "a=b".into())]
        );
        assert_eq!(tuned.options, ["-Dname=a b", "-Xmx1g"]);
        assert_eq!(tuned.text(), "MALLOC_ARENA_MAX=2 X=a=b '-Dname=a b' -Xmx1g");
        assert_eq!(arm("d=-Da=b").environment, []);
        assert_eq!(arm("s=spin=5").options, ["spin=5"]);
        for bad in ["base", "=x", "a b=", "a='", "a=\\", "a/b="] {
            assert!(Arm::parse(bad).is_err(), "{bad}");
        }
        assert!(check(&[arm("a=")]).is_err() && check(&[arm("a="), arm("a=-x")]).is_err());
        assert!(check(&[arm("a="), arm("b=")]).is_ok());
    }

    #[test]
    fn options_go_before_the_program_so_that_they_win() {
        let thp = arm("thp=-XX:+UseTransparentHugePages -Xmx2g");
        let launch = thp.launch(&command("java -Xmx1g -cp a:b Main -Xmx9g"), "", &[]);
        assert_eq!(
            launch.command,
            command("java -Xmx1g -cp a:b -XX:+UseTransparentHugePages -Xmx2g Main -Xmx9g")
        );
        assert_eq!(launch.placed, Placed::BeforeProgram);
        let options = launch.jvm_options.expect("a JVM's");
        assert_eq!(options, command("-Xmx1g -cp a:b -XX:+UseTransparentHugePages -Xmx2g"));
        let jar = thp.launch(&command("/jdk/bin/java -ea -jar app.jar x"), "", &["-Xlog:gc".to_string()]);
        assert_eq!(jar.command[2], "-Xlog:gc");
        assert_eq!(jar.command[5..], command("-jar app.jar x"));
        let file = thp.launch(&command("java -ea @all"), "", &[]);
        assert_eq!(file.command, command("java -ea -XX:+UseTransparentHugePages -Xmx2g @all"));
        assert_eq!(arm("b=").launch(&command("java Main"), "", &[]).placed, Placed::Nowhere);
    }

    #[test]
    fn options_go_where_the_place_is_or_into_the_environment() {
        let tuned = arm("x=A=1 -Xmx2g '-Dn=a b'");
        let launch = tuned.launch(&command("run.sh --jvm={} {} go"), "", &[]);
        assert_eq!(launch.command, ["run.sh", "--jvm=-Xmx2g -Dn=a b", "-Xmx2g", "-Dn=a b", "go"]);
        assert_eq!((launch.placed, launch.jvm_options), (Placed::InPlace, None));
        let launch = tuned.launch(&command("run.sh go"), "-ea", &[]);
        assert_eq!((launch.command, launch.placed), (command("run.sh go"), Placed::ToolOptions));
        assert_eq!(
            launch.environment,
            [("A".to_string(), "1".to_string()), (TOOL_OPTIONS.into(), "-ea -Xmx2g '-Dn=a b'".into())]
        );
        assert_eq!(arm("b=").launch(&command("run.sh"), "-ea", &[]).environment, []);
        // Options of ours are the JVM's, and what the arm has may be its program's.
        let ours = ["-Xlog:gc".to_string()];
        let launch = arm("s=spin=5").launch(&command("java -ea Main {} x"), "", &ours);
        assert_eq!(launch.command, command("java -ea -Xlog:gc Main spin=5 x"));
        assert_eq!(launch.placed, Placed::InPlace);
        let launch = arm("s=spin=5").launch(&command("run.sh {}"), "-ea", &ours);
        assert_eq!(launch.command, command("run.sh spin=5"));
        assert_eq!(launch.environment, [(TOOL_OPTIONS.to_string(), "-ea -Xlog:gc".to_string())]);
        // Another JDK in each arm.
        let other = arm("j21=/jdk21/bin/java -Xmx1g").launch(&command("{} -jar a.jar"), "", &[]);
        assert_eq!(other.jvm_options, Some(command("-Xmx1g")));
    }
}
