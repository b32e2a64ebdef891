//! Bytes and shares for people.

pub use crate::base::human;

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

/// Words in lines of at most `width` columns; a number stays with its unit.
pub fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in words(text) {
        // Without control letters, whoever the text is of.
        let word = shorten(word, width);
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(&word);
            }
            _ => lines.push(word),
        }
    }
    lines
}

fn words(text: &str) -> Vec<&str> {
    const UNITS: [&str; 7] = ["B", "KiB", "MiB", "GiB", "TiB", "%", "ns"];
    let mut words: Vec<(usize, usize)> = Vec::new();
    let mut at = 0;
    for word in text.split(' ') {
        let end = at + word.len();
        let is_unit = UNITS.contains(&word.trim_end_matches([',', ';', '.', ')', ':']));
        match words.last_mut() {
            Some((start, last))
                if is_unit && text[*start..*last].ends_with(|letter: char| letter.is_ascii_digit()) =>
            {
                *last = end;
            }
            _ => words.push((at, end)),
        }
        at = end + 1;
    }
    words.into_iter().map(|(start, end)| &text[start..end]).collect()
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
    fn words_are_wrapped_and_numbers_stay_with_their_units() {
        assert_eq!(wrapped("freed 4.1 MiB, of it", 12), ["freed", "4.1 MiB, of", "it"]);
        assert_eq!(wrapped("½ ½ ½ 7 %", 5), ["½ ½ ½", "7 %"]);
        assert_eq!(wrapped("", 5), [""]);
    }

    #[test]
    fn a_long_path_keeps_both_ends_and_no_control_characters() {
        assert_eq!(shorten("/usr/lib/jvm/java-17/lib/libjvm.so", 16), "/usr/…/libjvm.so");
        assert_eq!(shorten("a\x1b[2J", 10), "a?[2J");
    }
}
