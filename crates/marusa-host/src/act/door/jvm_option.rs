//! The options that a plan may give to a JVM through a systemd service: pages, memory, collectors and CPUs. They are an allow
//! list with ranges, since others load code (-javaagent), run programs (OnError), read files (-XX:Flags) or switch checks off
//! (BytecodeVerificationRemote). Nothing that systemd would expand or unquote is in any of them.

use crate::base::{Bytes, Refused, refuse};

/// Switches: -XX:+NAME and -XX:-NAME.
const SWITCHES: [&str; 24] = [
    "AlwaysPreTouch",
    "TransparentHugePage",
    "UnlockExperimentalVMOptions",
    "UseAdaptiveSizePolicy",
    "UseCompressedClassPointers",
    "UseCompressedOops",
    "UseConcMarkSweepGC",
    "UseEpsilonGC",
    "UseG1GC",
    "UseHugeTLBFS",
    "UseLargePages",
    "UseLargePagesInMetaspace",
    "UseNUMA",
    "UseParallelGC",
    "UseParallelOldGC",
    "UseSHM",
    "UseSerialGC",
    "UseShenandoahGC",
    "UseStringDeduplication",
    "UseTransparentHugePages",
    "UseZGC",
    "ZGenerational",
    "ZUncommit",
    "SegmentedCodeCache",
];

const KIB: Bytes = 1 << 10;
const MIB: Bytes = 1 << 20;
/// As much as the largest heap that HotSpot reserves.
const HEAP_MAX: Bytes = 1 << 46;

/// -XX:NAME=NUMBER with its least and its most. The least are what a JVM still starts with.
const NUMBERS: [(&str, u64, u64); 20] = [
    ("ActiveProcessorCount", 1, 65_536),
    ("CICompilerCount", 1, 1_024),
    ("ConcGCThreads", 1, 65_536),
    ("CompressedClassSpaceSize", MIB, 4 << 30),
    ("G1HeapRegionSize", MIB, 512 * MIB),
    ("InitialCodeCacheSize", 64 * KIB, 2 << 30),
    ("InitialHeapSize", MIB, HEAP_MAX),
    ("LargePageSizeInBytes", 64 * KIB, 16 << 30),
    ("MaxDirectMemorySize", MIB, HEAP_MAX),
    ("MaxHeapSize", 2 * MIB, HEAP_MAX),
    ("MaxMetaspaceSize", 4 * MIB, HEAP_MAX),
    ("MaxNewSize", MIB, HEAP_MAX),
    ("MetaspaceSize", MIB, HEAP_MAX),
    ("NewSize", MIB, HEAP_MAX),
    ("NonNMethodCodeHeapSize", 64 * KIB, 2 << 30),
    ("NonProfiledCodeHeapSize", 64 * KIB, 2 << 30),
    ("ParallelGCThreads", 1, 65_536),
    ("ProfiledCodeHeapSize", 64 * KIB, 2 << 30),
    ("ReservedCodeCacheSize", 2 * MIB, 2 << 30),
    ("SoftMaxHeapSize", MIB, HEAP_MAX),
];

/// Options whose number follows the name at once.
const SIZES: [(&str, Bytes, Bytes); 7] = [
    ("-Xmx", 2 * MIB, HEAP_MAX),
    ("-Xms", MIB, HEAP_MAX),
    ("-Xmn", MIB, HEAP_MAX),
    ("-Xss", 64 * KIB, 1 << 30),
    ("-Xcodecachetotal", 2 * MIB, 2 << 30),
    ("-Xlp:objectheap:pagesize=", 64 * KIB, 16 << 30),
    ("-Xlp:codecache:pagesize=", 64 * KIB, 16 << 30),
];

/// Options with one of some words.
const WORDS: [(&str, &[&str]); 2] = [
    ("-XX:ShenandoahGCMode=", &["satb", "iu", "passive", "generational"]),
    ("-Xgcpolicy:", &["balanced", "gencon", "metronome", "nogc", "optavgpause", "optthruput"]),
];

