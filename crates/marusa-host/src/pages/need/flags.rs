//! The reading of flags that were given. A plan may come from a stranger, so no number is larger than the rules' sums can take.

use crate::base::{Bytes, bytes_of};
use std::collections::BTreeMap;

type Flags = BTreeMap<String, String>;

/// A flag's number, of bytes or other things, as -XX:+PrintFlagsFinal prints it or as a command line has it: "251658240", "240m".
pub fn flag_bytes(flags: &Flags, name: &str) -> Option<Bytes> {
    // No size of a JVM is larger; so the rules' sums cannot overflow.
    bytes_of(flags.get(name)?.trim()).filter(|bytes| *bytes <= super::HEAP_MAX)
}

/// A flag that is on or off.
pub fn is_on(flags: &Flags, name: &str) -> Option<bool> {
    match flags.get(name)?.as_str() {
        "true" => Some(true),
        "false" => Some(false),
        _ => None,
    }
}
