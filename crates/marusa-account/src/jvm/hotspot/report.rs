//! What a JVM prints about its own memory when it is asked (`act::attach`): text in, plain structs out. These are the
//! other party's figures, against which `map::audit` holds ours.

pub mod heap_info;
pub mod large_pages;
pub mod malloc_info;
pub mod nmt;
pub mod system_map;

use crate::base::{Addr, Bytes, Range};

/// Why a report cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReportError {
    #[error("Native Memory Tracking is off in this JVM: start it with -XX:NativeMemoryTracking=summary")]
    NmtOff,
    /// JDK 8 takes KB, MB and GB alone; later ones take `scale=b` too.
    #[error("this JVM does not know the scale that was asked for")]
    BadScale,
    #[error("the report is not of a known form")]
    UnknownForm,
    #[error("the report has more than {0} lines")]
    OverLimit(usize),
}

/// A number that a report prints with a unit, and the unit: 4026K is 4,122,624 give or take 1,024.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Amount {
    pub bytes: Bytes,
    pub unit_bytes: Bytes,
}

/// "4026K", "128M", "131072KB", "16493526381", "10B".
fn amount(text: &str) -> Option<Amount> {
    let digits = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    let unit_bytes = match &text[digits..] {
        "" | "B" => 1,
        "K" | "KB" => 1 << 10,
        "M" | "MB" => 1 << 20,
        "G" | "GB" => 1 << 30,
        _ => return None,
    };
    let bytes = text[..digits].parse::<u64>().ok()?.checked_mul(unit_bytes)?;
    Some(Amount { bytes, unit_bytes })
}

/// "0x00000000f8000000".
fn address(text: &str) -> Option<Addr> {
    u64::from_str_radix(text.strip_prefix("0x")?, 16).ok().map(Addr)
}

/// "0x1000 - 0x2000", with or without the spaces.
fn range(text: &str) -> Option<Range> {
    let (start, end) = text.split_once('-')?;
    let (start, end) = (address(start.trim())?, address(end.trim())?);
    (start <= end).then_some(Range { start, end })
}

/// The number after `key` in a line like "reserved=131072KB, committed=70656KB".
fn after(line: &str, key: &str) -> Option<Amount> {
    let rest = &line[line.find(key)? + key.len()..];
    let end = rest.find(|letter: char| !letter.is_ascii_alphanumeric()).unwrap_or(rest.len());
    amount(&rest[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_their_unit() {
        assert_eq!(amount("4026K"), Some(Amount { bytes: 4026 << 10, unit_bytes: 1024 }));
        assert_eq!(amount("7"), Some(Amount { bytes: 7, unit_bytes: 1 }));
        assert_eq!(amount("99999999999999999999"), None);
        assert_eq!(amount("18446744073709551615GB"), None);
        assert_eq!(amount("K"), None);
        assert_eq!(after("(reserved=1KB, committed=2KB)", "committed="), amount("2KB"));
    }

    #[test]
    fn ranges_with_and_without_spaces() {
        assert_eq!(range("0x1000-0x2000"), Some(Range::of(0x1000, 0x2000)));
        assert_eq!(range("0x1000 - 0x2000"), Some(Range::of(0x1000, 0x2000)));
        assert_eq!(range("0x2000-0x1000"), None);
    }
}
