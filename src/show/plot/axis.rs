//! From figures to places: a scale with round steps.

/// A scale from `low` to `high`, drawn from `from` to `to`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Axis {
    pub low: f64,
    pub high: f64,
    pub from: f64,
    pub to: f64,
    pub step: f64,
}

/// Steps that people count in, and how many of them fit.
const STEPS: [f64; 4] = [1.0, 2.0, 2.5, 5.0];

impl Axis {
    /// Around all the values, with room at both ends; `holds`: a value that must be on it, as 0.
    pub fn around(
        values: impl Iterator<Item = f64>,
        holds: Option<f64>,
        from: f64,
        to: f64,
        steps: usize,
    ) -> Axis {
        let values = values.filter(|value| value.is_finite()).chain(holds);
        let (low, high) = values
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)));
        let (low, high) = match low <= high {
            true => (low, high),
            false => (0.0, 1.0),
        };
        // Figures that are all alike would make a scale without length.
        let widest = low.abs().max(high.abs());
        let room = ((high - low) * 0.04).max(if widest > 0.0 { widest * 1e-3 } else { 1.0 });
        let low_end = if holds == Some(low) { low } else { low - room };
        let high_end = if holds == Some(high) && low < high { high } else { high + room };
        let step = step((high_end - low_end) / steps.max(1) as f64);
        Axis { low: low_end, high: high_end, from, to, step }
    }

    /// The axis for counted things: no step between two of them.
    pub(super) fn whole(self) -> Axis {
        let steps = [self.step, self.step * 2.0, self.step * 4.0];
        let step = steps.into_iter().find(|step| step.fract() == 0.0).unwrap_or(self.step.ceil());
        Axis { step, ..self }
    }

    pub fn place(&self, value: f64) -> f64 {
        // NaN is not drawn, but has a place anyway.
        let value = if value.is_nan() { self.low } else { value };
        let share = ((value - self.low) / (self.high - self.low)).clamp(0.0, 1.0);
        self.from + (self.to - self.from) * share
    }

    /// The round values on it.
    pub fn ticks(&self) -> Vec<f64> {
        let first = (self.low / self.step).ceil();
        let count = (((self.high / self.step).floor() - first).max(0.0) as usize + 1).min(50);
        let tick = |at: usize| (first + at as f64) * self.step;
        (0..count).map(tick).filter(|tick| *tick <= self.high + self.step * 1e-9).collect()
    }

    /// A tick with as many decimals as the steps have.
    pub fn label(&self, value: f64) -> String {
        let value = if value.abs() < self.step * 1e-6 { 0.0 } else { value };
        if self.step >= 1e6 || self.step < 1e-5 {
            return format!("{value:.3e}");
        }
        let decimals = (0..6).find(|decimals| {
            let scaled = self.step * 10_f64.powi(*decimals);
            (scaled - scaled.round()).abs() < 1e-6
        });
        grouped(&format!("{value:.*}", decimals.unwrap_or(6) as usize))
    }
}

/// "1234567.5" as "1,234,567.5".
pub fn grouped(text: &str) -> String {
    let (sign, rest) = text.strip_prefix('-').map_or(("", text), |rest| ("-", rest));
    let (whole, decimals) =
        rest.split_once('.').map_or((rest, String::new()), |(whole, rest)| (whole, format!(".{rest}")));
    let mut parted = String::new();
    for (at, digit) in whole.chars().enumerate() {
        if at > 0 && (whole.len() - at) % 3 == 0 {
            parted.push(',');
        }
        parted.push(digit);
    }
    format!("{sign}{parted}{decimals}")
}

fn step(least: f64) -> f64 {
    let magnitude = 10_f64.powf(least.max(1e-300).log10().floor());
    STEPS.iter().map(|step| step * magnitude).find(|step| *step >= least).unwrap_or(10.0 * magnitude)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_round_and_few() {
        let axis = Axis::around([103.0, 171.0].into_iter(), None, 0.0, 100.0, 6);
        assert_eq!(axis.ticks(), [120.0, 140.0, 160.0]);
        assert_eq!((axis.place(axis.low), axis.place(axis.high)), (0.0, 100.0));
        let small = Axis::around([0.001, 0.0042].into_iter(), Some(0.0), 0.0, 100.0, 5);
        assert_eq!(
            small.ticks().iter().map(|tick| small.label(*tick)).collect::<Vec<_>>(),
            ["0.000", "0.001", "0.002", "0.003", "0.004"]
        );
        let large = Axis::around([0.0, 123_456.0].into_iter(), None, 0.0, 1.0, 4);
        assert!(large.ticks().iter().any(|tick| large.label(*tick) == "100,000"), "{:?}", large.ticks());
    }

    #[test]
    fn runs_are_counted_in_whole_numbers() {
        let runs = |last: f64| Axis::around([1.0, last].into_iter(), None, 0.0, 100.0, 8).whole();
        assert_eq!((runs(18.0).step, runs(3.0).step, runs(100.0).step), (5.0, 1.0, 20.0));
    }

    #[test]
    fn odd_values_make_no_odd_scale() {
        for values in
            [vec![], vec![5.0], vec![0.0, 0.0], vec![f64::NAN, 1.0], vec![-1e300, 1e300], vec![1e-300]]
        {
            let axis = Axis::around(values.clone().into_iter(), None, 0.0, 10.0, 5);
            assert!(axis.low < axis.high && axis.step > 0.0, "{values:?} {axis:?}");
            assert!(
                axis.ticks().len() <= 50 && axis.place(values.first().copied().unwrap_or(1.0)).is_finite()
                    || values.first().is_some_and(|value| value.is_nan())
            );
        }
    }
}
