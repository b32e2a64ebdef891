//! What malloc keeps although it is free, and the option that makes it return that.

use super::MIB;
use super::limit::Limit;
use crate::base::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Freed memory that is worth an option: this part of the need, and this much.
const WORTH_PART: u64 = 10;
const WORTH_BYTES: Bytes = 32 * MIB;
/// With more arenas than this, fewer keep less; with fewer, only returning it helps.
const ARENAS_MANY: u64 = 4;
/// A product flag since 17.0.12, 21.0.3 and 23; before, it is unlocked, which later versions accept.
const TRIM_INTERVAL: &str = "-XX:+UnlockExperimentalVMOptions -XX:TrimNativeHeapInterval=60000";

#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Malloc {
    /// By how much the highest need falls when freed memory is returned.
    pub returnable_bytes: Bytes,
    /// At the peak.
    pub arenas: Option<u64>,
    /// Variables of the environment.
    pub environment: Vec<(String, String)>,
    /// Options of the JVM.
    pub options: Vec<String>,
    pub why: String,
}

pub fn advice(limit: &Limit, java_version: Option<&str>) -> Option<Malloc> {
    let returnable_bytes = limit.base_bytes.saturating_sub(limit.returned_base_bytes?);
    if returnable_bytes < WORTH_BYTES.max(limit.base_bytes / WORTH_PART) {
        return None;
    }
    let arenas = limit.peak.malloc_arenas;
    let (mut environment, mut options) = (Vec::new(), Vec::new());
    let why = match arenas {
        Some(arenas) if arenas > ARENAS_MANY => {
            environment.push(("MALLOC_ARENA_MAX".to_string(), "2".to_string()));
            format!("{arenas} arenas each keep what their threads freed; two keep less")
        }
        _ if has_trim_interval(java_version) => {
            options.push(TRIM_INTERVAL.to_string());
            "the JVM returns freed memory once a minute".to_string()
        }
        _ => "this JDK has no option that returns it: marusa trim PID --every 60s does".to_string(),
    };
    Some(Malloc { returnable_bytes, arenas, environment, options, why })
}

/// -XX:TrimNativeHeapInterval: JDK 22 (JDK-8293114), and updates 17.0.9, 21.0.1.
fn has_trim_interval(version: Option<&str>) -> bool {
    let numbers = version.unwrap_or("").split(|letter: char| !letter.is_ascii_digit());
    let numbers: Vec<u32> = numbers.map_while(|number| number.parse().ok()).take(3).collect();
    match numbers[..] {
        [17, minor, patch] => (minor, patch) >= (0, 9),
        [21, minor, patch] => (minor, patch) >= (0, 1),
        [major, ..] => major >= 22,
        [] => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn which_jdks_return_it_by_themselves() {
        let has = |version| has_trim_interval(Some(version));
        assert!(has("17.0.9+9") && has("21.0.1") && has("22") && has("25.0.1+8-LTS"));
        assert!(!has("17.0.8") && !has("21.0.0") && !has("1.8.0_392") && !has("11.0.21") && !has(""));
    }
}
