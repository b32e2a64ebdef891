//! Styles of text for people: bold, dim and four of the colours that every terminal has, so that they are read on dark and on light
//! ones.
//!
//! A style travels through writers as one byte that UTF-8 never has, so no text of a target can contain one. `Escaping`
//! (`base/printable.rs`) turns it into an escape sequence, or into nothing; it is the only place that writes such sequences.

use std::io::{self, Write};

/// How text is shown where there are styles; it must say the same without them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Style {
    #[default]
    Plain,
    /// Headings and totals.
    Bold,
    /// Gaps and notes.
    Dim,
    /// Critical findings.
    Alarm,
    Red,
    Yellow,
    Cyan,
    Green,
}

/// The first byte that is in no UTF-8 text (RFC 3629, section 3) and for which no length was ever defined.
const FIRST_MARK: u8 = 0xf8;
const ALL: [Style; 8] = [
    Style::Plain,
    Style::Bold,
    Style::Dim,
    Style::Alarm,
    Style::Red,
    Style::Yellow,
    Style::Cyan,
    Style::Green,
];

impl Style {
    /// Writes `text` between the mark of this style and that of plain text.
    pub fn write(self, out: &mut dyn Write, text: &str) -> io::Result<()> {
        if self == Style::Plain || text.is_empty() {
            return out.write_all(text.as_bytes());
        }
        out.write_all(&[self.mark()])?;
        out.write_all(text.as_bytes())?;
        out.write_all(&[Style::Plain.mark()])
    }

    fn mark(self) -> u8 {
        FIRST_MARK + self as u8
    }

    /// The style of a byte, where it is a mark.
    pub(super) fn of_mark(byte: u8) -> Option<Style> {
        ALL.get(usize::from(byte.checked_sub(FIRST_MARK)?)).copied()
    }

    /// SELECT GRAPHIC RENDITION (ECMA-48, section 8.3.117); each also ends the style before it.
    pub(super) fn sequence(self) -> &'static str {
        match self {
            Style::Plain => "\u{1b}[0m",
            Style::Bold => "\u{1b}[0;1m",
            Style::Dim => "\u{1b}[0;2m",
            Style::Alarm => "\u{1b}[0;1;31m",
            Style::Red => "\u{1b}[0;31m",
            Style::Yellow => "\u{1b}[0;33m",
            Style::Cyan => "\u{1b}[0;36m",
            Style::Green => "\u{1b}[0;32m",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_style_has_a_mark_of_its_own_that_no_text_contains() {
        for style in ALL {
            assert_eq!(Style::of_mark(style.mark()), Some(style));
            assert!(std::str::from_utf8(&[style.mark()]).is_err());
        }
        assert_eq!((Style::of_mark(b'a'), Style::of_mark(0xf7)), (None, None));
    }
}