/// Whether a plan may give it; else why not.
pub fn check(option: &str) -> Result<(), Refused> {
    let ranged = |name: &str, text: &str, least: u64, most: u64| match number(text) {
        Some(value) if (least..=most).contains(&value) => Ok(()),
        _ => {
            refuse!("{name}{text:?} is outside of {least} to {most}, the range that a plan may set");
        }
    };
    if let Some((start, words)) = WORDS.iter().find(|(start, _)| option.starts_with(start)) {
        return match words.contains(&&option[start.len()..]) {
            true => Ok(()),
            false => refuse!("{option:?} is none of {start}{}", words.join("|")),
        };
    }
    if let Some((start, least, most)) = SIZES.iter().find(|(start, ..)| option.starts_with(start)) {
        return ranged(start, &option[start.len()..], *least, *most);
    }
    let flag = option.strip_prefix("-XX:");
    if let Some((name, value)) = flag.and_then(|flag| flag.split_once('='))
        && let Some((_, least, most)) = NUMBERS.iter().find(|(one, ..)| *one == name)
    {
        return ranged(&format!("-XX:{name}="), value, *least, *most);
    }
    match flag.and_then(|flag| flag.strip_prefix(['+', '-'])) {
        Some(name) if SWITCHES.contains(&name) => Ok(()),
        _ => refuse!("{option:?} is not an option that a plan may put into a service"),
    }
}

/// "6g", "1536m", "4": without a sign, without zeros before it, as the JVM takes it.
fn number(text: &str) -> Option<u64> {
    let (digits, shift) = match text.strip_suffix(|letter: char| "kKmMgGtT".contains(letter)) {
        Some(digits) => match text.as_bytes()[digits.len()].to_ascii_lowercase() {
            b'k' => (digits, 10),
            b'm' => (digits, 20),
            b'g' => (digits, 30),
            _ => (digits, 40),
        },
        None => (text, 0),
    };
    let plain = (1..=20).contains(&digits.len()) && digits.bytes().all(|letter| letter.is_ascii_digit());
    if !plain || digits.starts_with('0') {
        return None;
    }
    digits.parse::<u64>().ok()?.checked_mul(1 << shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_pages_memory_and_collectors_pass() {
        for option in [
            "-XX:+UseLargePages",
            "-XX:-UseTransparentHugePages",
            "-XX:LargePageSizeInBytes=1g",
            "-Xmx6g",
            "-Xms1536m",
            "-XX:ActiveProcessorCount=4",
            "-XX:ShenandoahGCMode=generational",
            "-Xlp:objectheap:pagesize=2M",
            "-Xgcpolicy:gencon",
            "-XX:ReservedCodeCacheSize=240m",
        ] {
            assert_eq!(check(option), Ok(()), "{option}");
        }
    }

    #[test]
    fn others_do_not_and_numbers_have_a_range() {
        for option in [
            "",
            "-Xmx",
            "-Xmx0",
            "-Xmx1",
            "-Xmx06g",
            "-Xmx6g6g",
            "-Xmx+6g",
            "-Xmx99999999999999999999",
            "-Xmx17592186044416t",
            "-Xmx6g -javaagent:/tmp/x.jar",
            "-Xmx6g\r",
            "-Xmx6g\"",
            "-Xmx%h",
            "-XX:OnError=/tmp/x",
            "-XX:Flags=/tmp/x",
            "-XX:-BytecodeVerificationRemote",
            "-XX:+ShowMessageBoxOnError",
            "-XX:ShenandoahGCMode=generational\r",
            "-XX:ParallelGCThreads=0",
            "-XX:ErrorFile=1",
            "-javaagent:/tmp/x.jar",
            "-Dx=y",
            "@/tmp/x",
            "-Xgcpolicy:x",
        ] {
            assert!(check(option).is_err(), "{option:?}");
        }
    }
}
