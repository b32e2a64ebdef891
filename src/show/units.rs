//! Bytes and shares for people.

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

/// "+1.4 MiB", "-12 KiB", "0".
pub fn human_signed(bytes: i64) -> String {
    match bytes {
        0 => "0".to_string(),
        1.. => format!("+{}", human(bytes as u64)),
        _ => format!("-{}", human(bytes.unsigned_abs())),
    }
}

/// `part` of `whole` in percent, one decimal; empty when the whole is 0.
pub fn percent(part: u64, whole: u64) -> String {
    match whole {
        0 => String::new(),
        _ => format!("{:.1}", part as f64 * 100.0 / whole as f64),
    }
}

/// At most `width` characters; the middle is left out, since paths differ at both ends.
pub fn shorten(text: &str, width: usize) -> String {
    let letters: Vec<char> =
        text.chars().map(|letter| if letter.is_control() { '?' } else { letter }).collect();
    if letters.len() <= width {
        return letters.into_iter().collect();
    }
    let tail = width.saturating_sub(1) * 2 / 3;
    let head = width.saturating_sub(1) - tail;
    let mut short: String = letters[..head].iter().collect();
    short.push('…');
    short.extend(&letters[letters.len() - tail..]);
    short
}

/// Words in lines of at most `width` columns.
pub fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if line.len() + 1 + word.len() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(shorten(word, width)),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_change_where_people_expect() {
        assert_eq!(human(0), "0");
        assert_eq!(human(1023), "1023 B");
        assert_eq!(human(528_384), "516 KiB");
        assert_eq!(human(157_659_136), "150.4 MiB");
        assert_eq!(human_signed(-4096), "-4 KiB");
        assert_eq!(percent(1, 0), "");
    }

    #[test]
    fn a_long_path_keeps_both_ends_and_no_control_characters() {
        assert_eq!(shorten("/usr/lib/jvm/java-17/lib/libjvm.so", 16), "/usr/…/libjvm.so");
        assert_eq!(shorten("a\x1b[2J", 10), "a?[2J");
    }
}
