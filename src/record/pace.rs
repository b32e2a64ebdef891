//! How often a JVM is looked at, and how closely. A look at the kernel's sums and the runtime's counters costs a tenth of a
//! millisecond and is taken each time; an account costs tens of milliseconds and is taken when memory moved or the last one
//! is old, within a budget of CPU time that all JVMs share. Near its limit a JVM is looked at more often, and its account is
//! worth more than the budget: it may be the last one. Pure: times come from outside.

use crate::base::Bytes;
use std::time::Duration;

/// An account is due when this share of what was resident moved, and at least so much.
const MOVED_SHARE: u64 = 100;
const MOVED_BYTES: Bytes = 8 << 20;
/// What the budget saves up at most: two accounts of a large JVM.
const SAVED_SECONDS_MAX: f64 = 0.2;
/// What an account is taken to cost before one was read.
const COST_FIRST: Duration = Duration::from_millis(25);
/// A limit is near when less than this share of it is left, or when it is reached at this speed within so many seconds.
const NEAR_SHARE: u64 = 10;
/// One that was hit since is near when less than this share is left: a group full of cached pages of files hits its limit all
/// the time.
const HIT_SHARE: u64 = 4;
const NEAR_SECONDS: f64 = 20.0;
/// Near it, looks come so many times as often, but no more often than this.
const FASTER: u32 = 10;
const FASTEST: Duration = Duration::from_millis(100);
/// And accounts take up to this share of a core.
const NEAR_BUDGET: f64 = 0.10;

/// CPU time that may be used.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    /// Of one core.
    share: f64,
    saved_seconds: f64,
}

impl Budget {
    pub fn new(share: f64) -> Budget {
        Budget { share, saved_seconds: SAVED_SECONDS_MAX }
    }

    /// Time went by.
    pub fn earn(&mut self, passed: Duration) {
        self.saved_seconds =
            (self.saved_seconds + passed.as_secs_f64() * self.share).min(SAVED_SECONDS_MAX.max(self.share));
    }

    /// CPU time was used; what was too much is paid back before the next account.
    pub fn spend(&mut self, used: Duration) {
        self.saved_seconds -= used.as_secs_f64();
    }

    /// Whether all that was used is paid.
    pub fn is_paid(&self) -> bool {
        self.saved_seconds > 0.0
    }

    fn allows(&self, cost: Duration) -> bool {
        // Looks cost a little, too: all that can be saved is never quite there.
        self.saved_seconds >= cost.as_secs_f64().min(SAVED_SECONDS_MAX * 0.9)
    }
}

/// What is known of one JVM when it is to be decided.
#[derive(Clone, Copy, Debug, Default)]
pub struct State {
    /// Since its last account; `None`: it has none.
    pub since: Option<Duration>,
    /// CPU time that the last account took.
    pub cost: Option<Duration>,
    /// Resident at the last account, and now.
    pub resident_then: Bytes,
    pub resident_now: Bytes,
    pub is_near: bool,
    /// Its last reading was given up, or nothing is known of it and those of its user were: how long the next one waits
    /// (`trust`). Its budget is that of all such JVMs.
    pub suspect: Option<Duration>,
}

impl State {
    fn moved(&self) -> bool {
        let moved = self.resident_then.abs_diff(self.resident_now);
        moved >= MOVED_BYTES.max(self.resident_then / MOVED_SHARE)
    }

    /// How much an account is wanted, at least 1 where it is due; higher comes first.
    pub fn urgency(&self, account_every: Duration) -> f64 {
        if self.suspect.is_some() {
            return 0.0;
        }
        let Some(since) = self.since else { return f64::INFINITY };
        let age = since.as_secs_f64() / account_every.as_secs_f64().max(1e-3);
        match () {
            () if self.is_near => 1e6 + age,
            () if self.moved() => 2.0 + age,
            () => age,
        }
    }

    /// Whether the account is twice as old as it may be: the budget does not do.
    pub fn is_late(&self, account_every: Duration) -> bool {
        self.suspect.is_none() && self.since.is_some_and(|since| since > 2 * account_every)
    }

    /// Whether the account is read now.
    pub fn is_due(&self, account_every: Duration, budget: &Budget) -> bool {
        if let Some(wait) = self.suspect {
            return budget.is_paid() && self.since.is_none_or(|since| since >= wait);
        }
        let cost = self.cost.unwrap_or(COST_FIRST);
        let Some(since) = self.since else { return true };
        if self.is_near {
            return since.as_secs_f64() >= cost.as_secs_f64() / NEAR_BUDGET;
        }
        // Half the interval is for rounds that come a moment early.
        self.urgency(account_every) >= 0.999 && budget.allows(cost)
    }
}

/// Where a control group stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    pub limit_bytes: Bytes,
    pub left_bytes: Bytes,
    /// "max" of memory.events: how often the group was at its limit.
    pub hits: u64,
}

