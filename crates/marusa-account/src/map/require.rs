//! `map --require heap=2M`: whether memory is on the pages that the user relies on, for readiness probes and CI.
//!
//! NAME=PAGES asks for all that is in memory of NAME, NAME>=SHARE%@PAGES for a share of it. NAME is an area ("java_heap",
//! "Java heap", or the short "heap", "code-cache", "metaspace", "all") or a part as `--by part` names it. PAGES is a size
//! ("2M": pages of at least that size, from any provider), "thp" (transparent ones of 2 MiB), "hugetlb" or "hugetlb-2M".

use super::area::Area;
use super::page_use::{PageUse, Provider, percent};
use super::types::{MemoryMap, Owner};
use super::why::{self, Finding, Reason};
use crate::base::{Bytes, PAGE, Refused, bytes_of};
use crate::os::machine::huge_page;
use crate::snapshot::Snapshot;
use std::str::FromStr;

/// Short names that people use.
const SHORT: [(&str, Area); 7] = [
    ("heap", Area::JavaHeap),
    ("code-cache", Area::JitCode),
    ("code_cache", Area::JitCode),
    ("metaspace", Area::ClassMetadata),
    ("stacks", Area::Stack),
    ("libraries", Area::Code),
    ("gc", Area::Gc),
];
/// Names that are offered for a wrong one; letters of each that are looked at; and from how many letters on a piece of a name
/// is like it.
const NEAR_NAMED_MAX: usize = 3;
const NEAR_LETTERS_MAX: usize = 64;
const NEAR_PART_MIN: usize = 3;
/// How a remedy begins that is none.
const NO_REMEDY: &str = "none";
/// Reasons that an answer names.
const REASONS_NAMED_MAX: usize = 3;

/// One demand of the user.
#[derive(Clone, Debug, PartialEq)]
pub struct Requirement {
    pub text: String,
    pub name: String,
    pub pages: Wanted,
    /// Percentage of what is in memory.
    pub share: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// Pages of this size or larger.
    Size(Bytes),
    /// Transparent ones that one entry maps.
    Transparent,
    /// Pages of hugetlb, of this size or any.
    Hugetlb(Option<Bytes>),
}

impl FromStr for Requirement {
    type Err = Refused;

    fn from_str(text: &str) -> Result<Requirement, Refused> {
        let form =
            "it has the form NAME=PAGES or NAME>=SHARE%@PAGES: heap=2M, heap>=95%@thp, code-cache=hugetlb-2M";
        let (name, share, pages) = match text.split_once(">=") {
            Some((name, rest)) => {
                let (share, pages) = rest.split_once("%@").ok_or(form)?;
                (name, share.parse().map_err(|_| form)?, pages)
            }
            None => {
                let (name, pages) = text.split_once('=').ok_or(form)?;
                (name, 100.0, pages)
            }
        };
        if name.is_empty() || !(0.0..=100.0).contains(&share) {
            return Err(form.into());
        }
        let pages = wanted(&pages.to_ascii_lowercase()).ok_or_else(|| {
            format!(
                "'{pages}' is not a kind of pages: a power of two from 4K on (4K, 16K, 64K, 2M, 1G: that size or larger), thp, \
                 hugetlb, hugetlb-2M, hugetlb-1G"
            )
        })?;
        Ok(Requirement { text: text.to_string(), name: name.to_string(), pages, share })
    }
}

fn wanted(text: &str) -> Option<Wanted> {
    match text {
        "thp" => Some(Wanted::Transparent),
        "hugetlb" => Some(Wanted::Hugetlb(None)),
        _ => match text.strip_prefix("hugetlb-") {
            Some(rest) => Some(Wanted::Hugetlb(Some(page_size(rest)?))),
            None => Some(Wanted::Size(page_size(text)?)),
        },
    }
}

/// "2m", "64k", "1g", with or without the "b" of bytes.
fn page_size(text: &str) -> Option<Bytes> {
    let text = text.trim_end_matches("ib").trim_end_matches('b');
    let bytes = bytes_of(text).filter(|_| text.ends_with(['k', 'm', 'g']))?;
    (bytes.is_power_of_two() && (PAGE..=1 << 40).contains(&bytes)).then_some(bytes)
}

