//! Figures of several runs as the tables of the experiments show them.

use crate::experiment::bench::spread::Spread;
use crate::experiment::bench::trim::Ratio;
use crate::map::Account;
use crate::map::model::GapRow;
use crate::show::units::paragraph;
use std::io::{self, Write};

const MIB: f64 = 1048576.0;

/// As many lines as it takes.
pub fn lines(out: &mut dyn Write, text: &str) -> io::Result<()> {
    paragraph(out, "", "", text)
}

/// What does not fit into a line goes on below, set in.
pub fn hanging(out: &mut dyn Write, text: &str) -> io::Result<()> {
    paragraph(out, "", "  ", text)
}

/// The middle in MiB, "-" where it is not known.
pub fn mib(spread: Option<Spread>) -> String {
    spread.map_or("-".to_string(), |spread| format!("{:.1}", spread.median / MIB))
}

/// "66.5 (66.5 to 66.7) MiB".
pub fn range(spread: Option<Spread>) -> String {
    match spread {
        None => "-".to_string(),
        Some(one) if one.count == 1 => format!("{:.1} MiB", one.median / MIB),
        Some(one) => {
            format!("{:.1} ({:.1} to {:.1}) MiB", one.median / MIB, one.min / MIB, one.max / MIB)
        }
    }
}

/// The middle, without a unit.
pub fn plain(spread: Option<Spread>, decimals: usize) -> String {
    spread.map_or("-".to_string(), |spread| format!("{:.decimals$}", spread.median))
}

/// A share that something is off by: "0.12 %".
pub fn off(share: Option<f64>) -> String {
    share.map_or("?".to_string(), |share| format!("{:.2} %", share * 100.0))
}

/// "1.02 (1.00 to 1.04)".
pub fn ratio(ratio: Option<Ratio>) -> String {
    ratio.map_or("-".to_string(), |one| format!("{:.3} ({:.3} to {:.3})", one.ratio, one.low, one.high))
}

/// What was not known, once each.
pub fn gaps<'a>(accounts: impl Iterator<Item = &'a Account>) -> Vec<&'a GapRow> {
    let mut gaps: Vec<&GapRow> = Vec::new();
    for gap in accounts.flat_map(|account| &account.gaps) {
        if !gaps.iter().any(|one| one.what == gap.what) {
            gaps.push(gap);
        }
    }
    gaps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_and_their_absence() {
        let spread = Spread::of([1048576.0, 3145728.0].map(Some));
        assert_eq!(mib(spread), "2.0");
        assert_eq!(range(spread), "2.0 (1.0 to 3.0) MiB");
        assert_eq!((mib(None).as_str(), range(None).as_str(), off(None).as_str()), ("-", "-", "?"));
        assert_eq!(off(Some(0.00123)), "0.12 %");
        assert_eq!(ratio(None), "-");
    }
}
