//! What the JVM was asked for and says of its page sizes, next to what is. A JVM reports what it asked the kernel for when it
//! started, mostly before any page existed; the page tables have the result.

use super::area::Area;
use super::page_use::{PageUse, Provider};
use super::types::MemoryMap;
use crate::base::{Bytes, Range, overlapping, size};
use crate::jvm::hotspot::report::large_pages::Logged;
use crate::jvm::hotspot::report::system_map;
use crate::os::machine::huge_page;
use crate::snapshot::Snapshot;
use std::collections::BTreeMap;

/// What the JVM was started to use.
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
    /// Whether the user has asked for large pages, whatever the JVM made of it.
    pub fn is_for_large(&self) -> bool {
        self.hugetlb || self.is_for_transparent()
    }

    pub fn is_for_transparent(&self) -> bool {
        self.transparent || self.refused && !self.hugetlb
    }

    /// By the flags as they are in the JVM's memory, and by the command line, since a JVM that gets no large pages at all
    /// switches the flag off (os_linux.cpp, `os::large_page_init`).
    pub fn of(snapshot: &Snapshot) -> Asked {
        let flags = snapshot.jvm.as_ref().ok().map(|jvm| &jvm.flags);
        let flag = |name: &str| flags.and_then(|flags| flags.get(name)).map(String::as_str);
        let is_on = |name: &str| flag(name) == Some("true");
        let last = |name: &str| {
            let words = snapshot.os.process.arguments.iter().rev();
            words
                .filter_map(|word| word.strip_prefix("-XX:")?.split_at_checked(1))
                .find(|(_, rest)| *rest == name)
        };
        let asked_for = |name: &str| last(name).is_some_and(|(sign, _)| sign == "+");
        let transparent = is_on("UseTransparentHugePages");
        let large = is_on("UseLargePages");
        let wanted = asked_for("UseLargePages") || asked_for("UseTransparentHugePages");
        Asked {
            hugetlb: !transparent
                && (large || asked_for("UseLargePages") && !asked_for("UseTransparentHugePages")),
            transparent,
            refused: flags.is_some() && wanted && !large && !transparent,
            page_bytes: flag("LargePageSizeInBytes")
                .and_then(|text| text.parse().ok())
                .filter(|bytes| *bytes > 0),
        }
    }
}

/// What the JVM itself has reported, where it was asked or its log could be read.
#[derive(Clone, Debug, Default)]
pub struct Said {
    /// Behind "Large Page Support:" of VM.info.
    pub support: Option<String>,
    pub system_map: Option<Vec<system_map::Row>>,
    /// -Xlog:pagesize.
    pub logged: Vec<Logged>,
}

/// One claim, and what is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// "Java heap", "JIT code".
    pub about: String,
    /// "-XX:+UseLargePages", "VM.info", "System.map", "-Xlog:pagesize".
    pub source: String,
    /// In the claim's own words.
    pub says: String,
    pub is: PageUse,
    pub verdict: Verdict,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    True,
    /// It holds for some of the memory.
    Partly,
    False,
    /// Nothing of it is in memory.
    Unknown,
}

impl Verdict {
    pub fn word(self) -> &'static str {
        match self {
            Verdict::True => "true",
            Verdict::Partly => "partly true",
            Verdict::False => "false",
            Verdict::Unknown => "unknown",
        }
    }

    /// By the share for which it holds. The head or tail of a mapping makes no claim false, nor a page here and there true.
    fn of(fitting: Bytes, resident: Bytes) -> Verdict {
        let per_mille = u128::from(fitting) * 1000 / u128::from(resident.max(1));
        match per_mille {
            _ if resident == 0 => Verdict::Unknown,
            990.. => Verdict::True,
            10.. => Verdict::Partly,
            _ => Verdict::False,
        }
    }
}

/// What the JVM puts on large pages on request.
const ABOUT: [Area; 2] = [Area::JavaHeap, Area::JitCode];

/// Every claim that could be found.
pub fn claims(snapshot: &Snapshot, map: &MemoryMap, said: &Said) -> Vec<Claim> {
    let asked = Asked::of(snapshot);
    let mut claims = Vec::new();
    for area in ABOUT {
        let is = PageUse::of(snapshot, map, |_, owner| map.owners[owner].area == area);
        claims.extend(of_flags(&asked, area, &is));
        if let (Area::JavaHeap, Some(support)) = (area, &said.support) {
            claims.push(of_support(support, is.clone()));
        }
    }
    let metaspace = snapshot.jvm.as_ref().ok().and_then(|jvm| jvm.flags.get("UseLargePagesInMetaspace"));
    if metaspace.is_some_and(|value| value == "true") {
        let is = PageUse::of(snapshot, map, |_, owner| map.owners[owner].area == Area::ClassMetadata);
        claims.push(claim(Area::ClassMetadata, "-XX:+UseLargePagesInMetaspace", "large pages", is, is_large));
    }
    claims.extend(said.logged.iter().map(|logged| {
        let is = PageUse::within(snapshot, map, logged.range);
        let says = format!("page_size={}", size(logged.page_bytes));
        of_size(logged.what.clone(), "-Xlog:pagesize", says, logged.page_bytes, is)
    }));
    if let Some(system_map) = &said.system_map {
        claims.extend(of_system_map(snapshot, map, system_map));
    }
    claims
}

