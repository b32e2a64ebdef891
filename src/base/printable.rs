//! Text that acts on what shows it, made to be seen instead. A thread, a class, a file or an argument of the target may be named
//! with an escape sequence (ECMA-48), so that a terminal sets its title, moves its cursor or answers as if it were typed on; or
//! with an override of the direction of writing, so that one name looks like another.
//!
//! An acting character becomes `\u001b`, as JSON writes it (RFC 8259, section 7): in a JSON document it is still the same value
//! after parsing, and in a line of text nothing is lost. Every path to a terminal goes through here: text through
//! `os/terminal.rs`, columns of tables through `escaped`, since a line break is part of a name there.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, Write};

/// Whether a character does something to what shows it, or is not seen at all. A line break and a tab only lay out text.
pub fn acts(letter: char) -> bool {
    match letter {
        '\n' | '\t' => false,
        // C0, DEL and C1: ECMA-48, sections 5.2 and 5.3.
        letter if letter.is_control() => true,
        // The soft hyphen, the Arabic letter mark, the Mongolian vowel separator.
        '\u{ad}' | '\u{61c}' | '\u{180e}' => true,
        // Zero-width spaces and joiners, the marks of direction; separators of lines and paragraphs, embeddings and overrides of
        // direction; word joiner and invisible operators, isolates, deprecated formats (Unicode Standard Annex 9, table 4).
        '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' => true,
        // Byte order mark, interlinear annotation, variation selectors.
        '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{fe00}'..='\u{fe0f}' => true,
        // Tags, which are invisible copies of ASCII, and more variation selectors.
        '\u{e0000}'..='\u{e0fff}' => true,
        _ => false,
    }
}

/// One line: line breaks and tabs are escaped too.
pub fn escaped(text: &str) -> Cow<'_, str> {
    escaped_where(text, |letter| acts(letter) || matches!(letter, '\n' | '\t'))
}

/// Text of several lines: line breaks and tabs stay.
pub fn escaped_lines(text: &str) -> Cow<'_, str> {
    escaped_where(text, acts)
}

fn escaped_where(text: &str, is_escaped: impl Fn(char) -> bool) -> Cow<'_, str> {
    let Some(first) = text.find(&is_escaped) else { return Cow::Borrowed(text) };
    let mut safe = String::with_capacity(text.len() + 16);
    safe.push_str(&text[..first]);
    for letter in text[first..].chars() {
        if is_escaped(letter) { push_escape(&mut safe, letter) } else { safe.push(letter) }
    }
    Cow::Owned(safe)
}

fn push_escape(safe: &mut String, letter: char) {
    let mut units = [0; 2];
    for unit in letter.encode_utf16(&mut units) {
        // A String takes everything.
        let _ = write!(safe, "\\u{unit:04x}");
    }
}

/// A writer that escapes all that passes through it, but line breaks and tabs. What is not UTF-8 becomes U+FFFD: a terminal
/// may take a lone byte of 0x80 to 0x9f for a C1 control.
#[derive(Debug)]
pub struct Escaping<W: Write> {
    out: W,
    /// The start of a character whose end is yet to be written.
    cut: Vec<u8>,
}

impl<W: Write> Escaping<W> {
    pub fn new(out: W) -> Escaping<W> {
        Escaping { out, cut: Vec::new() }
    }

    /// What is behind it; a character that was cut is lost.
    pub fn get_ref(&self) -> &W {
        &self.out
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut chunks = bytes.utf8_chunks().peekable();
        while let Some(chunk) = chunks.next() {
            self.out.write_all(escaped_lines(chunk.valid()).as_bytes())?;
            match chunk.invalid() {
                [] => {}
                cut if chunks.peek().is_none() && is_start(cut) => self.cut = cut.to_vec(),
                _ => self.out.write_all("\u{fffd}".as_bytes())?,
            }
        }
        Ok(())
    }
}

/// Whether more bytes could make a character of these.
fn is_start(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none())
}

impl<W: Write> Write for Escaping<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.cut.is_empty() {
            self.put(bytes)?;
        } else {
            let mut whole = std::mem::take(&mut self.cut);
            whole.extend_from_slice(bytes);
            self.put(&whole)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

impl<W: Write> Drop for Escaping<W> {
    fn drop(&mut self) {
        if !self.cut.is_empty() {
            let _ = self.out.write_all("\u{fffd}".as_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One of each kind.
    const ACTING: &str = "\0\u{7}\u{8}\r\u{b}\u{c}\u{1b}\u{7f}\u{80}\u{85}\u{9b}\u{9d}\u{ad}\u{61c}\u{180e}\u{200b}\u{200c}\
                          \u{200d}\u{200e}\u{200f}\u{2028}\u{2029}\u{202a}\u{202b}\u{202c}\u{202d}\u{202e}\u{2060}\u{2064}\
                          \u{2066}\u{2067}\u{2068}\u{2069}\u{206f}\u{fe0f}\u{feff}\u{fff9}\u{fffb}\u{e0001}\u{e0041}\u{e0100}";

    #[test]
    fn what_acts_becomes_visible_and_what_is_read_stays() {
        assert_eq!(escaped("a\u{1b}]0;x\u{7}b"), "a\\u001b]0;x\\u0007b");
        assert_eq!(escaped("\u{202e}\u{e0041}\n\t"), "\\u202e\\udb40\\udc41\\u000a\\u0009");
        assert_eq!(escaped_lines("a\n\tb\r"), "a\n\tb\\u000d");
        for letter in ACTING.chars() {
            assert!(acts(letter) && escaped_lines(&letter.to_string()).is_ascii(), "{letter:?}");
        }
        for plain in ["", "grüße", "日本語", "e\u{301}", "עברית", "a b", "→ · …"] {
            assert!(matches!(escaped(plain), Cow::Borrowed(same) if same == plain), "{plain}");
        }
    }

    #[test]
    fn json_stays_the_same_value() {
        let mut out = Escaping::new(Vec::new());
        serde_json::to_writer_pretty(&mut out, &serde_json::json!({ACTING: [ACTING, "\n\"\\\t"]}))
            .expect("written");
        let text = String::from_utf8(out.get_ref().clone()).expect("UTF-8");
        assert!(!text.chars().any(acts), "{text}");
        let value: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(value, serde_json::json!({ACTING: [ACTING, "\n\"\\\t"]}));
    }

    #[test]
    fn a_character_may_be_cut_anywhere_and_bytes_that_are_no_text_are_replaced() {
        let text = "é\u{202e}日\u{9b}\u{e0041}.";
        for piece in 1..=4 {
            let mut out = Escaping::new(Vec::new());
            for bytes in text.as_bytes().chunks(piece) {
                out.write_all(bytes).expect("written");
            }
            assert_eq!(String::from_utf8_lossy(out.get_ref()), "é\\u202e日\\u009b\\udb40\\udc41.", "{piece}");
        }
        let mut out = Escaping::new(Vec::new());
        out.write_all(b"a\x9b31mb\xff").expect("written");
        assert_eq!(String::from_utf8_lossy(out.get_ref()), "a\u{fffd}31mb\u{fffd}");
        let mut behind = Vec::new();
        Escaping::new(&mut behind).write_all(b"a\xe2\x80").expect("written");
        assert_eq!(String::from_utf8_lossy(&behind), "a\u{fffd}");
    }
}
