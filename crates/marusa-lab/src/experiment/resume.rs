//! What a comparison is, as it is saved before the first trial: a later session goes on with it only where nothing changed that the
//! figures hang on.
//!
//! Values of arguments and variables are saved only if the user asks for them. Otherwise a mark of each stays behind: 32
//! bits with a salt, enough to notice a change and too few to find a password by.

use super::arms::Arm;
use crate::base::{Bytes, redact};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub const SCHEMA: &str = "marusa/compare-head/1";

#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct Head {
    pub schema: String,
    pub made_at: String,
    pub made_by: String,
    pub arms: Vec<Arm>,
    pub command: Vec<String>,
    /// Where the command runs.
    #[serde(alias = "folder")]
    pub directory: String,
    /// The JVM that each arm starts: "17.0.15+6 of /usr/lib/jvm/..."; empty where the command is not `java`.
    pub jvms: Vec<String>,
    pub host: HostFacts,
    /// As the user wrote it.
    pub pages: String,
    /// The user's own figures, as he wrote them.
    pub metrics: Vec<String>,
    /// JAVA_TOOL_OPTIONS and such, as the user has them.
    pub environment: Vec<(String, String)>,
    pub seed: u64,
    /// Where the values of arguments are left out: what tells whether they changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub marks: Option<Marks>,
}

/// Marks of what was left out.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct Marks {
    salt: u64,
    arms: u32,
    command: u32,
    metrics: u32,
    environment: u32,
}

impl Marks {
    fn of(head: &Head, salt: u64) -> Marks {
        let mark = |words: &[String]| mark(salt, words);
        let arms: Vec<String> = head.arms.iter().map(Head::arm_line).collect();
        let environment: Vec<String> =
            head.environment.iter().map(|(name, value)| format!("{name}={value}")).collect();
        Marks {
            salt,
            arms: mark(&arms),
            command: mark(&head.command),
            metrics: mark(&head.metrics),
            environment: mark(&environment),
        }
    }
}

/// FNV-1a of 64 bits, folded. Lengths keep the words apart.
fn mark(salt: u64, words: &[String]) -> u32 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    let mut hash = salt.to_le_bytes().into_iter().fold(0xcbf2_9ce4_8422_2325, step);
    for word in words {
        hash = (word.len() as u64).to_le_bytes().into_iter().chain(word.bytes()).fold(hash, step);
    }
    (hash >> 32) as u32 ^ hash as u32
}

/// What of a host the figures hang on.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct HostFacts {
    pub machine: String,
    pub kernel: String,
    pub memory_bytes: Bytes,
    pub cpus: u32,
    /// "always", "madvise", "never"; empty: a kernel without them.
    pub thp: String,
}

impl Head {
    fn arm_line(arm: &Arm) -> String {
        format!("{}={}", arm.name, arm.text())
    }

    /// As it may be shown and saved.
    pub fn shown(&self) -> Head {
        if redact::are_arguments_shown() { self.clone() } else { self.redacted(fastrand::u64(..)) }
    }

    fn redacted(&self, salt: u64) -> Head {
        let value = |(name, value): &(String, String)| (name.clone(), redact::variable(name, value));
        Head {
            arms: self.arms.iter().map(Arm::shown).collect(),
            command: redact::command_words(&self.command),
            environment: self.environment.iter().map(value).collect(),
            metrics: self.metrics.iter().map(|metric| redact::line(metric)).collect(),
            marks: self.marks.clone().or_else(|| Some(Marks::of(self, salt))),
            ..self.clone()
        }
    }

    /// What is not as it was; nothing: the comparison may go on. `now` has all values.
    pub fn differs(&self, now: &Head) -> Vec<String> {
        match &self.marks {
            None => self.differing(now),
            Some(was) => {
                let is = Marks::of(now, was.salt);
                let mut found = self.differing(&Head { marks: Some(was.clone()), ..now.redacted(was.salt) });
                let hidden = [
                    ("the list of arms", was.arms != is.arms),
                    ("the command", was.command != is.command),
                    ("the list of metrics", was.metrics != is.metrics),
                    ("the environment", was.environment != is.environment),
                ];
                for (what, _) in hidden.into_iter().filter(|(_, differs)| *differs) {
                    if !found.iter().any(|line| line.starts_with(what)) {
                        found.push(format!("{what} has other values"));
                    }
                }
                found
            }
        }
    }