/// Whether a JVM may be killed soon.
pub fn is_near(before: Option<(Limit, Duration)>, now: Limit) -> bool {
    if now.left_bytes < now.limit_bytes / NEAR_SHARE {
        return true;
    }
    let Some((before, passed)) = before else { return false };
    let taken = before.left_bytes.saturating_sub(now.left_bytes) as f64;
    let speed = taken / passed.as_secs_f64().max(1e-3);
    let is_hit = now.hits > before.hits && now.left_bytes < now.limit_bytes / HIT_SHARE;
    is_hit || speed > 0.0 && (now.left_bytes as f64) < speed * NEAR_SECONDS && taken > 1e6
}

/// The time from one look to the next.
pub fn interval(every: Duration, is_near: bool) -> Duration {
    if is_near { (every / FASTER).max(FASTEST).min(every) } else { every }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn state() -> State {
        State {
            since: Some(3 * SECOND),
            cost: Some(Duration::from_millis(25)),
            resident_then: 1 << 32,
            resident_now: 1 << 32,
            is_near: false,
            suspect: None,
        }
    }

    #[test]
    fn one_that_was_given_up_waits_and_takes_nothing_from_the_others() {
        let mut shared = Budget::new(0.01);
        let suspect = State { suspect: Some(20 * SECOND), is_near: true, ..state() };
        assert!(!suspect.is_due(SECOND, &shared), "3 s ago");
        let old = State { since: Some(30 * SECOND), ..suspect };
        assert!(old.is_due(SECOND, &shared) && !old.is_late(SECOND));
        assert!(old.urgency(SECOND) < state().urgency(SECOND));
        shared.spend(SECOND);
        assert!(!old.is_due(SECOND, &shared), "others like it have used what there was");
        assert!(!State { since: None, ..old }.is_due(SECOND, &shared), "of a user with such JVMs");
    }

    /// Seconds of CPU time that accounts of one JVM take in an hour of looks each second.
    fn hour(share: f64, moves: bool, cost: Duration) -> (f64, usize) {
        let mut budget = Budget::new(share);
        let (mut since, mut used, mut accounts) = (None, 0.0, 0);
        for second in 0..3600 {
            budget.earn(SECOND);
            budget.spend(Duration::from_micros(200));
            used += 2e-4;
            let resident_now = if moves { (1 << 32) + (second << 26) } else { 1 << 32 };
            let now = State { since, resident_now, cost: Some(cost), ..state() };
            if now.is_due(10 * SECOND, &budget) {
                budget.spend(cost);
                (since, used, accounts) = (Some(Duration::ZERO), used + cost.as_secs_f64(), accounts + 1);
            }
            since = since.map(|since: Duration| since + SECOND);
        }
        (used, accounts)
    }

    #[test]
    fn a_still_jvm_has_an_account_each_ten_seconds_and_a_moving_one_what_the_budget_gives() {
        let (used, accounts) = hour(0.01, false, Duration::from_millis(25));
        assert!((350..=370).contains(&accounts) && used < 12.0, "{accounts} {used}");
        let (used, accounts) = hour(0.01, true, Duration::from_millis(25));
        assert!(accounts > 1000 && used <= 36.3, "{accounts} {used}");
        let (used, accounts) = hour(0.01, true, Duration::from_millis(400));
        assert!(accounts > 50 && used < 38.0, "a costly one comes seldom: {accounts} {used}");
    }

    #[test]
    fn the_first_account_and_one_near_the_limit_do_not_wait_for_the_budget() {
        let mut poor = Budget::new(0.01);
        poor.spend(10 * SECOND);
        assert!(!State { since: Some(60 * SECOND), ..state() }.is_due(10 * SECOND, &poor));
        assert!(State { since: None, ..state() }.is_due(10 * SECOND, &poor));
        let near = State { is_near: true, since: Some(Duration::from_millis(300)), ..state() };
        assert!(near.is_due(10 * SECOND, &poor));
        assert!(!State { since: Some(Duration::from_millis(100)), ..near }.is_due(10 * SECOND, &poor));
        assert!(near.urgency(SECOND) > state().urgency(SECOND));
        assert!(state().is_late(SECOND) && !state().is_late(2 * SECOND));
        assert!(!State { since: None, ..state() }.is_late(SECOND), "it has none yet");
    }

    #[test]
    fn a_limit_is_near_by_what_is_left_by_speed_and_by_being_hit() {
        let limit = |left_bytes, hits| Limit { limit_bytes: 1 << 30, left_bytes, hits };
        assert!(is_near(None, limit(50 << 20, 0)));
        assert!(!is_near(None, limit(500 << 20, 3)));
        assert!(is_near(Some((limit(600 << 20, 0), SECOND)), limit(500 << 20, 0)), "five seconds from it");
        assert!(!is_near(Some((limit(501 << 20, 0), SECOND)), limit(500 << 20, 0)));
        assert!(is_near(Some((limit(200 << 20, 3), SECOND)), limit(200 << 20, 4)));
        assert!(!is_near(Some((limit(500 << 20, 3), SECOND)), limit(500 << 20, 4)), "caches are dropped");
        assert_eq!(interval(SECOND, true), Duration::from_millis(100));
        assert_eq!(interval(Duration::from_millis(50), true), Duration::from_millis(50));
        assert_eq!(interval(SECOND, false), SECOND);
    }
}
