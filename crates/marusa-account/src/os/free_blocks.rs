//! `/proc/buddyinfo`: how much free memory lies in pieces large enough for a huge page. A lower bound of what is available:
//! the kernel can move memory to make more, and with lazily initialised memory it has some that is not listed yet.

use super::buddyinfo;
use super::host::text;
use super::machine::huge_page;
use crate::base::{Bytes, Gap, Known, Why};

/// Free bytes in pieces of 2 MiB and more, of all nodes and zones.
pub fn free_huge_bytes() -> Known<Bytes> {
    let missing = || Gap::new("/proc/buddyinfo", Why::NotInThisKernel);
    parse(&text("/proc/buddyinfo").map_err(|_| missing())?).ok_or_else(missing)
}

fn parse(text: &str) -> Option<Bytes> {
    let zones = buddyinfo::parse(text);
    let sum = zones.iter().fold(0, |sum: u64, zone| sum.saturating_add(zone.pages_of(huge_page())));
    zones.iter().any(|zone| !zone.blocks.is_empty()).then(|| sum.saturating_mul(huge_page()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_of_512_pages_and_more_count() {
        let text = "Node 0, zone      DMA      1      1      0      0      1      1      1      0      1      1      2 \n\
                    Node 0, zone   Normal   9999   9999   9999   9999   9999   9999   9999   9999   9999      3      0 \n";
        assert_eq!(parse(text), Some((2 << 20) + 2 * (4 << 20) + 3 * (2 << 20)));
        assert_eq!(parse(""), None);
        assert_eq!(parse("Node 0, zone Normal x"), None);
    }

    #[test]
    fn this_host_has_a_list() {
        assert!(free_huge_bytes().is_ok());
    }
}
