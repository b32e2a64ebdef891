//! The numbers of a log: sizes, durations, and the two kinds of time stamps. Decimals may be parted by a comma: the JVM
//! prints them as the locale of the user has it.

use super::Heap;
use crate::base::{Bytes, days_since_1970};

/// The number in "0.0015140" or "0,0015140"; nothing else, and not below 0.
pub(super) fn decimal(text: &str) -> Option<f64> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b','));
    let number: f64 = is_plain.then(|| text.replace(',', ".").parse().ok()).flatten()?;
    number.is_finite().then_some(number)
}

/// "65536K", "24.0M", "0.0B", "2G".
pub(super) fn size(text: &str) -> Option<Bytes> {
    let unit = match text.bytes().last()? {
        b'B' => 1.0,
        b'K' => 1024.0,
        b'M' => 1024.0 * 1024.0,
        b'G' => 1024.0 * 1024.0 * 1024.0,
        b'T' => 1024.0 * 1024.0 * 1024.0 * 1024.0,
        _ => return None,
    };
    let bytes = decimal(&text[..text.len() - 1])? * unit;
    (bytes < 9e18).then_some(bytes as Bytes)
}

/// "65536K->1064K(251392K)", "24.0M(256.0M)->4.1M(256.0M)", "52M(20%)->10M(4%)".
pub(super) fn heap(text: &str) -> Option<Heap> {
    let (before, after) = text.split_once("->")?;
    let before = size(before.split('(').next()?)?;
    let (after, rest) = after.split_once('(').unwrap_or((after, ""));
    Some(Heap { before, after: size(after)?, committed: rest.strip_suffix(')').and_then(size) })
}

/// " (Normal) (System.gc())" gives "Normal" and "System.gc()".
pub(super) fn notes(text: &str) -> Vec<&str> {
    let (mut found, mut depth, mut start) = (Vec::new(), 0_usize, 0);
    for (at, letter) in text.char_indices() {
        match letter {
            '(' => {
                if depth == 0 {
                    start = at + 1;
                }
                depth += 1;
            }
            ')' if depth == 1 => {
                found.push(&text[start..at]);
                depth = 0;
            }
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    found
}

/// "2024-05-06T07:08:09.123+0200" in seconds since 1970, UTC.
pub(super) fn date(text: &str) -> Option<f64> {
    let bytes = text.as_bytes();
    if !text.is_ascii() || bytes.len() < 24 || bytes[10] != b'T' || !matches!(bytes[19], b'.' | b',') {
        return None;
    }
    let number = |from: usize, to: usize| text.get(from..to)?.parse::<i64>().ok();
    let days = days_since_1970(number(0, 4)?, number(5, 7)?, number(8, 10)?)?;
    let seconds = days * 86_400 + number(11, 13)? * 3600 + number(14, 16)? * 60 + number(17, 19)?;
    let sign = text.rfind(['+', '-']).filter(|at| *at > 19)?;
    let millis = format!("0.{}", text.get(20..sign)?).parse::<f64>().ok()?;
    let zone = text[sign + 1..].replace(':', "");
    let (hours, minutes) = (zone.get(..2)?.parse::<i64>().ok()?, zone.get(2..4)?.parse::<i64>().ok()?);
    let east = (hours * 60 + minutes) * 60;
    let offset = if bytes[sign] == b'-' { -east } else { east };
    Some((seconds - offset) as f64 + millis)
}

/// When a line was written, as far as its stamps say.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Stamp {
    pub uptime: Option<f64>,
    pub wall: Option<f64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_of_both_formats() {
        assert_eq!(size("65536K"), Some(65536 << 10));
        assert_eq!(size("24.5M"), Some(49 << 19));
        assert_eq!(size("0.0B"), Some(0));
        assert_eq!(
            (size("12"), size("-1K"), size(""), size("K"), size("1e9G")),
            (None, None, None, None, None)
        );
        assert_eq!(size("99999999999999999999T"), None, "no such memory");
        let heap_of = |text: &str| heap(text).map(|heap| (heap.before, heap.after, heap.committed));
        assert_eq!(heap_of("3M->1M(8M)"), Some((3 << 20, 1 << 20, Some(8 << 20))));
        assert_eq!(heap_of("24.0M(256.0M)->4.0M(256.0M)"), Some((24 << 20, 4 << 20, Some(256 << 20))));
        assert_eq!(heap_of("52M(20%)->10M(4%)"), Some((52 << 20, 10 << 20, None)));
        assert_eq!(heap_of("a->b"), None);
    }

    #[test]
    fn dates_are_of_one_zone() {
        // date -u -d 2024-02-29T23:59:59Z +%s
        assert_eq!(date("2024-02-29T23:59:59.250+0000"), Some(1_709_251_199.25));
        assert_eq!(date("2024-03-01T01:59:59.250+0200"), Some(1_709_251_199.25));
        assert_eq!(date("2024-02-29T20:29:59.250-0330"), Some(1_709_251_199.25));
        assert_eq!(date("2024-02-29T23:59:59,250+0000"), Some(1_709_251_199.25));
        for bad in [
            "",
            "2024-02-29",
            "2024-13-29T23:59:59.250+0000",
            "2024-02-29T23:59:59.250",
            "ä024-02-29T23:59:59.250+0000",
        ] {
            assert_eq!(date(bad), None, "{bad}");
        }
    }
}
