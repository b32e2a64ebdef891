//! The JVM that a plan is for: a running one, an installed JDK that was asked for its flags, or one that is only named.

use super::collectors;
use super::types::{Subject, Vm};
use crate::base::{Bytes, Gap, Known, Refused, Why, bytes_of, refuse};
use crate::jvm::hotspot::flags::KEPT;
use crate::jvm::{Gc, JvmView};
use std::collections::BTreeMap;

/// What the user says of a JVM that does not run yet.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    pub gc: Option<String>,
    pub heap_bytes: Bytes,
    /// As the heap where not given: pages of hugetlb are taken whole.
    pub initial_bytes: Option<Bytes>,
    pub code_cache_bytes: Option<Bytes>,
    pub cpus: u32,
    /// Given by the user, so that the JVM needs the option.
    pub cpus_given: bool,
    /// Further options, as the JVM takes them.
    pub options: Vec<String>,
}

/// "hotspot-17", "openj9-21". An error says what is known.
pub fn named(text: &str) -> Result<(Vm, u32), Refused> {
    let lower = text.to_ascii_lowercase();
    let vms = [("hotspot-", Vm::HotSpot), ("openj9-", Vm::OpenJ9)];
    let found = vms.iter().find_map(|(start, vm)| Some((*vm, lower.strip_prefix(start)?.parse().ok()?)));
    match found {
        Some((vm, feature)) if (8..=FEATURE_MAX).contains(&feature) && !(9..=10).contains(&feature) => {
            Ok((vm, feature))
        }
        _ => refuse!(
            "'{text}' is not a JDK: neither a directory with bin/java, nor one of hotspot-8, -11, -17, -21, -25, openj9-8, -11, \
             -17, -21, -25"
        ),
    }
}

/// Later releases are not known well enough to be planned for by name.
const FEATURE_MAX: u32 = 26;

impl Wanted {
    /// The options that start such a JVM, but those of its pages.
    pub fn launch(&self, vm: Vm, feature: u32) -> Result<Vec<String>, Refused> {
        let mut options = match (&self.gc, vm) {
            (Some(gc), Vm::HotSpot) => collectors::options(collectors::named(gc, feature)?, feature)?,
            (Some(gc), Vm::OpenJ9) => vec![format!("-Xgcpolicy:{gc}")],
            (None, _) => Vec::new(),
        };
        options.push(format!("-Xmx{}", size(self.heap_bytes)));
        options.push(format!("-Xms{}", size(self.initial())));
        if let Some(bytes) = self.code_cache_bytes {
            options.push(match vm {
                Vm::HotSpot => format!("-XX:ReservedCodeCacheSize={}", size(bytes)),
                Vm::OpenJ9 => format!("-Xcodecachetotal{}", size(bytes)),
            });
        }
        if self.cpus_given {
            options.push(format!("-XX:ActiveProcessorCount={}", self.cpus));
        }
        options.extend(self.options.iter().cloned());
        Ok(options)
    }

    fn initial(&self) -> Bytes {
        self.initial_bytes.unwrap_or(self.heap_bytes)
    }

    /// A JVM of which only the release is known: its flags are the defaults, except for what the user says.
    pub fn by_name(&self, vm: Vm, feature: u32, memory_bytes: Bytes) -> Result<Subject, Refused> {
        let gc = match (&self.gc, vm) {
            (Some(gc), Vm::HotSpot) => collectors::named(gc, feature)?,
            (None, Vm::HotSpot) => collectors::default(feature, self.cpus, memory_bytes),
            // OpenJ9's policies have names of their own, kept among the flags; all of them collect in parallel.
            (_, Vm::OpenJ9) => Gc::Parallel,
        };
        let mut flags: BTreeMap<String, String> = self.options.iter().filter_map(|it| flag(it)).collect();
        if vm == Vm::OpenJ9 {
            flags.insert("Xgcpolicy".to_string(), self.gc.clone().unwrap_or("gencon".to_string()));
        }
        if let Some(bytes) = self.code_cache_bytes {
            flags.insert("ReservedCodeCacheSize".to_string(), bytes.to_string());
        }
        Ok(Subject {
            vm,
            feature,
            version: None,
            java_home: None,
            gc,
            heap_initial_bytes: self.initial(),
            heap_max_bytes: self.heap_bytes,
            cpus: self.cpus,
            flags,
        })
    }
}

