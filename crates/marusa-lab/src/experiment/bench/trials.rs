//! Trials of arms that take turns, whatever is measured in them: which of them say something about their arm, and what those come
//! to. An arm gets its pages or its trial does not count.

use super::rounds::{Mean, Ratio};
use super::spread::Spread;
use crate::base::{Gap, Known};
use crate::experiment::arm_pages::{ArmError, Verified};
use crate::experiment::order;
use crate::os::busy::Others;
use crate::pages::Step;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One way to run what is measured.
pub trait Arm: PartialEq + Clone {
    fn name(&self) -> String;

    /// The one that stands for all arms with which it is compared.
    fn group(&self) -> Self {
        self.clone()
    }
}

/// The arms of a round, by number: in an order by chance, and each group's next to each other, so that what drifts over minutes
/// meets them alike.
pub fn order<A: Arm>(seed: u64, round: usize, arms: &[A]) -> Vec<usize> {
    let drawn = order::block(seed, round, arms.len());
    let first = |at: &usize| drawn.iter().position(|other| arms[*other].group() == arms[*at].group());
    let mut gathered = drawn.clone();
    gathered.sort_by_key(first);
    gathered
}

/// One run of an arm, with its figures.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Trial<A, F> {
    pub round: usize,
    pub arm: A,
    /// Why it says nothing about its arm; `None`: it counts.
    pub not_counted: Option<String>,
    #[serde(flatten)]
    pub figures: F,
    /// Before and after what is measured: the worse of both counts.
    pub pages: Vec<Verified>,
    pub gaps: Vec<Gap>,
    /// What others on the machine took while it ran; `None`: not known.
    #[serde(default)]
    pub others: Option<Others>,
}

impl<A, F: Default> Trial<A, F> {
    pub fn of(round: usize, arm: A) -> Trial<A, F> {
        let figures = F::default();
        Trial { round, arm, not_counted: None, figures, pages: Vec::new(), gaps: Vec::new(), others: None }
    }
}

impl<A, F> Trial<A, F> {
    /// The first reason is the one that is reported.
    pub fn discount(&mut self, why: impl Into<String>) {
        self.not_counted.get_or_insert_with(|| why.into());
    }

    /// Of what could not be measured the trial says nothing.
    pub fn failed(&mut self, gap: Gap) {
        self.discount(gap.to_string());
        self.gaps.push(gap);
    }

    /// A reading of the page tables: an arm that did not get its pages says nothing about them.
    pub fn saw(&mut self, seen: Known<Verified>) {
        match seen {
            Ok(seen) => {
                if !seen.met {
                    self.discount(seen.why.clone().unwrap_or_else(|| seen.text.clone()));
                }
                self.pages.push(seen);
            }
            Err(gap) => {
                self.discount(format!("its pages cannot be verified: {gap}"));
                self.gaps.push(gap);
            }
        }
    }

    /// The share of the heap that lay on the wanted pages, at worst.
    fn page_share(&self) -> Option<f64> {
        self.pages.iter().filter_map(Verified::share).reduce(f64::min)
    }
}

/// What an arm runs, and what changes on the host for it. `M`: what is known of it before it runs.
pub struct Arranged<M> {
    pub options: Vec<String>,
    pub more: M,
    pub steps: Vec<Step>,
}

/// What would be done for an arm.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct Planned<A, M> {
    pub arm: A,
    pub options: Vec<String>,
    /// On the host.
    pub steps: Vec<String>,
    pub why_not: Option<String>,
    #[serde(flatten)]
    pub more: M,
}

impl<A, M: Default> Planned<A, M> {
    pub fn of(arm: A, arranged: Result<Arranged<M>, ArmError>) -> Planned<A, M> {
        match arranged {
            Ok(Arranged { options, more, steps }) => {
                let steps = steps.into_iter().map(|step| step.what).collect();
                Planned { arm, options, steps, why_not: None, more }
            }
            Err(error) => {
                let why_not = Some(error.to_string());
                Planned { arm, options: Vec::new(), steps: Vec::new(), why_not, more: M::default() }
            }
        }
    }
}

/// The trials of one arm, and among them the ones that say something about it.
pub struct OfArm<'a, A, F> {
    pub arm: &'a A,
    /// Of all arms.
    pub trials: &'a [Trial<A, F>],
    pub all: Vec<&'a Trial<A, F>>,
    pub counted: Vec<&'a Trial<A, F>>,
}

impl<'a, A: Arm, F> OfArm<'a, A, F> {
    pub fn among(trials: &'a [Trial<A, F>], arm: &'a A) -> OfArm<'a, A, F> {
        let all: Vec<_> = trials.iter().filter(|trial| trial.arm == *arm).collect();
        let counted = all.iter().copied().filter(|trial| trial.not_counted.is_none()).collect();
        OfArm { arm, trials, all, counted }
    }

    pub fn mean(&self, of: &dyn Fn(&F) -> Option<f64>) -> Option<Mean> {
        Mean::of(self.counted.iter().filter_map(|trial| of(&trial.figures)))
    }

    /// Of the trials in which the figure is known.
    pub fn spread(&self, of: &dyn Fn(&F) -> Option<f64>) -> Option<Spread> {
        Spread::of(self.counted.iter().filter_map(|trial| of(&trial.figures)).map(Some))
    }

    pub fn highest(&self, of: &dyn Fn(&F) -> Option<f64>) -> Option<f64> {
        self.counted.iter().filter_map(|trial| of(&trial.figures)).reduce(f64::max)
    }

    pub fn row<S>(&self, figures: S) -> ArmRow<A, S> {
        ArmRow {
            arm: self.arm.clone(),
            trials: self.all.len(),
            counted: self.counted.len(),
            page_share_min: self.counted.iter().filter_map(|trial| trial.page_share()).reduce(f64::min),
            figures,
            why_not: self.all.iter().find_map(|trial| trial.not_counted.clone()),
        }
    }
}

/// What the trials of an arm come to.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct ArmRow<A, S> {
    pub arm: A,
    pub trials: usize,
    pub counted: usize,
    /// The share of the heap on the wanted pages, in the worst trial that counts.
    pub page_share_min: Option<f64>,
    #[serde(flatten)]
    pub figures: S,
    /// The first reason why a trial does not count.
    pub why_not: Option<String>,
}

/// By what factor a figure of one arm differs from that of another, round by round.
pub fn ratio<A: Arm, F>(
    trials: &[Trial<A, F>],
    base: &A,
    arm: &A,
    of: &dyn Fn(&F) -> Option<f64>,
) -> Option<Ratio> {
    Ratio::of(pairs(trials, base, arm, of))
}

/// The same figure of two arms, round by round.
pub(crate) fn pairs<A: Arm, F, V>(
    trials: &[Trial<A, F>],
    base: &A,
    arm: &A,
    of: &dyn Fn(&F) -> Option<V>,
) -> Vec<(V, V)> {
    let others = OfArm::among(trials, arm).counted;
    let pair = |one: &Trial<A, F>| {
        let other = others.iter().find(|other| other.round == one.round)?;
        Some((of(&one.figures)?, of(&other.figures)?))
    };
    OfArm::among(trials, base).counted.into_iter().filter_map(pair).collect()
}
