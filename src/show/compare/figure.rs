//! Figures of all units in few digits: three that count, so that arms can be distinguished and columns stay narrow.

use crate::experiment::stats::Scale;
use crate::experiment::trial_record::Unit;
use crate::show::plot::grouped;
use crate::show::units::human;

/// "9.90 s", "412.0 MiB", "1,234".
pub fn value(value: f64, unit: &Unit) -> String {
    match unit {
        Unit::Seconds if value < 1.0 => format!("{} ms", digits(value * 1e3)),
        Unit::Seconds => format!("{} s", digits(value)),
        Unit::Milliseconds => format!("{} ms", digits(value)),
        Unit::Bytes => human(value.max(0.0) as u64),
        Unit::Count => thousands(value),
        Unit::Percent => format!("{} %", digits(value)),
        Unit::Own(unit) if unit.is_empty() => digits(value),
        Unit::Own(unit) => format!("{} {unit}", digits(value)),
    }
}

/// A difference without its sign: "5.0 %", or in the unit of the figure.
pub fn size(difference: f64, scale: Scale, unit: &Unit) -> String {
    match scale {
        Scale::Percent => percent(difference.abs()),
        Scale::Unit => value(difference.abs(), unit),
    }
}

pub fn percent(value: f64) -> String {
    match value {
        value if value >= 100.0 => format!("{value:.0} %"),
        value if value >= 0.95 => format!("{value:.1} %"),
        value => format!("{value:.2} %"),
    }
}

/// "-5.0 %", "+1,234".
pub fn signed(difference: f64, scale: Scale, unit: &Unit) -> String {
    let sign = if difference < 0.0 { "-" } else { "+" };
    format!("{sign}{}", size(difference, scale, unit))
}

/// Three that count; whole numbers beyond.
fn digits(value: f64) -> String {
    match value.abs() {
        size if size >= 1000.0 => thousands(value),
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        size if size >= 1.0 || size == 0.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

fn thousands(value: f64) -> String {
    if value.fract() != 0.0 && value.abs() < 100.0 {
        return format!("{value:.1}");
    }
    grouped(&format!("{value:.0}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_digits_that_count() {
        assert_eq!(value(9.904, &Unit::Seconds), "9.90 s");
        assert_eq!(value(0.0123, &Unit::Seconds), "12.3 ms");
        assert_eq!(value(1234567.0, &Unit::Count), "1,234,567");
        assert_eq!(value(3.5, &Unit::Count), "3.5");
        assert_eq!(value(432013312.0, &Unit::Bytes), "412.0 MiB");
        assert_eq!(value(12345.6, &Unit::Own("op/s".into())), "12,346 op/s");
        assert_eq!(value(0.0, &Unit::Own(String::new())), "0.00");
        assert_eq!(signed(-5.04, Scale::Percent, &Unit::Seconds), "-5.0 %");
        assert_eq!(signed(0.25, Scale::Percent, &Unit::Seconds), "+0.25 %");
        assert_eq!(signed(1500.0, Scale::Unit, &Unit::Count), "+1,500");
    }
}
