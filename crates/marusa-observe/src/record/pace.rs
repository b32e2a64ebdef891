//! How often a JVM is looked at, and how closely. A reading of the kernel's sums and the runtime's counters costs a tenth of a
//! millisecond and is taken each time; an account costs tens of milliseconds and is taken when memory moved or the last one
//! is old, within a budget of CPU time of which each JVM has its own part. Near its limit a JVM is looked at more often, and its
//! account comes on top of the budget, within a second one: it may be the last. Pure: times come from outside.

use crate::base::Bytes;
use std::time::Duration;

/// An account is due when this share of the resident bytes moved, and at least the minimum below.
const MOVED_SHARE: u64 = 100;
const MOVED_BYTES: Bytes = 8 << 20;
/// What one JVM, or the pool, saves up at most: two accounts of a large JVM.
const SAVED_SECONDS_MAX: f64 = 0.2;
/// What an account is taken to cost before one was read.
const COST_FIRST: Duration = Duration::from_millis(25);
/// A limit is near when less than this share of it is left, or when it is reached at this speed within `NEAR_SECONDS`.
const NEAR_SHARE: u64 = 10;
/// One that was hit since is near when less than this share is left: a group full of cached pages of files hits its limit all
/// the time.
const HIT_SHARE: u64 = 4;
const NEAR_SECONDS: f64 = 20.0;
/// Near it, samples come this many times as often, up to the maximum rate below.
const FASTER: u32 = 10;
const FASTEST: Duration = Duration::from_millis(100);
/// Accounts of all JVMs near their limits take up to this share of a core on top of the budget.
pub const NEAR_BUDGET: f64 = 0.10;
/// What JVMs whose reading was given up may use together, and the search for new JVMs, as a part of the budget.
const SUSPECTS_SHARE: f64 = 0.1;
/// An account older than this, or than three times what was asked for, is late: the recording says so.
const LATE: Duration = Duration::from_secs(60);

/// CPU time in seconds that was earned and not used yet; a debt where it is negative.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Purse(f64);

impl Purse {
    /// What does not fit is given back.
    fn earn(&mut self, seconds: f64, most: f64) -> f64 {
        let now = self.0 + seconds;
        self.0 = now.min(most.max(self.0));
        now - self.0
    }

    pub fn spend(&mut self, used: Duration) {
        self.0 -= used.as_secs_f64();
    }

    fn is_paid(self) -> bool {
        self.0 > 0.0
    }
}

/// Which CPU time an account is read on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Payer {
    /// Its JVM's own, and what other JVMs do not need.
    Own,
    /// The extra share of JVMs near their limits.
    Near,
    /// The small share of what took too long before.
    Suspects,
    /// Its JVM's part for accounts with holders, or for class histograms, and what other JVMs do not need.
    Holders,
    Classes,
}

/// The budget of a recorder. Each JVM earns the same part of it, which no other JVM can use; what a JVM does not need goes to
/// a pool for the ones that need more than their part.
#[derive(Clone, Debug)]
pub struct Shares {
    /// Share of one core.
    share: f64,
    pool: Purse,
    near: Purse,
    suspects: Purse,
}

impl Shares {
    pub fn new(share: f64) -> Shares {
        let full = Purse(SAVED_SECONDS_MAX);
        Shares { share, pool: full, near: full, suspects: full }
    }

    /// Shares out the income of `passed`. `overhead`: CPU time used outside accounts. `jvms`: the purses, and the cost of the
    /// last account. A JVM whose holders or classes are recorded has one more for each.
    pub fn earn<'a>(
        &mut self,
        passed: Duration,
        overhead: Duration,
        jvms: impl ExactSizeIterator<Item = (&'a mut Purse, Option<Duration>)>,
    ) {
        let seconds = passed.as_secs_f64();
        self.near.earn(seconds * NEAR_BUDGET, SAVED_SECONDS_MAX);
        self.suspects.earn(seconds * self.share * SUSPECTS_SHARE, SAVED_SECONDS_MAX);
        self.pool.spend(overhead);
        let mut income = seconds * self.share * (1.0 - SUSPECTS_SHARE);
        // Debts of JVMs that are gone, and the overhead, come first.
        let debt = (-self.pool.0).clamp(0.0, income);
        self.pool.0 += debt;
        income -= debt;
        let each = income / jvms.len().max(1) as f64;
        let mut left = if jvms.len() == 0 { income } else { 0.0 };
        for (purse, cost) in jvms {
            let most = cost.map_or(0.0, |cost| cost.as_secs_f64() * 1.1).max(SAVED_SECONDS_MAX);
            left += purse.earn(each, most);
        }
        self.pool.earn(left, SAVED_SECONDS_MAX.max(self.share));
    }