/// What was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    pub requirement: Requirement,
    pub met: bool,
    pub found: PageUse,
    pub fitting_bytes: Bytes,
    /// Why not, the most bytes first: reason, bytes.
    pub reasons: Vec<(Reason, Bytes)>,
    /// What would change the first of them that can be changed, and which of `reasons` that is.
    pub remedy: Option<(usize, String)>,
}

/// `None`: the account has neither an area nor a part of that name.
pub fn check(
    requirement: &Requirement,
    snapshot: &Snapshot,
    map: &MemoryMap,
    findings: &[Finding],
) -> Option<Answer> {
    let name = requirement.name.to_lowercase();
    let area = area(&name);
    let is_meant = |of: Area, part: &str| match area {
        Some(area) => of == area,
        None => name == "all" || part.to_lowercase() == name,
    };
    let meant: Vec<bool> = map.owners.iter().map(|Owner { area, part, .. }| is_meant(*area, part)).collect();
    if area.is_none() && !meant.contains(&true) {
        return None;
    }
    let found = PageUse::of(snapshot, map, |_, owner| meant[owner]);
    let fitting_bytes = found.on(|provider, bytes| requirement.pages.fits(provider, bytes));
    let enough = fitting_bytes as f64 >= found.resident_bytes as f64 * requirement.share / 100.0;
    let met = enough && found.resident_bytes > 0;
    let of_meant = findings.iter().filter(|finding| is_meant(finding.area, &finding.part));
    let mut held = match met {
        true => Vec::new(),
        false => why::held_back(requirement.pages, snapshot, map, &meant, of_meant),
    };
    held.retain(|held| held.reason != Reason::NeverTouched || found.resident_bytes == 0);
    held.truncate(REASONS_NAMED_MAX);
    let can_be_changed = held.iter().position(|held| !held.remedy.starts_with(NO_REMEDY)).unwrap_or(0);
    let remedy = held.get(can_be_changed).map(|held| (can_be_changed, held.remedy.clone()));
    let reasons = held.into_iter().map(|held| (held.reason, held.bytes)).collect();
    Some(Answer { requirement: requirement.clone(), met, found, fitting_bytes, reasons, remedy })
}

/// Names that are like this one, the most alike first: of areas, short and long, and of parts.
pub fn near(name: &str, map: &MemoryMap) -> Vec<String> {
    let name = name.to_lowercase();
    let areas = Area::ALL.iter().flat_map(|area| [area.name(), area.title()]);
    let parts = map.owners.iter().map(|owner| owner.part.as_str());
    let names = SHORT.iter().map(|(short, _)| *short).chain(["all"]).chain(areas).chain(parts);
    let mut found: Vec<(usize, &str)> = Vec::new();
    for known in names {
        let lower = known.to_lowercase();
        let is_part_of_it = name.len() >= NEAR_PART_MIN && lower.contains(&name);
        let changes = if is_part_of_it { 1 } else { changes(&name, &lower) };
        if changes <= (name.chars().count() / 3).max(1) && !found.iter().any(|(_, other)| *other == known) {
            found.push((changes, known));
        }
    }
    found.sort_by_key(|(changes, _)| *changes);
    found.into_iter().take(NEAR_NAMED_MAX).map(|(_, known)| known.to_string()).collect()
}

/// Letters to change, add or leave out to make the one word of the other (Levenshtein's distance).
fn changes(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().take(NEAR_LETTERS_MAX).collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (index, letter) in one.chars().take(NEAR_LETTERS_MAX).enumerate() {
        let mut diagonal = row[0];
        row[0] = index + 1;
        for (column, known) in other.iter().enumerate() {
            let changed = diagonal + usize::from(letter != *known);
            diagonal = row[column + 1];
            row[column + 1] = changed.min(row[column] + 1).min(diagonal + 1);
        }
    }
    row[other.len()]
}

fn area(name: &str) -> Option<Area> {
    let short = SHORT.iter().find(|(short, _)| *short == name).map(|(_, area)| *area);
    let long =
        || Area::ALL.iter().copied().find(|area| area.name() == name || area.title().to_lowercase() == name);
    short.or_else(long)
}

impl Wanted {
    pub(super) fn fits(self, provider: Provider, page_bytes: Bytes) -> bool {
        match self {
            Wanted::Size(wanted) => page_bytes >= wanted,
            Wanted::Transparent => provider == Provider::Transparent && page_bytes >= huge_page(),
            Wanted::Hugetlb(None) => provider == Provider::Hugetlb,
            Wanted::Hugetlb(Some(wanted)) => provider == Provider::Hugetlb && page_bytes == wanted,
        }
    }
}