    fn differing(&self, now: &Head) -> Vec<String> {
        let mut found = Vec::new();
        let mut differs = |what: &str, was: String, now: String| {
            if was != now {
                found.push(format!("{what} was {was}, and is {now}"));
            }
        };
        let arms = |head: &Head| {
            let arms: Vec<String> = head.arms.iter().map(Head::arm_line).collect();
            arms.join("; ")
        };
        differs("the format", self.schema.clone(), now.schema.clone());
        differs("the list of arms", arms(self), arms(now));
        differs("the command", self.command.join(" "), now.command.join(" "));
        differs("the directory", self.directory.clone(), now.directory.clone());
        differs("the JVM", self.jvms.join("; "), now.jvms.join("; "));
        differs("the machine", self.host.machine.clone(), now.host.machine.clone());
        differs("the kernel", self.host.kernel.clone(), now.host.kernel.clone());
        differs("its memory in bytes", self.host.memory_bytes.to_string(), now.host.memory_bytes.to_string());
        differs("the number of CPUs", self.host.cpus.to_string(), now.host.cpus.to_string());
        differs("transparent_hugepage/enabled", self.host.thp.clone(), now.host.thp.clone());
        differs("--pages", self.pages.clone(), now.pages.clone());
        differs("the list of metrics", self.metrics.join("; "), now.metrics.join("; "));
        differs("the environment", format!("{:?}", self.environment), format!("{:?}", now.environment));
        differs("the seed", self.seed.to_string(), now.seed.to_string());
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(option: &str, kernel: &str) -> Head {
        Head {
            schema: SCHEMA.into(),
            made_at: String::new(),
            made_by: String::new(),
            arms: ["base=", option].iter().map(|text| Arm::parse(text).expect("an arm")).collect(),
            command: vec!["java".into(), "Main".into()],
            directory: "/".into(),
            jvms: vec![],
            host: HostFacts {
                machine: "m".into(),
                kernel: kernel.into(),
                memory_bytes: 1,
                cpus: 2,
                thp: "madvise".into(),
            },
            pages: "auto".into(),
            metrics: vec![],
            environment: vec![("JAVA_TOOL_OPTIONS".into(), "-Dtoken=hunter2".into())],
            seed: 1,
            marks: None,
        }
    }

    #[test]
    fn a_changed_arm_command_or_host_is_reported() {
        let later = Head { made_at: "later".into(), ..head("a=-Xmx1g", "6.1") };
        assert!(head("a=-Xmx1g", "6.1").differs(&later).is_empty());
        let found = head("a=-Xmx1g", "6.1").differs(&head("a=-Xmx2g", "6.2"));
        assert_eq!(found.len(), 2, "{found:?}");
        assert_eq!(found[1], "the kernel was 6.1, and is 6.2");
    }

    #[test]
    fn what_is_saved_has_no_values_and_still_tells_a_change() {
        let with = |option: &str, argument: &str| Head {
            command: ["java", "-Dpassword=hunter2", "Main", argument].map(String::from).to_vec(),
            ..head(option, "6.1")
        };
        let first = with("a=-Xmx1g -Dkey=hunter2", "hunter2");
        let saved = first.redacted(7);
        let text = serde_json::to_string(&saved).expect("JSON");
        assert!(
            !text.contains("hunter2") && text.contains("-Dpassword=…") && text.contains("-Xmx1g"),
            "{text}"
        );
        let loaded: Head = serde_json::from_str(&text).expect("a head");
        assert_eq!(loaded.differs(&first), Vec::<String>::new());
        assert_eq!(
            loaded.differs(&with("a=-Xmx1g -Dkey=hunter2", "hunter3")),
            ["the command has other values"]
        );
        let found = loaded.differs(&with("a=-Xmx1g -Dkey=hunter3", "hunter2"));
        assert_eq!(found, ["the list of arms has other values"]);
        let found = loaded.differs(&with("a=-Xmx2g -Dkey=hunter2", "hunter2"));
        assert!(found.len() == 1 && found[0].contains("-Xmx2g"), "{found:?}");
        assert_eq!(first.differs(&first), Vec::<String>::new(), "one that was saved with all values");
    }
}
