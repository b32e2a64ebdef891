//! A finding, and the rule that makes it.

use super::facts::Facts;
use crate::base::Bytes;
use schemars::JsonSchema;
use serde::Serialize;

/// How bad it is. `Info`: good to know, nothing is lost now. `Warn`: memory or time is lost, or will be. `Critical`: the JVM
/// or the host is being harmed now, or will be killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, JsonSchema, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    Info,
    Warn,
    Critical,
}

impl Level {
    /// In recordings, from 1 on.
    pub fn number(self) -> u64 {
        match self {
            Level::Info => 1,
            Level::Warn => 2,
            Level::Critical => 3,
        }
    }

    pub fn of_number(number: u64) -> Option<Level> {
        [Level::Info, Level::Warn, Level::Critical].into_iter().find(|level| level.number() == number)
    }

    pub fn word(self) -> &'static str {
        match self {
            Level::Info => "info",
            Level::Warn => "warn",
            Level::Critical => "critical",
        }
    }
}

/// What the finding is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, JsonSchema, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Subject {
    Host,
    /// The pid.
    Jvm(i32),
}

/// One figure or state, and where it was read.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct Evidence {
    /// "malloc-then-freed, resident".
    pub what: String,
    /// For people: "412.3 MiB, 31 % of what is resident".
    #[serde(skip)]
    pub value: String,
    /// For programs, in the unit that `unit` names; `None`: a state, no figure.
    pub number: Option<f64>,
    /// "bytes", "pages", "percent", "ms", "count"; empty for a state.
    pub unit: &'static str,
    /// A file, an interface, or a part of the account: "/proc/PID/smaps", "account: malloc_freed".
    pub source: String,
}

impl Evidence {
    /// A state, in words.
    pub fn state(what: impl Into<String>, value: impl Into<String>, source: impl Into<String>) -> Evidence {
        Evidence { what: what.into(), value: value.into(), number: None, unit: "", source: source.into() }
    }
    /// A number of things.
    pub fn count(what: impl Into<String>, count: u64, source: impl Into<String>) -> Evidence {
        let value = count.to_string();
        Evidence {
            what: what.into(),
            value,
            number: Some(count as f64),
            unit: "count",
            source: source.into(),
        }
    }
    /// Bytes, formatted by the writer of each format.
    pub fn bytes(what: impl Into<String>, bytes: Bytes, source: impl Into<String>) -> Evidence {
        let value = String::new();
        Evidence {
            what: what.into(),
            value,
            number: Some(bytes as f64),
            unit: "bytes",
            source: source.into(),
        }
    }
    /// A percentage.
    pub fn percent(what: impl Into<String>, percent: f64, source: impl Into<String>) -> Evidence {
        let value = format!("{percent:.1} %");
        Evidence { what: what.into(), value, number: Some(percent), unit: "percent", source: source.into() }
    }
    /// Milliseconds.
    pub fn ms(what: impl Into<String>, ms: f64, source: impl Into<String>) -> Evidence {
        let value = format!("{ms:.1} ms");
        Evidence { what: what.into(), value, number: Some(ms), unit: "ms", source: source.into() }
    }
}

/// What it costs, as far as that was measured. `None` is not known, never nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, JsonSchema, Serialize)]
pub struct Cost {
    pub bytes: Option<Bytes>,
    /// Percentage of one CPU.
    pub cpu_percent: Option<f64>,
    /// The time that threads waited in the watched interval.
    pub stall_ms: Option<f64>,
}

impl Cost {
    pub fn bytes(bytes: Bytes) -> Cost {
        Cost { bytes: Some(bytes), ..Cost::default() }
    }
}

/// What to do about it.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize)]
#[serde(rename_all = "snake_case", tag = "kind", content = "text")]
pub enum Remedy {
    /// A command that can be run unchanged.
    Command(String),
    /// An option for the next start of the JVM.
    JvmOption(String),
    /// A variable of the environment of the next start: "MALLOC_ARENA_MAX=2".
    Environment(String),
    /// A setting of the host: "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled".
    Setting(String),
    /// What people must do or decide.
    Advice(String),
}

impl Remedy {
    pub fn text(&self) -> &str {
        match self {
            Remedy::Command(text)
            | Remedy::JvmOption(text)
            | Remedy::Environment(text)
            | Remedy::Setting(text)
            | Remedy::Advice(text) => text,
        }
    }
}

/// One thing that is so, with all that is needed to believe it and to change it.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct Finding {
    /// Stable: programs and people ignore findings by it.
    pub id: &'static str,
    pub level: Level,
    #[serde(skip)]
    pub subject: Subject,
    /// One sentence with the figures that matter.
    pub title: String,
    #[serde(skip)]
    pub evidence: Vec<Evidence>,
    pub cost: Cost,
    pub remedies: Vec<Remedy>,
}

impl Finding {
    /// Puts the pid into the places that a rule names for any process: "/proc/PID/maps", "marusa map PID". Who reads a finding
    /// must be able to run its remedies unchanged.
    pub fn name_its_process(&mut self) {
        let Subject::Jvm(pid) = self.subject else { return };
        for evidence in &mut self.evidence {
            evidence.source = named(&evidence.source, pid);
        }
        for remedy in &mut self.remedies {
            let text = match remedy {
                Remedy::Command(text)
                | Remedy::JvmOption(text)
                | Remedy::Environment(text)
                | Remedy::Setting(text)
                | Remedy::Advice(text) => text,
            };
            *text = named(text, pid);
        }
    }
}

/// The word PID becomes the number.
fn named(text: &str, pid: i32) -> String {
    let is_word = |letter: char| letter.is_alphanumeric() || letter == '_';
    let mut parts = text.split("PID");
    let mut whole = parts.next().unwrap_or_default().to_string();
    for part in parts {
        let inside = whole.ends_with(is_word) || part.starts_with(is_word);
        whole.push_str(&if inside { "PID".to_string() } else { pid.to_string() });
        whole.push_str(part);
    }
    whole
}

/// One kind of finding.
pub struct Rule {
    pub id: &'static str,
    /// What it looks for, in a line: for lists and SARIF.
    pub title: &'static str,
    pub find: fn(&Facts) -> Vec<Finding>,
}

impl Rule {
    /// The page that explains it, from the root of the repository.
    pub fn page(&self) -> String {
        format!("docs/findings/{}.md", self.id)
    }
}

/// A rule in the list of them (`rules::CATALOG`).
pub struct Entry {
    pub rule: &'static Rule,
    /// The ones that it may find, the least first.
    pub levels: &'static [Level],
    /// The text of its page.
    pub page: &'static str,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_of_a_jvm_has_its_pid_where_a_rule_says_pid() {
        let advice =
            "see `marusa map PID --by library` (jcmd PID GC.run), PIDFILE and RAPID stay".to_string();
        let mut finding = Finding {
            id: "x",
            level: Level::Info,
            subject: Subject::Jvm(4711),
            title: String::new(),
            evidence: vec![Evidence::state("a", "b", "/proc/PID/maps, /proc/PID/status")],
            cost: Cost::default(),
            remedies: vec![Remedy::Advice(advice)],
        };
        let of_host = Finding { subject: Subject::Host, ..finding.clone() };
        finding.name_its_process();
        assert_eq!(finding.evidence[0].source, "/proc/4711/maps, /proc/4711/status");
        assert_eq!(
            finding.remedies[0].text(),
            "see `marusa map 4711 --by library` (jcmd 4711 GC.run), PIDFILE and RAPID stay"
        );
        let mut same = of_host.clone();
        same.name_its_process();
        assert_eq!(same, of_host, "threads of the kernel have pids of their own");
    }
}
