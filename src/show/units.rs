//! Bytes and shares for people.

use super::paint;
use crate::base::printable::shown;
use crate::base::style::Style;
pub use crate::base::{counted, human};
use crate::show::width::width;
use std::io::{self, Write};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// In fewer columns words are cut: text then comes below what starts it, and is set in so far.
const TEXT_COLUMNS_MIN: usize = 16;
const NARROW_INDENT: usize = 4;

/// "+1.4 MiB", "-12 KiB", "0".
pub fn human_signed(bytes: i64) -> String {
    match bytes {
        0 => "0".to_string(),
        1.. => format!("+{}", human(bytes as u64)),
        _ => format!("-{}", human(bytes.unsigned_abs())),
    }
}

/// "-" where it is not known.
pub fn or_dash(figure: Option<impl ToString>) -> String {
    figure.map_or("-".to_string(), |figure| figure.to_string())
}

/// "-" for nothing.
pub fn human_or_dash(bytes: u64) -> String {
    if bytes == 0 { "-".to_string() } else { human(bytes) }
}

/// "12 KiB", "-12 KiB": a negative amount has its sign.
pub fn human_amount(bytes: i64) -> String {
    u64::try_from(bytes).map_or_else(|_| human_signed(bytes), human)
}

/// `part` of `whole` in percent, one decimal; empty when the whole is 0.
pub fn percent(part: u64, whole: u64) -> String {
    match whole {
        0 => String::new(),
        _ => format!("{:.1}", part as f64 * 100.0 / whole as f64),
    }
}

/// Columns of a terminal that a text takes: a Chinese character has two, a combining accent none (Unicode Standard Annex 11).
pub fn columns(text: &str) -> usize {
    text.width()
}

/// One line of at most `width` columns, with nothing in it that acts on a terminal; the middle is left out, since paths differ at
/// both ends.
pub fn shorten(text: &str, width: usize) -> String {
    let text = shown(text);
    if columns(&text) <= width {
        return text.into_owned();
    }
    let tail = width.saturating_sub(1) * 2 / 3;
    let head = width.saturating_sub(1) - tail;
    let mut short: String = within(text.chars(), head).collect();
    let end: Vec<char> = within(text.chars().rev(), tail).collect();
    short.push('…');
    short.extend(end.iter().rev());
    short
}

/// The last `width` columns of a text that is longer: the end of a class or a path says more than its start.
pub fn shorten_start(text: &str, width: usize) -> String {
    let text = shown(text);
    if columns(&text) <= width {
        return text.into_owned();
    }
    let end: Vec<char> = within(text.chars().rev(), width.saturating_sub(1)).collect();
    std::iter::once('…').chain(end.into_iter().rev()).collect()
}

/// `shorten`, and blanks up to that width: `{:<width$}` counts characters, not columns.
pub fn fitted(text: &str, width: usize) -> String {
    let mut text = shorten(text, width);
    let blanks = width.saturating_sub(columns(&text));
    text.extend(std::iter::repeat_n(' ', blanks));
    text
}

/// As many characters as there are columns for.
fn within(letters: impl Iterator<Item = char>, width: usize) -> impl Iterator<Item = char> {
    let mut used = 0;
    letters.take_while(move |letter| {
        used += letter.width().unwrap_or(0);
        used <= width
    })
}

/// Words in lines of at most `width` columns; a number stays with its unit.
pub fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in words(text) {
        // Without control characters, also where the text is Marusa's own.
        let word = shorten(word, width);
        match lines.last_mut() {
            Some(line) if columns(line) + 1 + columns(&word) <= width => {
                line.push(' ');
                line.push_str(&word);
            }
            _ => lines.push(word),
        }
    }
    lines
}

/// Words in lines as wide as the terminal; `first` starts the first line, `next` each other.
pub fn paragraph(out: &mut dyn Write, first: &str, next: &str, text: &str) -> io::Result<()> {
    painted(out, (first, Style::Plain), next, (text, Style::Plain))
}

/// Each line of a text, wrapped.
pub fn prose(out: &mut dyn Write, text: &str) -> io::Result<()> {
    text.split('\n').try_for_each(|line| paragraph(out, "", "", line))
}