    pub fn spend(&mut self, payer: Payer, own: &mut Purse, used: Duration) {
        match payer {
            Payer::Near => self.near.spend(used),
            Payer::Suspects => self.suspects.spend(used),
            Payer::Own | Payer::Holders | Payer::Classes => {
                // Own time first, then the pool's; what is still missing is the JVM's debt.
                let used = used.as_secs_f64();
                let of_pool = (used - own.0.max(0.0)).clamp(0.0, self.pool.0.max(0.0));
                self.pool.0 -= of_pool;
                own.0 -= used - of_pool;
            }
        }
    }

    /// A JVM is gone: its debt stays.
    pub fn inherit(&mut self, own: Purse) {
        self.pool.0 += own.0.min(0.0);
    }

    /// Whether what is suspect, and the search for new JVMs, may use CPU time now.
    pub fn allows_suspects(&self) -> bool {
        self.suspects.is_paid()
    }

    pub fn spend_on_search(&mut self, used: Duration) {
        self.suspects.spend(used);
    }

    /// Whether what costs this may be read: `own` is the JVM's part for it.
    pub fn allows(&self, own: Purse, cost: Duration) -> bool {
        own.0 + self.pool.0.max(0.0) >= cost.as_secs_f64()
    }
}

/// What is known of one JVM when it is to be decided.
#[derive(Clone, Copy, Debug, Default)]
pub struct State {
    /// Since its last account; `None`: it has none.
    pub since: Option<Duration>,
    /// Since it was found.
    pub age: Duration,
    /// CPU time that the last account took.
    pub cost: Option<Duration>,
    /// Resident at the last account, and now.
    pub resident_then: Bytes,
    pub resident_now: Bytes,
    pub is_near: bool,
    /// Its last reading was given up, or nothing is known of it and those of its user were: how long the next one waits
    /// (`trust`).
    pub suspect: Option<Duration>,
    pub own: Purse,
}

/// What holds for all JVMs.
#[derive(Clone, Copy, Debug)]
pub struct Asked {
    pub account_every: Duration,
    /// How many JVMs are near their limits.
    pub near: usize,
}

impl State {
    fn moved(&self) -> bool {
        let moved = self.resident_then.abs_diff(self.resident_now);
        moved >= MOVED_BYTES.max(self.resident_then / MOVED_SHARE)
    }

    fn cost(&self) -> Duration {
        self.cost.unwrap_or(COST_FIRST)
    }

    /// How much an account is wanted, at least 1 where it is due; higher comes first. It is the age of the account in
    /// intervals, so that one that is wanted often does not keep others from their turn.
    pub fn urgency(&self, asked: Asked) -> f64 {
        let intervals = |age: Duration, every: f64| age.as_secs_f64() / every.max(1e-3);
        if self.suspect.is_some() {
            return 0.0;
        }
        let every = asked.account_every.as_secs_f64();
        let Some(since) = self.since else { return 3.0 + intervals(self.age, every) };
        if self.is_near {
            return intervals(since, every.min(self.near_interval(asked)));
        }
        intervals(since, every) + if self.moved() { 2.0 } else { 0.0 }
    }

    /// Seconds from one account to the next near the limit.
    fn near_interval(&self, asked: Asked) -> f64 {
        self.cost().as_secs_f64() * asked.near.max(1) as f64 / NEAR_BUDGET
    }

    /// Whether the account is much older than it may be: the budget does not do, or it cannot be read.
    pub fn is_late(&self, account_every: Duration) -> bool {
        self.since.unwrap_or(self.age) > LATE.max(3 * account_every)
    }

    /// Whether the account is read now, and on whose time.
    pub fn is_due(&self, asked: Asked, shares: &Shares) -> Option<Payer> {
        if let Some(wait) = self.suspect {
            let is_time = self.since.is_none_or(|since| since >= wait);
            return (shares.suspects.is_paid() && is_time).then_some(Payer::Suspects);
        }
        let Some(since) = self.since else {
            // Whatever the first one costs, it is paid back later.
            return shares.allows(self.own, Duration::from_nanos(1)).then_some(Payer::Own);
        };
        if self.is_near && shares.near.is_paid() && since.as_secs_f64() >= self.near_interval(asked) {
            return Some(Payer::Near);
        }
        // Half the interval is for rounds that come a moment early.
        let is_due = State { is_near: false, ..*self }.urgency(asked) >= 0.999;
        (is_due && shares.allows(self.own, self.cost())).then_some(Payer::Own)
    }
}

/// Where a cgroup stands.
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

/// The time from one sample to the next.
pub fn interval(every: Duration, is_near: bool) -> Duration {
    if is_near { (every / FASTER).max(FASTEST).min(every) } else { every }
}

#[cfg(test)]
#[path = "pace_tests.rs"]
mod tests;
