//! What the target's words become before they stand in a page: markup in them is shown, not obeyed; control characters and those
//! that turn the direction of writing around are made visible.

use crate::show::plot;
use serde_json::Value;

/// Within markup, also within quotation marks.
pub fn escaped(text: &str) -> String {
    plot::escaped(&visible(text))
}

/// Without characters that act on what shows them: control characters, and overrides of the direction (Unicode Standard Annex 9,
/// "Bidirectional Character Types": 202A to 202E, 2066 to 2069), which make a name look like another.
pub fn visible(text: &str) -> String {
    let is_acting = |letter: char| {
        letter.is_control() && letter != '\n'
            || matches!(letter, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}' | '\u{feff}')
    };
    text.chars().map(|letter| if is_acting(letter) { '\u{fffd}' } else { letter }).collect()
}

/// Data in a script element: nothing in it can end the element or begin another (HTML Living Standard, "Restrictions for contents
/// of script elements"). The escapes are JSON's own, so what reads it sees the same text.
pub fn json(value: &Value) -> String {
    let text = value.to_string();
    let mut safe = String::with_capacity(text.len() + text.len() / 64);
    for letter in text.chars() {
        match letter {
            '<' => safe.push_str("\\u003c"),
            '>' => safe.push_str("\\u003e"),
            '&' => safe.push_str("\\u0026"),
            '\u{2028}' => safe.push_str("\\u2028"),
            '\u{2029}' => safe.push_str("\\u2029"),
            letter => safe.push(letter),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_acts_becomes_visible_and_markup_stays_text() {
        assert_eq!(escaped("<img src=x onerror=alert(1)>"), "&lt;img src=x onerror=alert(1)&gt;");
        assert!(!escaped("a\u{1b}[2J\u{202e}gpj.exe\u{0}").chars().any(|letter| letter.is_control()));
        assert!(!escaped("\u{202e}").contains('\u{202e}'));
        assert_eq!(escaped("\"'&"), "&quot;&#39;&amp;");
    }

    #[test]
    fn data_can_not_leave_its_element_and_reads_back_the_same() {
        let value = json!({"name": "</script><script>alert(1)</script><!--\u{2028}"});
        let text = json(&value);
        assert!(!text.contains('<') && !text.contains('>') && !text.contains('\u{2028}'), "{text}");
        assert_eq!(serde_json::from_str::<Value>(&text).expect("JSON"), value);
    }
}
