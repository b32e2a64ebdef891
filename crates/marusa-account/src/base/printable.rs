//! Text that acts on what shows it, made to be seen instead. A thread, a class, a file or an argument of the target may be named
//! with an escape sequence (ECMA-48), so that a terminal sets its title, moves its cursor or answers as if it were typed on; or
//! with an override of the direction of writing, so that one name looks like another.
//!
//! An acting character becomes `\u001b`, as JSON writes it (RFC 8259, section 7): in a JSON document it is still the same value
//! after parsing, and in a line of text nothing is lost. Every path to a terminal goes through here: text through
//! `os/terminal.rs`, columns of tables through `escaped`, since a line break is part of a name there.

use super::style::Style;
use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether text for people has ASCII letters only: set once, before anything is shown.
static IS_ASCII: AtomicBool = AtomicBool::new(false);

/// Text for people gets ASCII letters only from now on: the locale has no others.
pub fn only_ascii() {
    IS_ASCII.store(true, Ordering::Relaxed);
}

pub fn is_ascii() -> bool {
    IS_ASCII.load(Ordering::Relaxed)
}

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

/// One line as it will be shown: `escaped`, and in ASCII where only that can be shown. Columns are counted on this.
pub fn shown(text: &str) -> Cow<'_, str> {
    match is_ascii() {
        true => Cow::Owned(in_ascii(&escaped(text)).into_owned()),
        false => escaped(text),
    }
}

/// The letters that our own texts use in their ASCII forms; any other becomes `\u00e9`. A terminal that does not know UTF-8 may
/// take its bytes from 0x80 to 0x9f for C1 controls.
fn in_ascii(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        return Cow::Borrowed(text);
    }
    let mut ascii = String::with_capacity(text.len() + 16);
    for letter in text.chars() {
        match letter {
            letter if letter.is_ascii() => ascii.push(letter),
            letter => match ascii_form(letter) {
                Some(form) => ascii.push_str(form),
                None => push_escape(&mut ascii, letter),
            },
        }
    }
    Cow::Owned(ascii)
}

fn ascii_form(letter: char) -> Option<&'static str> {
    Some(match letter {
        // One letter for one: a text is shortened to a number of columns before it gets here.
        '…' => "~",
        '±' => "+-",
        '×' => "x",
        '·' => "*",
        'µ' => "u",
        '→' => "->",
        '–' | '—' | '─' => "-",
        '│' => "|",
        '┌' | '┐' | '└' | '┘' | '├' | '┤' | '┬' | '┴' | '┼' => "+",
        // Blocks of bars, from an eighth to the whole of a cell.
        '▏' | '▎' | '▍' => " ",
        '▌' | '▋' | '▊' | '▉' | '█' | '▓' => "#",
        '▒' => "=",
        '░' => "-",
        // The same from below: lines of sparks.
        '▁' | '▂' => "_",
        '▃' | '▄' => "-",
        '▅' | '▆' => "=",
        '▇' => "#",
        _ => return None,
    })
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

/// What a writer does with letters outside ASCII.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Letters {
    All,
    /// Their ASCII forms, for people.
    Ascii,
    /// `\u00e9`, which is the same value in JSON.
    Escaped,
}

/// What a writer does with the marks of styles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Marks {
    /// They are bytes like any other that is not UTF-8.
    Unknown,
    Dropped,
    Shown,
}

/// A writer that escapes all that passes through it except line breaks and tabs. What is not UTF-8 becomes U+FFFD: a terminal
/// may take a lone byte of 0x80 to 0x9f for a C1 control.
#[derive(Debug)]
pub struct Escaping<W: Write> {
    out: W,
    letters: Letters,
    marks: Marks,
    /// Something else than plain.
    is_styled: bool,
    /// The start of a character whose end is yet to be written.
    cut: Vec<u8>,
}

impl<W: Write> Escaping<W> {
    pub fn new(out: W) -> Escaping<W> {
        Escaping::with(out, Letters::All, Marks::Unknown)
    }

    fn with(out: W, letters: Letters, marks: Marks) -> Escaping<W> {
        Escaping { out, letters, marks, is_styled: false, cut: Vec::new() }
    }

    /// For people: in ASCII where only that can be shown, and with the styles of `base/style.rs` or without any.
    pub fn for_people(out: W, has_styles: bool) -> Escaping<W> {
        let letters = if is_ascii() { Letters::Ascii } else { Letters::All };
        let marks = if has_styles { Marks::Shown } else { Marks::Dropped };
        Escaping::with(out, letters, marks)
    }

