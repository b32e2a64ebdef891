//! `/proc/cmdline`: the huge pages that the kernel sets aside when it starts. New words must say the sum, since
//! the last ones of a size count.
//!
//! Words: Documentation/admin-guide/kernel-parameters.txt, `hugepages=`, `hugepagesz=`, `default_hugepagesz=`. `hugepages=` counts
//! for the `hugepagesz=` before it, or for the default size.

use crate::base::{Bytes, bytes_of};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BootPages {
    pub default_bytes: Option<Bytes>,
    /// Size (`None`: the default one) and count as it stands there: "512", or "0:256,1:256" by nodes.
    pub pages: Vec<(Option<Bytes>, String)>,
    /// "always", "madvise", "never" of `transparent_hugepage=`.
    pub thp: Option<String>,
}

pub fn parse(text: &str) -> BootPages {
    let mut boot = BootPages::default();
    let mut size = None;
    // What follows "--" is for init.
    for word in text.split_ascii_whitespace().take_while(|word| *word != "--") {
        let Some((key, value)) = word.split_once('=') else { continue };
        match key {
            "default_hugepagesz" => boot.default_bytes = bytes_of(value),
            "hugepagesz" => size = bytes_of(value),
            "hugepages" => boot.pages.push((size, value.to_string())),
            "transparent_hugepage" => boot.thp = Some(value.to_string()),
            _ => {}
        }
    }
    boot
}

impl BootPages {
    /// Pages of this size that the kernel sets aside when it starts; `None`: its words are by nodes.
    pub fn count(&self, page_bytes: Bytes, default_bytes: Bytes) -> Option<u64> {
        let mut of_size = self.pages.iter().filter(|(size, _)| size.unwrap_or(default_bytes) == page_bytes);
        of_size.next_back().map_or(Some(0), |(_, count)| count.parse().ok())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_words_of_a_size_count() {
        let boot = parse(
            "quiet default_hugepagesz=1G hugepages=2 hugepagesz=2M hugepages=100 hugepages=512 -- hugepages=9\n",
        );
        assert_eq!(boot.default_bytes, Some(1 << 30));
        assert_eq!((boot.count(2 << 20, 1 << 30), boot.count(1 << 30, 1 << 30)), (Some(512), Some(2)));
        assert_eq!(parse("hugepages=0:4,1:4").count(2 << 20, 2 << 20), None);
        assert_eq!(parse("").count(2 << 20, 2 << 20), Some(0));
    }
}
