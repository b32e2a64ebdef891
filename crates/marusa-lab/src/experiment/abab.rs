//! The loop of `marusa pages prove`: there, back, back, there, measured each time, until the rule says what is shown. It knows
//! neither processes nor pages: what switches, measures and waits is given, so that it is tested without any.

use super::design::{self, Arm};
use super::stats::Estimate;
use super::verdict::{Rule, Verdict};
use crate::base::{Bytes, Gap};
use crate::os::machine::base_page;
use schemars::JsonSchema;
use serde::Serialize;

/// What the loop needs of the world. An `Err(End)` ends it, and what was measured until then counts.
pub trait World {
    /// Brings the target's memory to this arm, and lets it settle.
    fn switch(&mut self, arm: Arm) -> Result<(), End>;
    /// Measures one period; `None` in `value`: nothing was measured, and why is among the gaps.
    fn measure(&mut self) -> Result<Measured, End>;
    /// One more period is complete.
    fn done(&mut self, period: &Period);
}

/// Why it ended before its time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    Signal,
    TargetGone,
    Failed(Gap),
}

/// What one period gave.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema, Serialize)]
pub struct Measured {
    pub value: Option<f64>,
    /// The share of the bytes that change which is on huge pages: the lower of before and after for `Huge`, the higher for `Small`.
    pub huge_share: f64,
    /// What came back of the memory that a split left out: pages of zeros since Linux 6.12 (mm/huge_memory.c), shared memory
    /// always. Each page costs the program a fault, which is the price of the change and not of small pages.
    #[serde(rename = "faulted_in_bytes")]
    pub faulted_in: Bytes,
    /// CPU time of the target; at least a tenth of `seconds`.
    #[serde(skip)]
    pub cpu_seconds: f64,
    pub seconds: f64,
    #[serde(skip)]
    pub gap: Option<Gap>,
}

/// What a fault right after a split cost a server in a virtual machine (docs/experiments/throughput.md, by scripts/prove-server).
const FAULT_SECONDS: f64 = 40e-6;

impl Measured {
    /// Whether `faulted_in` costs less than a quarter of the margin, at the most that a fault may cost.
    pub fn has_settled(&self, margin_percent: f64) -> bool {
        let cost = (self.faulted_in / base_page()) as f64 * FAULT_SECONDS;
        cost <= margin_percent / 400.0 * self.cpu_seconds
    }
}

/// One period of one block.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct Period {
    pub block: usize,
    pub arm: Arm,
    #[serde(flatten)]
    pub measured: Measured,
    /// Why it does not count.
    pub left_out: Option<String>,
}

/// A period counts only when memory was on the pages of its arm: at least, at most this share on huge ones.
const HUGE_SHARE_MIN: f64 = 0.9;
const SMALL_SHARE_MAX: f64 = 0.1;
/// The blocks that may be left out for each one that counts, before the search is given up.
const LEFT_OUT_MAX: usize = 3;

/// All that was measured.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct Outcome {
    pub periods: Vec<Period>,
    #[serde(rename = "gain_percent")]
    pub estimate: Option<Estimate>,
    pub verdict: Verdict,
    /// Blocks of which all four periods count.
    pub blocks: usize,
    #[serde(skip)]
    pub end: Option<End>,
}

/// `lower_is_better`: as with time or cycles. `coin`: which arm begins a block.
pub fn run(
    world: &mut dyn World,
    rule: &Rule,
    lower_is_better: bool,
    mut coin: impl FnMut() -> bool,
) -> Outcome {
    let mut periods: Vec<Period> = Vec::new();
    let mut logs: Vec<f64> = Vec::new();
    for block in 0.. {
        let first = periods.len();
        for arm in design::block(coin()) {
            match one_period(world, arm) {
                Ok(measured) => {
                    let left_out = left_out(arm, &measured, rule.margin_percent);
                    periods.push(Period { block, arm, measured, left_out });
                    world.done(&periods[periods.len() - 1]);
                }
                Err(end) => return early(periods, &logs, rule, end),
            }
        }
        logs.extend(gain(&periods[first..], lower_is_better));
        if let Some((found, Some(verdict))) = rule.look(&logs) {
            let blocks = logs.len();
            return Outcome { periods, estimate: Some(found), verdict, blocks, end: None };
        }
        if (block + 1).saturating_sub(logs.len()) > LEFT_OUT_MAX.max(logs.len() * LEFT_OUT_MAX) {
            let gap = periods.iter().rev().find_map(|period| period.left_out.clone()).unwrap_or_default();
            let gap = Gap::new(format!("most periods do not count; the last: {gap}"), crate::base::Why::Torn);
            return early(periods, &logs, rule, End::Failed(gap));
        }
    }
    unreachable!("the last block of the rule is a sample that ends")
}

fn one_period(world: &mut dyn World, arm: Arm) -> Result<Measured, End> {
    world.switch(arm)?;
    world.measure()
}

fn early(periods: Vec<Period>, logs: &[f64], rule: &Rule, end: End) -> Outcome {
    let look = rule.last_look(logs);
    Outcome {
        periods,
        estimate: look.map(|(found, _)| found),
        verdict: look.map_or(Verdict::NotShown, |(_, verdict)| verdict),
        blocks: logs.len(),
        end: Some(end),
    }
}

