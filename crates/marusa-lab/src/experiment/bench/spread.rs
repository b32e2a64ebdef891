//! Figures of several runs of an experiment: the middle one, how far they spread, and what grew.

use crate::base::Bytes;
use crate::experiment::stats::sample::median_of_sorted;

/// `later` less `earlier`.
pub fn growth(earlier: Option<Bytes>, later: Option<Bytes>) -> Option<i64> {
    let signed = |bytes: Bytes| i64::try_from(bytes).unwrap_or(i64::MAX);
    Some(signed(later?).saturating_sub(signed(earlier?)))
}

/// Some figures of the same kind: the middle one, and how far they spread.
#[derive(Clone, Copy, Debug, PartialEq, schemars::JsonSchema, serde::Serialize)]
pub struct Spread {
    pub median: f64,
    pub min: f64,
    pub max: f64,
    pub count: usize,
}

impl Spread {
    /// `None`: there are none, or one of them is not known.
    pub fn of(figures: impl IntoIterator<Item = Option<f64>>) -> Option<Spread> {
        let mut all: Vec<f64> = figures.into_iter().collect::<Option<_>>()?;
        all.sort_by(f64::total_cmp);
        let (min, max) = (*all.first()?, *all.last()?);
        Some(Spread { median: median_of_sorted(&all), min, max, count: all.len() })
    }

    /// Of bytes.
    pub fn mib(self) -> Spread {
        let mib = |bytes: f64| bytes / 1048576.0;
        Spread { median: mib(self.median), min: mib(self.min), max: mib(self.max), ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_does_not_grow() {
        assert_eq!(growth(Some(7), Some(5)), Some(-2));
        assert_eq!(growth(None, Some(5)), None);
    }

    #[test]
    fn the_middle_and_the_ends() {
        let spread = Spread::of([3.0, 1.0, 2.0, 10.0].map(Some)).expect("four");
        assert_eq!((spread.median, spread.min, spread.max, spread.count), (2.5, 1.0, 10.0, 4));
        assert_eq!(Spread::of([Some(1.0), None]), None);
        assert_eq!(Spread::of([]), None);
    }
}
