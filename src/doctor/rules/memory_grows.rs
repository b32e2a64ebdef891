//! Memory that grows, by a recording: `recorded` finds it by the evidence of `leak`. One reading of a running JVM cannot.

use crate::doctor::Rule;

pub const RULE: Rule = Rule::new("memory-grows", "an area grows, by a recording", |_| Vec::new());
