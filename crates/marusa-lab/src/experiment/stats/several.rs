//! More than two arms: each comparison with the first may be wrong, so the error probability is shared out among them. Holm's
//! procedure (1979) keeps the probability of even one wrong claim below alpha, whatever the figures have to do with each other,
//! and loses less than Bonferroni's.

/// For each comparison the alpha at which its interval excludes 0 just when Holm's procedure claims it. `p`: of each
/// comparison.
pub fn alphas(p: &[f64], alpha: f64) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|one, other| p[*one].total_cmp(&p[*other]));
    let mut alphas = vec![alpha; p.len()];
    let mut stopped = None;
    for (rank, at) in order.into_iter().enumerate() {
        let own = alpha / (p.len() - rank) as f64;
        alphas[at] = *stopped.get_or_insert(own);
        if p[at] <= own && stopped == Some(own) {
            // It is claimed; the next is tried at a larger alpha.
            stopped = None;
        }
    }
    alphas
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Holm's adjusted p: claimed at every alpha from it on.
    fn adjusted(p: &[f64]) -> Vec<f64> {
        let mut order: Vec<usize> = (0..p.len()).collect();
        order.sort_by(|one, other| p[*one].total_cmp(&p[*other]));
        let mut adjusted = vec![1.0; p.len()];
        let mut most: f64 = 0.0;
        for (rank, at) in order.into_iter().enumerate() {
            most = most.max(p[at] * (p.len() - rank) as f64).min(1.0);
            adjusted[at] = most;
        }
        adjusted
    }

    #[test]
    fn holm_by_hand() {
        // R: p.adjust(c(0.01, 0.04, 0.03), "holm") is 0.03 0.06 0.06.
        let all = adjusted(&[0.01, 0.04, 0.03]);
        assert!(
            all.iter().zip([0.03, 0.06, 0.06]).all(|(found, wanted)| (found - wanted).abs() < 1e-12),
            "{all:?}"
        );
        assert_eq!(adjusted(&[0.9, 0.8]), [1.0, 1.0]);
        assert!(adjusted(&[]).is_empty());
    }

    #[test]
    fn what_is_claimed_by_its_own_alpha_is_claimed_by_holm() {
        let mut random = fastrand::Rng::with_seed(2);
        for _ in 0..500 {
            let p: Vec<f64> = (0..random.usize(1..6)).map(|_| random.f64() * 0.1).collect();
            let (adjusted, alphas) = (adjusted(&p), alphas(&p, 0.05));
            for at in 0..p.len() {
                assert_eq!(p[at] <= alphas[at], adjusted[at] <= 0.05, "{p:?} {alphas:?} {adjusted:?}");
            }
        }
        assert_eq!(alphas(&[0.5], 0.05), [0.05]);
        assert_eq!(alphas(&[0.001, 0.5], 0.05), [0.025, 0.05]);
        assert_eq!(alphas(&[0.04, 0.5], 0.05), [0.025, 0.025], "it stops at the first that is not claimed");
    }
}
