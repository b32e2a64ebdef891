use super::*;

struct Series(fastrand::Rng);

impl Series {
    /// `count` figures around `mean` with 2 % of noise.
    fn around(&mut self, mean: f64, count: usize) -> Vec<f64> {
        (0..count).map(|_| mean * (1.0 + 0.02 * ((0..12).map(|_| self.0.f64()).sum::<f64>() - 6.0))).collect()
    }

    fn of(seed: u64, parts: &[(f64, usize)]) -> Vec<f64> {
        let mut series = Series(fastrand::Rng::with_seed(seed));
        parts.iter().flat_map(|(mean, count)| series.around(*mean, *count)).collect()
    }
}

fn found(values: &[f64]) -> WarmUp {
    find(values, true).expect("enough figures")
}

#[test]
fn a_warm_up_is_found_where_it_ends() {
    let values = Series::of(1, &[(300.0, 8), (150.0, 12), (100.0, 60)]);
    let warm = found(&values);
    assert_eq!(warm.shape, Shape::WarmUp);
    assert!(warm.steady_from.is_some_and(|from| (18..=22).contains(&from)), "{warm:?}");
    assert!((warm.mean(&values).expect("steady") - 100.0).abs() < 2.0);
    assert_eq!(find(&values, false).map(|warm| warm.shape), Ok(Shape::SlowDown), "300 a second were better");
}

#[test]
fn a_short_series_will_do_and_too_short_a_one_is_a_gap() {
    let warm = found(&Series::of(2, &[(200.0, 4), (100.0, 16)]));
    assert_eq!(warm.shape, Shape::WarmUp);
    assert!(warm.steady_from.is_some_and(|from| (3..=6).contains(&from)), "{warm:?}");
    assert!(find(&[1.0; COUNT_MIN - 1], true).is_err());
    assert!(find(&[f64::NAN; 20], true).is_err());
}

#[test]
fn noise_is_flat_in_all_but_few_of_many_series() {
    let shapes: Vec<Shape> = (0..300).map(|seed| found(&Series::of(seed, &[(100.0, 40)])).shape).collect();
    let flat = shapes.iter().filter(|shape| **shape == Shape::Flat).count();
    assert!(flat >= 297, "{flat} of 300");
    assert_eq!(found(&[5.0; 30]).shape, Shape::Flat, "no noise at all");
}

#[test]
fn single_outliers_change_nothing() {
    let mut values = Series::of(3, &[(200.0, 10), (100.0, 60)]);
    for at in [25, 40, 61] {
        values[at] = 900.0;
    }
    let warm = found(&values);
    assert_eq!(outliers(&values), [25, 40, 61]);
    assert!(
        warm.shape == Shape::WarmUp && warm.steady_from.is_some_and(|from| (9..=12).contains(&from)),
        "{warm:?}"
    );
    assert_eq!(warm.segments.last().map(|segment| segment.end), Some(70));
    assert!(warm.segments.windows(2).all(|pair| pair[0].end == pair[1].start), "{warm:?}");
}

#[test]
fn what_changes_to_the_end_has_no_steady_state() {
    let drift: Vec<f64> = Series::of(4, &[(100.0, 80)])
        .iter()
        .enumerate()
        .map(|(at, value)| value * (1.0 + 0.02 * at as f64))
        .collect();
    assert_eq!(found(&drift).steady_from, None);
    let late = found(&Series::of(5, &[(100.0, 50), (150.0, 10)]));
    assert_eq!((late.shape, late.steady_from), (Shape::NoSteadyState, None));
    let slower = found(&Series::of(6, &[(100.0, 30), (130.0, 40)]));
    assert_eq!(slower.shape, Shape::SlowDown);
}

#[test]
fn pelt_finds_what_trying_all_cuts_finds() {
    for seed in 0..20 {
        let values = Series::of(seed, &[(100.0, 9), (140.0, 8), (120.0, 8)]);
        let sums = Sums::of(&values);
        let penalty = 15.0 * (values.len() as f64).ln();
        let mut best = vec![f64::INFINITY; values.len() + 1];
        best[0] = -penalty;
        for end in SEGMENT_MIN..=values.len() {
            let whole = (0..=end - SEGMENT_MIN).map(|start| best[start] + sums.cost(start, end) + penalty);
            best[end] = whole.fold(f64::INFINITY, f64::min);
        }
        let cut = segments(&values);
        let cost: f64 = cut.iter().map(|one| sums.cost(one.start, one.end) + penalty).sum::<f64>() - penalty;
        assert!((cost - best[values.len()]).abs() < 1e-6, "seed {seed}: {cost} and {}", best[values.len()]);
    }
}

#[test]
fn a_long_series_is_looked_at_in_means() {
    let warm = found(&Series::of(7, &[(200.0, 3000), (100.0, 9000)]));
    assert!(warm.steady_from.is_some_and(|from| (2990..=3020).contains(&from)), "{:?}", warm.steady_from);
    assert_eq!(warm.segments.last().map(|segment| segment.end), Some(12_000));
}
