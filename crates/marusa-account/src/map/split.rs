//! Splitting bytes over several owners in proportion, so that the parts sum to the whole exactly: each gets its quota
//! rounded down, and those with the largest remainders one byte more (Hamilton's method).

use super::types::{Figures, Share};
use crate::base::Bytes;

/// Splits the figures of a span over its shares, by what they reserve.
pub fn split(whole: &Figures, shares: &mut [Share]) {
    if let [only] = shares {
        only.figures = whole.clone();
        return;
    }
    let wanted: Vec<Bytes> = shares.iter().map(|share| share.figures.reserved).collect();
    let weights = apportion(whole.reserved, &wanted);
    for (share, reserved) in shares.iter_mut().zip(&weights) {
        share.figures = Figures { reserved: *reserved, ..Figures::default() };
    }
    let mut give = |total: Bytes, set: &dyn Fn(&mut Figures, Bytes)| {
        if total > 0 {
            let parts = apportion(total, &weights);
            shares.iter_mut().zip(parts).for_each(|(share, part)| set(&mut share.figures, part));
        }
    };
    give(whole.committed, &|figures, part| figures.committed = part);
    give(whole.aliased, &|figures, part| figures.aliased = part);
    give(whole.swapped, &|figures, part| figures.swapped = part);
    give(whole.proportional, &|figures, part| figures.proportional = part);
    give(whole.sharing_unknown, &|figures, part| figures.sharing_unknown = part);
    give(whole.anonymous, &|figures, part| figures.anonymous = part);
    for (kind, bytes) in &whole.by_page_kind {
        give(*bytes, &|figures, part| {
            figures.resident += part;
            if part > 0 {
                figures.by_page_kind.insert(*kind, part);
                *figures.by_page_size.entry(kind.page_bytes()).or_default() += part;
            }
        });
    }
    // The kinds hold the sizes; without them there are only these.
    let sizes = if whole.by_page_kind.is_empty() { Some(&whole.by_page_size) } else { None };
    for (size, bytes) in sizes.into_iter().flatten() {
        give(*bytes, &|figures, part| {
            figures.resident += part;
            if part > 0 {
                figures.by_page_size.insert(*size, part);
            }
        });
    }
}

/// `total` in proportion to `weights`; where they are all 0, the first has it all.
pub fn apportion(total: Bytes, weights: &[Bytes]) -> Vec<Bytes> {
    let sum: u128 = weights.iter().map(|weight| u128::from(*weight)).sum();
    if sum == u128::from(total) {
        return weights.to_vec();
    }
    let mut parts = vec![0; weights.len()];
    if sum == 0 {
        parts.iter_mut().take(1).for_each(|part| *part = total);
        return parts;
    }
    let mut remainders: Vec<(u128, usize)> = Vec::with_capacity(weights.len());
    let mut left = total;
    for (index, weight) in weights.iter().enumerate() {
        // Neither factor is above 2^64 - 1, and a quota is at most `total`.
        let product = u128::from(total) * u128::from(*weight);
        parts[index] = (product / sum) as Bytes;
        left -= parts[index];
        remainders.push((product % sum, index));
    }
    remainders.sort_unstable_by_key(|(remainder, index)| (std::cmp::Reverse(*remainder), *index));
    for (_, index) in remainders.into_iter().take(left as usize) {
        parts[index] += 1;
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::os::page_kind::{Backing, PageKind};
    use std::collections::BTreeMap;

    #[test]
    fn parts_sum_to_the_whole_however_odd_it_is() {
        assert_eq!(apportion(10, &[1, 1, 1]), [4, 3, 3]);
        assert_eq!(apportion(4096, &[4000, 90, 6]), [4000, 90, 6]);
        assert_eq!(apportion(1, &[3, 5, 2]), [0, 1, 0]);
        assert_eq!(apportion(7, &[0, 0]), [7, 0]);
        assert_eq!(apportion(7, &[0, 9]), [0, 7]);
        assert_eq!(apportion(u64::MAX, &[u64::MAX, u64::MAX, 1]).iter().map(|p| *p as u128).sum::<u128>(), {
            u64::MAX as u128
        });
        for total in [0, 1, 13, 4095, 4096, 65_537] {
            for weights in [&[1, 2, 3][..], &[7, 7, 7, 7, 7, 1], &[4096, 1], &[u64::MAX, 3, 1 << 40]] {
                let parts = apportion(total, weights);
                assert_eq!(parts.iter().sum::<u64>(), total, "{total} over {weights:?}");
            }
        }
    }

    #[test]
    fn every_figure_of_a_span_is_split_and_sums_exactly() {
        let whole = Figures {
            reserved: 0x3001,
            committed: 0x3001,
            resident: 0x2fff,
            aliased: 1,
            swapped: 2,
            proportional: 0x1777,
            sharing_unknown: 5,
            anonymous: 0x1001,
            by_page_size: [(4096, 0x2000), (65_536, 0xfff)].into(),
            by_page_kind: BTreeMap::new(),
        };
        let share = |owner, reserved| Share { owner, figures: Figures { reserved, ..Figures::default() } };
        let mut shares = [share(0, 3), share(1, 3), share(2, 1)];
        split(&whole, &mut shares);
        let mut sum = Figures::default();
        for share in &shares {
            sum.add(&share.figures);
            assert_eq!(share.figures.by_page_size.values().sum::<u64>(), share.figures.resident);
        }
        assert_eq!(sum, whole);
        let halves = PageKind { entry_bytes: 4096, ..PageKind::of_folio(Backing::Anonymous, 2 << 20) };
        let by_page_kind = [(PageKind::small(Backing::File), 0x1001), (halves, 0xfff)].into();
        let whole =
            Figures { resident: 0x2000, by_page_size: [(4096, 0x2000)].into(), by_page_kind, ..whole };
        let mut shares = [share(0, 3), share(1, 3), share(2, 1)];
        split(&whole, &mut shares);
        let mut sum = Figures::default();
        shares.iter().for_each(|share| sum.add(&share.figures));
        assert_eq!(sum, whole);
    }
}