impl Answer {
    /// "heap=2M: no, 0.0 % of 64.0 MiB in memory (4K 100 %); why: 64.0 MiB: not advised; ...; to change it: ...". A probe must
    /// not pass on a heap that is not touched yet, so what is not in memory meets nothing.
    pub fn text(&self, human: impl Fn(Bytes) -> String) -> String {
        let Answer { requirement, found, .. } = self;
        if found.resident_bytes == 0 {
            return format!("{}: no, nothing of it is in memory", requirement.text);
        }
        let share = percent(self.fitting_bytes, found.resident_bytes);
        let (word, sum) = (if self.met { "yes" } else { "no" }, human(found.resident_bytes));
        let mut text = format!("{}: {word}, {share} of {sum} in memory ({})", requirement.text, found.text());
        for (index, (reason, bytes)) in self.reasons.iter().enumerate() {
            text.push_str(if index == 0 { "; why: " } else { ", " });
            text.push_str(&format!("{}: {}", human(*bytes), reason.text()));
        }
        if let Some((of, remedy)) = &self.remedy {
            let word = match self.reasons.get(*of) {
                _ if remedy.starts_with(NO_REMEDY) => "remedy".to_string(),
                Some((_, bytes)) if *of > 0 => format!("to change it for the {}", human(*bytes)),
                _ => "to change it".to_string(),
            };
            text.push_str(&format!("; {word}: {remedy}"));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<(String, Wanted, f64), Refused> {
        text.parse::<Requirement>().map(|of| (of.name, of.pages, of.share))
    }

    #[test]
    fn the_forms_of_a_requirement() {
        assert_eq!(parsed("heap=2M"), Ok(("heap".to_string(), Wanted::Size(2 << 20), 100.0)));
        assert_eq!(parsed("eden space>=95%@thp"), Ok(("eden space".to_string(), Wanted::Transparent, 95.0)));
        assert_eq!(parsed("code-cache=hugetlb-1GB").map(|of| of.1), Ok(Wanted::Hugetlb(Some(1 << 30))));
        assert_eq!(parsed("heap=hugetlb").map(|of| of.1), Ok(Wanted::Hugetlb(None)));
        for bad in [
            "",
            "heap",
            "=2M",
            "heap=",
            "heap=3M",
            "heap=2",
            "heap>=2M",
            "heap>=101%@2M",
            "heap>=x%@2M",
            "heap=99999999999G",
        ] {
            assert!(parsed(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn names_of_areas_long_and_short() {
        assert_eq!((area("heap"), area("java heap")), (Some(Area::JavaHeap), Some(Area::JavaHeap)));
        assert_eq!((area("class_metadata"), area("eden")), (Some(Area::ClassMetadata), None));
    }

    #[test]
    fn names_that_are_nearly_right() {
        let owner = |part: &str| Owner {
            area: Area::JavaHeap,
            part: part.to_string(),
            instance: crate::map::types::Instance::None,
            how: String::new(),
        };
        let map = MemoryMap {
            spans: Vec::new(),
            owners: vec![owner("eden space"), owner("old generation")],
            in_use: Vec::new(),
            balance: Default::default(),
            gaps: Vec::new(),
        };
        assert_eq!(near("hep", &map)[0], "heap");
        assert_eq!(near("codecache", &map)[0], "code-cache");
        assert_eq!(near("eden", &map), ["eden space"]);
        assert_eq!(near("Java-heap", &map)[0], "java_heap");
        assert_eq!(near("nothing of that kind", &map), [""; 0]);
        assert_eq!((changes("kitten", "sitting"), changes("", "abc"), changes("same", "same")), (3, 3, 0));
    }

    #[test]
    fn larger_pages_fit_and_kinds_are_kept_apart() {
        assert!(Wanted::Size(2 << 20).fits(Provider::Hugetlb, 1 << 30));
        assert!(!Wanted::Size(2 << 20).fits(Provider::Transparent, 64 << 10));
        assert!(!Wanted::Transparent.fits(Provider::Hugetlb, 2 << 20));
        assert!(!Wanted::Hugetlb(Some(2 << 20)).fits(Provider::Hugetlb, 1 << 30));
    }
}