/// `paragraph` whose start and text have a style.
pub fn painted(
    out: &mut dyn Write,
    (first, style_of_first): (&str, Style),
    next: &str,
    (text, style): (&str, Style),
) -> io::Result<()> {
    let room = width().saturating_sub(columns(first).max(columns(next)));
    if room < TEXT_COLUMNS_MIN && !first.trim().is_empty() {
        paint::line(out, style_of_first, &shorten(first.trim_end(), width()))?;
        let start = " ".repeat(NARROW_INDENT);
        return painted(out, (&start, Style::Plain), &start, (text, style));
    }
    for (index, line) in wrapped(text, room).iter().enumerate() {
        match index {
            0 => paint::put(out, style_of_first, first)?,
            _ => write!(out, "{next}")?,
        }
        paint::line(out, style, line)?;
    }
    Ok(())
}

/// `paragraph` whose lines are set in below the text of the first.
pub fn led(out: &mut dyn Write, first: &str, text: &str) -> io::Result<()> {
    paragraph(out, first, &" ".repeat(columns(first)), text)
}

/// What is there to be pasted: never wrapped, and below what starts it where it would not fit next to it.
pub fn pasted(out: &mut dyn Write, first: &str, command: &str) -> io::Result<()> {
    if columns(first) + columns(command) <= width() {
        return writeln!(out, "{first}{command}");
    }
    if !first.trim().is_empty() {
        writeln!(out, "{}", shorten(first.trim_end(), width()))?;
    }
    writeln!(out, "{}{command}", " ".repeat(NARROW_INDENT))
}

/// A gap or a note, each line set in.
pub fn faint(out: &mut dyn Write, text: &str, indent: usize) -> io::Result<()> {
    let start = " ".repeat(indent);
    painted(out, (&start, Style::Plain), &start, (text, Style::Dim))
}

/// `text` with each line set in.
pub fn indented(out: &mut dyn Write, text: &str, indent: usize) -> io::Result<()> {
    led(out, &" ".repeat(indent), text)
}

/// The first line is set in, and each other twice as far.
pub fn hanging(out: &mut dyn Write, text: &str, indent: usize) -> io::Result<()> {
    paragraph(out, &" ".repeat(indent), &" ".repeat(2 * indent), text)
}

/// The number of rows that are not shown, where there are any.
pub fn more(out: &mut dyn Write, rows: usize, shown_max: usize, indent: usize) -> io::Result<()> {
    match rows.saturating_sub(shown_max) {
        0 => Ok(()),
        more => indented(out, &format!("and {more} more (--json lists all)"), indent),
    }
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
    fn text_comes_below_a_start_that_leaves_it_no_room() {
        let shown = |first: &str| {
            let mut out = Vec::new();
            crate::show::width::within(40, || led(&mut out, first, "a few words")).expect("written");
            String::from_utf8(out).expect("UTF-8")
        };
        assert_eq!(shown("id: "), "id: a few words\n");
        let long = "an-identifier-of-a-rule  info..critical  ";
        assert_eq!(shown(long), "an-identifier-of-a-rule  info..critical\n    a few words\n");
    }

    #[test]
    fn a_command_stays_whole_below_a_start_that_leaves_it_no_room() {
        let shown = |command: &str| {
            let mut out = Vec::new();
            crate::show::width::within(40, || pasted(&mut out, "  run     ", command)).expect("written");
            String::from_utf8(out).expect("UTF-8")
        };
        assert_eq!(shown("jcmd 7 help"), "  run     jcmd 7 help\n");
        let long = "jcmd 7 VM.native_memory scale=KB";
        assert_eq!(shown(long), format!("  run\n    {long}\n"));
    }

    #[test]
    fn a_long_path_keeps_both_ends_and_no_control_characters() {
        assert_eq!(shorten("/usr/lib/jvm/java-17/lib/libjvm.so", 16), "/usr/…/libjvm.so");
        assert_eq!(shorten("a\x1b[2J\u{202e}", 20), "a\\u001b[2J\\u202e");
        assert_eq!(shorten("a\nb", 20), "a\\u000ab", "a name is one line");
    }

    #[test]
    fn what_is_wide_or_has_no_width_is_counted_as_a_terminal_shows_it() {
        assert_eq!((columns("日本"), columns("e\u{301}")), (4, 1));
        assert_eq!(shorten("日本語日本語", 7), "日…本語");
        assert_eq!(
            (fitted("日本", 6), fitted("e\u{301}", 3)),
            ("日本  ".to_string(), "e\u{301}  ".to_string())
        );
        assert_eq!(shorten_start("org.例.Main", 8), "…例.Main");
        for width in 0..12 {
            let short = shorten("日e\u{301}本\u{9b}abc語", width);
            assert!(columns(&short) <= width.max(1), "{width}: {short}");
        }
    }
}
