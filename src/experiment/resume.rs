//! What a comparison is, as it is saved before the first trial: a later session goes on with it only where nothing changed that the
//! figures hang on.

use super::arms::Arm;
use crate::base::Bytes;
use serde::{Deserialize, Serialize};

pub const SCHEMA: &str = "marusa/compare-head/1";

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    pub schema: String,
    pub made_at: String,
    pub made_by: String,
    pub arms: Vec<Arm>,
    pub command: Vec<String>,
    /// Where the command runs.
    pub folder: String,
    /// Of each arm, the JVM that it starts: "17.0.15+6 of /usr/lib/jvm/..."; empty where the command is not `java`.
    pub jvms: Vec<String>,
    pub host: HostFacts,
    /// As the user wrote it.
    pub pages: String,
    /// The user's own figures, as he wrote them.
    pub metrics: Vec<String>,
    /// JAVA_TOOL_OPTIONS and such, as the user has them.
    pub environment: Vec<(String, String)>,
    pub seed: u64,
}

/// What of a host the figures hang on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostFacts {
    pub machine: String,
    pub kernel: String,
    pub memory_bytes: Bytes,
    pub cpus: u32,
    /// "always", "madvise", "never"; empty: a kernel without them.
    pub thp: String,
}

impl Head {
    /// What is not as it was; nothing: the comparison may go on.
    pub fn differs(&self, now: &Head) -> Vec<String> {
        let mut found = Vec::new();
        let mut differs = |what: &str, was: String, now: String| {
            if was != now {
                found.push(format!("{what} was {was}, and is {now}"));
            }
        };
        let arms = |head: &Head| {
            let arms: Vec<String> =
                head.arms.iter().map(|arm| format!("{}={}", arm.name, arm.text())).collect();
            arms.join("; ")
        };
        differs("the format", self.schema.clone(), now.schema.clone());
        differs("the list of arms", arms(self), arms(now));
        differs("the command", self.command.join(" "), now.command.join(" "));
        differs("the folder", self.folder.clone(), now.folder.clone());
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

    #[test]
    fn a_changed_arm_command_or_host_is_told() {
        let head = |option: &str, kernel: &str| Head {
            schema: SCHEMA.into(),
            made_at: String::new(),
            made_by: String::new(),
            arms: ["base=", option].iter().map(|text| Arm::parse(text).expect("an arm")).collect(),
            command: vec!["java".into(), "Main".into()],
            folder: "/".into(),
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
            environment: vec![],
            seed: 1,
        };
        let later = Head { made_at: "later".into(), ..head("a=-Xmx1g", "6.1") };
        assert!(head("a=-Xmx1g", "6.1").differs(&later).is_empty());
        let found = head("a=-Xmx1g", "6.1").differs(&head("a=-Xmx2g", "6.2"));
        assert_eq!(found.len(), 2, "{found:?}");
        assert_eq!(found[1], "the kernel was 6.1, and is 6.2");
    }
}