fn left_out(arm: Arm, measured: &Measured, margin: f64) -> Option<String> {
    let share = measured.huge_share * 100.0;
    match (arm, measured.value) {
        (_, None) => Some(measured.gap.as_ref().map_or("no value".to_string(), Gap::to_string)),
        (_, Some(value)) if !(value.is_finite() && value > 0.0) => {
            Some(format!("the value {value} is not a rate"))
        }
        (Arm::Huge, _) if measured.huge_share < HUGE_SHARE_MIN => {
            Some(format!("only {share:.0} % were on 2 MiB pages"))
        }
        (Arm::Small, _) if measured.huge_share > SMALL_SHARE_MAX => {
            Some(format!("{share:.0} % were still on 2 MiB pages"))
        }
        (Arm::Small, _) if !measured.has_settled(margin) => {
            let mib = measured.faulted_in as f64 / f64::from(1 << 20);
            Some(format!("{mib:.1} MiB faulted in that the split had left out; a longer --settle helps"))
        }
        _ => None,
    }
}

/// The logarithm of speed with huge pages / speed with small ones in one block; `None`: a period of it does not count.
fn gain(block: &[Period], lower_is_better: bool) -> Option<f64> {
    let mut sums = [0.0, 0.0];
    for period in block {
        let value = period.measured.value.filter(|_| period.left_out.is_none())?;
        sums[usize::from(period.arm == Arm::Huge)] += value.ln();
    }
    let faster = (sums[1] - sums[0]) / (design::PERIODS / 2) as f64;
    Some(if lower_is_better { -faster } else { faster })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A program whose speed drifts, and which is `gain` faster on huge pages.
    struct Fake {
        arm: Arm,
        gain: f64,
        drift: f64,
        random: fastrand::Rng,
        time: f64,
        gets_pages: bool,
        faults: u64,
        ends_after: usize,
        saved: usize,
    }

    fn fake(gain: f64) -> Fake {
        let random = fastrand::Rng::with_seed(5);
        Fake {
            arm: Arm::Small,
            gain,
            drift: 0.02,
            random,
            time: 0.0,
            gets_pages: true,
            faults: 0,
            ends_after: 1000,
            saved: 0,
        }
    }

    impl World for Fake {
        fn switch(&mut self, arm: Arm) -> Result<(), End> {
            self.arm = arm;
            self.time += 1.0;
            Ok(())
        }
        fn measure(&mut self) -> Result<Measured, End> {
            if self.saved >= self.ends_after {
                return Err(End::TargetGone);
            }
            let noise = 1.0 + 0.02 * (self.random.f64() - 0.5);
            let faster = if self.arm == Arm::Huge { 1.0 + self.gain } else { 1.0 };
            let huge_share = f64::from(u8::from(self.arm == Arm::Huge && self.gets_pages));
            let value = Some(100.0 * (1.0 + self.drift * self.time) * noise * faster);
            let pages = if self.arm == Arm::Small { self.faults } else { 0 };
            let faulted_in = pages * base_page();
            Ok(Measured { value, huge_share, faulted_in, cpu_seconds: 1.0, seconds: 1.0, gap: None })
        }
        fn done(&mut self, _: &Period) {
            self.saved += 1;
        }
    }

    fn search(fake: &mut Fake, lower_is_better: bool) -> Outcome {
        let mut coins = fastrand::Rng::with_seed(1);
        run(fake, &Rule::default(), lower_is_better, || coins.bool())
    }

    #[test]
    fn a_gain_is_found_in_spite_of_a_drift_and_its_sign_is_that_of_the_metric() {
        let mut program = fake(0.2);
        let outcome = search(&mut program, false);
        let found = outcome.estimate.expect("an interval");
        assert_eq!((outcome.verdict, outcome.end), (Verdict::Gain, None));
        assert!(found.low_percent < 20.0 && found.high_percent > 20.0, "{found:?}");
        assert_eq!(program.saved, outcome.periods.len(), "each period was handed out at once");
        assert_eq!(search(&mut fake(0.2), true).verdict, Verdict::Loss, "more nanoseconds are worse");
        assert_eq!(search(&mut fake(0.0), false).verdict, Verdict::TooSmall);
    }

    #[test]
    fn an_arm_that_did_not_get_its_pages_does_not_count() {
        let mut program = fake(0.2);
        program.gets_pages = false;
        let outcome = search(&mut program, false);
        assert_eq!((outcome.blocks, outcome.verdict), (0, Verdict::NotShown));
        let End::Failed(gap) = outcome.end.expect("given up") else { panic!("failed") };
        assert!(gap.what.contains("only 0 % were on 2 MiB pages"), "{gap}");
    }

    #[test]
    fn a_period_that_pays_for_the_split_does_not_count() {
        // 125 faults of 40 µs are 0.5 % of a second, a quarter of the margin.
        let mut program = Fake { faults: 124, ..fake(0.2) };
        assert_eq!(search(&mut program, false).verdict, Verdict::Gain);
        program.faults = 12_000;
        let outcome = search(&mut program, false);
        let End::Failed(gap) = outcome.end.expect("given up") else { panic!("failed") };
        assert!(gap.what.contains("46.9 MiB faulted in that the split had left out"), "{gap}");
    }

    #[test]
    fn what_was_measured_until_the_target_ended_counts() {
        let mut program = fake(0.5);
        program.ends_after = 11;
        let outcome = search(&mut program, false);
        assert_eq!((outcome.end, outcome.blocks, outcome.periods.len()), (Some(End::TargetGone), 2, 11));
        assert!(outcome.estimate.is_some());
    }
}
