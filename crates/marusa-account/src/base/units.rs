//! Bytes and counts for people, in the sentences of rooms that `show` is above; and as options of the JVM and the kernel have them.

use serde::Serialize;

/// "1.4 GiB", "17.0 MiB", "1023 MiB", "528 KiB", "0".
pub fn human(bytes: u64) -> String {
    const UNITS: [(&str, u64); 4] = [("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    for (unit, size) in UNITS {
        if bytes >= size {
            let value = bytes as f64 / size as f64;
            // Nine characters at most: columns of ten never touch.
            let is_whole = unit == "KiB" || value >= 999.95;
            return if is_whole { format!("{value:.0} {unit}") } else { format!("{value:.1} {unit}") };
        }
    }
    if bytes == 0 { "0".to_string() } else { format!("{bytes} B") }
}

/// "1 JVM", "3 JVMs", "2 processes", "0 entries".
pub fn counted(count: impl TryInto<u64>, one: &str) -> String {
    let count = count.try_into().unwrap_or(u64::MAX);
    let is_sibilant = ["s", "x", "ch", "sh"].iter().any(|end| one.ends_with(end));
    match (count, one.strip_suffix('y')) {
        (1, _) => format!("1 {one}"),
        (_, Some(stem)) if !stem.ends_with(['a', 'e', 'o', 'u']) => format!("{count} {stem}ies"),
        _ if is_sibilant => format!("{count} {one}es"),
        _ => format!("{count} {one}s"),
    }
}

/// "4K", "64K", "2M", "1G": as the flags of a JVM take sizes.
pub fn size(bytes: u64) -> String {
    match bytes {
        bytes if bytes >= 1 << 30 && bytes % (1 << 30) == 0 => format!("{}G", bytes >> 30),
        bytes if bytes >= 1 << 20 && bytes % (1 << 20) == 0 => format!("{}M", bytes >> 20),
        bytes if bytes % 1024 == 0 => format!("{}K", bytes >> 10),
        bytes => format!("{bytes}"),
    }
}

/// "512m", "2G", "1073741824": as -XX options have sizes (JDK 25 src/hotspot/share/utilities/parseInteger.hpp, `parse_integer`),
/// and the kernel's command line (lib/cmdline.c, `memparse`).
pub fn bytes_of(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let shift = match text[digits.len()..].to_ascii_lowercase().as_str() {
        "" => 0,
        "k" => 10,
        "m" => 20,
        "g" => 30,
        "t" => 40,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(1 << shift)
}

/// The name of a variant without fields, as JSON has it: "hugetlb-2m".
pub fn word_of(variant: &impl Serialize) -> String {
    serde_json::to_value(variant).ok().and_then(|word| Some(word.as_str()?.to_string())).unwrap_or_default()
}

/// Each text once, in the order in which they came, and how often it did.
pub fn tally(texts: impl IntoIterator<Item = String>) -> Vec<(String, usize)> {
    let mut counts: Vec<(String, usize)> = Vec::new();
    for text in texts {
        match counts.iter_mut().find(|(known, _)| *known == text) {
            Some((_, count)) => *count += 1,
            None => counts.push((text, 1)),
        }
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_and_several() {
        assert_eq!(
            (counted(1_usize, "JVM"), counted(0_u64, "JVM")),
            ("1 JVM".to_string(), "0 JVMs".to_string())
        );
        let many = ["process", "class", "entry", "day", "thread", "mutex"].map(|one| counted(2_i32, one));
        assert_eq!(many, ["2 processes", "2 classes", "2 entries", "2 days", "2 threads", "2 mutexes"]);
    }

    #[test]
    fn sizes_of_options() {
        let read = ["2m", "1G", "48M", "16k", "1t", "4096"].map(bytes_of);
        assert_eq!(read, [2 << 20, 1 << 30, 48 << 20, 16 << 10, 1 << 40, 4096].map(Some));
        assert_eq!(["", "m", "2x", "2mm", "-1m", "1.5g", "99999999999t"].map(bytes_of), [None; 7]);
    }
}
