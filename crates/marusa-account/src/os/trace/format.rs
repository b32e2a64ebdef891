//! `events/SYSTEM/NAME/format` and `events/header_page` of tracefs: where the fields of an event lie, and the kernel's words for
//! their values. Everything is asked for by name, because offsets and numbers change between releases.
//!
//! Forms: kernel/trace/trace_events.c, `f_show`, and kernel/trace/ring_buffer.c, `ring_buffer_print_page_header`. A line is
//! `field:unsigned long pfn;\toffset:8;\tsize:8;\tsigned:0;`.

use crate::base::limits::{TRACE_FIELDS_MAX, TRACE_PAGE_BYTES_MAX, TRACE_WORDS_MAX};
use std::collections::BTreeMap;

/// Where a field lies within the bytes of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    pub offset: usize,
    pub bytes: usize,
    pub is_signed: bool,
}

/// One event's form.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Format {
    /// What `common_type` of its events says.
    pub id: u16,
    pub fields: BTreeMap<String, Field>,
    /// What follows "print fmt:", one line of C.
    print: String,
}

/// The head of a page of a ring buffer, `struct buffer_data_page`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageForm {
    /// A `long` that says how many bytes of events follow, with flags in its upper half.
    pub commit: Field,
    pub data: usize,
    /// All of the page.
    pub bytes: usize,
}

impl Field {
    /// The number that is here; `None` where the event is too short, or it is not a number.
    pub fn number(&self, record: &[u8]) -> Option<i64> {
        let bytes = self.slice(record)?;
        let mut wide = [0_u8; 8];
        wide.get_mut(..bytes.len())?.copy_from_slice(bytes);
        let number = u64::from_le_bytes(wide) as i64;
        let unused = match bytes.len() {
            1 | 2 | 4 | 8 => 64 - 8 * bytes.len() as u32,
            _ => return None,
        };
        Some(if self.is_signed { (number << unused) >> unused } else { number })
    }

    /// A text of fixed length, up to its NUL.
    pub fn text(&self, record: &[u8]) -> Option<String> {
        let bytes = self.slice(record)?;
        let length = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
        Some(String::from_utf8_lossy(&bytes[..length]).into_owned())
    }

    fn slice<'a>(&self, record: &'a [u8]) -> Option<&'a [u8]> {
        record.get(self.offset..self.offset.checked_add(self.bytes)?)
    }
}

impl Format {
    pub fn parse(text: &str) -> Option<Format> {
        let id = text.lines().find_map(|line| line.strip_prefix("ID:"))?.trim().parse().ok()?;
        let fields: BTreeMap<String, Field> = text.lines().filter_map(field).take(TRACE_FIELDS_MAX).collect();
        let print = text.lines().find_map(|line| line.strip_prefix("print fmt:")).unwrap_or_default();
        Some(Format { id, fields, print: print.to_string() })
    }

    pub fn field(&self, name: &str) -> Option<Field> {
        self.fields.get(name).copied()
    }

    /// The words of `__print_symbolic(REC->NAME, {1, "skipped"}, {2, "deferred"})`.
    pub fn words(&self, name: &str) -> Vec<(i64, String)> {
        let start = format!("__print_symbolic(REC->{name},");
        let Some((_, list)) = self.print.split_once(&start) else { return Vec::new() };
        let entry = |entry: &str| {
            let (number, word) = entry.strip_prefix('{')?.split_once(',')?;
            Some((number.trim().parse().ok()?, unquoted(word)?.to_string()))
        };
        // No word of the kernel's holds a brace, and the list ends with the first ")" after a "}".
        let list = list.split_once("})").map_or(list, |(list, _)| list);
        list.split('}')
            .map(|part| part.trim_start_matches([',', ' ']))
            .filter_map(entry)
            .take(TRACE_WORDS_MAX)
            .collect()
    }

    /// The bit of a flag by its name: the last number of `{( unsigned long)(( gfp_t)((((1UL))) << (8))), "__GFP_ZERO"}`, as Linux
    /// 6.10 and later print it, or of `{(unsigned long)((( gfp_t)0x100u)), "__GFP_ZERO"}`.
    pub fn flag(&self, name: &str) -> Option<u64> {
        let (before, _) = self.print.split_once(&format!("\"{name}\""))?;
        let (_, expression) = before.rsplit_once('{')?;
        if let Some((_, shift)) = expression.rsplit_once("<<") {
            let shift: u32 = shift.trim_start_matches([' ', '(']).split(')').next()?.trim().parse().ok()?;
            return 1_u64.checked_shl(shift);
        }
        let (_, hexadecimal) = expression.rsplit_once("0x")?;
        let digits = hexadecimal.split(|letter: char| !letter.is_ascii_hexdigit()).next()?;
        u64::from_str_radix(digits, 16).ok().filter(|bits| bits.is_power_of_two())
    }
}

impl PageForm {
    pub fn parse(text: &str) -> Option<PageForm> {
        let fields: BTreeMap<String, Field> = text.lines().filter_map(field).take(TRACE_FIELDS_MAX).collect();
        let (commit, data) = (*fields.get("commit")?, *fields.get("data")?);
        let bytes = data.offset.checked_add(data.bytes)?;
        let commit_end = commit.offset.checked_add(commit.bytes)?;
        let is_sound = data.offset >= 16 && commit_end <= data.offset && bytes <= TRACE_PAGE_BYTES_MAX;
        // A 32-bit kernel has a commit of 4 bytes, which is read as well.
        (is_sound && matches!(commit.bytes, 4 | 8)).then_some(PageForm { commit, data: data.offset, bytes })
    }
}

