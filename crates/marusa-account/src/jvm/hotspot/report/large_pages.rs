//! What a JVM says of its page sizes: the line of `VM.info` (a section of the collector's own words, JDK 16 on), and the
//! lines that -Xlog:pagesize prints while it starts (src/hotspot/share/runtime/os.cpp, `os::trace_page_sizes`). Both tell
//! what was asked for.

use super::{address, amount};
use crate::base::limits::REPORT_LINES_MAX;
use crate::base::{Bytes, Range};

/// "Enabled (Explicit)", "Enabled (Transparent)", "Disabled": the text after "Large Page Support:".
pub fn support(text: &str) -> Option<String> {
    let lines = text.lines().take(REPORT_LINES_MAX);
    let mut values =
        lines.filter_map(|line| Some(line.split_once("Large Page Support: ")?.1.trim().to_string()));
    values.next()
}

/// One reservation, as the JVM logged it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Logged {
    /// "Heap", "CodeHeap 'non-nmethods'", "Card Table".
    pub what: String,
    pub range: Range,
    pub page_bytes: Bytes,
}

/// "[0.015s][info][pagesize] Heap:  min=64M max=64M base=0x00000000fc000000 page_size=2M size=64M"; since JDK 22 the size
/// stands before the page size.
pub fn logged(text: &str) -> Vec<Logged> {
    let line = |line: &str| {
        let rest =
            line.split_once("pagesize").and_then(|(_, rest)| rest.split_once("] ")).map(|(_, rest)| rest)?;
        let (what, values) = rest.split_once(": ")?;
        let value =
            |name: &str| values.split(' ').find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
        Some(Logged {
            what: what.trim().to_string(),
            range: Range::sized(address(value("base")?)?, bytes(value("size")?)?),
            page_bytes: bytes(value("page_size")?)?,
        })
    };
    text.lines().take(REPORT_LINES_MAX).filter_map(line).collect()
}

/// "2M", "132K", "131073B": as the JVM prints exact sizes; System.map says "4K" too.
pub fn bytes(text: &str) -> Option<Bytes> {
    amount(&text.to_ascii_uppercase()).map(|amount| amount.bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_of_vm_info() {
        let text = "GC Precious Log:\n CPUs: 2 total, 2 available\n Large Page Support: Enabled (Explicit)\n NUMA: x\n";
        assert_eq!(support(text).as_deref(), Some("Enabled (Explicit)"));
        assert_eq!(support("HugePages_Total: 0\n"), None);
    }

    #[test]
    fn lines_of_jdk_11_and_25_and_none() {
        let text = "[0.015s][info][pagesize] Heap:  min=64M max=64M base=0x00000000fc000000 page_size=2M size=64M\n\
                    [0.013s][info][pagesize] Mark Bitmap:  min=1M max=1M base=0x00007f2caf4bd000 size=1M page_size=4K\n\
                    [0.005s][info][pagesize]   THP pagesize: 2M\nREADY 7\npagesize] x: base=0x1 size=99999999999G page_size=2M\n";
        let found = logged(text);
        assert_eq!(found.len(), 2, "{found:?}");
        assert_eq!(
            (found[0].what.as_str(), found[0].range.bytes(), found[0].page_bytes),
            ("Heap", 64 << 20, 2 << 20)
        );
        assert_eq!((found[1].what.as_str(), found[1].page_bytes), ("Mark Bitmap", 4096));
    }
}
