//! Memory that grows, by a recording: `recorded` finds it by the evidence of `leak`. One reading of a running JVM cannot.

use crate::doctor::Rule;

pub const RULE: Rule =
    Rule { id: "memory-grows", title: "an area grows, by a recording", find: |_| Vec::new() };
