//! `System.map` (JDK 21.0.8 and 22 and on): the JVM's own /proc/self/smaps with, for each mapping, the set of NMT tags of
//! all regions that touch it. A mapping is never split, so "CODE,GC" does not say which bytes are whose.
//!
//! The columns moved: JDK 22 and 23 print `from - to vsize prot rss hugetlb pgsz notes info file` in some order, leaving
//! empty notes and info blank; 21.0.8 and 24 on print `from-to` and a dash for what is empty. So the columns before the
//! notes, which are never blank, go by the header, and the rest by what the words are.
//!
//! Source: nmt/memMapPrinter.cpp, os/linux/memMapPrinter_linux.cpp.

use super::large_pages::bytes;
use super::{ReportError, range};
use crate::base::limits::REPORT_LINES_MAX;
use crate::base::{Bytes, Range};

/// One mapping, as the JVM read it from the kernel, and what the JVM knows of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    pub range: Range,
    /// The column "pgsz": what smaps calls KernelPageSize.
    pub page_bytes: Option<Bytes>,
    /// "com", "thp", "huge", ...
    pub notes: Vec<String>,
    /// "JAVAHEAP", "GC", ...: short names, in the report's order; empty: the JVM knows nothing of it, or runs without NMT.
    pub tags: Vec<String>,
}

/// Words of the notes column, in all versions.
const NOTES: [&str; 12] =
    ["shrd", "com", "swap", "thp", "thpad", "thpadv", "thpel", "nothp", "huge", "nores", "shared", "-"];

/// Short names (memMapPrinter.cpp, NMT_FLAGS_DO). The other tags print as "mtSomething".
const SHORT_NAMES: [&str; 12] =
    ["CARDTBL", "CDS", "CLASS", "CODE", "GC", "INTERN", "JAVAHEAP", "JDK", "META", "POLL", "STACK", "TEST"];

pub fn parse(text: &str) -> Result<Vec<Row>, ReportError> {
    let mut rows = Vec::new();
    let mut columns: Option<Columns> = None;
    for (number, line) in text.lines().enumerate() {
        if number == REPORT_LINES_MAX {
            return Err(ReportError::OverLimit(REPORT_LINES_MAX));
        }
        if line.starts_with("from ") && columns.is_none() {
            columns = Columns::of_header(line);
        } else if line.starts_with("0x") {
            let columns = columns.as_ref().ok_or(ReportError::UnknownForm)?;
            rows.push(row(line, columns).ok_or(ReportError::UnknownForm)?);
        }
    }
    if rows.is_empty() { Err(ReportError::UnknownForm) } else { Ok(rows) }
}

/// The columns between the addresses and the notes, and the place of the page size among them.
struct Columns {
    page_bytes: Option<usize>,
    count: usize,
}

impl Columns {
    fn of_header(line: &str) -> Option<Columns> {
        let names: Vec<&str> =
            line.split_ascii_whitespace().skip(2).take_while(|name| *name != "notes").collect();
        let page_bytes = names.iter().position(|name| *name == "pgsz");
        names.contains(&"rss").then_some(Columns { page_bytes, count: names.len() })
    }
}

fn row(line: &str, columns: &Columns) -> Option<Row> {
    let mut rest = line;
    let mut bounds = word(&mut rest)?.to_string();
    if !bounds.contains('-') {
        bounds.push_str(word(&mut rest).filter(|dash| *dash == "-")?);
        bounds.push_str(word(&mut rest)?);
    }
    let (mut page_bytes, mut notes) = (None, Vec::new());
    for column in 0..columns.count {
        let value = word(&mut rest)?;
        if Some(column) == columns.page_bytes {
            page_bytes = bytes(value);
        }
    }
    let mut after = rest;
    if let Some(found) = word(&mut after).filter(|notes| notes.split(',').all(|note| NOTES.contains(&note))) {
        notes = found.split(',').filter(|note| *note != "-").map(str::to_string).collect();
        rest = after;
    }
    let tags = word(&mut rest).and_then(tags).unwrap_or_default();
    Some(Row { range: range(&bounds)?, page_bytes, notes, tags })
}

/// Takes the next word off `rest`.
fn word<'a>(rest: &mut &'a str) -> Option<&'a str> {
    let start = rest.trim_start();
    let end = start.find(char::is_whitespace).unwrap_or(start.len());
    *rest = &start[end..];
    (end > 0).then(|| &start[..end])
}

