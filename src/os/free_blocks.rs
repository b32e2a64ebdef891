//! `/proc/buddyinfo`: how much free memory lies in pieces large enough for a huge page. A lower bound of what is available:
//! the kernel can move memory to make more, and with lazily initialised memory it has some that is not listed yet.

use super::host::text;
use super::machine::{base_page, huge_page};
use crate::base::{Bytes, Gap, Known, Why};

/// Free bytes in pieces of 2 MiB and more, of all nodes and zones.
pub fn free_huge_bytes() -> Known<Bytes> {
    let missing = || Gap::new("/proc/buddyinfo", Why::NotInThisKernel);
    parse(&text("/proc/buddyinfo").map_err(|_| missing())?).ok_or_else(missing)
}

/// "Node 0, zone   Normal   4   1   0 ...": pieces of one page, of two, of four, ...
fn parse(text: &str) -> Option<Bytes> {
    let mut sum: Option<Bytes> = None;
    for line in text.lines() {
        let counts = line.split_once("zone")?.1.split_whitespace().skip(1);
        let pieces =
            counts.enumerate().map(|(order, count)| (base_page() << order.min(40), count.parse::<u64>()));
        for (bytes, count) in pieces {
            let count = count.ok()?;
            let whole = if bytes >= huge_page() { count.saturating_mul(bytes) } else { 0 };
            sum = Some(sum.unwrap_or(0).saturating_add(whole));
        }
    }
    sum
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
