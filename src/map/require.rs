//! `map --require heap=2M`: whether memory is on the pages that somebody relies on, for readiness probes and CI.
//!
//! NAME=PAGES asks for all that is in memory of NAME, NAME>=SHARE%@PAGES for a share of it. NAME is an area ("java_heap",
//! "Java heap", or the short "heap", "code-cache", "metaspace", "all") or a part as `--by part` names it. PAGES is a size
//! ("2M": pages of that size or larger, whoever gives them), "thp" (transparent ones of 2 MiB), "hugetlb" or "hugetlb-2M".

use super::area::Area;
use super::page_use::{PageUse, Provider, percent};
use super::types::{MemoryMap, Owner};
use super::why::{Finding, Reason};
use crate::base::{Bytes, PAGE};
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
/// Reasons that an answer names.
const REASONS_NAMED_MAX: usize = 3;

/// One demand of the user.
#[derive(Clone, Debug, PartialEq)]
pub struct Requirement {
    pub text: String,
    pub name: String,
    pub pages: Wanted,
    /// Of what is in memory, in percent.
    pub share: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// Pages of this size or larger.
    Size(Bytes),
    /// Transparent ones that one entry maps.
    Transparent,
    /// Of hugetlb, of this size or any.
    Hugetlb(Option<Bytes>),
}

impl FromStr for Requirement {
    type Err = String;

    fn from_str(text: &str) -> Result<Requirement, String> {
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
            return Err(form.to_string());
        }
        let pages = wanted(&pages.to_ascii_lowercase()).ok_or_else(|| {
            format!("'{pages}' is no kind of pages: 4K, 64K, 2M, 1G, thp, hugetlb, hugetlb-2M, hugetlb-1G")
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
    let shift = match text.chars().last()? {
        'k' => 10,
        'm' => 20,
        'g' => 30,
        _ => return None,
    };
    let number: u64 = text[..text.len() - 1].parse().ok()?;
    let bytes = number.checked_mul(1 << shift)?;
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
    let mut reasons: Vec<(Reason, Bytes)> = Vec::new();
    for finding in findings.iter().filter(|finding| !met && is_meant(finding.area, &finding.part)) {
        match reasons.iter_mut().find(|(reason, _)| *reason == finding.reason) {
            Some((_, bytes)) => *bytes += finding.bytes,
            None => reasons.push((finding.reason.clone(), finding.bytes)),
        }
    }
    reasons.retain(|(reason, _)| *reason != Reason::NeverTouched || found.resident_bytes == 0);
    reasons.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
    reasons.truncate(REASONS_NAMED_MAX);
    Some(Answer { requirement: requirement.clone(), met, found, fitting_bytes, reasons })
}

fn area(name: &str) -> Option<Area> {
    let short = SHORT.iter().find(|(short, _)| *short == name).map(|(_, area)| *area);
    let long =
        || Area::ALL.iter().copied().find(|area| area.name() == name || area.title().to_lowercase() == name);
    short.or_else(long)
}

impl Wanted {
    fn fits(self, provider: Provider, page_bytes: Bytes) -> bool {
        match self {
            Wanted::Size(wanted) => page_bytes >= wanted,
            Wanted::Transparent => provider == Provider::Transparent && page_bytes >= 2 << 20,
            Wanted::Hugetlb(None) => provider == Provider::Hugetlb,
            Wanted::Hugetlb(Some(wanted)) => provider == Provider::Hugetlb && page_bytes == wanted,
        }
    }
}

impl Answer {
    /// "heap=2M: no, 0.0 % of 64.0 MiB in memory is (4K 100 %): not advised; the mode is madvise".
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
            text.push_str(&format!("{} ({})", reason.text(), human(*bytes)));
        }
        if let (false, true, Wanted::Hugetlb(_)) = (self.met, self.reasons.is_empty(), requirement.pages) {
            text.push_str("; to change it: a pool of huge pages, then -XX:+UseLargePages");
        }
        if let (false, Some((reason, _))) = (self.met, self.reasons.first()) {
            text.push_str(&format!(
                "; to change it: {}",
                reason.remedy(area(&requirement.name.to_lowercase()).unwrap_or(Area::JavaHeap))
            ));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<(String, Wanted, f64), String> {
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
    fn larger_pages_fit_and_kinds_are_kept_apart() {
        assert!(Wanted::Size(2 << 20).fits(Provider::Hugetlb, 1 << 30));
        assert!(!Wanted::Size(2 << 20).fits(Provider::Transparent, 64 << 10));
        assert!(!Wanted::Transparent.fits(Provider::Hugetlb, 2 << 20));
        assert!(!Wanted::Hugetlb(Some(2 << 20)).fits(Provider::Hugetlb, 1 << 30));
    }
}
