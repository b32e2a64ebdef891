//! A finding, and the rule that makes it.

use super::facts::{Facts, JvmFacts};
use crate::base::Bytes;
use schemars::JsonSchema;
use serde::Serialize;

/// How bad it is. `Info`: good to know, nothing is lost now. `Warn`: memory or time is lost, or will be. `Critical`: the JVM
/// or the host is being harmed now, or will be killed.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, JsonSchema, Serialize, clap::ValueEnum,
)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    Info,
    Warn,
    Critical,
}

impl Level {
    /// In recordings, from 1 on.
    pub fn number(self) -> u64 {
        self as u64 + 1
    }

    pub fn of_number(number: u64) -> Option<Level> {
        [Level::Info, Level::Warn, Level::Critical].into_iter().find(|level| level.number() == number)
    }

    /// The first of these levels whose bound a figure reaches.
    pub fn reached<T: PartialOrd>(figure: T, bounds: [(T, Level); 2]) -> Option<Level> {
        bounds.into_iter().find(|(bound, _)| figure >= *bound).map(|(_, level)| level)
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

    fn figure(
        what: impl Into<String>,
        (number, unit): (f64, &'static str),
        value: String,
        source: impl Into<String>,
    ) -> Evidence {
        Evidence { number: Some(number), unit, ..Evidence::state(what, value, source) }
    }

    /// A number of things.
    pub fn count(what: impl Into<String>, count: u64, source: impl Into<String>) -> Evidence {
        Evidence::figure(what, (count as f64, "count"), count.to_string(), source)
    }

    /// Bytes, formatted by the writer of each format.
    pub fn bytes(what: impl Into<String>, bytes: Bytes, source: impl Into<String>) -> Evidence {
        Evidence::figure(what, (bytes as f64, "bytes"), String::new(), source)
    }

    /// A percentage.
    pub fn percent(what: impl Into<String>, percent: f64, source: impl Into<String>) -> Evidence {
        Evidence::figure(what, (percent, "percent"), format!("{percent:.1} %"), source)
    }

    /// Milliseconds.
    pub fn ms(what: impl Into<String>, ms: f64, source: impl Into<String>) -> Evidence {
        Evidence::figure(what, (ms, "ms"), format!("{ms:.1} ms"), source)
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

    pub fn cpu(percent: f64) -> Cost {
        Cost { cpu_percent: Some(percent), ..Cost::default() }
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
    pub fn advice(text: &str) -> Remedy {
        Remedy::Advice(text.to_string())
    }

    pub fn jvm_option(text: &str) -> Remedy {
        Remedy::JvmOption(text.to_string())
    }

    pub fn setting(text: &str) -> Remedy {
        Remedy::Setting(text.to_string())
    }

    pub fn command(text: &str) -> Remedy {
        Remedy::Command(text.to_string())
    }

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
    /// About a JVM. Its rule gives it the id; the cost, where it is known, comes after (`costing`).
    pub fn on_jvm(
        pid: i32,
        level: Level,
        title: impl Into<String>,
        evidence: impl IntoIterator<Item = Evidence>,
        remedies: impl IntoIterator<Item = Remedy>,
    ) -> Finding {
        Finding { subject: Subject::Jvm(pid), ..Finding::on_host(level, title, evidence, remedies) }
    }

    pub fn on_host(
        level: Level,
        title: impl Into<String>,
        evidence: impl IntoIterator<Item = Evidence>,
        remedies: impl IntoIterator<Item = Remedy>,
    ) -> Finding {
        Finding {
            id: "",
            level,
            subject: Subject::Host,
            title: title.into(),
            evidence: evidence.into_iter().collect(),
            cost: Cost::default(),
            remedies: remedies.into_iter().collect(),
        }
    }

    pub fn of_rule(self, id: &'static str) -> Finding {
        Finding { id, ..self }
    }

    pub fn costing(self, cost: Cost) -> Finding {
        Finding { cost, ..self }
    }

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
    pub find: Find,
}

/// What a rule judges at once.
pub enum Find {
    Facts(fn(&Facts) -> Vec<Finding>),
    /// With one finding at most.
    One(fn(&Facts) -> Option<Finding>),
    Jvm(fn(&JvmFacts) -> Option<Finding>),
    /// A JVM with what there is of its host.
    JvmHere(fn(&Facts, &JvmFacts) -> Option<Finding>),
    /// With any number of findings.
    Several(fn(&Facts, &JvmFacts) -> Vec<Finding>),
}

impl Rule {
    pub fn find(&self, facts: &Facts) -> Vec<Finding> {
        let jvms = facts.jvms.iter();
        let found: Vec<Finding> = match self.find {
            Find::Facts(find) => find(facts),
            Find::One(find) => find(facts).into_iter().collect(),
            Find::Jvm(find) => jvms.filter_map(find).collect(),
            Find::JvmHere(find) => jvms.filter_map(|jvm| find(facts, jvm)).collect(),
            Find::Several(find) => jvms.flat_map(|jvm| find(facts, jvm)).collect(),
        };
        found.into_iter().map(|finding| finding.of_rule(self.id)).collect()
    }

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
