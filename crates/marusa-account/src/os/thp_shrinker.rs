//! The kernel's own way to take huge pages apart that hold little: `shrink_underused` (Linux 6.12).
//!
//! Huge pages of private memory are on a list from the moment they are made; when memory runs short, a shrinker looks at
//! each, counts its pages of zeros, and splits it if they are more than `khugepaged/max_ptes_none` (mm/huge_memory.c,
//! `thp_underused`). With the 511 that is the default, nothing is ever looked at: 6.12 to 6.18 return at once for it, and
//! later only a page of 512 zeros is more. So on most hosts the setting is on, and does nothing.

use super::host::number;
use super::machine::{base_page, huge_page};
use super::thp::DIRECTORY;

/// The two settings that decide.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shrinker {
    /// `None`: this kernel has none, or hides it.
    pub is_on: Option<bool>,
    /// Pages of a huge one that may be zeros.
    pub max_ptes_none: Option<u64>,
}

impl Shrinker {
    pub fn read() -> Shrinker {
        let number = |file: &str| number::<u64>(format!("{DIRECTORY}/{file}"));
        Shrinker {
            is_on: number("shrink_underused").map(|flag| flag == 1),
            max_ptes_none: number("khugepaged/max_ptes_none"),
        }
    }

    /// Whether a huge page of `pages` pages, of which `zero_pages` are zeros, would be split when memory runs short.
    pub fn would_split(self, zero_pages: u64, pages: u64) -> bool {
        let is_looked_at = |most: &u64| *most < pages.saturating_sub(1);
        self.is_on == Some(true)
            && self.max_ptes_none.filter(is_looked_at).is_some_and(|most| zero_pages > most)
    }

    /// In words, of huge pages.
    pub fn text(self) -> String {
        let pages = huge_page() / base_page();
        match (self.is_on, self.max_ptes_none) {
            (None, _) => {
                "this kernel does not split huge pages that are mostly zeros (Linux 6.12 does)".to_string()
            }
            (Some(false), _) => "shrink_underused is 0: the kernel leaves them".to_string(),
            (Some(true), Some(most)) if most < pages - 1 => {
                format!(
                    "shrink_underused is 1: when memory runs short, those with more than {most} pages of zeros"
                )
            }
            (Some(true), _) => {
                "shrink_underused is 1, but khugepaged/max_ptes_none is 511: the kernel never scans"
                    .to_string()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn with_the_default_nothing_is_ever_split() {
        let default = Shrinker { is_on: Some(true), max_ptes_none: Some(511) };
        assert!(!default.would_split(512, 512) && default.text().contains("never scans"));
        let set = Shrinker { max_ptes_none: Some(409), ..default };
        assert!(set.would_split(410, 512) && !set.would_split(409, 512));
        assert!(!Shrinker { is_on: Some(false), ..set }.would_split(512, 512));
        assert!(!Shrinker { is_on: None, ..set }.would_split(512, 512));
        assert!(Shrinker::default().text().contains("does not split"));
    }
}