    /// For JSON on its way to people: the same values, in ASCII where only that can be shown.
    pub fn for_json(out: W) -> Escaping<W> {
        let letters = if is_ascii() { Letters::Escaped } else { Letters::All };
        Escaping::with(out, letters, Marks::Unknown)
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut chunks = bytes.utf8_chunks().peekable();
        while let Some(chunk) = chunks.next() {
            self.put_text(chunk.valid())?;
            match chunk.invalid() {
                [] => {}
                [mark] if self.marks != Marks::Unknown && Style::of_mark(*mark).is_some() => {
                    self.put_style(Style::of_mark(*mark).unwrap_or_default())?;
                }
                cut if chunks.peek().is_none() && is_start(cut) => self.cut = cut.to_vec(),
                _ => self.put_text("\u{fffd}")?,
            }
        }
        Ok(())
    }

    fn put_text(&mut self, text: &str) -> io::Result<()> {
        match self.letters {
            Letters::All => self.out.write_all(escaped_lines(text).as_bytes()),
            Letters::Ascii => self.out.write_all(in_ascii(&escaped_lines(text)).as_bytes()),
            Letters::Escaped => self
                .out
                .write_all(escaped_where(text, |letter| acts(letter) || !letter.is_ascii()).as_bytes()),
        }
    }

    fn put_style(&mut self, style: Style) -> io::Result<()> {
        self.is_styled = style != Style::Plain;
        match self.marks {
            Marks::Shown => self.out.write_all(style.sequence().as_bytes()),
            _ => Ok(()),
        }
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
            let _ = self.put_text("\u{fffd}");
        }
        // A text that ended early must not colour what the next program writes.
        if self.is_styled {
            let _ = self.put_style(Style::Plain);
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
        let text = String::from_utf8(out.out.clone()).expect("UTF-8");
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
            assert_eq!(String::from_utf8_lossy(&out.out), "é\\u202e日\\u009b\\udb40\\udc41.", "{piece}");
        }
        let mut out = Escaping::new(Vec::new());
        out.write_all(b"a\x9b31mb\xff").expect("written");
        assert_eq!(String::from_utf8_lossy(&out.out), "a\u{fffd}31mb\u{fffd}");
        let mut behind = Vec::new();
        Escaping::new(&mut behind).write_all(b"a\xe2\x80").expect("written");
        assert_eq!(String::from_utf8_lossy(&behind), "a\u{fffd}");
    }

    /// Everything that a target may name, next to a style of ours.
    fn styled(has_styles: bool) -> String {
        let mut behind = Vec::new();
        let mut out = Escaping::for_people(&mut behind, has_styles);
        Style::Red.write(&mut out, "\u{1b}[32mé").and_then(|()| out.write_all(b"\xff\x9b")).expect("written");
        drop(out);
        String::from_utf8(behind).expect("UTF-8")
    }

    #[test]
    fn styles_become_sequences_or_nothing_and_the_text_between_stays_escaped() {
        assert_eq!(styled(true), "\u{1b}[0;31m\\u001b[32mé\u{1b}[0m\u{1b}[0;32m\u{fffd}\u{1b}[0m");
        assert_eq!(styled(false), "\\u001b[32mé\u{fffd}");
        let mut out = Escaping::new(Vec::new());
        Style::Red.write(&mut out, "x").expect("written");
        assert_eq!(String::from_utf8_lossy(&out.out), "\u{fffd}x\u{fffd}", "a file has no styles");
    }

    #[test]
    fn our_letters_have_ascii_forms_and_others_are_escaped() {
        assert_eq!(in_ascii("a…b ±3 ██▌▎ é"), "a~b +-3 ###  \\u00e9");
        assert!(matches!(in_ascii("plain"), Cow::Borrowed("plain")));
        let mut out = Escaping::with(Vec::new(), Letters::Escaped, Marks::Unknown);
        out.write_all("{\"a\": \"…é\u{1f600}\"}".as_bytes()).expect("written");
        let text = String::from_utf8(out.out.clone()).expect("UTF-8");
        let value: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        assert!(text.is_ascii() && value == serde_json::json!({"a": "…é\u{1f600}"}), "{text}");
    }
}
