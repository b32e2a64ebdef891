//! What the JVM was asked for and says of its page sizes, beside what is. A JVM reports what it asked the kernel for when it
//! started, mostly before any page existed; the page tables tell what came of it.

use crate::base::Bytes;
use crate::snapshot::Snapshot;

/// What the JVM was told to use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    /// Pages of hugetlb: -XX:+UseLargePages without -XX:+UseTransparentHugePages.
    pub hugetlb: bool,
    pub transparent: bool,
    /// The command line asks for large pages, but the JVM has switched its flag off.
    pub refused: bool,
    /// -XX:LargePageSizeInBytes, where it is set.
    pub page_bytes: Option<Bytes>,
}

impl Asked {
    /// By the flags as they are in the JVM's memory, and by the command line, since a JVM that gets no large pages at all
    /// switches the flag off (os_linux.cpp, `os::large_page_init`).
    pub fn of(snapshot: &Snapshot) -> Asked {
        let flags = snapshot.jvm.as_ref().ok().map(|jvm| &jvm.flags);
        let flag = |name: &str| flags.and_then(|flags| flags.get(name)).map(String::as_str);
        let is_on = |name: &str| flag(name) == Some("true");
        let last = |name: &str| {
            let signs = snapshot.os.process.command.split(' ').rev();
            signs
                .filter_map(|word| word.strip_prefix("-XX:")?.split_at_checked(1))
                .find(|(_, rest)| *rest == name)
        };
        let told = |name: &str| last(name).is_some_and(|(sign, _)| sign == "+");
        let transparent = is_on("UseTransparentHugePages");
        let large = is_on("UseLargePages");
        let wanted = told("UseLargePages") || told("UseTransparentHugePages");
        Asked {
            hugetlb: !transparent && (large || told("UseLargePages") && !told("UseTransparentHugePages")),
            transparent,
            refused: flags.is_some() && wanted && !large && !transparent,
            page_bytes: flag("LargePageSizeInBytes")
                .and_then(|text| text.parse().ok())
                .filter(|bytes| *bytes > 0),
        }
    }
}
