//! What the target's words become before they are in a page: markup in them is shown, not obeyed; control characters and the
//! ones that turn the direction of writing around are made visible.

use crate::base::printable::escaped_lines;
use crate::show::plot;
use serde::Serialize;

/// Within markup, also within quotation marks.
pub fn escaped(text: &str) -> String {
    plot::escaped(&visible(text))
}

/// Without characters that act on what shows them: the same ones as on a terminal.
pub fn visible(text: &str) -> String {
    escaped_lines(text).into_owned()
}

/// Data in a script element: nothing in it can end the element or begin another (HTML Living Standard, "Restrictions for contents
/// of script elements"). The escapes are JSON's own, so what reads it sees the same text.
pub fn json(value: &impl Serialize) -> String {
    // No map in it has keys other than texts.
    let text = serde_json::to_string(value).unwrap_or_default();
    let text = escaped_lines(&text);
    let mut safe = String::with_capacity(text.len() + text.len() / 64);
    for letter in text.chars() {
        match letter {
            '<' => safe.push_str("\\u003c"),
            '>' => safe.push_str("\\u003e"),
            '&' => safe.push_str("\\u0026"),
            letter => safe.push(letter),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    #[test]
    fn what_acts_becomes_visible_and_markup_stays_text() {
        assert_eq!(escaped("<img src=x onerror=alert(1)>"), "&lt;img src=x onerror=alert(1)&gt;");
        assert!(!escaped("a\u{1b}[2J\u{202e}gpj.exe\u{0}").chars().any(|letter| letter.is_control()));
        assert!(!escaped("\u{202e}").contains('\u{202e}'));
        assert_eq!(escaped("\"'&"), "&quot;&#39;&amp;");
    }

    #[test]
    fn data_can_not_leave_its_element_and_reads_back_the_same() {
        let value = Value::from("</script><script>alert(1)</script><!--\u{2028}");
        let text = json(&value);
        assert!(!text.contains('<') && !text.contains('>') && !text.contains('\u{2028}'), "{text}");
        assert_eq!(serde_json::from_str::<Value>(&text).expect("JSON"), value);
    }
}