/// A JDK that was asked: `flags` is what -XX:+PrintFlagsFinal printed, `release` and `version` as `release_of` gives them.
pub fn of_flags(
    flags: &str,
    feature: u32,
    version: Option<String>,
    java_home: String,
    cpus: u32,
) -> Known<Subject> {
    let flags = kept(flags);
    let missing =
        |name: &str| Gap::new(format!("flag {name} in -XX:+PrintFlagsFinal"), Why::NotInThisRuntime);
    let number = |name: &str| flags.get(name).and_then(|text| text.parse().ok()).ok_or_else(|| missing(name));
    Ok(Subject {
        vm: Vm::HotSpot,
        feature,
        version,
        java_home: Some(java_home),
        gc: collectors::of_flags(&flags, feature).ok_or_else(|| missing("UseG1GC"))?,
        heap_initial_bytes: number("InitialHeapSize")?,
        heap_max_bytes: number("MaxHeapSize")?,
        cpus,
        flags,
    })
}

/// A running JVM.
pub fn of_jvm(jvm: &JvmView, cpus: u32) -> Known<Subject> {
    let number = |name: &str| {
        let text = jvm.flags.get(name).and_then(|text| text.parse().ok());
        text.ok_or_else(|| Gap::new(format!("flag {name}"), Why::NotInThisRuntime))
    };
    let given = number("ActiveProcessorCount").ok().and_then(|cpus: i64| u32::try_from(cpus).ok());
    Ok(Subject {
        vm: Vm::HotSpot,
        feature: jvm.major.clone()?,
        version: jvm.version.clone().ok(),
        java_home: jvm.java_home().map(str::to_string),
        gc: jvm.gc.clone()?,
        heap_initial_bytes: number("InitialHeapSize").map(|bytes: i64| bytes as u64)?,
        heap_max_bytes: number("MaxHeapSize").map(|bytes: i64| bytes as u64)?,
        cpus: given.filter(|cpus| *cpus > 0).unwrap_or(cpus),
        flags: jvm.flags.clone(),
    })
}

/// The lines of -XX:+PrintFlagsFinal that a snapshot would keep: "    size_t MaxHeapSize    = 629145600    {product} {default}",
/// with ":=" in JDK 8 where a value was set.
fn kept(text: &str) -> BTreeMap<String, String> {
    let line = |line: &str| {
        let (left, right) = line.split_once('=')?;
        let name = left.trim_end_matches(':').split_ascii_whitespace().nth(1)?;
        let value = right.split('{').next()?.trim();
        KEPT.contains(&name).then(|| (name.to_string(), value.to_string()))
    };
    text.lines().filter_map(line).collect()
}

/// The implementation, the release and the version of a JDK, from its file `release` and from what `-version` prints.
pub fn release_of(release: Option<&str>, version: &str) -> Option<(Vm, u32, Option<String>)> {
    let field = |name: &str| {
        let line = release?.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='))?;
        Some(line.trim_matches('"').to_string())
    };
    let printed = || version.split_once(" version \"").and_then(|(_, rest)| rest.split('"').next());
    let number = field("JAVA_VERSION").or_else(|| printed().map(str::to_string))?;
    let is_j9 = field("JVM_VARIANT").is_some_and(|variant| variant.eq_ignore_ascii_case("openj9"))
        || version.contains("OpenJ9");
    let mut parts = number.split(['.', '-', '_', '+']).map_while(|part| part.parse::<u32>().ok());
    let feature = match (parts.next()?, parts.next()) {
        (1, Some(second)) => second,
        (first, _) => first,
    };
    // "OpenJDK 64-Bit Server VM Temurin-21.0.8+9 (build 21.0.8+9-LTS, mixed mode)"
    let build = version.lines().find(|line| line.contains(" VM ")).and_then(|line| {
        let inside = line.split_once("(build ")?.1;
        Some(inside.split([',', ')']).next()?.trim().to_string())
    });
    Some((if is_j9 { Vm::OpenJ9 } else { Vm::HotSpot }, feature, build.or(Some(number))))
}

/// "-XX:G1HeapRegionSize=16m" as name and value of PrintFlagsFinal.
fn flag(option: &str) -> Option<(String, String)> {
    let text = option.strip_prefix("-XX:")?;
    if let Some((name, value)) = text.split_once('=') {
        let value = bytes_of(value).map_or(value.to_string(), |bytes| bytes.to_string());
        return Some((name.to_string(), value));
    }
    let name = text.strip_prefix(['+', '-'])?;
    Some((name.to_string(), text.starts_with('+').to_string()))
}

/// "6g", "1536m", "1000": as -Xmx takes it.
pub fn size(bytes: Bytes) -> String {
    for (unit, shift) in [("g", 30), ("m", 20), ("k", 10)] {
        if bytes > 0 && bytes.trailing_zeros() >= shift {
            return format!("{}{unit}", bytes >> shift);
        }
    }
    bytes.to_string()
}

#[cfg(test)]
#[path = "subject_tests.rs"]
mod tests;