/// A line of a field: its name and its place. The name is the last word of the declaration, without "[16]".
fn field(line: &str) -> Option<(String, Field)> {
    let mut parts = line.trim_start().strip_prefix("field:")?.split(';').map(str::trim);
    let declaration = parts.next()?;
    let name = declaration.rsplit([' ', '\t', '*']).next()?.split('[').next()?;
    let mut field = Field { offset: 0, bytes: 0, is_signed: false };
    for part in parts {
        match part.split_once(':') {
            Some(("offset", number)) => field.offset = number.parse().ok()?,
            Some(("size", number)) => field.bytes = number.parse().ok()?,
            Some(("signed", number)) => field.is_signed = number == "1",
            _ => {}
        }
    }
    (!name.is_empty() && field.bytes > 0).then(|| (name.to_string(), field))
}

fn unquoted(text: &str) -> Option<&str> {
    text.trim().strip_prefix('"')?.strip_suffix('"')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Linux 6.18.
    const END: &str = "name: mm_compaction_end\nID: 669\nformat:\n\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
        \tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
        \tfield:unsigned long zone_start;\toffset:8;\tsize:8;\tsigned:0;\n\tfield:bool sync;\toffset:40;\tsize:1;\tsigned:0;\n\
        \tfield:int status;\toffset:44;\tsize:4;\tsigned:1;\n\nprint fmt: \"mode=%s status=%s\", REC->sync ? \"sync\" : \"async\", \
        __print_symbolic(REC->status, {1, \"skipped\"}, {8, \"success\"}, {0, \"not_suitable_zone\"})\n";
    const HEADER: &str = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\
        \tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;\n";

    #[test]
    fn fields_and_words_of_an_event() {
        let format = Format::parse(END).expect("a format");
        assert_eq!(format.id, 669);
        assert_eq!(format.field("status"), Some(Field { offset: 44, bytes: 4, is_signed: true }));
        assert_eq!(format.field("mode"), None);
        let words = [(1, "skipped"), (8, "success"), (0, "not_suitable_zone")];
        assert_eq!(format.words("status"), words.map(|(number, word)| (number, word.to_string())));
        assert!(format.words("sync").is_empty());
        assert!(Format::parse("").is_none() && Format::parse("ID: 70000\n").is_none());
    }

    #[test]
    fn names_of_arrays_pointers_and_texts_elsewhere() {
        let name = |line: &str| field(line).map(|(name, field)| (name, field.offset, field.bytes));
        let line = "\tfield:struct mm_struct * mm;\toffset:8;\tsize:8;\tsigned:0;";
        assert_eq!(name(line), Some(("mm".into(), 8, 8)));
        assert_eq!(
            name("\tfield:char comm[16];\toffset:8;\tsize:16;\tsigned:0;"),
            Some(("comm".into(), 8, 16))
        );
        assert_eq!(
            name("\tfield:__data_loc char[] filename;\toffset:8;\tsize:4;"),
            Some(("filename".into(), 8, 4))
        );
        assert_eq!(name("\tfield:int broken;\toffset:x;\tsize:4;"), None);
    }

    #[test]
    fn numbers_of_each_size_and_short_events() {
        let number = |offset, bytes, is_signed| {
            Field { offset, bytes, is_signed }.number(&[0xff, 0xff, 0xff, 0xff, 1])
        };
        assert_eq!(number(0, 4, true), Some(-1));
        assert_eq!(number(0, 4, false), Some(0xffff_ffff));
        assert_eq!(number(0, 1, true), Some(-1));
        assert_eq!(number(4, 1, false), Some(1));
        assert_eq!(
            (number(4, 2, false), number(0, 3, false), number(usize::MAX, 8, false)),
            (None, None, None)
        );
        let text = Field { offset: 1, bytes: 4, is_signed: false };
        assert_eq!((text.text(b"xab\0d").as_deref(), text.text(b"x")), (Some("ab"), None));
    }

    #[test]
    fn the_bit_of_a_flag_in_both_forms() {
        let format = |print: &str| Format { print: print.to_string(), ..Format::default() };
        let new = format(
            "{( unsigned long)(( gfp_t)(((((1UL))) << (10))|((((1UL))) << (11)))), \"__GFP_RECLAIM\"}, \
            {( unsigned long)(( gfp_t)((((1UL))) << (8))), \"__GFP_ZERO\"}, {( unsigned long)(( gfp_t)((((1UL))) << (22))), \
            \"__GFP_ACCOUNT\"}",
        );
        assert_eq!((new.flag("__GFP_ZERO"), new.flag("__GFP_ACCOUNT")), (Some(0x100), Some(0x40_0000)));
        let old = format("{(unsigned long)((( gfp_t)0x100u)), \"__GFP_ZERO\"}");
        assert_eq!((old.flag("__GFP_ZERO"), old.flag("__GFP_NONE")), (Some(0x100), None));
    }

    #[test]
    fn the_head_of_a_page_and_heads_that_are_none() {
        let form = PageForm::parse(HEADER).expect("a head");
        assert_eq!((form.commit.offset, form.data, form.bytes), (8, 16, 4096));
        assert_eq!(PageForm::parse(&HEADER.replace("4080", "99999999999")), None);
        assert_eq!(PageForm::parse(&HEADER.replace("offset:16", "offset:12")), None);
    }
}