/// "CODE,GC", "STACK-26717-Attach-Listener"; `None` when a word is not a tag, so that it is the file.
fn tags(info: &str) -> Option<Vec<String>> {
    let tag = |part: &str| {
        let name = part.split(['-', ':']).next()?;
        let is_other = name.strip_prefix("mt").is_some_and(|rest| rest.starts_with(char::is_uppercase));
        (is_other || SHORT_NAMES.contains(&name)).then(|| name.to_string())
    };
    info.split(',').map(tag).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = "from               to                        vsize prot          rss      hugetlb pgsz notes            info                                  file\n";

    #[test]
    fn the_form_of_jdk_21_and_25() {
        let text = format!(
            "Memory mappings:\nfrom, to, vsize: address range and size\nrss:             resident set size\n\
             {HEADER}\
             ==========\n\
             0x00000000f8000000-0x0000000100020000    134348800 rw-p     53903360            0 4K   com              JAVAHEAP,CLASS                        -\n\
             0x00007f3f00ee2000-0x00007f3f0132f000      4509696 rw-p      2469888            0 4K   com              CODE,GC                               -\n\
             0x00007f2ac1904000-0x00007f2ac1a00000      1032192 rw-p        32768            0 4K   com,nothp        STACK-26717-Attach-Listener           -\n\
             0x0000040000000000-0x0000040008000000    134217728 rw-s     30351360            0 4K   shrd,com         JAVAHEAP                              /memfd:java_heap\n\
             0x00007fc405322000-0x00007fc405323000         4096 ---p            0            0 4K   com,nothp        -                                     -\n\
             0x000055a73b8c9000-0x000055a73b8ca000         4096 r--p         4096            0 4K   com              -                                     /opt/my java/bin/java\n\
             \nNumber of mappings: 6\n             vsize: 2702454784 (2577M)\n               rss: 67829760 (66240K)\n"
        );
        let rows = parse(&text).expect("a good report");
        assert_eq!((rows.len(), rows[0].page_bytes), (6, Some(4096)));
        assert_eq!(rows[0].tags, ["JAVAHEAP", "CLASS"]);
        assert_eq!(
            (&rows[2].tags[..], &rows[2].notes[..]),
            (&["STACK".to_string()][..], &["com", "nothp"].map(String::from)[..])
        );
        assert!(rows[4].tags.is_empty() && rows[5].tags.is_empty());
    }

    #[test]
    fn the_forms_of_jdk_22_and_23_with_blank_columns() {
        let text = "from                 to                      vsize prot        rss    hugetlb pgsz notes            info\n\
                    0x0000000414000000 - 0x0000000453000000 1056964608 rw-p   12345344          0 16g  thp,thpadv       JAVAHEAP /shared/tmp.txt\n\
                    0x00007f0000000000 - 0x00007f0000021000     135168 rw-p      12288          0 4K                    \n\
                    0x00007f0000030000 - 0x00007f0000040000      65536 rw-p       8192          0 4K                    STACK:77-main\n\
                    0x00007f0000050000 - 0x00007f0000060000      65536 r-xp       4096          0 4K   nores            /lib/libc.so.6\n";
        let rows = parse(text).expect("a good report");
        assert_eq!((&rows[0].tags[..], rows[0].page_bytes), (&["JAVAHEAP".to_string()][..], Some(16 << 30)));
        assert_eq!(rows[2].tags, ["STACK"]);
        assert!(rows[1].tags.is_empty() && rows[3].tags.is_empty());
        let other = "from to size rss hugetlb pgsz prot notes vm info/file\n\
                     0x1000 - 0x2000 4096 4096 0 4K rw-p - META -\n";
        assert_eq!(parse(other).expect("a good report")[0].tags, ["META"]);
    }

    #[test]
    fn without_nmt_and_without_sense() {
        let text = format!(
            "NMT is disabled. VM info not available.\n{HEADER}0x1000-0x2000 4096 rw-p 4096 0 4K com - -\n"
        );
        assert!(parse(&text).expect("a good report")[0].tags.is_empty());
        assert_eq!(parse(""), Err(ReportError::UnknownForm));
        assert_eq!(parse("0x1000-0x2000 4096 rw-p"), Err(ReportError::UnknownForm));
        assert_eq!(parse(&format!("{HEADER}0x1000\n")), Err(ReportError::UnknownForm));
    }
}