fn is_large(_: Provider, page_bytes: Bytes) -> bool {
    page_bytes >= huge_page()
}

fn claim(
    area: Area,
    source: &str,
    says: impl Into<String>,
    is: PageUse,
    fits: impl Fn(Provider, Bytes) -> bool,
) -> Claim {
    let verdict = Verdict::of(is.on(fits), is.resident_bytes);
    Claim { about: area.title().to_string(), source: source.to_string(), says: says.into(), is, verdict }
}

fn of_flags(asked: &Asked, area: Area, is: &PageUse) -> Option<Claim> {
    let page = asked.page_bytes.map_or(String::new(), |bytes| format!(", up to {}", size(bytes)));
    let of = |source: &str, says: String, provider: Provider| {
        claim(area, source, says, is.clone(), move |by, page_bytes| {
            by == provider && page_bytes >= huge_page()
        })
    };
    Some(match asked {
        Asked { refused: true, hugetlb: true, .. } => of(
            "command line",
            "large pages (the JVM has switched its flag off)".to_string(),
            Provider::Hugetlb,
        ),
        Asked { refused: true, .. } => of(
            "command line",
            "transparent huge pages (the JVM has switched its flag off)".to_string(),
            Provider::Transparent,
        ),
        Asked { hugetlb: true, .. } => of("-XX:+UseLargePages", format!("hugetlb{page}"), Provider::Hugetlb),
        Asked { transparent: true, .. } => {
            of("-XX:+UseTransparentHugePages", "transparent huge pages".to_string(), Provider::Transparent)
        }
        _ => return None,
    })
}

/// "Enabled (Explicit)", "Enabled (Transparent)", "Disabled", "Disabled (OS enforced)".
fn of_support(support: &str, is: PageUse) -> Claim {
    let provider = if support.contains("Explicit") { Provider::Hugetlb } else { Provider::Transparent };
    let enabled = support.starts_with("Enabled");
    let fits = move |by, page_bytes| match enabled {
        true => by == provider && page_bytes >= huge_page(),
        false => page_bytes < huge_page(),
    };
    claim(Area::JavaHeap, "VM.info", format!("Large Page Support: {support}"), is, fits)
}

/// A claim of one page size for one range.
fn of_size(about: String, source: &str, says: String, page_bytes: Bytes, is: PageUse) -> Claim {
    let verdict = Verdict::of(is.on(|_, bytes| bytes == page_bytes), is.resident_bytes);
    Claim { about, source: source.to_string(), says, is, verdict }
}

/// What the rows that lie in the heap and the code cache say, column by column: `pgsz` is KernelPageSize of smaps, which is
/// 4 KiB for transparent huge pages, while the note next to it may be right.
fn of_system_map(snapshot: &Snapshot, map: &MemoryMap, said: &[system_map::Row]) -> Vec<Claim> {
    let mut claims: Vec<Claim> = Vec::new();
    for area in ABOUT {
        let spans =
            map.spans.iter().filter(|span| span.shares.iter().any(|s| map.owners[s.owner].area == area));
        let ranges: Vec<Range> = spans.map(|span| span.range).collect();
        let mut sizes: BTreeMap<Bytes, Vec<Range>> = BTreeMap::new();
        let mut notes: BTreeMap<&str, Vec<Range>> = BTreeMap::new();
        for row in said {
            if overlapping(&ranges, row.range, |range| *range).next().is_none() {
                continue;
            }
            if let Some(page_bytes) = row.page_bytes {
                sizes.entry(page_bytes).or_default().push(row.range);
            }
            for note in row.notes.iter().filter(|note| SIZE_NOTES.contains(&note.as_str())) {
                notes.entry(note).or_default().push(row.range);
            }
        }
        let within = |rows: &[Range]| {
            PageUse::of(snapshot, map, |span, owner| {
                map.owners[owner].area == area && rows.iter().any(|row| row.covers(span.range))
            })
        };
        let of_sizes = sizes.iter().map(|(page_bytes, rows)| {
            let says = format!("pgsz {}", size(*page_bytes));
            of_size(area.title().to_string(), "System.map", says, *page_bytes, within(rows))
        });
        let of_notes = notes.iter().map(|(note, rows)| of_note(area, note, within(rows)));
        claims.extend(of_sizes.chain(of_notes).filter(|claim| claim.is.resident_bytes > 0));
    }
    claims
}

/// Notes of System.map that claim a kind of pages (memMapPrinter_linux.cpp): "thp" is AnonHugePages above 0, "huge" the
/// flag "ht".
const SIZE_NOTES: [&str; 2] = ["thp", "huge"];

fn of_note(area: Area, note: &str, is: PageUse) -> Claim {
    let says = format!("notes {note}");
    if note == "huge" {
        return claim(area, "System.map", says, is, |by, _| by == Provider::Hugetlb);
    }
    // It says that there are some, not how many.
    let some = is.on(|by, page_bytes| by == Provider::Transparent && page_bytes >= huge_page()) > 0;
    claim(area, "System.map", says, is, move |_, _| some)
}
